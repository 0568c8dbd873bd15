/*
 * Torch's operators, the arrows from forward to backward ones, and blocks of memory.
 */
#include "op_inputs.h"
#include "trace_priv.h"

/* {"ph":"X","cat":"cpu_op","name":…,"args":{"External id": */
static const struct gt_piece *op_piece(struct gt_trace *trace, struct gt_str name,
				       gt_trace_spot **ret_spot)
{
	static const char key[] = "o"; /* no other piece's key begins so */
	struct gt_piece *piece = gt_piece_get(trace, key, sizeof(key), name);
	char *p;

	if (!piece)
		return NULL;
	*ret_spot = &piece->spot;
	if (piece->text.len)
		return piece;
	p = gt_piece_reserve(trace, piece, GT_TRACE_NAME_MAX(name.len) + 64);
	if (!p)
		return NULL;
	p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":");
	p = gt_trace_put_name(p, name, false);
	p = GT_JSON_PUT(p, ",\"args\":{\"External id\":");
	piece->text.len = (size_t)(p - piece->text.data);
	return piece;
}

/* Most come again in each step, so the text is kept; what is made is mostly far below its bound. */
char *gt_trace_put_inputs(struct gt_trace *trace, char *p, struct gt_str inputs)
{
	static const char key[] = "i"; /* likewise */
	struct gt_piece *piece = gt_piece_get(trace, key, sizeof(key), inputs);
	size_t len;
	char *text;

	if (!piece)
		return NULL;
	if (piece->text.len) {
		gt_trace_hint(&trace->main, p, &piece->spot);
		return (char *)memcpy(p, piece->text.data, piece->text.len) + piece->text.len;
	}
	len = (size_t)(gt_op_inputs_put(p, inputs) - p);
	text = gt_piece_reserve(trace, piece, len);
	if (!text)
		return NULL;
	memcpy(text, p, len);
	piece->text.len = len;
	gt_trace_hint(&trace->main, p, &piece->spot);
	return p + len;
}

char *gt_trace_put_calls(struct gt_trace *trace, char *p, struct gt_str calls)
{
	p = GT_JSON_PUT(p, ",\"Call stack\":");
	gt_trace_hint(&trace->main, p, &trace->spots.calls);
	return gt_json_put_str(p, calls);
}

int gt_trace_op(struct gt_trace *trace, const struct gt_trace_op *op, uint32_t *ret_lane)
{
	const struct gt_piece *piece;
	gt_trace_spot *spot;
	uint64_t start, end;
	char *p;

	*ret_lane = op->tid;
	if (!gt_trace_times(trace, op->start_ns, op->end_ns, &start, &end))
		return trace->error;
	*ret_lane = gt_trace_lane(trace, GT_TRACK_THREAD, 0, op->tid, 0, start, end);
	piece = op_piece(trace, op->name, &spot);
	p = piece ? gt_trace_begin(trace, &trace->main,
				   piece->text.len + GT_OP_INPUTS_TEXT_MAX(op->inputs.len) +
					   GT_JSON_STR_MAX(op->modules.len) +
					   GT_JSON_STR_MAX(op->calls.len) + op->args.len + 512,
				   spot)
		  : NULL;
	if (!p)
		return trace->error;
	p = (char *)memcpy(p, piece->text.data, piece->text.len) + piece->text.len;
	p = gt_json_put_u64(p, op->external_id);
	gt_trace_hint(&trace->main, p, &trace->spots.op_id);
	p = GT_JSON_PUT(p, ",\"Record function id\":0");
	if (op->sequence >= 0) {
		p = GT_TRACE_PUT_NUMBER(p, "Sequence number", (uint64_t)op->sequence);
		gt_trace_hint(&trace->main, p, &trace->spots.op_sequence);
		p = GT_TRACE_PUT_NUMBER(p, "Fwd thread id", op->fwd_thread);
	}
	/* Torch counts its operators in the order in which they began; so do these ids. */
	p = GT_TRACE_PUT_NUMBER(p, "Ev Idx", op->external_id - 1);
	p = op->inputs.len ? gt_trace_put_inputs(trace, p, op->inputs) : p;
	if (!p)
		return trace->error;
	if (op->modules.len)
		p = gt_json_put_str(GT_JSON_PUT(p, ",\"Module Hierarchy\":"), op->modules);
	if (op->calls.len)
		p = gt_trace_put_calls(trace, p, op->calls);
	if (op->args.len)
		p = (char *)memcpy(p, op->args.ptr, op->args.len) + op->args.len;
	gt_trace_hint(&trace->main, p, &trace->spots.op_place);
	*p++ = '}';
	p = gt_trace_put_place(p, trace->pid, *ret_lane, start);
	gt_trace_hint(&trace->main, p, &trace->spots.op_time);
	p = gt_json_put_us(GT_JSON_PUT(p, ",\"dur\":"), end - start);
	return gt_trace_end(trace, &trace->main, p);
}

