/*
 * cupti_record.c - activity records. They are laid out as in CUDA 13.0 and cut to the size they had
 * in older versions, or padded to that of newer ones: fields were only ever appended.
 */
#include "cupti_sim.h"

#include <unistd.h>

/* Sizes by layout: 11.8, 12.0, 12.8, 13.0, 13.3 (the kernel's of 13.3 is an assumption). */
static const uint16_t sizes[SIM_KIND_MAX][SIM_LAYOUT_MAX] = {
	[CUPTI_ACTIVITY_KIND_MEMCPY] = { 88, 88, 96, 96, 96 },
	[CUPTI_ACTIVITY_KIND_MEMSET] = { 88, 88, 88, 88, 88 },
	[CUPTI_ACTIVITY_KIND_KERNEL] = { 200, 208, 208, 216, 232 },
	[CUPTI_ACTIVITY_KIND_DRIVER] = { 40, 40, 40, 40, 40 },
	[CUPTI_ACTIVITY_KIND_RUNTIME] = { 40, 40, 40, 40, 40 },
	[CUPTI_ACTIVITY_KIND_DEVICE] = { 176, 176, 184, 184, 184 },
	[CUPTI_ACTIVITY_KIND_CONTEXT] = { 24, 24, 32, 32, 32 },
	[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = { 200, 208, 208, 216, 232 },
	[CUPTI_ACTIVITY_KIND_NAME] = { 32, 32, 32, 32, 32 },
	[CUPTI_ACTIVITY_KIND_MARKER] = { 56, 56, 56, 56, 56 },
	[CUPTI_ACTIVITY_KIND_MARKER_DATA] = { 32, 32, 32, 40, 40 },
	[CUPTI_ACTIVITY_KIND_OVERHEAD] = { 40, 40, 56, 56, 56 },
	[CUPTI_ACTIVITY_KIND_MEMCPY2] = { 96, 96, 96, 96, 96 },
	[CUPTI_ACTIVITY_KIND_CUDA_EVENT] = { 24, 24, 56, 56, 56 },
	[CUPTI_ACTIVITY_KIND_STREAM] = { 24, 24, 24, 24, 24 },
	[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] = { 40, 40, 56, 56, 56 },
	[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] = { 24, 24, 24, 24, 24 },
	[CUPTI_ACTIVITY_KIND_GRAPH_TRACE] = { 48, 48, 56, 56, 56 },
	[SIM_KIND_HIDDEN] = { 48, 48, 48, 48, 48 },
	[SIM_KIND_ALIEN] = { 64, 64, 64, 64, 64 },
};

uint32_t sim_record_bytes(uint32_t kind)
{
	return kind < SIM_KIND_MAX ? sizes[kind][simgpu_faults()->layout] : 0;
}

/* What lies beyond the fields of 13.0 in a newer layout is not zero. */
static void record_set(struct sim_record *ret, uint32_t kind, const void *fields, size_t bytes)
{
	ret->size_bytes = sim_record_bytes(kind);
	memset(ret->bytes, 0x5a, sizeof(ret->bytes));
	memcpy(ret->bytes, fields, bytes);
}

static void record_kernel(struct sim_record *ret, const struct sim_work *work, uint32_t kind)
{
	const CUpti_ActivityKernel10 kernel = {
		.kind = (CUpti_ActivityKind)kind,
		.registersPerThread = 32,
		.start = work->start_ns,
		.end = work->end_ns,
		.completed = work->end_ns,
		.deviceId = work->device,
		.contextId = work->context,
		.streamId = work->stream,
		.gridX = (int32_t)work->grid[0],
		.gridY = (int32_t)work->grid[1],
		.gridZ = (int32_t)work->grid[2],
		.blockX = (int32_t)work->block[0],
		.blockY = (int32_t)work->block[1],
		.blockZ = (int32_t)work->block[2],
		.staticSharedMemory = 1024,
		.dynamicSharedMemory = (int32_t)work->shared_bytes,
		.correlationId = work->correlation,
		.gridId = work->correlation,
		.name = work->name,
		.sharedMemoryExecuted = 8192,
		.graphNodeId = work->graph_node_id,
		.graphId = work->graph_id,
		.channelID = 8,
		.channelType = CUPTI_CHANNEL_TYPE_COMPUTE,
		.maxPotentialClusterSize = 8,
		.maxActiveClusters = 16,
	};

	record_set(ret, kind, &kernel, sizeof(kernel));
}

static void record_copy(struct sim_record *ret, const struct sim_work *work)
{
	const CUpti_ActivityMemcpy6 copy = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
		.copyKind = work->copy_kind,
		.srcKind = work->src_kind,
		.dstKind = work->dst_kind,
		.flags = work->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
		.bytes = work->bytes,
		.start = work->start_ns,
		.end = work->end_ns,
		.deviceId = work->device,
		.contextId = work->context,
		.streamId = work->stream,
		.correlationId = work->correlation,
		.graphNodeId = work->graph_node_id,
		.graphId = work->graph_id,
		.channelID = 3,
		.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY,
		.copyCount = 1,
	};

	record_set(ret, CUPTI_ACTIVITY_KIND_MEMCPY, &copy, sizeof(copy));
}

