# Of some steps, GPUs and streams: GPU work goes with its launch.
cat >trace.json <<'END'
{"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":0,"dur":10},
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#2","pid":9,"tid":9,"ts":10,"dur":10},
{"ph":"X","cat":"cpu_op","name":"first","pid":9,"tid":9,"ts":1,"dur":8,"args":{"External id":5}},
{"ph":"X","cat":"cpu_op","name":"second","pid":9,"tid":9,"ts":11,"dur":8,"args":{"External id":6}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":5,"dur":2,"args":{"External id":5,"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":15,"dur":2,"args":{"External id":6,"correlation":2}},
{"ph":"X","cat":"kernel","name":"k1","pid":0,"tid":7,"ts":12,"dur":2,"args":{"External id":5,"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"k2","pid":1,"tid":20,"ts":18,"dur":3,"args":{"External id":6,"device":1,"stream":20,"correlation":2}}
]}
END
for part in '' '--steps 1' '--steps 2:' '--device 1' '--stream 7'; do
	echo "$part"
	gtrace summary $part --by op --format csv trace.json | cut -d, -f 3-7,13
done
try gtrace summary --steps 1 trace.json
try gtrace summary --steps 3:4 trace.json
try gtrace summary --device 2 trace.json
try gtrace summary --device 1 --stream 7 trace.json
try gtrace summary --stream 8 - <trace.json
try gtrace summary --steps 1 - <trace.json
try gtrace summary --steps 1 <(cat trace.json) 2>&1 | sed 's,/dev/fd/[0-9]*,PIPE,'
try gtrace summary --steps 2:1 trace.json
try gtrace summary --steps 1 trace.json trace.json

# Steps that the filter takes, and no more than the limit.
for part in '--filter #2' '--filter Step --limit 1' '--filter no'; do
	gtrace summary --by step $part trace.json | sed 1,/deepest/d | sed 1,2d
	gtrace summary --by step $part --format csv trace.json
	gtrace summary $part --format csv trace.json | sed -n /^step/p
	gtrace summary --by step $part --format json trace.json | sed -n 's/.*name":\(.*Step#.\).*/\1/p'
done
