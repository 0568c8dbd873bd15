# One step out of three, and what is linked to it.
sim gtrace run -q -- "${train[@]}" >/dev/null 2>&1
gtrace cut --steps 4 -o step.pt.trace.json.gz train-rank0.trace.json.gz 2>/dev/null
gtrace check step.pt.trace.json.gz | grep -v '^warning T-DOUBT' | sed 's/[0-9.]* ms/N ms/; s/sound.*/sound/; s/[0-9]* event/N event/'
gunzip -c step.pt.trace.json.gz | grep -o '"gtrace_copy.*what[^,]*'

cat >trace.json <<'END'
{"schemaVersion": 1, "distributedInfo": {"rank": 3, "world_size": 8}, "traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":0,"dur":10},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":9,"tid":9,"ts":10,"dur":10},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":5,"dur":2,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":12,"dur":2,"args":{"device":0,"stream":7,"correlation":1}}
]}
END
try gtrace cut --steps :1 --category kernel -o part.json trace.json
gtrace cut --category ' kernel , cuda_runtime ' -o part.json -f trace.json 2>&1
rm part.json
gtrace cut --steps :1 --category kernel -o part.json trace.json 2>/dev/null
cat part.json
gtrace summary part.json | sed -n 2,3p
# Repaired, it still is a part.
gtrace check --repair repaired.json part.json >/dev/null 2>&1
gtrace summary repaired.json | sed -n 2,3p
try gtrace cut --time 11us:1s -o part.json trace.json
try gtrace cut --time 11us:1s -fo part.json trace.json
grep traceEvents -A2 part.json
try gtrace cut --steps 3:4 -o none.json trace.json
try gtrace cut --device 1 -o none.json trace.json
try gtrace cut --category kernle -o none.json trace.json
try gtrace cut --steps 1 -o - trace.json
try gtrace cut --steps 1 -o none.json no-such-file.json
try gtrace cut --steps 1 -o none.json <(cat trace.json) 2>&1 | sed 's,/dev/fd/[0-9]*,PIPE,'

# Not a command line: exit status 2.
try gtrace cut
try gtrace cut trace.json
try gtrace cut -o none.json trace.json
try gtrace cut --steps 1 -o none.json -
try gtrace cut --steps 4:3 -o none.json trace.json
try gtrace cut --steps x -o none.json trace.json
try gtrace cut --steps : -o none.json trace.json
try gtrace cut --time 5 -o none.json trace.json
try gtrace cut --time 5h: -o none.json trace.json
try gtrace cut --time -1: -o none.json trace.json
ls
