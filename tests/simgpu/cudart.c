/*
 * cudart.c - the runtime API on top of the simulated driver, so that both domains call back, one
 * inside the other. A cudaStream_t, cudaEvent_t, cudaGraphExec_t or cudaKernel_t is the driver's.
 */
#include "sim.h"
#include "profiler_api.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#define RUNTIME_VERSION 13000

static __thread int current_device;
static __thread cudaError_t last_error;

/* The primary context of the thread's device becomes current at the first call, as it does there.
 */
static cudaError_t bind(void)
{
	static __thread int bound = -1;
	CUcontext ctx;
	CUresult res;

	if (bound == current_device && simgpu_current_context())
		return (cudaError_t)simgpu_ready();
	res = cuInit(0);
	if (res)
		return (cudaError_t)res;
	res = cuDevicePrimaryCtxRetain(&ctx, current_device);
	if (!res)
		res = cuCtxSetCurrent(ctx);
	if (!res)
		bound = current_device;
	return (cudaError_t)res;
}

static cudaError_t note(cudaError_t res)
{
	if (res)
		last_error = res;
	return res;
}

#define RUNTIME_CBID(fn) CUPTI_RUNTIME_TRACE_CBID_##fn

/* The functions are reported by their exported name, without the version. */
#define RUNTIME_ENTRY(fn, versioned, decl, args, ready, symbol, ...)                     \
	SIM_ENTRY(fn, cudaError_t, CUPTI_CB_DOMAIN_RUNTIME_API, RUNTIME_CBID(versioned), \
		  versioned##_params, decl, args, ready, symbol, note((cudaError_t)(__VA_ARGS__)))

#define RUNTIME_API(fn, version, decl, args, ...) \
	RUNTIME_ENTRY(fn, fn##_v##version, decl, args, bind(), NULL, __VA_ARGS__)

/* The same and its ptsz form; the stream parameter is called stream. */
#define RUNTIME_API_PTSZ(fn, version, ptsz_version, decl, args, ...)                  \
	RUNTIME_API(fn, version, decl, args, __VA_ARGS__)                             \
	RUNTIME_ENTRY(fn##_ptsz, fn##_ptsz_v##ptsz_version, decl, args, bind(), NULL, \
		      (stream = own(stream), __VA_ARGS__))

#define RUNTIME_LAUNCH(fn, versioned, decl, args, kernel, ...) \
	RUNTIME_ENTRY(fn, versioned, decl, args, bind(), simgpu_kernel_name(kernel), __VA_ARGS__)

static cudaStream_t own(cudaStream_t stream)
{
	return stream ? stream : cudaStreamPerThread;
}

/* ---- devices, versions, errors ---- */

static CUresult set_device(int device)
{
	CUdevice dev;
	CUresult res = cuDeviceGet(&dev, device);

	if (res)
		return res;
	current_device = device;
	return (CUresult)bind();
}

static cudaError_t get_device(int *ret)
{
	*ret = current_device;
	return cudaSuccess;
}

static cudaError_t runtime_version(int *ret)
{
	*ret = RUNTIME_VERSION;
	return cudaSuccess;
}

static cudaError_t device_count(int *ret)
{
	return (cudaError_t)cuDeviceGetCount(ret);
}

RUNTIME_API(cudaGetDeviceCount, 3020, (int *count), (count), device_count(count))
RUNTIME_API(cudaSetDevice, 3020, (int device), (device), set_device(device))
RUNTIME_API(cudaGetDevice, 3020, (int *device), (device), get_device(device))
/* The only one that does not initialise the driver. */
RUNTIME_ENTRY(cudaRuntimeGetVersion, cudaRuntimeGetVersion_v3020, (int *version), (version), 0,
	      NULL, runtime_version(version))
RUNTIME_API(cudaDriverGetVersion, 3020, (int *version), (version), cuDriverGetVersion(version))
RUNTIME_API(cudaDeviceGetAttribute, 5000, (int *value, enum cudaDeviceAttr attr, int device),
	    (value, attr, device), cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device))
RUNTIME_API(cudaMemGetInfo, 3020, (size_t * free_bytes, size_t *total), (free_bytes, total),
	    cuMemGetInfo(free_bytes, total))

typedef struct {
	char unused;
} no_params;
#define cudaDeviceSynchronize_v3020_params no_params
RUNTIME_API(cudaDeviceSynchronize, 3020, (void), (0), cuCtxSynchronize())

#define cudaProfilerStart_v4000_params no_params
#define cudaProfilerStop_v4000_params  no_params
RUNTIME_API(cudaProfilerStart, 4000, (void), (0), cuProfilerStart())
RUNTIME_API(cudaProfilerStop, 4000, (void), (0), cuProfilerStop())

cudaError_t cudaPeekAtLastError(void)
{
	return last_error;
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t res = last_error;

	last_error = cudaSuccess;
	return res;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return error ? "simulated CUDA error" : "no error";
}

const char *cudaGetErrorName(cudaError_t error)
{
	return error ? "cudaErrorSimulated" : "cudaSuccess";
}

/* ---- memory ---- */

static CUresult copy_async(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
			   cudaStream_t stream)
{
	CUdeviceptr to = (CUdeviceptr)dst;
	CUdeviceptr from = (CUdeviceptr)src;

	if (bytes == 0)
		return CUDA_SUCCESS;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoDAsync(to, src, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoHAsync(dst, from, bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoDAsync(to, from, bytes, stream);
	default:
		return cuMemcpyAsync(to, from, bytes, stream);
	}
}

static CUresult copy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	CUdeviceptr to = (CUdeviceptr)dst;
	CUdeviceptr from = (CUdeviceptr)src;

	if (bytes == 0)
		return CUDA_SUCCESS;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return cuMemcpyHtoD(to, src, bytes);
	case cudaMemcpyDeviceToHost:
		return cuMemcpyDtoH(dst, from, bytes);
	case cudaMemcpyDeviceToDevice:
		return cuMemcpyDtoD(to, from, bytes);
	default:
		return cuMemcpy(to, from, bytes);
	}
}

