/*
 * cupti_activity.c - which kinds are on, and what becomes of a piece of work while they are: this
 * is where records get lost or bent on request.
 */
#include "cupti_sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CBID_MAX 1024

static _Atomic bool kinds[SIM_KIND_MAX];
static _Atomic bool calls[CUPTI_CB_DOMAIN_RUNTIME_API + 1][CBID_MAX];
static _Atomic int thread_id_type;
static _Atomic uint64_t clock_offset_ns; /* of a tool's clock to ours */

bool sim_activity_on_call(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	uint32_t kind = domain == CUPTI_CB_DOMAIN_DRIVER_API ? CUPTI_ACTIVITY_KIND_DRIVER
							     : CUPTI_ACTIVITY_KIND_RUNTIME;

	return atomic_load_explicit(&kinds[kind], memory_order_relaxed) &&
	       atomic_load_explicit(&calls[domain][cbid], memory_order_relaxed);
}

bool sim_activity_on(uint32_t kind)
{
	return atomic_load_explicit(&kinds[kind], memory_order_relaxed);
}

static int domain_of(uint32_t kind)
{
	if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
		return CUPTI_CB_DOMAIN_DRIVER_API;
	return kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : 0;
}

/*
 * The API kinds have a switch a call; the kind's own sets them all. While the kind is off a call's
 * has no effect: CUPTI 13.0 on an H200 gave no record then, whatever its header says.
 */
static void switch_kind(uint32_t kind, bool value)
{
	int domain = domain_of(kind);

	for (size_t i = 0; domain && i < CBID_MAX; i++)
		atomic_store(&calls[domain][i], value);
	atomic_store(&kinds[kind], value);
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	static _Atomic bool enabled_before;
	uint64_t slow_ns = simgpu_faults()->slow_enable;

	if (sim_record_bytes(kind) == 0)
		return CUPTI_ERROR_INVALID_KIND;
	if (simgpu_faults()->enable_fails)
		return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
	if (slow_ns && !atomic_exchange(&enabled_before, true)) {
		const struct timespec ts = { .tv_sec = (time_t)(slow_ns / GT_NSEC_PER_SEC),
					     .tv_nsec = (long)(slow_ns % GT_NSEC_PER_SEC) };

		nanosleep(&ts, NULL);
	}
	sim_attach();
	sim_buffer_start_worker();
	sim_callback_unsettle();
	switch_kind(kind, true);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
	return cuptiActivityEnable(kind);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	if (sim_record_bytes(kind) == 0)
		return CUPTI_ERROR_INVALID_KIND;
	sim_attach();
	switch_kind(kind, false);
	sim_buffer_forget_young();
	simgpu_tools_changed();
	return CUPTI_SUCCESS;
}

static CUptiResult switch_call(int domain, CUpti_CallbackId cbid, bool value)
{
	if (cbid >= CBID_MAX)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sim_attach();
	sim_buffer_start_worker();
	sim_callback_unsettle();
	atomic_store(&calls[domain][cbid], value);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
	return switch_call(CUPTI_CB_DOMAIN_DRIVER_API, cbid, enable);
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
	return switch_call(CUPTI_CB_DOMAIN_RUNTIME_API, cbid, enable);
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	atomic_store(&thread_id_type, (int)type);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	*type = (CUpti_ActivityThreadIdType)atomic_load(&thread_id_type);
	return CUPTI_SUCCESS;
}

static uint32_t thread_id(void)
{
	if (atomic_load(&thread_id_type) == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
		return (uint32_t)syscall(SYS_gettid);
	return (uint32_t)pthread_self();
}

/* ---- a tool's own clock ---- */

/* Measured once, between two looks at our own clock that are close to each other. */
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc func)
{
	uint64_t before, theirs, after, best = UINT64_MAX, offset = 0;

	if (!func)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (int i = 0; i < 16; i++) {
		before = simgpu_now_ns();
		theirs = func();
		after = simgpu_now_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		offset = theirs - (before + best / 2);
	}
	sim_attach();
	atomic_store(&clock_offset_ns, offset);
	return CUPTI_SUCCESS;
}

/* A time as records have it: by the clock that a tool has registered, whoever it was. */
static uint64_t record_time(uint64_t time_ns)
{
	return time_ns + atomic_load(&clock_offset_ns);
}

CUptiResult cuptiGetTimestamp(uint64_t *ret)
{
	sim_attach();
	*ret = record_time(simgpu_now_ns());
	return CUPTI_SUCCESS;
}

/* ---- what the simulated driver reports ---- */

void sim_activity_call(const struct sim_call *call)
{
	struct sim_call timed = *call;
	struct sim_record record;

	if (!sim_activity_on_call(call->api->domain, call->api->cbid))
		return;
	timed.start_ns = record_time(call->start_ns);
	sim_record_call(&record, &timed, record_time(simgpu_now_ns()), thread_id());
	sim_buffer_add(&record, 0);
}

void sim_activity_sync(const struct sim_call *call, uint32_t context, uint32_t stream,
		       CUpti_ActivitySynchronizationType type, uint64_t start_ns)
{
	struct sim_record record;

	if (!sim_activity_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
		return;
	sim_record_sync(&record, call, context, stream, type, record_time(start_ns),
			record_time(simgpu_now_ns()));
	sim_buffer_add(&record, 0);
}

/* Is this one to be recorded? With GRAPH_TRACE on, a graph is one record instead of its nodes. */
static bool wanted(const struct sim_work *work)
{
	if (work->graph_node_id && sim_activity_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE))
		return false;
	switch (work->kind) {
	case SIM_KERNEL:
		return sim_activity_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ||
		       sim_activity_on(CUPTI_ACTIVITY_KIND_KERNEL);
	case SIM_COPY:
		return sim_activity_on(CUPTI_ACTIVITY_KIND_MEMCPY);
	case SIM_PEER:
		return sim_activity_on(CUPTI_ACTIVITY_KIND_MEMCPY2);
	case SIM_SET:
		return sim_activity_on(CUPTI_ACTIVITY_KIND_MEMSET);
	case SIM_GRAPH:
		return sim_activity_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	default:
		return false;
	}
}

static bool every(uint64_t count, uint64_t n)
{
	return n && count % n == 0;
}

static void insert_opaque(uint32_t kind)
{
	struct sim_record record;

	sim_record_opaque(&record, kind);
	sim_buffer_add(&record, 0);
}

void sim_activity_work(const struct sim_work *work)
{
	static _Atomic uint64_t last_count;
	const struct sim_faults *faults = simgpu_faults();
	struct sim_work timed = *work;
	struct sim_record record;
	uint64_t count;

	if (!wanted(work))
		return;
	count = atomic_fetch_add(&last_count, 1) + 1;
	if (every(count, faults->lose))
		return;
	if (every(count, faults->drop)) {
		sim_buffer_count_drop();
		return;
	}
	if (every(count, faults->unknown_kind))
		insert_opaque(SIM_KIND_HIDDEN);
	if (every(count, faults->alien_kind))
		insert_opaque(SIM_KIND_ALIEN);
	timed.start_ns = record_time(work->start_ns);
	timed.end_ns = record_time(work->end_ns);
	sim_record_work(&record, &timed,
			sim_activity_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
				? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
				: CUPTI_ACTIVITY_KIND_KERNEL);
	if (every(count, faults->zero_time))
		sim_record_times(&record, 0, 0);
	if (every(count, faults->end_before_start))
		sim_record_times(&record, timed.end_ns, timed.start_ns);
	sim_buffer_add(&record, work->end_ns + faults->late);
}
