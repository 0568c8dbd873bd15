/*
 * train.c - a small "training" program: runtime and driver launches, two streams, copies, sets, a
 * graph captured before the loop and replayed, NVTX ranges. It runs on the simulated GPU and on a
 * real one, and with --truth writes down what it did. What a trace of it must hold follows.
 */
#include "gtrace.h"
#include "train.h"
#include "train_kernels.h"
#include "truth.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH_BYTES                       (UINT64_C(64) << 10)

#define DEMANGLED(id, mangled, demangled) mangled, demangled,
static const char *const names[] = { TRAIN_KERNELS(DEMANGLED) NULL };
#undef DEMANGLED

static const char *kernel_name(enum train_kernel kernel)
{
	return names[2 * kernel];
}

static struct {
	CUfunction function[KERNEL_MAX]; /* for the driver's launches */
	cudaKernel_t kernel[KERNEL_MAX]; /* for the runtime's */
	cudaStream_t compute;
	cudaStream_t transfer;
	cudaEvent_t copied;
	cudaEvent_t forked;
	cudaEvent_t joined;
	nvtxDomainHandle_t domain;
	nvtxStringHandle_t checkpoint; /* a registered string of it */
	cudaGraphExec_t graph;
	void *device;
	void *device2;
	void *peer; /* on the second device, when --peer */
	void *host;
} gpu;

static struct train_options options;

/* The first failure ends the program: what follows would count things that did not happen. */
static void check(int error, const char *what)
{
	if (error) {
		fprintf(stderr, "train: %s failed: %d\n", what, error);
		exit(99);
	}
}
#define CHECK(call) check((int)(call), #call)

static void tell(const char *what, uint64_t step)
{
	struct timespec ts;

	if (options.tell_fd < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	dprintf(options.tell_fd, "%s %llu %lld\n", what, (unsigned long long)step,
		(long long)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* ---- work, and its truth ---- */

static void launch(enum train_kernel kernel, cudaStream_t stream)
{
	const dim3 grid = { 8 + kernel, 1, 1 };
	const dim3 block = { 128, 1, 1 };
	unsigned int n = 1000;
	void *args[] = { &n };

	CHECK(cudaLaunchKernel((const void *)gpu.kernel[kernel], grid, block, args, 0, stream));
	truth_call(TRUTH_RUNTIME, "cudaLaunchKernel");
}

static void launch_runtime(enum train_kernel kernel, cudaStream_t stream)
{
	launch(kernel, stream);
	truth_kernel(kernel_name(kernel), 1);
}

static void launch_captured(enum train_kernel kernel, cudaStream_t stream)
{
	launch(kernel, stream);
	truth_captured();
}

static void launch_driver(enum train_kernel kernel, cudaStream_t stream)
{
	unsigned int n = 1000;
	void *args[] = { &n };

	CHECK(cuLaunchKernel(gpu.function[kernel], 4, 2, 1, 64, 1, 1, 0, stream, args, NULL));
	truth_call(TRUTH_DRIVER, "cuLaunchKernel");
	truth_kernel(kernel_name(kernel), 1);
}

static void launch_extended(enum train_kernel kernel, cudaStream_t stream)
{
	unsigned int n = 1000;
	void *args[] = { &n };
	const cudaLaunchConfig_t config = { .gridDim = { 2, 2, 2 },
					    .blockDim = { 32, 2, 1 },
					    .dynamicSmemBytes = 1024,
					    .stream = stream };

	CHECK(cudaLaunchKernelExC(&config, (const void *)gpu.kernel[kernel], args));
	truth_call(TRUTH_RUNTIME, "cudaLaunchKernelExC");
	truth_kernel(kernel_name(kernel), 1);
}

static void copy(void *dst, const void *src, enum cudaMemcpyKind kind, enum truth_copy truth)
{
	CHECK(cudaMemcpyAsync(dst, src, BATCH_BYTES, kind, gpu.transfer));
	truth_call(TRUTH_RUNTIME, "cudaMemcpyAsync");
	truth_copy(truth, BATCH_BYTES, 1);
}

static void push(const char *name)
{
	nvtxRangePushA(name);
	truth_range(name);
}

/*
 * Two kernels, and a set between them; with --branches a kernel beside these, of which CUPTI says
 * that it is on the same stream.
 */
static cudaGraphExec_t capture(void)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(gpu.compute, cudaStreamCaptureModeGlobal));
	if (options.branches) {
		CHECK(cudaEventRecord(gpu.forked, gpu.compute));
		CHECK(cudaStreamWaitEvent(gpu.transfer, gpu.forked, 0));
		launch_captured(KERNEL_CUTLASS, gpu.transfer);
		CHECK(cudaEventRecord(gpu.joined, gpu.transfer));
	}
	launch_captured(KERNEL_NORM, gpu.compute);
	CHECK(cudaMemsetAsync(gpu.device2, 0, 4096, gpu.compute));
	truth_call(TRUTH_RUNTIME, "cudaMemsetAsync");
	truth_captured();
	launch_captured(KERNEL_GEMM, gpu.compute);
	if (options.branches)
		CHECK(cudaStreamWaitEvent(gpu.compute, gpu.joined, 0));
	CHECK(cudaStreamEndCapture(gpu.compute, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	return exec;
}

static void replay(void)
{
	CHECK(cudaGraphLaunch(gpu.graph, gpu.compute));
	truth_call(TRUTH_RUNTIME, "cudaGraphLaunch");
	truth_kernel(kernel_name(KERNEL_NORM), 1);
	truth_kernel(kernel_name(KERNEL_GEMM), 1);
	truth_copy(TRUTH_SET, 4096, 1);
	if (options.branches)
		truth_kernel(kernel_name(KERNEL_CUTLASS), 1);
}

/* Calls that succeed and never get a record of the GPU. */
static void silent_calls(void)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaMemcpyAsync(gpu.device, gpu.host, 0, cudaMemcpyHostToDevice, gpu.transfer));
	truth_silent();
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, gpu.compute));
	truth_silent();
}

