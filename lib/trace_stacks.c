/*
 * Python functions.
 */
#include "trace_priv.h"

/* {"ph":"X","cat":"python_function","name":… */
static const struct gt_piece *function_piece(struct gt_trace *trace,
					     const struct gt_trace_function *function,
					     gt_trace_spot **ret_spot)
{
	const char key[] = { 'p', (char)function->is_module }; /* no other piece's key begins so */
	struct gt_piece *piece = gt_piece_get(trace, key, sizeof(key), function->name);
	char *p;

	if (!piece)
		return NULL;
	*ret_spot = &piece->spot;
	if (piece->text.len)
		return piece;
	p = gt_piece_reserve(trace, piece, GT_TRACE_NAME_MAX(function->name.len) + 64);
	if (!p)
		return NULL;
	p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":");
	if (function->is_module)
		p = gt_json_put_chars(GT_JSON_PUT(p, "\"nn.Module: "), function->name);
	else
		p = gt_json_put_chars(GT_JSON_PUT(p, "\""), function->name);
	*p++ = '"';
	piece->text.len = (size_t)(p - piece->text.data);
	return piece;
}

int gt_trace_function(struct gt_trace *trace, const struct gt_trace_function *function)
{
	const struct gt_piece *piece;
	gt_trace_spot *spot;
	uint64_t start, end;
	uint32_t tid;
	char *p;

	if (!gt_trace_times(trace, function->start_ns, function->end_ns, &start, &end))
		return trace->error;
	tid = gt_trace_lane(trace, GT_TRACK_THREAD, 0, function->tid, 0, start, end);
	piece = function_piece(trace, function, &spot);
	p = piece ? gt_trace_begin(trace, &trace->main, piece->text.len + 512, spot) : NULL;
	if (!p)
		return trace->error;
	p = (char *)memcpy(p, piece->text.data, piece->text.len) + piece->text.len;
	if (function->outer_id)
		p = gt_json_put_u64(GT_JSON_PUT(p, ",\"args\":{\"Python parent id\":"),
				    function->outer_id);
	else
		p = GT_JSON_PUT(p, ",\"args\":{\"Python parent id\":null");
	p = GT_TRACE_PUT_NUMBER(p, "Python id", function->id);
	if (function->is_module)
		p = GT_TRACE_PUT_NUMBER(p, "Python module id", function->instance);
	*p++ = '}';
	p = gt_trace_put_place(p, trace->pid, tid, start);
	p = gt_json_put_us(GT_JSON_PUT(p, ",\"dur\":"), end - start);
	return gt_trace_end(trace, &trace->main, p);
}
