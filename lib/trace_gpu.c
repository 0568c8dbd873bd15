/*
 * What the GPUs did: kernels, copies, sets, whole graphs, and the spans of ranges.
 */
#include "trace_priv.h"

#include "demangle.h"
#include "occupancy.h"

/* ---- names ---- */

/* Kineto's words for CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind. */
static struct gt_str copy_kind_name(uint8_t kind)
{
	static const char *const names[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					     "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP" };
	const char *name = names[kind < ARRAY_SIZE(names) ? kind : 0];

	return gt_str_of(name);
}

static struct gt_str memory_kind_name(uint8_t kind)
{
	static const char *const names[] = { "Unknown",       "Pageable",      "Pinned",
					     "Device",        "Array",         "Managed",
					     "Device Static", "Managed Static" };
	const char *name = names[kind < ARRAY_SIZE(names) ? kind : 0];

	return gt_str_of(name);
}

#define COPY_NAME_MAX 64

static char *put_copy_name(char *p, const struct gt_gpu_op *op)
{
	p = GT_JSON_PUT(p, "\"Memcpy ");
	p = gt_json_put_chars(p, op->kind == GT_GPU_PEER ? GT_STR("PtoP")
							 : copy_kind_name(op->copy_kind));
	p = gt_json_put_chars(GT_JSON_PUT(p, " ("), memory_kind_name(op->src_kind));
	p = gt_json_put_chars(GT_JSON_PUT(p, " -> "), memory_kind_name(op->dst_kind));
	return GT_JSON_PUT(p, ")\"");
}

