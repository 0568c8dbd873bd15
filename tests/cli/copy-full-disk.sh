# The disk gets full: the copies say so and leave nothing behind.
python3 -c '
import random
event = "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%d\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":1}"
print("{\"traceEvents\":[" + ",\n".join(event % (random.getrandbits(200), i) for i in range(20000)) + "]}")' >trace.json
mkdir small
mounting true
for copy in 'check --repair' 'cut --time 0: -o'; do
	try mounting sh -c "
		mount -t tmpfs -o size=64k none small
		gtrace $copy small/out.json trace.json
		echo status \$?
		gtrace $copy small/out.json.gz trace.json
		echo status \$?
		ls -A small"
done