static CUresult copy_own(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	CUresult res = copy_async(dst, src, bytes, kind, cudaStreamPerThread);

	return res ? res : cuStreamSynchronize(cudaStreamPerThread);
}

static CUresult peer_async(void *dst, int dst_device, const void *src, int src_device, size_t bytes,
			   cudaStream_t stream)
{
	CUcontext to;
	CUcontext from;
	CUresult res = cuDevicePrimaryCtxRetain(&to, dst_device);

	if (!res)
		res = cuDevicePrimaryCtxRetain(&from, src_device);
	if (res)
		return res;
	return cuMemcpyPeerAsync((CUdeviceptr)dst, to, (CUdeviceptr)src, from, bytes, stream);
}

RUNTIME_API(cudaMalloc, 3020, (void **ptr, size_t bytes), (ptr, bytes),
	    cuMemAlloc((CUdeviceptr *)ptr, bytes))
RUNTIME_API(cudaFree, 3020, (void *ptr), (ptr), cuMemFree((CUdeviceptr)ptr))
RUNTIME_API_PTSZ(cudaMallocAsync, 11020, 11020, (void **ptr, size_t bytes, cudaStream_t stream),
		 (ptr, bytes, stream), cuMemAllocAsync((CUdeviceptr *)ptr, bytes, stream))
RUNTIME_API_PTSZ(cudaFreeAsync, 11020, 11020, (void *ptr, cudaStream_t stream), (ptr, stream),
		 cuMemFreeAsync((CUdeviceptr)ptr, stream))
RUNTIME_API(cudaMallocHost, 3020, (void **ptr, size_t bytes), (ptr, bytes),
	    cuMemAllocHost(ptr, bytes))
RUNTIME_API(cudaHostAlloc, 3020, (void **ptr, size_t bytes, unsigned int flags),
	    (ptr, bytes, flags), cuMemHostAlloc(ptr, bytes, flags))
RUNTIME_API(cudaFreeHost, 3020, (void *ptr), (ptr), cuMemFreeHost(ptr))
RUNTIME_API(cudaMemcpy, 3020, (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind),
	    (dst, src, bytes, kind), copy(dst, src, bytes, kind))
RUNTIME_ENTRY(cudaMemcpy_ptds, cudaMemcpy_ptds_v7000,
	      (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind),
	      (dst, src, bytes, kind), bind(), NULL, copy_own(dst, src, bytes, kind))