static char *put_set_name(char *p, const struct gt_gpu_op *op)
{
	p = gt_json_put_chars(GT_JSON_PUT(p, "\"Memset ("), memory_kind_name(op->dst_kind));
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

static char *put_ratio(char *p, double ratio)
{
	return gt_json_put_micro(p, (uint64_t)(GT_MIN(ratio, 1e12) * 1e6 + 0.5));
}

#define PLACE_MAX 256

/* {"device":…,"context":…,"stream":…, and the channel */
static char *put_device_place(char *p, const struct gt_gpu_op *op)
{
	p = gt_json_put_u64(GT_JSON_PUT(p, "{\"device\":"), op->device);
	p = GT_TRACE_PUT_NUMBER(p, "context", op->context);
	p = GT_TRACE_PUT_NUMBER(p, "stream", op->stream);
	if (op->channel_type) {
		p = GT_TRACE_PUT_NUMBER(p, "channel", op->channel);
		p = GT_TRACE_PUT_NUMBER(p, "channel_type", op->channel_type);
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

	p = GT_TRACE_PUT_NUMBER(p, "queued", op->queued_ns);
	p = gt_json_put_i64(GT_JSON_PUT(p, ",\"priority\":"), op->priority);
	p = GT_TRACE_PUT_NUMBER(p, "registers per thread", op->registers_per_thread);
	p = GT_TRACE_PUT_NUMBER(p, "shared memory",
				(uint64_t)op->static_shared_bytes + op->dynamic_shared_bytes);
	if (op->kind == GT_GPU_GRAPH) /* has neither, but readers want them */
		return GT_JSON_PUT(p, ",\"grid\":[1,1,1],\"block\":[1,1,1]");
	p = put_triple(GT_JSON_PUT(p, ",\"grid\":"), op->grid);
	p = put_triple(GT_JSON_PUT(p, ",\"block\":"), op->block);
	if (op->cluster[0] > 1 || op->cluster[1] > 1 || op->cluster[2] > 1)
		p = put_triple(GT_JSON_PUT(p, ",\"cluster\":"), op->cluster);
	if (!device->num_sms || !device->warp_size) /* not known (yet) */
		return p;
	p = put_ratio(GT_JSON_PUT(p, ",\"blocks per SM\":"), blocks / device->num_sms);
	p = put_ratio(GT_JSON_PUT(p, ",\"warps per SM\":"),
		      blocks * threads / device->warp_size / device->num_sms);
	percent = gt_occupancy_percent(device, op);
	if (percent >= 0)
		p = GT_TRACE_PUT_NUMBER(p, "est. achieved occupancy %", (uint64_t)percent);
	return p;
}

#define COPY_ARGS_MAX 256

static char *put_copy_args(char *p, const struct gt_gpu_op *op, uint64_t duration_ns)
{
	p = GT_TRACE_PUT_NUMBER(p, "bytes", op->bytes);
	if (op->kind == GT_GPU_PEER) {
		p = GT_TRACE_PUT_NUMBER(p, "fromDevice", op->src_device);
		p = GT_TRACE_PUT_NUMBER(p, "inDevice", op->device);
		p = GT_TRACE_PUT_NUMBER(p, "toDevice", op->dst_device);
		p = GT_TRACE_PUT_NUMBER(p, "fromContext", op->src_context);
		p = GT_TRACE_PUT_NUMBER(p, "inContext", op->context);
		p = GT_TRACE_PUT_NUMBER(p, "toContext", op->dst_context);
	}
	if (duration_ns) /* bytes per ns are GB/s */
		p = put_ratio(GT_JSON_PUT(p, ",\"memory bandwidth (GB/s)\":"),
			      (double)op->bytes / (double)duration_ns);
	return p;
}

/* ---- events ---- */

static bool is_kernel(const struct gt_gpu_op *op) /* or what readers are to take for one */
{
	return op->kind == GT_GPU_KERNEL || op->kind == GT_GPU_GRAPH;
}

/* What the piece of an op depends on, its name aside. */
static struct gt_gpu_op piece_key(const struct gt_gpu_op *op)
{
	struct gt_gpu_op key;

	memset(&key, 0, sizeof(key)); /* the padding, too */
	key.kind = op->kind;
	key.device = op->device;
	key.context = op->context;
	key.stream = op->stream;
	key.channel = op->channel;
	key.channel_type = op->channel_type;
	if (is_kernel(op)) {
		memcpy(key.grid, op->grid, sizeof(key.grid));
		memcpy(key.block, op->block, sizeof(key.block));
		memcpy(key.cluster, op->cluster, sizeof(key.cluster));
		key.registers_per_thread = op->registers_per_thread;
		key.static_shared_bytes = op->static_shared_bytes;
		key.dynamic_shared_bytes = op->dynamic_shared_bytes;
		key.queued_ns = op->queued_ns;
		key.priority = op->priority;
	} else {
		key.copy_kind = op->copy_kind;
		key.src_kind = op->src_kind;
		key.dst_kind = op->dst_kind;
	}
	return key;
}

/* The quoted name of a kernel, added to quoted; false: trace->error is set. */
static bool add_kernel_name(struct gt_trace *trace, struct gt_str name, struct gt_buf *quoted)
{
	static const char key = 'n';
	struct gt_piece *piece = gt_piece_get(trace, &key, sizeof(key), name);
	struct gt_buf plain = { 0 };
	char *p;

	if (piece && !piece->text.len) {
		if (gt_demangle(name, &plain))
			name = gt_buf_str(&plain);
		p = gt_piece_reserve(trace, piece, GT_TRACE_NAME_MAX(name.len));
		if (p)
			piece->text.len =
				(size_t)(gt_trace_put_name(p, name, false) - piece->text.data);
		gt_buf_release(&plain);
	}
	if (!piece || !piece->text.len)
		return false;
	gt_buf_append(quoted, piece->text.data, piece->text.len);
	return true;
}

/* {"ph":"X","cat":…,"name":…,"args":{…, as far as it is the same each time */
static char *put_piece(char *p, const struct gt_trace *trace, const struct gt_gpu_op *op,
		       struct gt_str quoted)
{
	if (op->kind == GT_GPU_MEMSET) {
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":");
		p = put_set_name(p, op);
	} else if (!is_kernel(op)) {
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":");
		p = put_copy_name(p, op);
	} else {
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":");
		p = (char *)memcpy(p, quoted.ptr, quoted.len) + quoted.len;
	}
	p = put_device_place(GT_JSON_PUT(p, ",\"args\":"), op);
	return is_kernel(op) ? put_kernel_args(p, trace, op) : p;
}

static struct gt_piece *gpu_piece(struct gt_trace *trace, const struct gt_gpu_op *op,
				  struct gt_str name)
{
	struct gt_gpu_op key = piece_key(op);
	struct gt_buf quoted = { 0 };
	struct gt_piece *piece;
	char *p = NULL;

