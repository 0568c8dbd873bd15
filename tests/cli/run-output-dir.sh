# A directory that cannot be written to is found before the command starts.
touch file
try gtrace run -o no/such/directory -- echo started
try gtrace run -o file -- echo started
try gtrace run -o /sys -- echo started
GTRACE_OUTPUT_DIR=no/such/directory try gtrace run -- echo started
mkdir here there
GTRACE_OUTPUT_DIR=here try sim gtrace run -q -- "${train[@]}"
GTRACE_OUTPUT_DIR=here try sim gtrace run -q -o there -- "${train[@]}"
ls here there
# One that is gone later costs the traces, and is told; the exit status is the program's.
mkdir gone
try sim gtrace run -q -o gone -- sh -c 'rm -r gone; "$@"; exit 7' sh "${train[@]}"
# So is what --force cannot overwrite.
mkdir taken taken/run-rank3.trace.json.gz
try gtrace run -o taken -n run --force -- echo started
rmdir taken/* && mkfifo taken/run-rank0-cycle2.trace.json.gz
try gtrace run -o taken -n run --force -- echo started
ls -A taken
# The same holds for the directory to meet others in.
try gtrace run --rendezvous no/such/directory -- echo started
try gtrace run --rendezvous file -- echo started
try gtrace run --rendezvous /sys -- echo started
mkdir meeting
try gtrace run -q --rendezvous meeting -- echo started
ls -A . meeting