RUNTIME_API_PTSZ(cudaMemcpyAsync, 3020, 7000,
		 (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
		  cudaStream_t stream),
		 (dst, src, bytes, kind, stream), copy_async(dst, src, bytes, kind, stream))
RUNTIME_API(cudaMemcpyPeerAsync, 4000,
	    (void *dst, int dst_device, const void *src, int src_device, size_t bytes,
	     cudaStream_t stream),
	    (dst, dst_device, src, src_device, bytes, stream),
	    peer_async(dst, dst_device, src, src_device, bytes, stream))
RUNTIME_API(cudaMemset, 3020, (void *dst, int value, size_t bytes), (dst, value, bytes),
	    cuMemsetD8((CUdeviceptr)dst, (unsigned char)value, bytes))
RUNTIME_API_PTSZ(cudaMemsetAsync, 3020, 7000,
		 (void *dst, int value, size_t bytes, cudaStream_t stream),
		 (dst, value, bytes, stream),
		 cuMemsetD8Async((CUdeviceptr)dst, (unsigned char)value, bytes, stream))

/* ---- streams and events ---- */

RUNTIME_API(cudaStreamCreate, 3020, (cudaStream_t * stream), (stream), cuStreamCreate(stream, 0))
RUNTIME_API(cudaStreamCreateWithFlags, 5000, (cudaStream_t * stream, unsigned int flags),
	    (stream, flags), cuStreamCreate(stream, flags))
RUNTIME_API(cudaStreamCreateWithPriority, 5050,
	    (cudaStream_t * stream, unsigned int flags, int priority), (stream, flags, priority),
	    cuStreamCreateWithPriority(stream, flags, priority))
RUNTIME_API(cudaStreamDestroy, 5050, (cudaStream_t stream), (stream), cuStreamDestroy(stream))
RUNTIME_API_PTSZ(cudaStreamSynchronize, 3020, 7000, (cudaStream_t stream), (stream),
		 cuStreamSynchronize(stream))
RUNTIME_API_PTSZ(cudaStreamQuery, 3020, 7000, (cudaStream_t stream), (stream),
		 cuStreamQuery(stream))
RUNTIME_API_PTSZ(cudaStreamWaitEvent, 3020, 7000,
		 (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
		 (stream, event, flags), cuStreamWaitEvent(stream, event, flags))
RUNTIME_API_PTSZ(cudaStreamBeginCapture, 10000, 10000,
		 (cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode),
		 cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode))
RUNTIME_API_PTSZ(cudaStreamEndCapture, 10000, 10000, (cudaStream_t stream, cudaGraph_t *graph),
		 (stream, graph), cuStreamEndCapture(stream, graph))
RUNTIME_API_PTSZ(cudaStreamIsCapturing, 10000, 10000,
		 (cudaStream_t stream, enum cudaStreamCaptureStatus *status), (stream, status),
		 cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status))
RUNTIME_API(cudaEventCreate, 3020, (cudaEvent_t * event), (event), cuEventCreate(event, 0))
RUNTIME_API(cudaEventCreateWithFlags, 3020, (cudaEvent_t * event, unsigned int flags),
	    (event, flags), cuEventCreate(event, flags))
RUNTIME_API(cudaEventDestroy, 3020, (cudaEvent_t event), (event), cuEventDestroy(event))
RUNTIME_API_PTSZ(cudaEventRecord, 3020, 7000, (cudaEvent_t event, cudaStream_t stream),
		 (event, stream), cuEventRecord(event, stream))
RUNTIME_API(cudaEventSynchronize, 3020, (cudaEvent_t event), (event), cuEventSynchronize(event))
RUNTIME_API(cudaEventQuery, 3020, (cudaEvent_t event), (event), cuEventQuery(event))
RUNTIME_API(cudaEventElapsedTime, 12080, (float *ms, cudaEvent_t start, cudaEvent_t end),
	    (ms, start, end), cuEventElapsedTime(ms, start, end))

/* ---- graphs ---- */

RUNTIME_API(cudaGraphCreate, 10000, (cudaGraph_t * graph, unsigned int flags), (graph, flags),
	    cuGraphCreate(graph, flags))
