/*
 * conform.c - asks CUPTI what it reports for a few small pieces of work and prints the answers, one
 * line a callback or record, without anything that differs from run to run. conform.expected is
 * what an H200 with CUDA 13.0 said, up to the launch of a graph; what follows is from other runs.
 * The simulated GPU must say the same.
 */
#include "base.h"
#include "train_kernels.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <stdlib.h>

#define BUFFER_BYTES (1 << 16)
#define COPY_BYTES   4096

static uint32_t first_correlation; /* of the current piece; the rest is printed relative to it */
static unsigned int depth;

static void check(int error, const char *what)
{
	if (error) {
		printf("%s: %d\n", what, error);
		exit(1);
	}
}
#define CHECK(call) check((int)(call), #call)

static void begin(const char *what)
{
	printf("%s\n", what);
	first_correlation = 0;
}

static int relative(uint32_t correlation)
{
	if (!first_correlation)
		first_correlation = correlation;
	return (int)(correlation - first_correlation);
}

static void on_api(CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
		   const CUpti_CallbackData *data)
{
	const char *name = "?";

	cuptiGetCallbackName(domain, cbid, &name);
	if (data->callbackSite == CUPTI_API_EXIT)
		depth--;
	printf("\t%*s%s %s as %s, correlation +%d", 2 * (int)depth, "",
	       data->callbackSite == CUPTI_API_ENTER ? "enter" : "exit", name, data->functionName,
	       relative(data->correlationId));
	if (strstr(name, "LaunchKernel")) /* in others it is not even NULL */
		printf(", symbol %s", data->symbolName);
	if (data->callbackSite == CUPTI_API_EXIT)
		printf(", result %d", *(const int *)data->functionReturnValue);
	putchar('\n');
	if (data->callbackSite == CUPTI_API_ENTER)
		depth++;
}

static void on_callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
			const void *data)
{
	(void)user;
	if (domain == CUPTI_CB_DOMAIN_RESOURCE)
		printf("\t%*sresource %u\n", 2 * (int)depth, "", cbid);
	else
		on_api(domain, cbid, data);
}

static void on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = BUFFER_BYTES;
	*buffer = calloc(1, BUFFER_BYTES);
	*max_records = 0;
}

static void print_kernel(const CUpti_ActivityKernel10 *k)
{
	printf("\tkernel %s grid %d %d %d block %d %d %d shared %d stream %u graph %d node %d",
	       k->name, k->gridX, k->gridY, k->gridZ, k->blockX, k->blockY, k->blockZ,
	       k->dynamicSharedMemory, k->streamId, k->graphId != 0, k->graphNodeId != 0);
	printf(" correlation +%d ordered %d\n", relative(k->correlationId),
	       k->start > 0 && k->start < k->end);
}

static void print_copy(const CUpti_ActivityMemcpy6 *c)
{
	printf("\tcopy kind %u from %u to %u flags %u bytes %llu stream %u correlation +%d ordered "
	       "%d\n",
	       c->copyKind, c->srcKind, c->dstKind, c->flags, (unsigned long long)c->bytes,
	       c->streamId, relative(c->correlationId), c->start > 0 && c->start < c->end);
}

static void print_set(const CUpti_ActivityMemset4 *s)
{
	printf("\tset memory %u flags %u bytes %llu stream %u graph %d correlation +%d\n",
	       s->memoryKind, s->flags, (unsigned long long)s->bytes, s->streamId, s->graphId != 0,
	       relative(s->correlationId));
}

static void on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
			size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
		if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
			print_kernel((const CUpti_ActivityKernel10 *)record);
		else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
			print_copy((const CUpti_ActivityMemcpy6 *)record);
		else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
			print_set((const CUpti_ActivityMemset4 *)record);
		else if (record->kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
			printf("\tgraph stream %u correlation +%d\n",
			       ((const CUpti_ActivityGraphTrace2 *)record)->streamId,
			       relative(
				       ((const CUpti_ActivityGraphTrace2 *)record)->correlationId));
		else
			printf("\tkind %d\n", record->kind);
	}
	free(buffer);
}

static void deliver(void)
{
	CHECK(cuCtxSynchronize());
	CHECK(cuptiActivityFlushAll(0));
}

/* The calls that a tracer listens to, not those that set something up. */
static void listen(CUpti_SubscriberHandle subscriber)
{
	static const CUpti_CallbackId runtime[] = {
		CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
		CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
		CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
		CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
		CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020,
		CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
		CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
		CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020,
	};
	static const CUpti_CallbackId driver[] = {
		CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
		CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
		CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
		CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
		CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,
		CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
		CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
		CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
		CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
		CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
		CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
	};

	for (size_t i = 0; i < ARRAY_SIZE(runtime); i++)
		CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, runtime[i]));
	for (size_t i = 0; i < ARRAY_SIZE(driver); i++)
		CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, driver[i]));
	CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
				  CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED));
}

#define NAME(id, mangled, demangled) mangled,
static const char *const names[] = { TRAIN_KERNELS(NAME) };
#undef NAME

static const dim3 grid = { 2, 1, 1 };
static const dim3 block = { 32, 1, 1 };
static unsigned int count = 1000;
static void *args[] = { &count };

