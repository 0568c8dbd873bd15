# Ranks of a job, in a directory or named one by one.
rank() { # RANK STEP_US COMM_US
	cat >"job/r$1.pt.trace.json" <<END
{"distributedInfo": {"rank": $1, "world_size": 4}, "traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":9,"ts":0,"dur":$2},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":0,"dur":10,"args":{"device":0}},
{"ph":"X","cat":"kernel","name":"ncclKernel","pid":0,"tid":7,"ts":15,"dur":$3,"args":{"device":0}}
]}
END
}
mkdir job
rank 0 100 20.5
rank 1 130 20
rank 3 110 40
try gtrace summary job
try gtrace summary --limit 1 --format markdown job/r0.pt.trace.json job/r3.pt.trace.json
try gtrace summary --format csv job
gtrace summary --format json job | python3 -c '
import json, sys
job = json.load(sys.stdin)
print(*sorted(job))
print(*sorted(job["files"][0]))
print(job["slowest"], job["least_exposed_comm"], job["missing_ranks"], job["spread"]["idle"])'
try gtrace summary --by rank job/r1.pt.trace.json

# A figure that a file does not have is no 0.
mkdir host
echo '[{"ph":"X","cat":"cpu_op","name":"a","pid":9,"tid":9,"ts":0,"dur":1}]' >host/r0.trace.json
try gtrace summary --format csv host
try gtrace summary --sort mean job
try gtrace summary --by rank --filter x job/r1.pt.trace.json

# One of them, as if it stood alone.
gtrace summary --rank 3 job | head -n 2
try gtrace summary --rank 7 job

# Traces that say that they are not complete, as of a rank that was killed.
mkdir killed
sed '$s/.*/],"gtrace":{"version":"9","complete":true}}/' job/r0.pt.trace.json >killed/r0.trace.json
sed '$s/.*/],"gtrace":{"version":"9","complete":false,"reason":"it \\u001b ended"}}/' \
	job/r1.pt.trace.json >killed/r1.trace.json
try gtrace summary --by rank killed | head -n 6
try gtrace summary --format csv killed
gtrace summary --format json killed 2>/dev/null | grep -o '"complete":[a-z]*'

# Some that are no traces, or not all of one.
head -c 330 job/r1.pt.trace.json >job/cut.pt.trace.json
echo '<html>' >job/page.trace.json
try gtrace summary --by rank job | head -n 6

# Without a file: the newest here.
try gtrace summary
cp job/cut.pt.trace.json old.trace.json
touch -d 2020-01-01 old.trace.json
cp job/page.trace.json new.trace.json
try gtrace summary
rm new.trace.json
gtrace summary 2>/dev/null | head -n 1
try gtrace summary --by size