	if (op->kind == GT_GPU_GRAPH)
		name = GT_STR("CUDA graph");
	else if (op->kind != GT_GPU_KERNEL)
		name = (struct gt_str){ 0 };
	else if (!name.len)
		name = GT_STR("unknown kernel");
	piece = gt_piece_get(trace, &key, sizeof(key), name);
	if (!piece || piece->text.len)
		return piece;
	if (is_kernel(op) && !add_kernel_name(trace, name, &quoted))
		return NULL;
	piece = gt_piece_get(trace, &key, sizeof(key), name); /* that may have forgotten it */
	if (piece && !quoted.failed)
		p = gt_piece_reserve(trace, piece,
				     quoted.len + COPY_NAME_MAX + PLACE_MAX + KERNEL_ARGS_MAX + 64);
	if (p)
		piece->text.len =
			(size_t)(put_piece(p, trace, op, gt_buf_str(&quoted)) - piece->text.data);
	else
		trace->error = trace->error ? trace->error : -ENOMEM;
	gt_buf_release(&quoted);
	return p ? piece : NULL;
}

/* The end of an arrow from the launch; at place stand the op's pid, tid and ts. */
static int put_flow_end(struct gt_trace *trace, const struct gt_gpu_op *op, uint32_t tid,
			uint64_t start, gt_trace_spot place)
{
	char *p = gt_trace_begin(trace, &trace->gpu, 256, &trace->spots.flow_end);

	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
	p = gt_json_put_u64(p, op->correlation);
	gt_trace_hint(&trace->gpu, p, &place);
	p = gt_trace_put_place(p, op->device, tid, start);
	return gt_trace_end(trace, &trace->gpu, p);
}

int gt_trace_gpu(struct gt_trace *trace, const struct gt_gpu_op *op, struct gt_str name,
		 const struct gt_trace_call *launch)
{
	/* Readers want a correlation; ids that no launch has count down from the largest. */
	uint32_t correlation = op->correlation;
	uint64_t start, end;
	struct gt_piece *piece;
	struct gt_str more;
	gt_trace_spot place;
	uint32_t tid;
	char *p;

	if (op->device >= GT_TRACE_DEVICES_MAX) {
		trace->refused++;
		return trace->error;
	}
	if (!gt_trace_times(trace, op->start_ns, op->end_ns, &start, &end))
		return trace->error;
	tid = gt_trace_lane(trace, GT_TRACK_STREAM, op->device, op->stream, 0, start, end);
	piece = gpu_piece(trace, op, name);
	more = launch ? launch->gpu_args : (struct gt_str){ 0 };
	p = piece ? gt_trace_begin(trace, &trace->gpu,
				   piece->text.len + COPY_ARGS_MAX + more.len + 512, &piece->spot)
		  : NULL;
	if (!p)
		return trace->error;
	if (!correlation)
		correlation = UINT32_MAX - trace->correlations_invented++;
	p = (char *)memcpy(p, piece->text.data, piece->text.len) + piece->text.len;
	if (!is_kernel(op))
		p = put_copy_args(p, op, end - start);
	if (more.len)
		p = (char *)memcpy(p, more.ptr, more.len) + more.len;
	if (op->graph_id)
		p = GT_TRACE_PUT_NUMBER(p, "graph id", op->graph_id);
	if (op->graph_node_id)
		p = GT_TRACE_PUT_NUMBER(p, "graph node id", op->graph_node_id);
	if (launch && launch->external_id)
		p = GT_TRACE_PUT_NUMBER(p, "External id", launch->external_id);
	p = GT_TRACE_PUT_NUMBER(p, "correlation", correlation);
	gt_trace_hint(&trace->gpu, p, &trace->spots.gpu_place);
	*p++ = '}';
	place = gt_trace_spot_at(&trace->gpu, p);
	p = gt_trace_put_place(p, op->device, tid, start);
	gt_trace_hint(&trace->gpu, p, &trace->spots.gpu_time);
	p = gt_json_put_us(GT_JSON_PUT(p, ",\"dur\":"), end - start);
	gt_trace_end(trace, &trace->gpu, p);
	if (launch && op->correlation)
		return put_flow_end(trace, op, tid, start, place);
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
	p = gt_trace_begin(trace, &trace->gpu, GT_TRACE_NAME_MAX(range->name.len) + 256,
			   &trace->spots.gpu_range);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":");
	p = gt_trace_put_name(p, range->name, range->is_step);
	p = gt_json_put_u64(GT_JSON_PUT(p, ",\"args\":{\"External id\":"), range->external_id);
	*p++ = '}';
	p = gt_trace_put_place(p, range->device, tid, start);
	p = gt_json_put_us(GT_JSON_PUT(p, ",\"dur\":"), end - start);
	return gt_trace_end(trace, &trace->gpu, p);
}
