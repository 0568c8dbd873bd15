/*
 * op_rows.c - the names and rows of ops.h: what an event is called, and what tells it from others.
 */
#include "base.h"
#include "buf.h"
#include "flops.h"
#include "gpu_peak.h"
#include "ops_priv.h"
#include "phases.h"
#include "source_line.h"

#include <stdlib.h>

#define STEP_PREFIX GT_STR("ProfilerStep#")
#define STEP_NAME   GT_STR("ProfilerStep*")

/* ---- names ----------------------------------------------------------------------------------- */

/* What torch leaves out of its tables: its own bookkeeping. */
static bool is_left_out(struct gt_str name)
{
	static const struct gt_str names[] = {
		GT_STR("profiler::_record_function_enter"),
		GT_STR("profiler::_record_function_enter_new"),
		GT_STR("profiler::_record_function_exit"),
		GT_STR("aten::is_leaf"),
		GT_STR("aten::output_nr"),
		GT_STR("aten::_version"),
		GT_OPS_MEMORY,
		GT_OPS_FAILURE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (gt_str_equal(name, names[i]))
			return true;
	}
	return false;
}

/*
 * By the names that NVIDIA's libraries give: m16n8k8 is the shape of TF32, and of fp16 before it,
 * which no operator on fp32 uses.
 */
static bool is_tf32(struct gt_str name)
{
	return gt_str_has(name, GT_STR("tf32")) || gt_str_has(name, GT_STR("tensorop_s1688"));
}

struct gt_op_name *gt_ops_name(struct gt_ops *ops, struct gt_str name, uint32_t *ret_number)
{
	uint32_t number =
		gt_intern(&ops->names, gt_str_starts(name, STEP_PREFIX) ? STEP_NAME : name);
	struct gt_source_line line;
	struct gt_op_name *info;

	if (number == GT_INTERN_FAILED)
		return NULL;
	if (number >= ops->name_cap) {
		size_t cap = ops->name_cap ? ops->name_cap * 2 : 64;
		struct gt_op_name *infos = realloc(ops->name_infos, cap * sizeof(*infos));

		if (!infos)
			return NULL;
		memset(infos + ops->name_cap, 0, (cap - ops->name_cap) * sizeof(*infos));
		ops->name_infos = infos;
		ops->name_cap = cap;
	}
	info = &ops->name_infos[number];
	if (!info->known) {
		info->known = true;
		info->is_left_out = is_left_out(name);
		info->is_step = gt_str_starts(name, STEP_PREFIX);
		info->has_values = gt_flops_from(name) == GT_FLOPS_FROM_VALUES;
		info->typed_input = (int8_t)gt_flops_input(name);
		info->is_tf32 = is_tf32(name);
		info->phase = (uint8_t)gt_phase_of(name);
		if (ops->by_line)
			info->source = (uint8_t)gt_source_line_of(name, &line);
	}
	*ret_number = number;
	return info;
}

/* ---- rows ------------------------------------------------------------------------------------ */

uint32_t gt_ops_row(struct gt_ops *ops, const struct gt_op_key *key)
{
	uint32_t number = gt_intern(&ops->keys, (struct gt_str){ (const char *)key, sizeof(*key) });

	if (number == GT_INTERN_FAILED)
		return number;
	if (number >= ops->row_cap) {
		size_t cap = ops->row_cap ? ops->row_cap * 2 : 64;
		struct gt_op_row *rows = realloc(ops->rows, cap * sizeof(*rows));

		if (!rows)
			return GT_INTERN_FAILED;
		memset(rows + ops->row_cap, 0, (cap - ops->row_cap) * sizeof(*rows));
		ops->rows = rows;
		ops->row_cap = cap;
	}
	ops->rows[number].name = key->name;
	ops->rows[number].kind = key->kind;
	ops->rows[number].dims = key->dims;
	ops->rows[number].values = key->values;
	ops->rows[number].stack = key->stack;
	ops->rows[number].dtype = key->dtype;
	ops->rows[number].is_backward = key->is_backward;
	return number;
}

/* Add the text to the key; the empty one is 0. */
static bool put_text(struct gt_ops *ops, struct gt_str text, uint32_t *field)
{
	*field = text.len ? gt_intern(&ops->texts, text) : 0;
	return *field != GT_INTERN_FAILED;
}

