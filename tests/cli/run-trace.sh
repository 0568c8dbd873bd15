[ -x "$SIMGPU/train" ] || { echo 'the simulated GPU is not built'; exit 77; }
export LD_LIBRARY_PATH=$SIMGPU
train=$SIMGPU/train
gtrace run -- "$train" --step-us 20000
echo "$?"
gtrace run --repeat 2 --wait 0 -- "$train" --steps 12 --step-us 20000
gtrace run --force --active 1 -n train -- "$train" --step-us 20000
RANK=5 WORLD_SIZE=8 gtrace run -q -- "$train" --exit-status 9
echo "$?"
gtrace run -q --step-source none -n whole -- "$train"
gtrace run --then stop -q -n stopped -- "$train" --steps 100000 --step-us 1000
echo "$?"
# A launcher that is stopped leaves nothing behind.
printf '"$@" & echo $! >pid; wait' >launch.sh
gtrace run --then stop -q -- bash launch.sh "$train" --steps 100000 --step-us 1000
echo "$?"
case $(cut -d' ' -f3 "/proc/$(cat pid)/stat" 2>/dev/null) in '' | Z | X) echo gone ;; esac
ls
