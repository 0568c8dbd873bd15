try() { gtrace run -q -- "$@"; echo "$?"; }
try true
try sh -c 'exit 7'
try sh -c 'exit 255'
try no-such-program
try ./no-such-program
touch file
try ./file
try /
# Killed by the same signal; the shell says so on stderr.
(gtrace run -q -- sh -c 'kill -TERM $$'; echo "$?") 2>/dev/null
(gtrace run -q -- sh -c 'kill -KILL $$'; echo "$?") 2>/dev/null
(gtrace run -q -- sh -c 'kill -SEGV $$'; echo "$?") 2>/dev/null
ls -A
