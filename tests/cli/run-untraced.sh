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
