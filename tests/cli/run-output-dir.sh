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
