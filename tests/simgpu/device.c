/*
 * device.c - initialisation and injection, devices, contexts, and the announcement of calls.
 */
#include "driver.h"
#include "profiler_api.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SIM_MEMORY_BYTES (UINT64_C(80) << 30)

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

static const struct sim_tools *_Atomic listener;
static _Atomic int initialized;
static _Atomic int forked;
static __thread bool injecting;
static __thread struct CUctx_st *current;
static __thread struct sim_call *innermost;
static struct CUctx_st *primary[SIM_DEVICES_MAX];

uint64_t simgpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * GT_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- the announcement of calls ---- */

void simgpu_set_tools(const struct sim_tools *tools)
{
	atomic_store_explicit(&listener, tools, memory_order_release);
}

const struct sim_tools *sim_tools(void)
{
	return atomic_load_explicit(&listener, memory_order_acquire);
}

static pthread_mutex_t tools_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t tools_changed = PTHREAD_COND_INITIALIZER;

void simgpu_tools_changed(void)
{
	pthread_mutex_lock(&tools_lock);
	pthread_cond_broadcast(&tools_changed);
	pthread_mutex_unlock(&tools_lock);
}

static bool is_so(bool listening)
{
	const struct sim_tools *tools = sim_tools();

	return listening ? tools && tools->listening() : !tools || !tools->on();
}

void simgpu_wait_for_tools(int wanted)
{
	struct timespec end;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	pthread_mutex_lock(&tools_lock);
	while (!err && !is_so(wanted != 0))
		err = pthread_cond_timedwait(&tools_changed, &tools_lock, &end);
	pthread_mutex_unlock(&tools_lock);
}

void simgpu_enter(struct sim_call *call, const struct sim_api *api, const void *params,
		  void *result, const char *symbol)
{
	static _Atomic uint32_t last_correlation;
	const struct sim_tools *tools = sim_tools();

	*call = (struct sim_call){ .api = api,
				   .params = params,
				   .result = result,
				   .symbol = symbol,
				   .parent = innermost };
	if (innermost)
		call->correlation = innermost->correlation;
	else
		call->correlation = atomic_fetch_add(&last_correlation, 1) + 1;
	innermost = call;
	if (tools)
		tools->enter(call);
	call->start_ns = simgpu_now_ns();
}

void simgpu_exit(struct sim_call *call)
{
	const struct sim_tools *tools = sim_tools();

	if (tools)
		tools->exit(call);
	innermost = call->parent;
}

const struct sim_call *sim_innermost(void)
{
	return innermost;
}

CUresult simgpu_ready(void)
{
	if (injecting) {
		fprintf(stderr, "simgpu: a CUDA call inside InitializeInjection\n");
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	if (!atomic_load(&initialized) || atomic_load(&forked))
		return CUDA_ERROR_NOT_INITIALIZED;
	return CUDA_SUCCESS;
}

/* ---- initialisation ---- */

static void after_fork(void)
{
	atomic_store(&forked, 1);
}

/* As the driver does: one full path, silent when the library or the symbol is missing. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
	int (*initialize)(void) = NULL;

	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize) {
		injecting = true;
		initialize();
		injecting = false;
	}
}

/* A driver in a state that no caller should have to bear. */
static void misbehave(void)
{
	sigset_t all;

	if (simgpu_faults()->init_crashes)
		raise(SIGKILL); /* no sanitizer is in the way of it */
	if (!simgpu_faults()->init_hangs)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (;;)
		pause();
}

static void init_once(void)
{
	misbehave();
	pthread_atfork(NULL, NULL, after_fork);
	inject();
	if (!simgpu_faults()->no_device && !simgpu_faults()->init_error)
		atomic_store(&initialized, 1);
}

static CUresult init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (injecting)
		return simgpu_ready();
	pthread_once(&once, init_once);
	return atomic_load(&forked)         ? CUDA_ERROR_NOT_INITIALIZED
	       : simgpu_faults()->no_device ? CUDA_ERROR_NO_DEVICE
					    : (CUresult)simgpu_faults()->init_error;
}

static CUresult driver_version(int *ret)
{
	*ret = (int)simgpu_faults()->driver;
	return CUDA_SUCCESS;
}

#define ANYTIME_API(fn, decl, args, ...)                                                        \
	SIM_ENTRY(fn, CUresult, CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_CBID(fn), fn##_params, decl, \
		  args, 0, NULL, __VA_ARGS__)

ANYTIME_API(cuInit, (unsigned int Flags), (Flags), init())
ANYTIME_API(cuDriverGetVersion, (int *version), (version), driver_version(version))

/* ---- devices ---- */

static bool valid_device(CUdevice dev)
{
	return dev >= 0 && (uint64_t)dev < simgpu_faults()->devices;
}

