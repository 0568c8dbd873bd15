# Directories that take no socket are passed over; with none left the command still runs, untraced.
mkdir -p "$(printf 'long%.0s' {1..40})"
XDG_RUNTIME_DIR=/no/such TMPDIR=$PWD/$(printf 'long%.0s' {1..40}) try sim gtrace run -q -- "$SIMGPU/train"
ls *.gz
export SIMGPU
mounting true
XDG_RUNTIME_DIR=/no/such TMPDIR=/no/such try mounting sh -c '
	mkdir empty && mount --bind "$PWD" /mnt && mount -t tmpfs -o ro none /tmp &&
	mount -t tmpfs -o ro none /dev/shm &&
	cd /mnt && LD_LIBRARY_PATH=$SIMGPU exec gtrace run -o /mnt -n none -- "$SIMGPU/train"'
ls
