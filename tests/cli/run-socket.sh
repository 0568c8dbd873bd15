# Directories that take no socket are passed over; with none left the command still runs, untraced.
mkdir -p "$(printf 'long%.0s' {1..40})"
XDG_RUNTIME_DIR=/no/such TMPDIR=$PWD/$(printf 'long%.0s' {1..40}) try sim gtrace run -q -- "$SIMGPU/train"
ls *.gz
unshare -rm true 2>/dev/null || skip 'no mount namespace to hide /tmp in'
export SIMGPU
XDG_RUNTIME_DIR=/no/such TMPDIR=/no/such try unshare -rm sh -c '
	mkdir empty && mount --bind "$PWD" /mnt && mount -t tmpfs -o ro none /tmp &&
	cd /mnt && LD_LIBRARY_PATH=$SIMGPU exec gtrace run -o /mnt -n none -- "$SIMGPU/train"'
ls
