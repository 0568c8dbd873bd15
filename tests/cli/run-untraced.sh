# The program runs all the same, and with its environment as it was.
try() { env "$@" gtrace run -- sh -c 'echo "ran, $CUDA_INJECTION64_PATH, ${GTRACE_SOCKET:-untraced}"; exit 3'; echo "$?"; }
try CUDA_INJECTION64_PATH=/opt/other/libother.so
try CUDA_INJECTION64_PATH=/opt/nvidia/nsight-systems/libToolsInjection64.so
try CUDA_INJECTION64_PATH= LD_PRELOAD_=x QUADD_INJECTION_PROXY=1
try CUDA_INJECTION64_PATH= GTRACE_INJECTION=no/such/file
touch not-a-library
try CUDA_INJECTION64_PATH= GTRACE_INJECTION=not-a-library
printf '#!/bin/sh\necho nsys "$@"\n' >nsys && chmod +x nsys
gtrace run -- ./nsys profile a
printf '#!/bin/sh\ngtrace run echo "$@"\n' >nsys
./nsys below
# Presets of container images are in the way of nobody.
NVTX_INJECTION64_PATH=/usr/lib/libcupti.so gtrace run -q sh -c 'echo "${NVTX_INJECTION64_PATH##*/}"'
NVTX_INJECTION64_PATH=/opt/other/libother.so gtrace run -q sh -c 'echo "${NVTX_INJECTION64_PATH##*/}"'
ls -A
# Tools that are known by their own variables, or as an ancestor; --force takes no notice.
try NV_NSIGHT_INJECTION_PORT_BASE=49152
try NV_SANITIZER_INJECTION_PORT_BASE=49152
printf '#!/bin/sh\ngtrace run "$@"\n' >cuda-gdb-minimal && chmod +x cuda-gdb-minimal
./cuda-gdb-minimal echo below
./cuda-gdb-minimal --force echo below
CUDA_INJECTION64_PATH=/opt/nvidia/libToolsInjection64.so gtrace run --force -q sh -c 'echo "${CUDA_INJECTION64_PATH##*/}"'
