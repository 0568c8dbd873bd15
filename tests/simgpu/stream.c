/*
 * stream.c - streams, events and the timeline: the end of everything is known at its submission,
 * so that to wait is to sleep until then.
 */
#include "driver.h"

#include <stdlib.h>
#include <time.h>

/* From the call to the first instruction on an idle device. */
#define SIM_LAUNCH_LATENCY_NS 3000

static __thread struct CUstream_st *own_stream[SIM_DEVICES_MAX];

struct CUstream_st *sim_stream_new(struct CUctx_st *ctx, bool non_blocking, bool is_default)
{
	struct CUstream_st *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->ctx = ctx;
	stream->non_blocking = non_blocking;
	stream->id = is_default ? SIM_DEFAULT_ID : ctx->next_stream_id++;
	stream->next = ctx->streams;
	ctx->streams = stream;
	return stream;
}

static struct CUstream_st *resolve(CUstream handle)
{
	struct CUctx_st *ctx = sim_current();

	if (handle != NULL && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD)
		return handle;
	if (!ctx)
		return NULL;
	if (handle != CU_STREAM_PER_THREAD)
		return ctx->legacy;
	if (!own_stream[ctx->device])
		own_stream[ctx->device] = sim_stream_new(ctx, false, false);
	return own_stream[ctx->device];
}

struct CUstream_st *sim_resolve(CUstream handle)
{
	struct CUstream_st *stream;

	pthread_mutex_lock(&sim_lock);
	stream = resolve(handle);
	pthread_mutex_unlock(&sim_lock);
	return stream;
}

CUstream sim_per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

void sim_place(struct CUstream_st *stream, uint64_t duration_ns, uint64_t *start_ns,
	       uint64_t *end_ns)
{
	struct CUctx_st *ctx = stream->ctx;
	uint64_t start = GT_MAX(simgpu_now_ns() + SIM_LAUNCH_LATENCY_NS, stream->end_ns);

	/* The default stream waits for the blocking ones, and they for it. */
	if (stream == ctx->legacy)
		start = GT_MAX(start, ctx->blocking_ns);
	else if (!stream->non_blocking)
		start = GT_MAX(start, ctx->legacy_ns);
	*start_ns = start;
	*end_ns = start + duration_ns;
	stream->end_ns = *end_ns;
	if (stream == ctx->legacy)
		ctx->legacy_ns = *end_ns;
	else if (!stream->non_blocking)
		ctx->blocking_ns = GT_MAX(ctx->blocking_ns, *end_ns);
	ctx->all_ns = GT_MAX(ctx->all_ns, *end_ns);
}

void sim_sleep_until(uint64_t time_ns)
{
	struct timespec ts = { .tv_sec = (time_t)(time_ns / GT_NSEC_PER_SEC),
			       .tv_nsec = (long)(time_ns % GT_NSEC_PER_SEC) };

	while (simgpu_now_ns() < time_ns)
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &ts, NULL);
}

bool simgpu_stream_id(CUcontext ctx, CUstream handle, bool per_thread, uint32_t *ret)
{
	struct CUstream_st *stream;

	if (!handle && ctx && !per_thread)
		stream = ctx->legacy;
	else
		stream = sim_resolve(per_thread ? sim_per_thread(handle) : handle);
	if (!stream)
		return false;
	*ret = stream->id;
	return true;
}

/* ---- streams ---- */

static CUresult stream_create(CUstream *ret, unsigned int flags)
{
	struct CUctx_st *ctx = sim_current();

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim_lock);
	*ret = sim_stream_new(ctx, flags & CU_STREAM_NON_BLOCKING, false);
	pthread_mutex_unlock(&sim_lock);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void told_synchronized(struct CUctx_st *ctx, uint32_t stream,
			      CUpti_ActivitySynchronizationType type, uint64_t start_ns)
{
	const struct sim_tools *tools = sim_tools();

	if (tools)
		tools->synchronized(sim_innermost(), ctx->uid, stream, type, start_ns);
}

