# A program that ends inside of its window, or before the last one: what is shorter than asked for is
# said.
[ -x "$SIMGPU/train" ] || skip 'the simulated GPU is not built'
sim gtrace run --active 100 -- "$SIMGPU/train" --steps 10
sim gtrace run --force --repeat 3 -- "$SIMGPU/train" --steps 10 2>&1 | grep -e came -e cycle2.*complete
sim gtrace run --force -n x --capture-range cuda-profiler --capture-end repeat:3 -- "$SIMGPU/train" \
	--steps 12 --range cuda --ranges '+3 -5 +7 -8' --marks none --step-us 5000 2>&1 | grep came
