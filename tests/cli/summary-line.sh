# Source lines by "Call stack", and by python_function events.
stack='src/model/net.py(12): forward;src/train.py(40): main'
cat >stacks.json <<EOF
{"traceEvents": [
{"ph":"X","cat":"cpu_op","name":"aten::linear","pid":9,"tid":9,"ts":0,"dur":30,"args":{"External id":1,"Sequence number":3,"Fwd thread id":0,"Call stack":"torch/nn/functional.py(2): linear;$stack"}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":5,"dur":20,"args":{"External id":2,"Call stack":"torch/nn/functional.py(2): linear;$stack"}},
{"ph":"X","cat":"cpu_op","name":"aten::item","pid":9,"tid":9,"ts":200,"dur":50,"args":{"External id":3,"Call stack":"/usr/lib/python3.11/contextlib.py(81): inner;/srv/me/projects/training/a_long_name/metrics.py(7): log"}},
{"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: MmBackward0","pid":9,"tid":10,"ts":100,"dur":10,"args":{"External id":4,"Sequence number":3,"Fwd thread id":1}},
{"ph":"X","cat":"python_function","name":"src/train.py(30): main","pid":9,"tid":9,"ts":0,"dur":300,"args":{}},
{"ph":"X","cat":"user_annotation","name":"range","pid":9,"tid":9,"ts":0,"dur":300,"args":{}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":20,"dur":40,"args":{"External id":2,"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":120,"dur":80,"args":{"External id":4,"device":0,"stream":7,"correlation":2}},
{"ph":"X","cat":"kernel","name":"other","pid":0,"tid":7,"ts":300,"dur":10,"args":{"device":0,"stream":7,"correlation":3}}
]}
EOF
cat >functions.json <<'EOF'
{"traceEvents": [
{"ph":"X","cat":"python_function","name":"train.py(10): main","pid":9,"tid":9,"ts":0,"dur":100},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":5,"dur":20,"args":{"External id":2}}
]}
EOF
sed '/python_function/d' functions.json >none.json
gtrace summary --by line stacks.json | sed -n '/^Lines/,$p'
gtrace summary --by line --sort name --limit 2 stacks.json | sed -n '/^Lines/,$p'
gtrace summary --by line --sort self_cpu --filter 'metrics|no line' stacks.json | sed -n '/^Lines/,$p'
gtrace summary --by line --format markdown stacks.json | sed -n '/^### Lines/,$p'
gtrace summary --by line --format csv stacks.json
gtrace summary --by line --format json stacks.json | python3 -c '
import json, sys
print(*json.load(sys.stdin)["files"][0]["lines"], sep="\n")'
gtrace summary --by line functions.json | sed -n '/^Lines/,$p'
gtrace summary --by line none.json
gtrace summary --by line --filter nothing functions.json | tail -n 1
try gtrace summary --by line,op functions.json
try gtrace summary --by line --stack-depth 2 functions.json
