# Without CUPTI, or with one that refuses, the program runs as ever and gtrace says why.
GTRACE_LIBCUPTI=/no/such/libcupti.so try sim gtrace run -- "$SIMGPU/train"
SIMGPU_FAULTS=driver=12000 try sim gtrace run -n newer -- "$SIMGPU/train"
SIMGPU_FAULTS=enable_fails=1 try sim gtrace run -n refused -- "$SIMGPU/train"
ls
