# Each time nothing is traced, one line says why.
[ -x "$SIMGPU/train" ] || { echo 'the simulated GPU is not built'; exit 77; }
export LD_LIBRARY_PATH=$SIMGPU
gtrace run -q -- true
gtrace run -q -- "$SIMGPU/train" --steps 2
gtrace run -q --step-source api -- "$SIMGPU/train" --marks none
gtrace run -q -- "$SIMGPU/train" --marks none
gtrace run -q --step-range nothing-is-called-so -- "$SIMGPU/train" --marks none
# Without a GPU, too: it is not for want of one that these never came.
unset LD_LIBRARY_PATH
cpu=(python3 -c 'import gtrace; gtrace.range("a").__enter__()')
gtrace run -q --capture-range nvtx:nothing -- "${cpu[@]}"
gtrace run -q --delay 1h -- "${cpu[@]}"
gtrace run -q --step-source api -- "${cpu[@]}"
gtrace run -q --step-source api --on-demand -- "${cpu[@]}"
gtrace run -q --capture-range nvtx:nothing --activities gpu -- "${cpu[@]}"
# Python's options that keep the start-up hook out, not those of the script or behind -X.
for options in -I -E -sS '-X I -uE'; do
	gtrace run -q -- python3 $options -c pass
done
for options in -s '-X I' -mthis '-c pass -I' '-c pass -- -E'; do
	gtrace run -q -- python3 $options -c pass >/dev/null
done
ls
