# What is said of captured ranges.
[ -x "$SIMGPU/train" ] || skip 'the simulated GPU is not built'
said() {
	echo "-- $*" >&2
	sim gtrace run -n x --force "$@" -- "$SIMGPU/train" --step-us 5000 --steps 12 --range "$kind" \
		--ranges '+3 -5 +7 -8' --marks "$marks" | tail -1
}
kind=cuda marks=none
said
said --capture-range cuda-profiler
said --capture-range cuda-profiler --capture-end repeat:2
said --capture-range cuda-profiler --step-source none
said --capture-range steps --step-source none
said --capture-range none
said --capture-range time --delay 1h
for option in '--step-source none --active 3' '--capture-range none --repeat 2' \
	'--capture-range steps --step-source none --wait 1'; do
	sim gtrace run -q --force $option -n whole -- "$SIMGPU/train" --steps 3
done
kind=nvtx marks=api
said --capture-range nvtx:nothing
said --capture-range 'nvtx:^to be'
ls
