# Each table alone, in each format.
cat >trace.json <<'END'
{"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":0,"dur":100},
{"ph":"X","cat":"user_annotation","name":"forward","pid":9,"tid":9,"ts":1,"dur":60},
{"ph":"X","cat":"cpu_op","name":"aten::item","pid":9,"tid":9,"ts":2,"dur":40,"args":{"External id":5}},
{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":9,"tid":9,"ts":3,"dur":5,"args":{"External id":5,"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":9,"tid":9,"ts":10,"dur":30,"args":{"External id":5,"correlation":2}},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":9,"tid":9,"ts":50,"dur":4,"args":{"correlation":3}},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":9,"tid":"other","ts":50,"dur":6,"args":{"correlation":4}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":0,"tid":7,"ts":20,"dur":2,"args":{"device":0,"stream":7,"correlation":1,"bytes":4096}},
{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":21,"dur":5,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel","pid":1,"tid":"stream 20","ts":21,"dur":5,"args":{"device":1}},
{"ph":"X","cat":"some \u001bthing","name":"x","pid":9,"tid":9,"ts":0,"dur":1},
{"ph":"M","name":"thread_name","pid":9,"tid":9,"args":{"name":"thread 9 (\"p\u0079thon3\")"}}
]}
END
for key in category step stream thread annotation memcpy blocking; do
	gtrace summary --by $key trace.json | sed 1,/deepest/d | sed 1,2d
	gtrace summary --by $key --format csv trace.json
	gtrace summary --by $key --format markdown --limit 1 trace.json | tail -n 1
	gtrace summary --by $key --format json trace.json | python3 -c '
import json, sys
file = json.load(sys.stdin)["files"][0]
for key in "categories", "streams", "threads", "blocking_by_op":
    if key in file:
        print(key, *file[key], sep="\n  ")'
done

gtrace summary --by annotation --filter backward trace.json | tail -n 1
for key in op shape stack; do
	gtrace summary --by $key --filter backward trace.json | sed 1,/deepest/d | sed 1,2d
done
gtrace summary --by shape,stack trace.json | sed -n '/^Operators/,$p'

try gtrace summary --ncu nccl trace.json
try gtrace summary --ncu gemm trace.json
try gtrace summary --ncu k trace.json trace.json
for other in '--by kernel' '--format json' '--sort mean' '--filter k' '--limit 1' '--stack-depth 2' \
	'--device 0' '--stream 7'; do
	try gtrace summary --ncu k $other trace.json
done
try gtrace summary --ncu k --steps 1 trace.json
