# Names of files: from the command, --name, the rank; existing ones are not overwritten.
run() { sim gtrace run -q "$@" -- "${train[@]}" >/dev/null 2>&1 && ls -t *.gz | head -n 1; }
run
run
touch train-3-rank5.trace.json.gz
run # rank 5 of an earlier run has the 3, so all ranks take the 4
run --force
run --name mine
RANK=7 run
OMPI_COMM_WORLD_RANK=3 SLURM_PROCID=9 run
run --repeat 2 | sed 's/cycle[12]/cycleC/'
ls
# Names that TensorBoard finds, each with its time.
times() { sed 's/^.*_rank/HOST_rank/; s/[0-9]\{13\}/MS/'; }
sim gtrace run -q --tensorboard --repeat 2 -n tb -- "${train[@]}" >/dev/null
RANK=3 sim gtrace run -q --tensorboard -n tb -- "${train[@]}" >/dev/null
ls tb | times
ls tb-2 | times
