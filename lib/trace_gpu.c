/*
 * GPU work: kernels, copies, sets, whole graphs, and the spans of ranges on a GPU.
 */
#include "trace_priv.h"

#include "demangle.h"
#include "occupancy.h"

#include <stdlib.h>

/* ---- names ---- */

/* Kineto's words for CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind. */
static const char *copy_kind_name(uint8_t kind)
{
	static const char *const names[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					     "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP" };

	return kind < ARRAY_SIZE(names) ? names[kind] : "Unknown";
}

static const char *memory_kind_name(uint8_t kind)
{
	static const char *const names[] = { "Unknown",       "Pageable",      "Pinned",
					     "Device",        "Array",         "Managed",
					     "Device Static", "Managed Static" };

	return kind < ARRAY_SIZE(names) ? names[kind] : "Unknown";
}

static char *put_word(char *p, const char *word)
{
	size_t len = strlen(word);

	return (char *)memcpy(p, word, len) + len;
}

static char *put_copy_name(char *p, const struct gt_gpu_op *op)
{
	p = GT_JSON_PUT(p, "\"Memcpy ");
	p = put_word(p, op->kind == GT_GPU_PEER ? "PtoP" : copy_kind_name(op->copy_kind));
	p = GT_JSON_PUT(p, " (");
	p = put_word(p, memory_kind_name(op->src_kind));
	p = GT_JSON_PUT(p, " -> ");
	p = put_word(p, memory_kind_name(op->dst_kind));
	return GT_JSON_PUT(p, ")\"");
}

static char *put_set_name(char *p, const struct gt_gpu_op *op)
{
	p = GT_JSON_PUT(p, "\"Memset (");
	p = put_word(p, memory_kind_name(op->dst_kind));
	return GT_JSON_PUT(p, ")\"");
}

/* ---- arguments ---- */

static char *put_triple(char *p, const uint32_t v[3])
{
	*p++ = '[';
	p = gt_json_put_u64(p, v[0]);
	*p++ = ',';
	p = gt_json_put_u64(p, v[1]);
	*p++ = ',';
	p = gt_json_put_u64(p, v[2]);
	*p++ = ']';
	return p;
}

/* part / whole with up to six decimals */
static char *put_ratio(char *p, double ratio)
{
	return gt_json_put_micro(p, (uint64_t)(GT_MIN(ratio, 1e12) * 1e6 + 0.5));
}

#define PLACE_MAX 512

/* What every GPU op has but what identifies it: "device":…,"context":…, … */
static char *put_place(char *p, const struct gt_gpu_op *op)
{
	p = GT_JSON_PUT(p, "\"device\":");
	p = gt_json_put_u64(p, op->device);
	p = GT_JSON_PUT(p, ",\"context\":");
	p = gt_json_put_u64(p, op->context);
	p = GT_JSON_PUT(p, ",\"stream\":");
	p = gt_json_put_u64(p, op->stream);
	if (op->graph_id) {
		p = GT_JSON_PUT(p, ",\"graph id\":");
		p = gt_json_put_u64(p, op->graph_id);
	}
	if (op->graph_node_id) {
		p = GT_JSON_PUT(p, ",\"graph node id\":");
		p = gt_json_put_u64(p, op->graph_node_id);
	}
	if (op->channel_type) {
		p = GT_JSON_PUT(p, ",\"channel\":");
		p = gt_json_put_u64(p, op->channel);
		p = GT_JSON_PUT(p, ",\"channel_type\":");
		p = gt_json_put_u64(p, op->channel_type);
	}
	return p;
}

#define KERNEL_ARGS_MAX 512

