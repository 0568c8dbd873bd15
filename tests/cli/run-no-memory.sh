# A limit on file sizes that the arena cannot keep: the program runs untraced, and is not killed.
try sim bash -c 'ulimit -f 64; exec gtrace run -- "$SIMGPU/train"'
ls
