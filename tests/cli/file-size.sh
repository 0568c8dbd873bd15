# At the limit of ulimit -f nobody dies of what gtrace writes.
[ -x "$SIMGPU/train" ] || skip 'the simulated GPU is not built'
truncate -s 16M full
try sim bash -c 'ulimit -f 16384; exec gtrace run --max-buffer 8M -- "$SIMGPU/train" --steps 100 --step-us 5000 --exit-status 5 2>>full'
# The library has to say that there is no room for its memory, and cannot.
truncate -s 256K full
try sim bash -c 'ulimit -f 256; exec gtrace run -- "$SIMGPU/train" --steps 100 --step-us 5000 --exit-status 5 2>>full'
sim gtrace run -q -n large --force -- "$SIMGPU/train" --steps 40
for command in 'cut --steps 0: -o part.json' 'check --repair part.json'; do
	try bash -c "ulimit -f 4; exec gtrace $command large-rank0.trace.json.gz" | grep -v '^sound\|^warning'
done
# Nor of what is read; the cause is the first one, whatever failed since then.
try bash -c 'ulimit -f 0; exec gtrace summary large-rank0.trace.json.gz >table'
printf '{"traceEvents":[%s"dur":1},%s"args":{}}]}' \
	{,}'{"ph":"X","cat":"kernel","name":"'"$(printf %05000d 1)"'","ts":1,"pid":0,' >lossy.json
try sh -c 'gtrace summary --format json lossy.json >/dev/full'
rm table lossy.json
ls
