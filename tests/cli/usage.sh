try() { gtrace "$@"; echo "$? $*"; }
try
try nonsense
try --nonsense
try -x
try help nonsense
try help run summary
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
try run --step-range '' true
gtrace run --step-range "$(printf %1024s x)" true
echo "$? --step-range of 1024 bytes"
try run --step-range step --step-source optimizer true
try run --activities mem true
try run --activities cpu, true
try run --activities cpu,memory true
try run --activities gpu --with-shapes true
try run --activities gpu --with-flops true
try run --with-flops --no-shapes true
try run --activities gpu --with-stack true
try run --activities gpu --with-modules true
try run --activities cpu --cuda-backtrace true
try run --cuda-backtrace= true
try run --cuda-backtrace=10us true
try run --activities mem,gpu --with-stack true
try run --step-source nvtx true
try run --step-source call true
try run --step-call train_step true
try run --step-call :f true
try run --step-call m: true
try run --step-call 'm:f()' true
try run --step-call m:f --step-source api true
try run --step-call m:f --step-range step true
try run --capture-range sometimes true
try run --capture-range nvtx: true
try run --capture-range 'nvtx:(@domain' true
try run --capture-range time true
try run --capture-range nvtx:x --delay 5 true
try run --capture-range steps --duration 1s true
try run --capture-range cuda-profiler --active 5 true
try run --duration 1s --active 2 true
try run --delay 2 --active 3 true
try run --delay 2 --wait 1 true
try run --delay 0 --active 3 true
try run --capture-range nvtx:x --delay 0 true
try run --activities cpu --cuda-graph node true
try run --capture-range cuda-profiler --activities cpu true
try run --capture-range none --capture-end stop true
try run --capture-range none --step-source api true
try run --capture-range nvtx:x --capture-end never true
try run --capture-range nvtx:x --capture-end repeat:0 true
try run --capture-end repeat true
try run --delay 5 --capture-end repeat true
try run --on-demand --delay 5 true
try run --delay soon true
try run --duration 0 true
try run --nsight-args -f true
try run --nsight --cuda-backtrace true
try run --nsight-output x true
try run --nsight --step-range x true
try run --nsight --with-stack true
try run --nsight --tensorboard true
try run --nsight --activities cpu,mem true
try run --nsight --delay 5 true
try run --nsight --on-demand true
try run --nsight --nsight-args "'" true
try run --on-demand --wait 5 true
try run --on-demand --wait 1 true
try run --on-demand --repeat 2 true
try run --on-demand --capture-range nvtx:x true
try run --on-demand --step-source none true
try run --on-demand --warmup 256 true
try run --on-demand --nsight true
try run --rendezvous '' true
try ps now
try ps
try ps --json
try trigger now
try trigger --active 0
try trigger --at-step 0
try trigger --at-step +x
try trigger --session 1 --rendezvous .
try trigger --rendezvous ''
try trigger
try trigger --rendezvous no/such/directory
try trigger --rendezvous .
rm -f gtrace-request
try stop --active 1
try stop
try run --max-buffer 1M true
try run --max-buffer 1T true
try run --name a/b true
try run --name '' true
try run --output-dir '' true
try run --output-dir no/such/directory true
touch file
try run -o file true
mkdir traces
try check traces
try cut --steps 1 -o out.json traces
diff <(gtrace help) <(gtrace --help) && diff <(gtrace help run) <(gtrace run --help) && echo "help is --help"
gtrace --version >/dev/full
echo "$? full"
