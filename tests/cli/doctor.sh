# What is found, as text; of this machine, and of the simulated GPU with its CUPTI installed.
mkdir cuda
ln -s "$SIMGPU" cuda/lib64
unset CONDA_PREFIX CUDA_PATH XDG_RUNTIME_DIR
export CUDA_HOME=$PWD/cuda TMPDIR=$PWD PATH=${PATH%%:*}:/usr/bin:/bin
try sim gtrace doctor
SIMGPU_FAULTS=init_error=802 try sim gtrace doctor -o no/such | grep -A1 -e '^stdout: tracing' -e problem -e ^exit
try gtrace doctor --json | grep -e '"works"' -e '"name":"gtrace'
try gtrace doctor now
try gtrace doctor --timeout 0
ls
