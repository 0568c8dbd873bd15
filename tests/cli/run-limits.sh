# Where descriptors, threads or the size of files do not suffice, the program runs all the same.
mkdir out
chmod 777 out
try sh -c 'ulimit -n 9; gtrace run -o out -- sh -c "echo ran; exit 3"'
try sh -c 'ulimit -n 20; gtrace run -o out -- sh -c "echo ran; exit 3"'
try sh -c 'ulimit -f 1; gtrace run -o out -- echo started'
# Nobody else has this user's processes; root knows no limit of them. The build may be where only
# root can read.
as_user() { env -u BASH_ENV setpriv --reuid 2147418112 --regid 2147418112 --clear-groups "$@"; }
chmod 755 .
cp -r "$(dirname "$(command -v gtrace)")"/{gtrace,libgtrace-inject.so,python} .
as_user bash -c './gtrace --version' >version 2>&1 || skip 'cannot become another user'
for processes in 3 5; do
	try as_user bash -c "ulimit -u $processes; ./gtrace run -o out -- sh -c 'exit 3'"
done
ls -A out
