# The tables of a trace of the simulated GPU, whose durations never vary.
sim gtrace run -q -- "${train[@]}" >/dev/null 2>&1
try gtrace summary train-rank0.trace.json.gz
gtrace summary --limit 1 - <train-rank0.trace.json.gz 2>/dev/null | grep -A3 '^Kernels'
gtrace summary --format csv train-rank0.trace.json.gz 2>/dev/null | head -n 3
gtrace summary --format json train-rank0.trace.json.gz 2>/dev/null | python3 -c '
import json, sys
print(*sorted(json.load(sys.stdin)["files"][0]))'