static void kernels(const void *kernel, CUfunction function, cudaStream_t stream)
{
	const cudaLaunchConfig_t config = {
		.gridDim = grid, .blockDim = block, .dynamicSmemBytes = 1024, .stream = stream
	};

	begin("launch through the runtime, default stream");
	CHECK(cudaLaunchKernel(kernel, grid, block, args, 0, NULL));
	deliver();
	begin("launch through the runtime, extended");
	CHECK(cudaLaunchKernelExC(&config, kernel, args));
	deliver();
	begin("launch through the driver");
	CHECK(cuLaunchKernel(function, 1, 2, 3, 4, 5, 6, 7, stream, args, NULL));
	deliver();
	begin("launch that fails");
	cudaLaunchKernel(kernel, (dim3){ 0, 1, 1 }, block, args, 0, stream);
	cudaGetLastError();
	deliver();
	begin("launch after the kind is disabled, and before it has ended");
	count = 10000000;
	CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL));
	count = 1000;
	CHECK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	CHECK(cuLaunchKernel(function, 9, 1, 1, 32, 1, 1, 0, stream, args, NULL));
	deliver();
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

static void copies(cudaStream_t stream)
{
	char pageable[COPY_BYTES] = { 0 };
	void *device;
	void *device2;
	void *pinned;

	CHECK(cudaMalloc(&device, COPY_BYTES));
	CHECK(cudaMalloc(&device2, COPY_BYTES));
	CHECK(cudaMallocHost(&pinned, COPY_BYTES));
	begin("copy from pageable memory, blocking");
	CHECK(cudaMemcpy(device, pageable, COPY_BYTES, cudaMemcpyHostToDevice));
	deliver();
	begin("copy from pinned memory");
	CHECK(cudaMemcpyAsync(device, pinned, COPY_BYTES, cudaMemcpyHostToDevice, stream));
	deliver();
	begin("copy to pinned memory");
	CHECK(cudaMemcpyAsync(pinned, device, COPY_BYTES, cudaMemcpyDeviceToHost, stream));
	deliver();
	begin("copy on the device, default kind");
	CHECK(cudaMemcpyAsync(device2, device, COPY_BYTES, cudaMemcpyDefault, stream));
	deliver();
	begin("copy of no bytes");
	CHECK(cudaMemcpyAsync(device, pinned, 0, cudaMemcpyHostToDevice, stream));
	deliver();
	begin("set");
	CHECK(cudaMemsetAsync(device, 3, COPY_BYTES, stream));
	deliver();
	begin("synchronise a stream");
	CHECK(cudaStreamSynchronize(stream));
	deliver();
}

static void graphs(const void *kernel, cudaStream_t stream)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	void *device;

	CHECK(cudaMalloc(&device, COPY_BYTES));
	begin("capture");
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaLaunchKernel(kernel, grid, block, args, 0, stream));
	CHECK(cudaMemsetAsync(device, 0, COPY_BYTES, stream));
	CHECK(cudaLaunchKernel(kernel, grid, block, args, 0, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	begin("instantiate");
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	deliver();
	begin("launch of a graph");
	CHECK(cudaGraphLaunch(exec, stream));
	deliver();
	/* Before the graph is made: CUPTI 13.0 crashes in the launch of an older one. */
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
	begin("instantiate");
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	begin("launch of a graph, traced as a whole");
	CHECK(cudaGraphLaunch(exec, stream));
	deliver();
	CHECK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	begin("launch of an empty graph");
	CHECK(cudaGraphLaunch(exec, stream));
	deliver();
}

static void streams(const void *kernel, cudaStream_t stream)
{
	uint32_t id;
	CUcontext context;

	CHECK(cuCtxGetCurrent(&context));
	CHECK(cuptiGetStreamIdEx(context, NULL, 0, &id));
	printf("the default stream is %u\n", id);
	CHECK(cuptiGetStreamIdEx(context, stream, 0, &id));
	printf("the created stream is %u\n", id);
	begin("launch on the thread's own stream");
	CHECK(cudaLaunchKernel(kernel, grid, block, args, 0, cudaStreamPerThread));
	deliver();
	CHECK(cuptiGetStreamIdEx(context, NULL, 1, &id));
	printf("which is %u\n", id);
}

int main(void)
{
	CUpti_SubscriberHandle subscriber;
	CUpti_SubscriberHandle second;
	CUmodule module;
	CUfunction function;
	cudaLibrary_t library;
	cudaKernel_t kernel;
	cudaStream_t stream;

	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(NULL));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cuModuleLoadData(&module, TRAIN_PTX));
	CHECK(cuModuleGetFunction(&function, module, names[KERNEL_NORM]));
	CHECK(cudaLibraryLoadData(&library, TRAIN_PTX, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(cudaLibraryGetKernel(&kernel, library, names[KERNEL_NORM]));
	CHECK(cudaLaunchKernel((const void *)kernel, grid, block, args, 0, NULL));
	CHECK(cuCtxSynchronize());

	CHECK(cuptiActivityRegisterCallbacks(on_request, on_complete));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
	CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
	CHECK(cuptiSubscribe(&subscriber, on_callback, NULL));
	printf("a second subscriber gets %d\n", cuptiSubscribe(&second, on_callback, NULL));
	listen(subscriber);
	streams((const void *)kernel, stream);
	kernels((const void *)kernel, function, stream);
	copies(stream);
	graphs((const void *)kernel, stream);
	CHECK(cuptiUnsubscribe(subscriber));
	begin("launch after the end of the subscription");
	CHECK(cudaLaunchKernel((const void *)kernel, grid, block, args, 0, stream));
	deliver();
	return 0;
}