static void peer_copy(void)
{
	CHECK(cudaMemcpyPeerAsync(gpu.peer, 1, gpu.device, 0, BATCH_BYTES, gpu.transfer));
	truth_call(TRUTH_RUNTIME, "cudaMemcpyPeerAsync");
	truth_copy(TRUTH_PTOP, BATCH_BYTES, 1);
}

static void set_up(void)
{
	CUmodule module;
	cudaLibrary_t library;

	CHECK(cudaSetDevice(0));
	CHECK(cudaMalloc(&gpu.device, BATCH_BYTES));
	CHECK(cudaMalloc(&gpu.device2, BATCH_BYTES));
	CHECK(cudaMallocHost(&gpu.host, BATCH_BYTES));
	CHECK(cudaStreamCreateWithFlags(&gpu.compute, cudaStreamNonBlocking));
	CHECK(cudaStreamCreate(&gpu.transfer));
	CHECK(cudaEventCreateWithFlags(&gpu.copied, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&gpu.forked, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&gpu.joined, cudaEventDisableTiming));
	gpu.domain = nvtxDomainCreateA("train.checkpoint");
	gpu.checkpoint = nvtxDomainRegisterStringA(gpu.domain, "save weights");
	CHECK(cuModuleLoadData(&module, TRAIN_PTX));
	CHECK(cudaLibraryLoadData(&library, TRAIN_PTX, NULL, NULL, 0, NULL, NULL, 0));
	for (int i = 0; i < KERNEL_MAX; i++) {
		CHECK(cuModuleGetFunction(&gpu.function[i], module, names[2 * i]));
		CHECK(cudaLibraryGetKernel(&gpu.kernel[i], library, names[2 * i]));
	}
	if (options.peer) {
		CHECK(cudaSetDevice(1));
		CHECK(cudaMalloc(&gpu.peer, BATCH_BYTES));
		CHECK(cudaSetDevice(0));
	}
	if (options.graph)
		gpu.graph = capture();
}

static void launch_nccl(void)
{
	launch_extended(KERNEL_NCCL, gpu.transfer);
}

/* ---- one step ---- */

static void forward(void)
{
	push("forward");
	copy(gpu.device, gpu.host, cudaMemcpyHostToDevice, TRUTH_HTOD);
	CHECK(cudaEventRecord(gpu.copied, gpu.transfer));
	CHECK(cudaStreamWaitEvent(gpu.compute, gpu.copied, 0));
	for (int i = 0; i < options.layers; i++) {
		push("layer");
		launch_runtime(KERNEL_GEMM, gpu.compute);
		launch_driver(KERNEL_TRITON, gpu.compute);
		launch_runtime(KERNEL_ADD, gpu.compute);
		nvtxRangePop();
	}
	nvtxRangePop();
}

static void backward(void)
{
	push("backward");
	for (int i = 0; i < options.layers; i++)
		launch_extended(KERNEL_CUTLASS, gpu.compute);
	if (options.graph)
		replay();
	nvtxRangePop();
}

/* A range of another domain, with a registered name, around a range that it does not contain. */
static void checkpoint(void)
{
	const nvtxEventAttributes_t name = { .version = NVTX_VERSION,
					     .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
					     .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
					     .message.registered = gpu.checkpoint };
	nvtxRangeId_t range = nvtxRangeStartA("write file");

	nvtxDomainRangePushEx(gpu.domain, &name);
	copy(gpu.host, gpu.device2, cudaMemcpyDeviceToHost, TRUTH_DTOH);
	nvtxRangeEnd(range);
	nvtxDomainRangePop(gpu.domain);
	truth_range("save weights");
	truth_range("write file");
}

static void optimizer(uint64_t step)
{
	push("optimizer \"adam\"");
	CHECK(cudaMemsetAsync(gpu.device2, (int)step, BATCH_BYTES, gpu.transfer));
	truth_call(TRUTH_RUNTIME, "cudaMemsetAsync");
	truth_copy(TRUTH_SET, BATCH_BYTES, 1);
	launch_driver(KERNEL_ADAM, gpu.compute);
	copy(gpu.device2, gpu.device, cudaMemcpyDeviceToDevice, TRUTH_DTOD);
	checkpoint();
	nvtxRangePop();
}

