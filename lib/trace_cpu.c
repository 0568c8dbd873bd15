/*
 * What the threads of the program did: calls into CUDA, ranges, steps, marks.
 */
#include "op_inputs.h"
#include "trace_priv.h"

struct call_key {
	uint32_t cbid;
	uint8_t kind; /* 'c': no GPU work's key begins so */
	uint8_t runtime;
	uint8_t captured;
	uint8_t reserved;
};

/* {"ph":"X","cat":…,"name":…,"args":{"cbid":… */
static const struct gt_piece *call_piece(struct gt_trace *trace, const struct gt_trace_call *call,
					 gt_trace_spot **ret_spot)
{
	struct call_key key = { call->cbid, 'c', call->runtime, call->captured, 0 };
	struct gt_piece *piece = gt_piece_get(trace, &key, sizeof(key), call->name);
	char *p;

	if (!piece)
		return NULL;
	*ret_spot = &piece->spot;
	if (piece->text.len)
		return piece;
	p = gt_piece_reserve(trace, piece, GT_TRACE_NAME_MAX(call->name.len) + 128);
	if (!p)
		return NULL;
	if (call->runtime)
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":");
	else
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":");
	p = gt_trace_put_name(p, call->name, false);
	p = GT_JSON_PUT(p, ",\"args\":{\"cbid\":");
	p = gt_json_put_u64(p, call->cbid);
	if (call->captured)
		p = GT_JSON_PUT(p, ",\"captured\":true");
	piece->text.len = (size_t)(p - piece->text.data);
	return piece;
}

/* The start of an arrow to the call's GPU work; at place stand the call's pid, tid and ts. */
static int put_flow_start(struct gt_trace *trace, const struct gt_trace_call *call, uint32_t tid,
			  uint64_t start, gt_trace_spot place)
{
	char *p = gt_trace_begin(trace, &trace->main, 256, &trace->spots.flow_start);

	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
	p = gt_json_put_u64(p, call->correlation);
	gt_trace_hint(&trace->main, p, &place);
	p = gt_trace_put_place(p, trace->pid, tid, start);
	return gt_trace_end(trace, &trace->main, p);
}

int gt_trace_call(struct gt_trace *trace, const struct gt_trace_call *call)
{
	gt_trace_spot place, *spot;
	const struct gt_piece *piece;
	uint64_t start, end;
	uint32_t tid;
	char *p;

	if (!gt_trace_times(trace, call->start_ns, call->end_ns, &start, &end))
		return trace->error;
	tid = gt_trace_lane(trace, GT_TRACK_THREAD, 0, call->tid, 0, start, end);
	piece = call_piece(trace, call, &spot);
	p = piece ? gt_trace_begin(trace, &trace->main,
				   piece->text.len + GT_JSON_STR_MAX(call->calls.len) + 512, spot)
		  : NULL;
	if (!p)
		return trace->error;
	p = (char *)memcpy(p, piece->text.data, piece->text.len) + piece->text.len;
	if (call->external_id)
		p = GT_TRACE_PUT_NUMBER(p, "External id", call->external_id);
	if (call->correlation)
		p = GT_TRACE_PUT_NUMBER(p, "correlation", call->correlation);
	if (call->calls.len)
		p = gt_trace_put_calls(trace, p, call->calls);
	gt_trace_hint(&trace->main, p, &trace->spots.call_place);
	*p++ = '}';
	place = gt_trace_spot_at(&trace->main, p);
	p = gt_trace_put_place(p, trace->pid, tid, start);
	gt_trace_hint(&trace->main, p, &trace->spots.call_time);
	p = gt_json_put_us(GT_JSON_PUT(p, ",\"dur\":"), end - start);
	gt_trace_end(trace, &trace->main, p);
	if (call->launches && call->correlation)
		return put_flow_start(trace, call, tid, start, place);
	return trace->error;
}

int gt_trace_range(struct gt_trace *trace, const struct gt_trace_range *range)
{
	uint64_t start, end;
	uint32_t tid;
	char *p;

	if (!gt_trace_times(trace, range->start_ns, range->end_ns, &start, &end))
		return trace->error;
	tid = gt_trace_lane(trace, GT_TRACK_THREAD, 0, range->tid, range->process_range, start,
			    end);
	p = gt_trace_begin(trace, &trace->main,
			   GT_TRACE_NAME_MAX(range->name.len) + GT_JSON_STR_MAX(range->domain.len) +
				   GT_OP_INPUTS_TEXT_MAX(range->inputs.len) + 512,
			   &trace->spots.range);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":");
	p = gt_trace_put_name(p, range->name, range->is_step);
	p = GT_JSON_PUT(p, ",\"args\":{\"External id\":");
	p = gt_json_put_u64(p, range->external_id);
	if (range->domain.len)
		p = gt_json_put_str(GT_JSON_PUT(p, ",\"domain\":"), range->domain);
	p = range->cut ? GT_JSON_PUT(p, ",\"cut\":true") : p;
	p = range->inputs.len ? gt_trace_put_inputs(trace, p, range->inputs) : p;
	if (!p)
		return trace->error;
	*p++ = '}';
	p = gt_trace_put_place(p, trace->pid, tid, start);
	p = gt_json_put_us(GT_JSON_PUT(p, ",\"dur\":"), end - start);
	return gt_trace_end(trace, &trace->main, p);
}

int gt_trace_mark(struct gt_trace *trace, uint32_t tid, uint64_t time_ns, struct gt_str name)
{
	uint64_t time, end;
	char *p;

	if (!gt_trace_times(trace, time_ns, time_ns, &time, &end))
		return trace->error;
	gt_trace_lane(trace, GT_TRACK_THREAD, 0, tid, 0, time, time);
	p = gt_trace_begin(trace, &trace->main, GT_TRACE_NAME_MAX(name.len) + 256,
			   &trace->spots.mark);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"user_annotation\",\"name\":");
	p = gt_trace_put_name(p, name, false);
	p = GT_JSON_PUT(p, ",\"args\":{}");
	p = gt_trace_put_place(p, trace->pid, tid, time);
	return gt_trace_end(trace, &trace->main, p);
}

int gt_trace_thread_name(struct gt_trace *trace, uint32_t tid, struct gt_str name)
{
	char text[256];
	int len;

	gt_trace_lane(trace, GT_TRACK_THREAD, 0, tid, 0, 0, 0);
	len = snprintf(text, sizeof(text), "thread %u (%.*s)", tid,
		       (int)GT_MIN(name.len, sizeof(text) - 32), name.len ? name.ptr : "");
	gt_trace_name_thread(trace, trace->pid, tid, (struct gt_str){ text, (size_t)len }, tid);
	return trace->error;
}
