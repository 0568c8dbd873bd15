#include "nsight.h"
#include "env.h"
#include "torch_ops.h"

#include <cuda.h>
#include <nvtx3/nvToolsExt.h> /* its code is compiled here: we are a client, as the program is */
#include <pthread.h>
#include <stdlib.h>

static struct gt_arena_hdr no_arena; /* without chunks, so that no event finds room */
static nvtxDomainHandle_t domain;

/* Marks are of one thread as a rule; else the second one waits for the first one's call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nvtxRangeId_t step_range;
static bool step_open;
static bool recording;      /* nsys was told to start */
static uint64_t cycle;      /* then: the one that it records */
static bool told_late;      /* that CUDA was not in use as this window began */
static bool told_recording; /* that nsys records */
static uint32_t last_step;
static uint64_t failed_below; /* cycles for which it could not be told */

/* ---- NVTX ---- */

static nvtxEventAttributes_t named(const char *name)
{
	return (nvtxEventAttributes_t){
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_ASCII,
		.message.ascii = name,
	};
}

void inj_nsight_push(const char *name)
{
	const nvtxEventAttributes_t range = named(name);

	nvtxDomainRangePushEx(domain, &range);
}

void inj_nsight_pop(void)
{
	nvtxDomainRangePop(domain);
}

static void end_step(void)
{
	if (step_open)
		nvtxDomainRangeEnd(domain, step_range);
	step_open = false;
}

static void begin_step(uint32_t step)
{
	char name[32];
	nvtxEventAttributes_t range = named(name);

	snprintf(name, sizeof(name), "ProfilerStep#%u", step);
	step_range = nvtxDomainRangeStartEx(domain, &range);
	step_open = true;
}

/* ---- telling nsys when to record ---- */

typedef int profiler_fn(void); /* cudaError_t or CUresult */

/* Has the program begun to use CUDA? *ret_bound: this thread does, too. */
static bool cuda_in_use(bool *ret_bound)
{
	__typeof__(cuCtxGetCurrent) *get_current =
		(__typeof__(cuCtxGetCurrent) *)inj_find_loaded("libcuda.so.1", "cuCtxGetCurrent");
	CUcontext context = NULL;

	if (!get_current || get_current(&context) != CUDA_SUCCESS)
		return false;
	*ret_bound = context != NULL;
	return true;
}

/* The runtime's function makes a context for a thread that has none: there it is the driver's. */
static profiler_fn *find_profiler(bool bound, const char *runtime_name, const char *driver_name)
{
	void *found = bound ? inj_find_runtime(runtime_name) : NULL;

	if (!found)
		found = inj_find_loaded("libcuda.so.1", driver_name);
	return (profiler_fn *)found;
}

static bool call(const char *runtime_name, const char *driver_name, bool bound)
{
	profiler_fn *function = find_profiler(bound, runtime_name, driver_name);
	int error = function ? function() : -1;

	inj_log(GT_LOG_DEBUG, "%s: %d", runtime_name, error);
	if (error)
		inj_log(GT_LOG_WARN, "Nsight Systems could not be told of step %u: %s %s %d",
			last_step, runtime_name, function ? "returned" : "was not found", error);
	return !error;
}

static bool speaks(void)
{
	return !inj_config.rank.rank && !inj_config.quiet;
}

static void start_recording(uint32_t step, const struct gt_sched_pos *pos)
{
	bool bound;

	if (pos->cycle < failed_below)
		return;
	if (!cuda_in_use(&bound)) {
		if (!told_late)
			inj_log(GT_LOG_WARN,
				"Nsight Systems was not told to record in step %u: CUDA is not in "
				"use yet",
				step);
		told_late = true;
		return;
	}
	if (!call("cudaProfilerStart", "cuProfilerStart", bound)) {
		failed_below = pos->cycle + 1;
		return;
	}
	recording = true;
	cycle = pos->cycle;
	if (speaks() && !told_recording)
		inj_log(GT_LOG_INFO, "Nsight Systems records from step %u on, for %llu step%s",
			step, (unsigned long long)(inj_config.schedule.active - pos->index),
			inj_config.schedule.active - pos->index == 1 ? "" : "s");
	told_recording = true;
}

static void stop_recording(void)
{
	bool bound = false;

	recording = false;
	if (cuda_in_use(&bound))
		call("cudaProfilerStop", "cuProfilerStop", bound);
}

/* Have operators and ranges named, or not. */
static void name_ranges(bool wanted)
{
	atomic_store_explicit(&inj_live.recording, wanted, memory_order_relaxed);
	inj_ops_follow(wanted);
}

static void follow(uint32_t step)
{
	struct gt_sched_pos pos;
	bool active;

	inj_steps_at(step, &pos);
	active = pos.phase == GT_PHASE_ACTIVE;
	last_step = step;
	end_step();
	if (recording && (!active || pos.cycle != cycle))
		stop_recording();
	if (active && !recording)
		start_recording(step, &pos);
	begin_step(step);
	name_ranges(pos.armed);
}

void inj_nsight_step(uint32_t step)
{
	pthread_mutex_lock(&lock);
	follow(step);
	pthread_mutex_unlock(&lock);
}

/* ---- begin and end ---- */

static void at_exit(void)
{
	struct gt_sched_pos first;
	bool bound;

	if (!inj_live_alive() || inj_config.rank.rank || told_recording || failed_below ||
	    !cuda_in_use(&bound))
		return;
	gt_schedule_at(&inj_config.schedule, 0, &first);
	if (!last_step)
		inj_log(GT_LOG_WARN, "no step was seen: Nsight Systems was not told to record");
	else
		inj_log(GT_LOG_WARN,
			"Nsight Systems was not told to record: the program ended in step %u, the "
			"first window begins with step %llu",
			last_step, (unsigned long long)first.steps_to_active);
}

void inj_nsight_init(void)
{
	inj_arena = &no_arena;
	nvtxInitialize(NULL);
	domain = nvtxDomainCreateA("gtrace");
}

void inj_nsight_begin(void)
{
	if (inj_config.mode == GT_MODE_WHOLE) {
		name_ranges(true); /* nsys records all of it by itself */
		return;
	}
	if (atexit(at_exit))
		inj_log(GT_LOG_DEBUG, "no hook for the end of the program");
	inj_nsight_step(0);
}
