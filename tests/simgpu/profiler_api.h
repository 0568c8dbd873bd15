/*
 * profiler_api.h - the calls that begin and end captured ranges. The headers that declare them come
 * with a whole CUDA toolkit only.
 */
#ifndef PROFILER_API_H
#define PROFILER_API_H

#include <cuda.h>
#include <cuda_runtime_api.h>

CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

#endif
