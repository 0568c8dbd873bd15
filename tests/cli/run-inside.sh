# What containers take away: a name of the user, HOME, a root file system that can be written, root's
# rights on a network file system, memory. It works, or what to change is said.
[ "$(id -u)" = 0 ] && setpriv --clear-groups true 2>/dev/null && unshare -m true 2>/dev/null ||
	skip 'not root, or root of nothing'
mkdir out && chmod 777 out
chmod 755 .
cp -r "$(dirname "$(command -v gtrace)")"/{gtrace,libgtrace-inject.so,python} "$SIMGPU" .
rm -rf simgpu/obj simgpu/include
export LD_LIBRARY_PATH=$PWD/simgpu
unset XDG_RUNTIME_DIR TMPDIR
here=$PWD
train=("$here/simgpu/train" --tools-at ',2,3,')
# What is said of the trace, and what is wrong.
told() { sed -n 's/.* is complete:.*/complete/p; /warning/p; /run:/p'; }

# a user without a name, a home and an environment
env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" setpriv --reuid 2147418112 --regid 2147418112 \
	--clear-groups ./gtrace run -o out -n nobody -- "${train[@]}" 2>&1 | told

env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" setpriv --reuid 2147418112 --regid 2147418112 \
	--clear-groups ./gtrace doctor -o out | grep -A1 user.passwd

# read_only COMMAND...: on a root file system that cannot be written, but for /dev/shm and out
read_only() {
	mounting bash -ec 'mount --rbind / /mnt
		mount -o remount,bind,ro /mnt
		mount -o remount,bind,ro "/mnt$(stat -c %m "$0")"
		mount -t tmpfs none /mnt/dev/shm
		mount --bind "$0" "/mnt$0"
		exec chroot /mnt "$@"' "$here/out" "$@"
}
read_only "$here/gtrace" run -o "$here/out" -n readonly -- "${train[@]}" 2>&1 | told
read_only "$here/gtrace" run -o "$here" -- "${train[@]}" 2>&1 | told
read_only "$here/gtrace" doctor -o "$here" | grep -e 'dir\.'

# root that is nobody
mkdir squashed && chown 2147418112 squashed && chmod 700 squashed
setpriv --bounding-set -dac_override,-dac_read_search --inh-caps -dac_override,-dac_read_search \
	./gtrace run -o squashed -- "${train[@]}" 2>&1 | told

# a group with 100 MiB left
group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup) limit=memory.max used=memory.current
if grep -q :memory: /proc/self/cgroup; then
	group=/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' /proc/self/cgroup)
	limit=memory.limit_in_bytes used=memory.usage_in_bytes
fi
mounting bash -ec 'mount -t tmpfs none /sys/fs/cgroup
	mkdir -p "$0"
	echo 209715200 >"$0/$1"
	echo 104857600 >"$0/$2"
	shift 2
	exec "$@"' "$group" $limit $used ./gtrace run -o out -n little -- "${train[@]}" 2>&1 | told
ls out
