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