static char *put_kernel_args(char *p, const struct gt_trace *trace, const struct gt_gpu_op *op)
{
	const struct gt_msg_device *device = &trace->devices[op->device];
	double blocks = (double)op->grid[0] * op->grid[1] * op->grid[2];
	double threads = (double)op->block[0] * op->block[1] * op->block[2];
	int percent;

	p = GT_JSON_PUT(p, ",\"queued\":");
	p = gt_json_put_u64(p, op->queued_ns);
	p = GT_JSON_PUT(p, ",\"priority\":");
	p = gt_json_put_i64(p, op->priority);
	p = GT_JSON_PUT(p, ",\"registers per thread\":");
	p = gt_json_put_u64(p, op->registers_per_thread);
	p = GT_JSON_PUT(p, ",\"shared memory\":");
	p = gt_json_put_u64(p, (uint64_t)op->static_shared_bytes + op->dynamic_shared_bytes);
	p = GT_JSON_PUT(p, ",\"grid\":");
	p = put_triple(p, op->grid);
	p = GT_JSON_PUT(p, ",\"block\":");
	p = put_triple(p, op->block);
	if ((uint64_t)op->cluster[0] * op->cluster[1] * op->cluster[2] > 1) {
		p = GT_JSON_PUT(p, ",\"cluster\":");
		p = put_triple(p, op->cluster);
	}
	if (!(trace->devices_known & UINT64_C(1) << op->device) || !device->num_sms ||
	    !device->warp_size)
		return p;
	p = GT_JSON_PUT(p, ",\"blocks per SM\":");
	p = put_ratio(p, blocks / device->num_sms);
	p = GT_JSON_PUT(p, ",\"warps per SM\":");
	p = put_ratio(p, blocks * threads / device->warp_size / device->num_sms);
	percent = gt_occupancy_percent(device, op);
	if (percent >= 0) {
		p = GT_JSON_PUT(p, ",\"est. achieved occupancy %\":");
		p = gt_json_put_u64(p, (uint64_t)percent);
	}
	return p;
}

#define COPY_ARGS_MAX 384

static char *put_copy_args(char *p, const struct gt_gpu_op *op, uint64_t duration_ns)
{
	p = GT_JSON_PUT(p, ",\"bytes\":");
	p = gt_json_put_u64(p, op->bytes);
	if (op->kind == GT_GPU_PEER) {
		p = GT_JSON_PUT(p, ",\"fromDevice\":");
		p = gt_json_put_u64(p, op->src_device);
		p = GT_JSON_PUT(p, ",\"inDevice\":");
		p = gt_json_put_u64(p, op->device);
		p = GT_JSON_PUT(p, ",\"toDevice\":");
		p = gt_json_put_u64(p, op->dst_device);
		p = GT_JSON_PUT(p, ",\"fromContext\":");
		p = gt_json_put_u64(p, op->src_context);
		p = GT_JSON_PUT(p, ",\"inContext\":");
		p = gt_json_put_u64(p, op->context);
		p = GT_JSON_PUT(p, ",\"toContext\":");
		p = gt_json_put_u64(p, op->dst_context);
	}
	if (duration_ns) { /* bytes per ns are GB/s */
		p = GT_JSON_PUT(p, ",\"memory bandwidth (GB/s)\":");
		p = put_ratio(p, (double)op->bytes / (double)duration_ns);
	}
	return p;
}

/* ---- events ---- */

void gt_kernel_cache_free(struct gt_kernel_cache *cache)
{
	free(cache);
}

static char *put_kernel_name(char *p, struct gt_str name)
{
	if (!name.len)
		name = (struct gt_str){ "unknown kernel", strlen("unknown kernel") };
	return gt_trace_put_name(p, name, false);
}

static int put_flow_end(struct gt_trace *trace, const struct gt_gpu_op *op, uint32_t tid,
			uint64_t start)
{
	char *p = gt_trace_reserve(trace, 256);

	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"bp\":\"e\",\"id\":");
	p = gt_json_put_u64(p, op->correlation);
	p = GT_JSON_PUT(p, ",\"pid\":");
	p = gt_json_put_u64(p, op->device);
	p = GT_JSON_PUT(p, ",\"tid\":");
	p = gt_json_put_u64(p, tid);
	p = GT_JSON_PUT(p, ",\"ts\":");
	p = gt_json_put_us(p, start);
	p = GT_JSON_PUT(p, "}");
	return gt_trace_end_event(trace, p);
}