RUNTIME_API(cudaGraphDestroy, 10000, (cudaGraph_t graph), (graph), cuGraphDestroy(graph))
RUNTIME_API(cudaGraphInstantiate, 12000,
	    (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
	    (exec, graph, flags), cuGraphInstantiate(exec, graph, flags))
RUNTIME_API(cudaGraphInstantiateWithFlags, 11040,
	    (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
	    (exec, graph, flags), cuGraphInstantiate(exec, graph, flags))
RUNTIME_API(cudaGraphExecDestroy, 10000, (cudaGraphExec_t exec), (exec), cuGraphExecDestroy(exec))
RUNTIME_API_PTSZ(cudaGraphLaunch, 10000, 10000, (cudaGraphExec_t exec, cudaStream_t stream),
		 (exec, stream), cuGraphLaunch(exec, stream))

/* ---- kernels ---- */

static CUresult launch(const void *func, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
		       void **args)
{
	return cuLaunchKernel((CUfunction)func, grid.x, grid.y, grid.z, block.x, block.y, block.z,
			      (unsigned int)shared, stream, args, NULL);
}

static CUresult launch_config(const cudaLaunchConfig_t *c, const void *func, void **args,
			      cudaStream_t stream)
{
	const CUlaunchConfig config = { .gridDimX = c->gridDim.x,
					.gridDimY = c->gridDim.y,
					.gridDimZ = c->gridDim.z,
					.blockDimX = c->blockDim.x,
					.blockDimY = c->blockDim.y,
					.blockDimZ = c->blockDim.z,
					.sharedMemBytes = (unsigned int)c->dynamicSmemBytes,
					.hStream = stream };

	return cuLaunchKernelEx(&config, (CUfunction)func, args, NULL);
}

RUNTIME_API(cudaLibraryLoadData, 12060,
	    (cudaLibrary_t * library, const void *code, enum cudaJitOption *jit_options,
	     void **jit_values, unsigned int jit_count, enum cudaLibraryOption *options,
	     void **values, unsigned int count),
	    (library, code, jit_options, jit_values, jit_count, options, values, count),
	    cuLibraryLoadData(library, code, NULL, NULL, 0, NULL, NULL, 0))
RUNTIME_API(cudaLibraryUnload, 12060, (cudaLibrary_t library), (library), cuLibraryUnload(library))
RUNTIME_API(cudaLibraryGetKernel, 12060,
	    (cudaKernel_t * kernel, cudaLibrary_t library, const char *name),
	    (kernel, library, name), cuLibraryGetKernel(kernel, library, name))

#define LAUNCH_DECL \
	(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
#define LAUNCH_ARGS (func, grid, block, args, shared, stream)

RUNTIME_LAUNCH(cudaLaunchKernel, cudaLaunchKernel_v7000, LAUNCH_DECL, LAUNCH_ARGS, func,
	       launch(func, grid, block, shared, stream, args))
RUNTIME_LAUNCH(cudaLaunchKernel_ptsz, cudaLaunchKernel_ptsz_v7000, LAUNCH_DECL, LAUNCH_ARGS, func,
	       launch(func, grid, block, shared, own(stream), args))
RUNTIME_LAUNCH(cudaLaunchKernelExC, cudaLaunchKernelExC_v11060,
	       (const cudaLaunchConfig_t *config, const void *func, void **args),
	       (config, func, args), func, launch_config(config, func, args, config->stream))
RUNTIME_LAUNCH(cudaLaunchKernelExC_ptsz, cudaLaunchKernelExC_ptsz_v11060,
	       (const cudaLaunchConfig_t *config, const void *func, void **args),
	       (config, func, args), func, launch_config(config, func, args, own(config->stream)))

/* What nvcc 13 compiles a <<<>>> into. */
#define __cudaLaunchKernel_v13000_params      cudaLaunchKernel_v7000_params
#define __cudaLaunchKernel_ptsz_v13000_params cudaLaunchKernel_v7000_params
RUNTIME_LAUNCH(__cudaLaunchKernel, __cudaLaunchKernel_v13000, LAUNCH_DECL, LAUNCH_ARGS, func,
	       launch(func, grid, block, shared, stream, args))
RUNTIME_LAUNCH(__cudaLaunchKernel_ptsz, __cudaLaunchKernel_ptsz_v13000, LAUNCH_DECL, LAUNCH_ARGS,
	       func, launch(func, grid, block, shared, own(stream), args))
