# What a program finds when it starts: the same as without gtrace, but for the variables of the injection.
unset PYTHONPATH
env | sort | cut -d= -f1 >before
gtrace run -q env | sort | cut -d= -f1 | diff before - | grep '^[<>]'
PYTHONPATH=/my/modules gtrace run -q sh -c 'echo "${PYTHONPATH##*/python}"'

seen='pwd; umask; ulimit -a; nice; readlink /proc/self/fd/0 /proc/self/fd/1; ls /proc/self/fd | wc -l
grep -E "Sig(Blk|Ign|Cgt)" /proc/self/status | # but for 32 and 33, which are the C library'"'"'s
while read -r name mask; do printf "%s %x\n" $name $((0x$mask & ~0x180000000)); done; ps -o pgid= -p $$ 2>/dev/null | wc -l'
trap '' HUP USR2
umask 027
nice -n 3 sh -c "$seen" >plain </dev/null
nice -n 3 gtrace run -q -- sh -c "$seen" >traced </dev/null 2>/dev/null
sed -i 's,/traced$,/plain,' traced
diff plain traced && echo same

# A standard stream that was closed is closed for it, too.
gtrace run -q -- sh -c 'readlink /proc/self/fd/0 || echo closed' <&-
gtrace run -q -- sh -c 'readlink /proc/self/fd/2 >/dev/null || echo closed' 2>&-

echo input | gtrace run -q -- cat
gtrace run -q -- sh -c 'echo out; echo err >&2' 2>/dev/null
