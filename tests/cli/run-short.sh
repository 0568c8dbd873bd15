# A program that ends inside of its window: the trace says that it is shorter than asked for.
[ -x "$SIMGPU/train" ] || { echo 'the simulated GPU is not built'; exit 77; }
export LD_LIBRARY_PATH=$SIMGPU
gtrace run --active 100 -- "$SIMGPU/train" --steps 10