static CUresult device_get(CUdevice *ret, int ordinal)
{
	if (!valid_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = ordinal;
	return CUDA_SUCCESS;
}

static CUresult device_count(int *ret)
{
	*ret = (int)simgpu_faults()->devices;
	return CUDA_SUCCESS;
}

static CUresult device_name(char *name, int len, CUdevice dev)
{
	if (!valid_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(name, (size_t)len, "Simulated GPU");
	return CUDA_SUCCESS;
}

static CUresult total_mem(size_t *ret, CUdevice dev)
{
	if (!valid_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = SIM_MEMORY_BYTES;
	return CUDA_SUCCESS;
}

static CUresult device_attribute(int *ret, CUdevice_attribute attrib, CUdevice dev)
{
	/* Those of an H100. */
	static const struct {
		CUdevice_attribute attrib;
		int value;
	} values[] = {
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448 },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472 },
		{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536 },
		{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536 },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048 },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9 },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0 },
		{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
	};

	if (!valid_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = 0;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (values[i].attrib == attrib)
			*ret = values[i].value;
	}
	return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGet, (CUdevice * dev, int ordinal), (dev, ordinal), device_get(dev, ordinal))
DRIVER_API(cuDeviceGetCount, (int *count), (count), device_count(count))
DRIVER_API(cuDeviceGetName, (char *name, int len, CUdevice dev), (name, len, dev),
	   device_name(name, len, dev))
DRIVER_API(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice dev), (bytes, dev), total_mem(bytes, dev))
DRIVER_API(cuDeviceGetAttribute, (int *value, CUdevice_attribute attrib, CUdevice dev),
	   (value, attrib, dev), device_attribute(value, attrib, dev))

/* ---- contexts ---- */

struct CUctx_st *sim_current(void)
{
	return current;
}

static struct CUctx_st *context_new(int device)
{
	static uint32_t last_uid;
	struct CUctx_st *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->uid = ++last_uid;
	ctx->device = device;
	ctx->next_stream_id = SIM_FIRST_ID;
	ctx->legacy = sim_stream_new(ctx, false, true);
	return ctx;
}

static struct CUctx_st *context_of_device(int device)
{
	if (!primary[device])
		primary[device] = context_new(device);
	return primary[device];
}

static CUresult primary_retain(CUcontext *ret, CUdevice dev)
{
	if (!valid_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (simgpu_faults()->context_error)
		return (CUresult)simgpu_faults()->context_error;
	pthread_mutex_lock(&sim_lock);
	*ret = context_of_device(dev);
	pthread_mutex_unlock(&sim_lock);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult ctx_create(CUcontext *ret, CUdevice dev)
{
	if (!valid_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&sim_lock);
	*ret = context_new(dev);
	pthread_mutex_unlock(&sim_lock);
	current = *ret;
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult ctx_set(CUcontext ctx)
{
	current = ctx;
	return CUDA_SUCCESS;
}

static CUresult ctx_get(CUcontext *ret)
{
	*ret = current;
	return CUDA_SUCCESS;
}

static CUresult ctx_device(CUdevice *ret)
{
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = current->device;
	return CUDA_SUCCESS;
}

static CUresult ctx_destroy(CUcontext ctx)
{
	/* The memory stays: streams, events and pending records of the context point to it. */
	if (current == ctx)
		current = NULL;
	return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxRetain, (CUcontext * ctx, CUdevice dev), (ctx, dev),
	   primary_retain(ctx, dev))
DRIVER_API(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), (dev), CUDA_SUCCESS)
DRIVER_API(cuCtxCreate_v2, (CUcontext * ctx, unsigned int flags, CUdevice dev), (ctx, flags, dev),
	   ctx_create(ctx, dev))
DRIVER_API(cuCtxCreate_v4,
	   (CUcontext * ctx, CUctxCreateParams *create_params, unsigned int flags, CUdevice dev),
	   (ctx, create_params, flags, dev), ctx_create(ctx, dev))
DRIVER_API(cuCtxDestroy_v2, (CUcontext ctx), (ctx), ctx_destroy(ctx))
DRIVER_API(cuCtxSetCurrent, (CUcontext ctx), (ctx), ctx_set(ctx))
DRIVER_API(cuCtxGetCurrent, (CUcontext * ctx), (ctx), ctx_get(ctx))
DRIVER_API(cuCtxGetDevice, (CUdevice * dev), (dev), ctx_device(dev))

/* ---- CUPTI's questions ---- */

CUcontext simgpu_current_context(void)
{
	return current;
}

uint32_t simgpu_context_uid(CUcontext ctx)
{
	return ctx ? ctx->uid : 0;
}

bool simgpu_context_device(CUcontext ctx, uint32_t *ret)
{
	if (!ctx)
		ctx = current;
	if (!ctx)
		return false;
	*ret = (uint32_t)ctx->device;
	return true;
}

/* ---- profiling ---- */

/* A tool is to act on these, by their callbacks: without one they do nothing. */
static CUresult profile(void)
{
	return sim_current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

typedef struct sim_no_params cuProfilerStart_params;
typedef struct sim_no_params cuProfilerStop_params;
DRIVER_API(cuProfilerStart, (void), (0), profile())
DRIVER_API(cuProfilerStop, (void), (0), profile())
