# Nobody reads what gtrace says any more: the program does not hear of it.
[ -x "$SIMGPU/train" ] || skip 'the simulated GPU is not built'
mkfifo unread
exec 4<>unread 5>unread 4<&-
sim gtrace run -- sh -c '"$1" --steps 100 --step-us 5000; exit 5' sh "$SIMGPU/train" 2>&5
echo "exit $?"
ls *.gz
