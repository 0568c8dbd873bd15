# -v tells of each process and window, -vv also what the library in the program does, on its stderr.
[ -x "$SIMGPU/train" ] || skip 'the simulated GPU is not built'
for options in -q '' -v -vv; do
	sim gtrace run $options --force -- "$SIMGPU/train" 2>said >/dev/null
	echo "'$options' $(grep -c 'window open at step 3' said) $(grep -c ') ended: step 10' said)" \
		"$(grep -c '^gtrace: phase [0-9]*, cycle' said | sed 's/[1-9][0-9]*/many/')"
done