static void record_peer(struct sim_record *ret, const struct sim_work *work)
{
	const CUpti_ActivityMemcpyPtoP4 copy = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
		.copyKind = work->copy_kind,
		.srcKind = work->src_kind,
		.dstKind = work->dst_kind,
		.flags = work->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
		.bytes = work->bytes,
		.start = work->start_ns,
		.end = work->end_ns,
		.deviceId = work->device,
		.contextId = work->context,
		.streamId = work->stream,
		.srcDeviceId = work->src_device,
		.srcContextId = work->src_context,
		.dstDeviceId = work->dst_device,
		.dstContextId = work->dst_context,
		.correlationId = work->correlation,
		.graphNodeId = work->graph_node_id,
		.graphId = work->graph_id,
		.channelID = 3,
		.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY,
	};

	record_set(ret, CUPTI_ACTIVITY_KIND_MEMCPY2, &copy, sizeof(copy));
}

static void record_memset(struct sim_record *ret, const struct sim_work *work)
{
	const CUpti_ActivityMemset4 set = {
		.kind = CUPTI_ACTIVITY_KIND_MEMSET,
		.value = work->value,
		.bytes = work->bytes,
		.start = work->start_ns,
		.end = work->end_ns,
		.deviceId = work->device,
		.contextId = work->context,
		.streamId = work->stream,
		.correlationId = work->correlation,
		.flags = work->async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0,
		.memoryKind = work->dst_kind,
		.graphNodeId = work->graph_node_id,
		.graphId = work->graph_id,
		.channelID = 8,
		.channelType = CUPTI_CHANNEL_TYPE_COMPUTE,
	};

	record_set(ret, CUPTI_ACTIVITY_KIND_MEMSET, &set, sizeof(set));
}

static void record_graph(struct sim_record *ret, const struct sim_work *work)
{
	const CUpti_ActivityGraphTrace2 graph = {
		.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
		.correlationId = work->correlation,
		.start = work->start_ns,
		.end = work->end_ns,
		.deviceId = work->device,
		.graphId = work->graph_id,
		.contextId = work->context,
		.streamId = work->stream,
		.endDeviceId = work->device,
		.endContextId = work->context,
	};

	record_set(ret, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, &graph, sizeof(graph));
}

void sim_record_work(struct sim_record *ret, const struct sim_work *work, uint32_t kernel_kind)
{
	*ret = (struct sim_record){ .gpu = true };
	switch (work->kind) {
	case SIM_KERNEL:
		record_kernel(ret, work, kernel_kind);
		break;
	case SIM_COPY:
		record_copy(ret, work);
		break;
	case SIM_PEER:
		record_peer(ret, work);
		break;
	case SIM_SET:
		record_memset(ret, work);
		break;
	case SIM_GRAPH:
		record_graph(ret, work);
		break;
	case SIM_EMPTY:
		break;
	}
}

void sim_record_times(struct sim_record *record, uint64_t start_ns, uint64_t end_ns)
{
	size_t at = offsetof(CUpti_ActivityKernel10, start);
	uint32_t kind;

	memcpy(&kind, record->bytes, sizeof(kind));
	if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE)
		at = offsetof(CUpti_ActivityGraphTrace2, start);
	memcpy(record->bytes + at, &start_ns, sizeof(start_ns));
	memcpy(record->bytes + at + sizeof(start_ns), &end_ns, sizeof(end_ns));
}

void sim_record_call(struct sim_record *ret, const struct sim_call *call, uint64_t end_ns,
		     uint32_t thread_id)
{
	CUpti_ActivityAPI api = {
		.kind = call->api->domain == CUPTI_CB_DOMAIN_RUNTIME_API
				? CUPTI_ACTIVITY_KIND_RUNTIME
				: CUPTI_ACTIVITY_KIND_DRIVER,
		.cbid = call->api->cbid,
		.start = call->start_ns,
		.end = end_ns,
		.processId = (uint32_t)getpid(),
		.threadId = thread_id,
		.correlationId = call->correlation,
		.returnValue = *(const uint32_t *)call->result,
	};

	ret->gpu = false;
	record_set(ret, api.kind, &api, sizeof(api));
}

void sim_record_sync(struct sim_record *ret, const struct sim_call *call, uint32_t context,
		     uint32_t stream, CUpti_ActivitySynchronizationType type, uint64_t start_ns,
		     uint64_t end_ns)
{
	const CUpti_ActivitySynchronization2 sync = {
		.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		.type = type,
		.start = start_ns,
		.end = end_ns,
		.correlationId = call->correlation,
		.contextId = context,
		.streamId = stream,
	};

	ret->gpu = false;
	record_set(ret, sync.kind, &sync, sizeof(sync));
}

void sim_record_opaque(struct sim_record *ret, uint32_t kind)
{
	ret->gpu = false;
	record_set(ret, kind, &kind, sizeof(kind));
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record)
{
	size_t at = 0;
	uint32_t kind;

	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (*record) {
		memcpy(&kind, *record, sizeof(kind));
		at = (size_t)((uint8_t *)*record - buffer) + sim_record_bytes(kind);
	}
	if (at + sizeof(kind) > valid_bytes)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	memcpy(&kind, buffer + at, sizeof(kind));
	if (sim_record_bytes(kind) == 0)
		return CUPTI_ERROR_INVALID_KIND;
	if (at + sim_record_bytes(kind) > valid_bytes)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)(buffer + at);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
	/* From the list in cupti_version.h; 13.3 is an extrapolation. */
	static const uint32_t versions[SIM_LAYOUT_MAX] = { 18, 19, 26, 130001, 130300 };

	*version = versions[simgpu_faults()->layout];
	return CUPTI_SUCCESS;
}