static void *helper(void *arg)
{
	pthread_barrier_t *barrier = arg;

	CHECK(cudaSetDevice(0));
	for (int step = 0; step < options.steps; step++) {
		pthread_barrier_wait(barrier);
		push("helper");
		for (int i = 0; i < options.layers; i++)
			launch_runtime(i % 2 ? KERNEL_NORM : KERNEL_ADD, gpu.compute);
		launch_driver(KERNEL_TRITON, NULL);
		nvtxRangePop();
		pthread_barrier_wait(barrier);
	}
	return NULL;
}

static void mark(uint64_t step)
{
	char name[64];

	snprintf(name, sizeof(name), "step %llu", (unsigned long long)step);
	truth_next_step();
	if (strcmp(options.marks, "api") == 0)
		gtrace_step();
	else if (strcmp(options.marks, "nvtx-mark") == 0)
		nvtxMarkA(name);
}

/* A child that only forks: it must neither fail nor be seen. */
static void fork_child(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		nvtxRangePushA("in the child");
		nvtxRangePop();
		gtrace_step();
		_exit(7);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != 7)
		exit(98);
}

/* Does a list ",2,3," name this step? */
static bool names_step(const char *list, uint64_t step)
{
	char item[24];

	snprintf(item, sizeof(item), ",%llu,", (unsigned long long)step);
	return list && strstr(list, item);
}

/* On the simulated GPU, be sure that a tool is there, or gone, however fast the steps are. */
static void wait_for_tools(int listening)
{
	void (*wait)(int);

	*(void **)&wait = dlsym(RTLD_DEFAULT, "simgpu_wait_for_tools");
	if (wait)
		wait(listening);
}

static void events_of(uint64_t step)
{
	if (names_step(options.tools_off, step))
		wait_for_tools(0);
	if (names_step(options.tools, step))
		wait_for_tools(1);
	if (options.fork_at == (int64_t)step)
		fork_child();
	if (options.close_at == (int64_t)step)
		train_close_descriptors(options.tell_fd, options.wait_fd);
	if (options.profiler_at == (int64_t)step)
		train_profiler_start();
	if (options.profiler_at >= 0 &&
	    options.profiler_at + options.profiler_steps == (int64_t)step)
		train_profiler_stop();
	if (options.capture_at == (int64_t)step)
		gpu.graph = capture();
	if (options.die_at == (int64_t)step)
		raise(options.die_signal);
}

static void run_step(uint64_t step, pthread_barrier_t *barrier)
{
	char byte;

	tell("begin", step);
	if (options.wait_fd >= 0 && read(options.wait_fd, &byte, 1) != 1)
		exit(97);
	events_of(step);
	train_ranges(&options, 'b', step);
	if (strcmp(options.marks, "nvtx") == 0)
		push("train step");
	pthread_barrier_wait(barrier);
	forward();
	backward();
	train_ranges(&options, 'm', step);
	optimizer(step);
	if (options.silent)
		silent_calls();
	if (options.peer)
		peer_copy();
	if (options.nccl)
		train_nccl_step(launch_nccl);
	pthread_barrier_wait(barrier);
	if (options.sync) {
		CHECK(cudaStreamSynchronize(gpu.transfer));
		CHECK(cudaDeviceSynchronize());
		tell("done", step);
	}
	if (options.step_us > 0)
		usleep((useconds_t)options.step_us);
	/* As a range: its end is the mark. */
	if (strcmp(options.marks, "nvtx") == 0)
		nvtxRangePop();
	mark(step);
	train_ranges(&options, 'e', step);
}

int main(int argc, char **argv)
{
	pthread_barrier_t barrier;
	pthread_t *threads;

	train_parse(&options, argc, argv);
	threads = calloc((size_t)options.threads + 1, sizeof(*threads));
	pthread_barrier_init(&barrier, NULL, (unsigned int)options.threads);
	signal(SIGPIPE, SIG_IGN); /* who is told may have gone */
	nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main loop");
	tell("pid", (uint64_t)getpid());
	train_ranges(&options, 's', 0);
	set_up();
	if (options.nccl)
		train_nccl_init();
	for (int i = 1; i < options.threads; i++)
		CHECK(pthread_create(&threads[i], NULL, helper, &barrier));
	for (int step = 0; step < options.steps; step++)
		run_step((uint64_t)step, &barrier);
	for (int i = 1; i < options.threads; i++)
		pthread_join(threads[i], NULL);
	CHECK(cudaDeviceSynchronize());
	if (options.truth && truth_write(options.truth, options.marks, names))
		check(errno, "--truth");
	if (options.tools_gone)
		wait_for_tools(0);
	printf("trained %d steps\n", options.steps);
	free(threads);
	return options.exit_status;
}