int gt_trace_memory(struct gt_trace *trace, const struct gt_trace_memory *memory)
{
	struct gt_trace_part *part = &trace->main;
	uint64_t time, end;
	uint32_t lane;
	char *p;

	if (!gt_trace_times(trace, memory->time_ns, memory->time_ns, &time, &end))
		return trace->error;
	lane = gt_trace_lane(trace, GT_TRACK_THREAD, 0, memory->tid, 0, time, time);
	p = gt_trace_begin(trace, part, 512, &trace->spots.memory);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":");
	if (memory->failed)
		p = GT_JSON_PUT(p, "\"[OutOfMemory]\"");
	else
		p = GT_JSON_PUT(p, "\"[memory]\"");
	p = gt_json_put_u64(GT_JSON_PUT(p, ",\"args\":{\"Total Reserved\":"), memory->reserved);
	gt_trace_hint(part, p, &trace->spots.memory_total);
	p = GT_TRACE_PUT_NUMBER(p, "Total Allocated", memory->allocated);
	p = gt_json_put_i64(GT_JSON_PUT(p, ",\"Bytes\":"), memory->bytes);
	gt_trace_hint(part, p, &trace->spots.memory_block);
	p = gt_json_put_i64(GT_JSON_PUT(p, ",\"Device Id\":"), memory->device);
	p = gt_json_put_i64(GT_JSON_PUT(p, ",\"Device Type\":"), memory->device_type);
	if (!memory->failed)
		p = GT_TRACE_PUT_NUMBER(p, "Addr", memory->address);
	p = GT_TRACE_PUT_NUMBER(p, "Ev Idx", memory->index);
	gt_trace_hint(part, p, &trace->spots.memory_place);
	*p++ = '}';
	p = gt_trace_put_place(p, trace->pid, lane, time);
	return gt_trace_end(trace, part, p);
}

static int put_link_end(struct gt_trace *trace, bool begins, uint64_t id, uint32_t lane,
			uint64_t time)
{
	char *p = gt_trace_begin(trace, &trace->main, 256,
				 begins ? &trace->spots.link_from : &trace->spots.link_to);

	if (!p)
		return trace->error;
	if (begins)
		p = GT_JSON_PUT(p, "{\"ph\":\"s\"");
	else
		p = GT_JSON_PUT(p, "{\"ph\":\"f\",\"bp\":\"e\"");
	p = GT_JSON_PUT(p, ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":");
	p = gt_json_put_u64(p, id);
	p = gt_trace_put_place(p, trace->pid, lane, time);
	return gt_trace_end(trace, &trace->main, p);
}

int gt_trace_link(struct gt_trace *trace, const struct gt_trace_link *link)
{
	uint64_t from, to;

	if (!gt_trace_times(trace, link->from_ns, link->to_ns, &from, &to) ||
	    put_link_end(trace, true, link->id, link->from_lane, from))
		return trace->error;
	return put_link_end(trace, false, link->id, link->to_lane, to);
}
