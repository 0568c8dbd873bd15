try() { gtrace "$@"; echo "$? $*"; }
try
try nonsense
try --nonsense
try -x
try run
try run --
try run --activ 3 true
try run --active 0 true
try run --active -1 true
try run --active=1000000001 true
try run --active 99999999999999999999999 true
try run --active three true
try run --repeat
try run --wait=1 --skip-first-wait=1 true
try run --step-source sometimes true
try run --step-range '(' true
try run --activities mem true
try run --activities cpu, true
try run --activities gpu --with-stack true
try run --activities gpu --with-modules true
try run --step-source nvtx true
try run --step-source call true
try run --step-call train_step true
try run --step-call :f true
try run --step-call m: true
try run --step-call 'm:f()' true
try run --step-call m:f --step-source api true
try run --step-call m:f --step-range step true
try run --max-buffer 1M true
try run --max-buffer 1T true
try run --name a/b true
try run --name '' true
try run --output-dir '' true
try run --output-dir no/such/directory true
touch file
try run -o file true
gtrace --version >/dev/full
echo "$? full"