static CUresult stream_synchronize(CUstream handle)
{
	uint64_t start = simgpu_now_ns();
	struct CUstream_st *stream = sim_resolve(handle);
	uint64_t end;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_lock);
	if (stream->capture) {
		pthread_mutex_unlock(&sim_lock);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	end = stream->end_ns;
	if (stream == stream->ctx->legacy)
		end = GT_MAX(end, stream->ctx->blocking_ns);
	pthread_mutex_unlock(&sim_lock);
	sim_sleep_until(end);
	told_synchronized(stream->ctx, stream->id,
			  CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, start);
	return CUDA_SUCCESS;
}

static CUresult stream_query(CUstream handle)
{
	struct CUstream_st *stream = sim_resolve(handle);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	return simgpu_now_ns() < stream->end_ns ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult ctx_synchronize(void)
{
	uint64_t start = simgpu_now_ns();
	struct CUctx_st *ctx = sim_current();
	uint64_t end;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim_lock);
	end = ctx->all_ns;
	pthread_mutex_unlock(&sim_lock);
	sim_sleep_until(end);
	told_synchronized(ctx, CUPTI_SYNCHRONIZATION_INVALID_VALUE,
			  CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, start);
	return CUDA_SUCCESS;
}

/* A stream is never freed: pending records point to it. */
DRIVER_API(cuStreamCreate, (CUstream * stream, unsigned int flags), (stream, flags),
	   stream_create(stream, flags))
DRIVER_API(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),
	   (stream, flags, priority), stream_create(stream, flags))
DRIVER_API(cuStreamDestroy_v2, (CUstream stream), (stream), CUDA_SUCCESS)
DRIVER_API_PTSZ(cuStreamSynchronize, (CUstream stream), (stream), stream_synchronize(stream))
DRIVER_API_PTSZ(cuStreamQuery, (CUstream stream), (stream), stream_query(stream))

typedef struct sim_no_params cuCtxSynchronize_params;
DRIVER_API(cuCtxSynchronize, (void), (0), ctx_synchronize())

/* ---- events ---- */

static CUresult event_create(CUevent *ret)
{
	struct CUctx_st *ctx = sim_current();

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*ret)->ctx = ctx;
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	free(event);
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream handle)
{
	struct CUstream_st *stream = sim_resolve(handle);

	if (!stream || !event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_lock);
	event->capture = stream->capture;
	event->tail = stream->tail;
	event->time_ns = GT_MAX(stream->end_ns, simgpu_now_ns());
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static void deps_merge(struct sim_deps *deps, const struct sim_deps *more)
{
	for (unsigned int i = 0; i < more->count && deps->count < SIM_DEPS_MAX; i++)
		deps->node[deps->count++] = more->node[i];
}

static CUresult stream_wait(CUstream handle, CUevent event)
{
	struct CUstream_st *stream = sim_resolve(handle);

	if (!stream || !event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_lock);
	if (event->capture) {
		/* The wait joins this stream to the capture. */
		if (!stream->capture) {
			stream->capture = event->capture;
			stream->tail.count = 0;
		}
		deps_merge(&stream->tail, &event->tail);
	} else if (!stream->capture) {
		stream->end_ns = GT_MAX(stream->end_ns, event->time_ns);
	}
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult event_synchronize(CUevent event)
{
	uint64_t start = simgpu_now_ns();

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	sim_sleep_until(event->time_ns);
	told_synchronized(event->ctx, CUPTI_SYNCHRONIZATION_INVALID_VALUE,
			  CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, start);
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
	return simgpu_now_ns() < event->time_ns ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult event_elapsed(float *ret, CUevent start, CUevent end)
{
	*ret = (float)((double)end->time_ns - (double)start->time_ns) / 1e6f;
	return CUDA_SUCCESS;
}

DRIVER_API(cuEventCreate, (CUevent * event, unsigned int flags), (event, flags),
	   event_create(event))
DRIVER_API(cuEventDestroy_v2, (CUevent event), (event), event_destroy(event))
DRIVER_API_PTSZ(cuEventRecord, (CUevent event, CUstream stream), (event, stream),
		event_record(event, stream))
DRIVER_API_PTSZ(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
		(stream, event, flags), stream_wait(stream, event))
DRIVER_API(cuEventSynchronize, (CUevent event), (event), event_synchronize(event))
DRIVER_API(cuEventQuery, (CUevent event), (event), event_query(event))
DRIVER_API(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end), (ms, start, end),
	   event_elapsed(ms, start, end))