int gt_trace_gpu(struct gt_trace *trace, const struct gt_gpu_op *op, struct gt_str name,
		 const struct gt_trace_call *launch)
{
	uint64_t start, end;
	uint32_t tid;
	size_t plain_len;
	char *plain = NULL;
	char *p;

	if (op->device >= GT_TRACE_DEVICES_MAX) {
		trace->refused++;
		return trace->error;
	}
	if (!gt_trace_times(trace, op->start_ns, op->end_ns, &start, &end))
		return trace->error;
	tid = gt_trace_lane(trace, GT_TRACK_STREAM, op->device, op->stream, 0, start, end);
	if (op->kind == GT_GPU_KERNEL) {
		plain = gt_demangle(name.ptr, name.len, &plain_len);
		if (plain)
			name = (struct gt_str){ plain, plain_len };
	}
	p = gt_trace_reserve(trace, GT_TRACE_NAME_MAX(name.len) + PLACE_MAX + KERNEL_ARGS_MAX +
					    COPY_ARGS_MAX + 512);
	if (!p) {
		free(plain);
		return trace->error;
	}
	switch (op->kind) {
	case GT_GPU_MEMCPY:
	case GT_GPU_PEER:
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":");
		p = put_copy_name(p, op);
		break;
	case GT_GPU_MEMSET:
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":");
		p = put_set_name(p, op);
		break;
	default:
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":");
		p = put_kernel_name(p, name);
	}
	free(plain);
	p = GT_JSON_PUT(p, ",\"pid\":");
	p = gt_json_put_u64(p, op->device);
	p = GT_JSON_PUT(p, ",\"tid\":");
	p = gt_json_put_u64(p, tid);
	p = GT_JSON_PUT(p, ",\"args\":{");
	p = put_place(p, op);
	if (op->kind == GT_GPU_KERNEL || op->kind == GT_GPU_GRAPH)
		p = put_kernel_args(p, trace, op);
	else
		p = put_copy_args(p, op, end - start);
	if (launch && launch->external_id) {
		p = GT_JSON_PUT(p, ",\"External id\":");
		p = gt_json_put_u64(p, launch->external_id);
	}
	p = GT_JSON_PUT(p, ",\"correlation\":");
	/* Readers want one; ids that no launch has count down from the largest. */
	p = gt_json_put_u64(p, op->correlation ? op->correlation
					       : UINT32_MAX - trace->correlations_invented++);
	p = GT_JSON_PUT(p, "}");
	p = gt_trace_put_slice_end(p, start, end);
	gt_trace_end_event(trace, p);
	if (launch && op->correlation)
		return put_flow_end(trace, op, tid, start);
	return trace->error;
}

int gt_trace_gpu_range(struct gt_trace *trace, const struct gt_trace_gpu_range *range)
{
	uint64_t start, end;
	uint32_t tid;
	char *p;

	if (range->device >= GT_TRACE_DEVICES_MAX) {
		trace->refused++;
		return trace->error;
	}
	if (!gt_trace_times(trace, range->start_ns, range->end_ns, &start, &end))
		return trace->error;
	tid = gt_trace_lane(trace, range->is_step ? GT_TRACK_GPU_STEP : GT_TRACK_GPU_RANGE,
			    range->device, range->tid, 0, start, end);
	p = gt_trace_reserve(trace, GT_TRACE_NAME_MAX(range->name.len) + 256);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":");
	p = gt_trace_put_name(p, range->name, range->is_step);
	p = GT_JSON_PUT(p, ",\"pid\":");
	p = gt_json_put_u64(p, range->device);
	p = GT_JSON_PUT(p, ",\"tid\":");
	p = gt_json_put_u64(p, tid);
	p = GT_JSON_PUT(p, ",\"args\":{\"External id\":");
	p = gt_json_put_u64(p, range->external_id);
	p = GT_JSON_PUT(p, "}");
	return gt_trace_end_event(trace, gt_trace_put_slice_end(p, start, end));
}
