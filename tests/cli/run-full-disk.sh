# The disk is or gets full: gtrace says which file is short and keeps it loadable; the program does
# not notice.
try sh -c 'gtrace --help >/dev/full'
try sh -c 'gtrace run -h >/dev/full'
mkdir small
export SIMGPU
mounting true
for size in 4k 256k; do
	try mounting sh -c "
		mount -t tmpfs -o size=$size none small
		LD_LIBRARY_PATH=\$SIMGPU gtrace run -o small --step-source none -- \
			\"\$SIMGPU/train\" --steps 20000
		status=\$?
		gzip -dc small/*.gz 2>/dev/null | python3 -c 'import json, sys; json.load(sys.stdin)' \
			2>/dev/null && echo it loads
		exit \$status"
done