bool gt_ops_is_hidden_frame(struct gt_str name)
{
	return (gt_str_has(name, GT_STR("autograd/__init__")) &&
		(gt_str_has(name, GT_STR("_make_grads")) ||
		 gt_str_has(name, GT_STR("backward")))) ||
	       (gt_str_has(name, GT_STR("torch/tensor")) && gt_str_has(name, GT_STR("backward"))) ||
	       (gt_str_has(name, GT_STR("_internal/common_utils")) &&
		(gt_str_has(name, GT_STR("prof_callable")) ||
		 gt_str_has(name, GT_STR("prof_func_call")) ||
		 gt_str_has(name, GT_STR("prof_meth_call"))));
}

/* The first frames of "a;b;c", which PyTorch writes for TorchScript and when it is to be verbose,
 * and wrote always up to 1.12. */
static bool put_stack(struct gt_ops *ops, struct gt_str stack, uint32_t *field)
{
	struct gt_buf text = { 0 };
	const char *at = stack.ptr, *end = stack.ptr + stack.len;
	bool done;

	if (ops->by_line)
		return put_text(ops, gt_source_frame_of(stack), field);
	for (size_t shown = 0; shown < ops->stack_depth && at < end;) {
		const char *semicolon = memchr(at, ';', (size_t)(end - at));
		struct gt_str frame = { at, (size_t)((semicolon ? semicolon : end) - at) };

		at += frame.len + 1;
		if (gt_ops_is_hidden_frame(frame))
			continue;
		gt_buf_append(&text, frame.ptr, frame.len);
		gt_buf_byte(&text, '\n');
		shown++;
	}
	done = !text.failed && put_text(ops, gt_buf_str(&text), field);
	gt_buf_release(&text);
	return done;
}

static bool put_event_stack(struct gt_ops *ops, const struct gt_trace_event *event, uint32_t *field)
{
	struct gt_str raw = gt_trace_event_arg(event, GT_STR("\"Call stack\""));
	struct gt_buf text = { 0 };
	bool done;

	if (!raw.len || !memchr(raw.ptr, '\\', raw.len))
		return put_stack(ops, gt_json_unquote(raw), field);
	done = !gt_json_put_text(&text, raw) && put_stack(ops, gt_buf_str(&text), field);
	gt_buf_release(&text);
	return done;
}

static struct gt_str dims_of(const struct gt_trace_event *event)
{
	struct gt_str dims = gt_trace_event_arg(event, GT_STR("\"Input Dims\""));

	if (!dims.len && gt_ops_is_old(event))
		return gt_trace_event_arg(event, GT_STR("\"Input dims\""));
	return dims;
}

/* Whether an event of this kind with these dims and type, and nothing else, belongs to the row. */
static bool fits_row(const struct gt_ops *ops, uint32_t row_plus_1, const struct gt_op_key *key,
		     struct gt_str dims)
{
	const struct gt_op_row *row;

	if (!row_plus_1)
		return false;
	row = &ops->rows[row_plus_1 - 1];

	return row->kind == key->kind && row->dtype == key->dtype && !row->values && !row->stack &&
	       gt_str_equal(gt_interned(&ops->texts, row->dims), dims);
}

uint32_t gt_ops_event_row(struct gt_ops *ops, const struct gt_trace_event *event,
			  struct gt_op_name *info, struct gt_op_key *key)
{
	struct gt_str dims = { NULL, 0 };
	bool is_operator = event->cat == GT_CAT_CPU_OP;
	bool has_stack = ops->stack_depth &&
			 (is_operator || (ops->by_line && (event->cat == GT_CAT_RUNTIME ||
							   event->cat == GT_CAT_DRIVER)));
	bool is_plain = !has_stack && (!is_operator || !info->has_values);
	uint32_t row;

	if (is_operator)
		dims = dims_of(event);
	if (dims.len && info->typed_input >= 0)
		key->dtype = gt_dtype_at(gt_trace_event_arg(event, GT_STR("\"Input type\"")),
					 (size_t)info->typed_input);
	if (is_plain && fits_row(ops, info->recent_row, key, dims))
		return info->recent_row - 1;
	if (!put_text(ops, dims, &key->dims))
		return GT_INTERN_FAILED;
	if (is_operator && info->has_values &&
	    !put_text(ops, gt_trace_event_arg(event, GT_STR("\"Concrete Inputs\"")), &key->values))
		return GT_INTERN_FAILED;
	if (has_stack && !put_event_stack(ops, event, &key->stack))
		return GT_INTERN_FAILED;
	row = gt_ops_row(ops, key);
	info->recent_row = row + 1;
	return row;
}
