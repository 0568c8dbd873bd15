# What gtrace writes is sound.
sim gtrace run -q -- "${train[@]}" >/dev/null 2>&1
mv train-rank0.trace.json.gz train.pt.trace.json.gz
gtrace check train.pt.trace.json.gz | head -n 2

# A trace that is cut, and what --repair makes of it.
cat >cut.pt.trace.json <<'END'
{"schemaVersion": 1, "distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": [
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":1.5,"dur":2,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":5,"dur":2,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"a "b"	c","pid":0,"tid":7,"ts":4,"dur":2,"args":{"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"d
END
try gtrace check cut.pt.trace.json
try gtrace check --repair whole.pt.trace.json.gz - <cut.pt.trace.json
gunzip <whole.pt.trace.json.gz
try gtrace check whole.pt.trace.json.gz
gtrace check --format json whole.pt.trace.json.gz | grep -o '"copy".*"health"'
gtrace summary whole.pt.trace.json.gz | sed -n 2,3p
gtrace check --format json - <cut.pt.trace.json

# OUT is only replaced with --force, and only there when the trace was one.
try gtrace check --repair whole.pt.trace.json.gz cut.pt.trace.json | tail -n 2
chmod 640 cut.pt.trace.json
gtrace check --force --repair cut.pt.trace.json cut.pt.trace.json | head -n 1
stat -c %a cut.pt.trace.json
echo '<html>' >page.json
try gtrace check --repair out.json page.json
try gtrace check --repair no/such/out.json cut.pt.trace.json
try gtrace check --repair . cut.pt.trace.json
try gtrace check no-such-file.json
try gtrace check
try gtrace check one.json two.json
try gtrace check --force cut.pt.trace.json
ls
