/*
 * submit.c - from a call to work on the timeline: durations, the effect on memory, and what the
 * tools are told.
 */
#include "driver.h"

static uint64_t hash(const char *text)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return h;
}

/* A function of the work alone, of the order of a small model's kernels on an H100. */
uint64_t sim_duration_ns(const struct sim_work *work)
{
	uint64_t ns = 0;

	switch (work->kind) {
	case SIM_KERNEL:
		ns = 2000 + hash(work->name) % 8000 +
		     5 * (uint64_t)work->grid[0] * work->grid[1] * work->grid[2];
		break;
	case SIM_COPY:
	case SIM_PEER:
		if (work->src_kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE &&
		    work->dst_kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE)
			ns = 1000 + work->bytes / 1000;
		else
			ns = 1500 + work->bytes / 25;
		break;
	case SIM_SET:
		ns = 1000 + work->bytes / 2000;
		break;
	case SIM_EMPTY:
	case SIM_GRAPH:
		break;
	}
	return ns * simgpu_faults()->slow;
}

void sim_execute(const struct sim_work *work)
{
	if (work->kind == SIM_COPY || work->kind == SIM_PEER)
		memmove((void *)work->dst, (const void *)work->src, work->bytes);
	else if (work->kind == SIM_SET)
		memset((void *)work->dst, (int)work->value, work->bytes);
}

static _Atomic uint64_t emitted;

uint64_t simgpu_work(void)
{
	return atomic_load(&emitted);
}

void sim_emit(struct sim_work *work)
{
	const struct sim_tools *tools = sim_tools();

	atomic_fetch_add(&emitted, 1);
	work->correlation = sim_innermost()->correlation;
	if (tools)
		tools->work(work);
}

/* Lock held on entry, not on return. */
static CUresult capture(struct CUstream_st *stream, const struct sim_work *work)
{
	const struct sim_tools *tools = sim_tools();
	struct CUgraphNode_st *node = sim_graph_add(stream->capture, work, &stream->tail);
	CUpti_GraphData data = { .graph = stream->capture };

	if (node) {
		stream->tail.node[0] = node;
		stream->tail.count = 1;
	}
	pthread_mutex_unlock(&sim_lock);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	data.node = node;
	data.nodeType = node->type;
	if (tools)
		tools->resource(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &data);
	return CUDA_SUCCESS;
}

CUresult sim_submit(CUstream handle, struct sim_work *work, bool wait)
{
	struct CUstream_st *stream = sim_resolve(handle);

	if (!stream)
		return sim_current() ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim_lock);
	if (stream->capture) {
		if (!wait)
			return capture(stream, work);
		pthread_mutex_unlock(&sim_lock);
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	sim_place(stream, sim_duration_ns(work), &work->start_ns, &work->end_ns);
	pthread_mutex_unlock(&sim_lock);
	work->device = (uint32_t)stream->ctx->device;
	work->context = stream->ctx->uid;
	work->stream = stream->id;
	sim_execute(work);
	if (work->kind != SIM_EMPTY)
		sim_emit(work);
	if (wait)
		sim_sleep_until(work->end_ns);
	return CUDA_SUCCESS;
}
