/*
 * ops.c - see ops.h: sorts the events of a trace into threads, and links GPU work to the host.
 */
#include "base.h"
#include "ops.h"
#include "ops_priv.h"
#include "buf.h"

#include <stdlib.h>

/* c10::DeviceType of PyTorch */
enum {
	DEVICE_CPU = 0,
	DEVICE_CUDA = 1,
	DEVICE_MKLDNN = 2,
	DEVICE_IDEEP = 5,
	DEVICE_HIP = 6,
	DEVICE_XPU = 12,
	DEVICE_PRIVATE = 20
};

int gt_ops_init(struct gt_ops *ops, size_t stack_depth)
{
	memset(ops, 0, sizeof(*ops));
	ops->stack_depth = stack_depth;
	return gt_intern(&ops->texts, (struct gt_str){ NULL, 0 }) ? -ENOMEM : 0;
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct gt_op_thread *find_thread(struct gt_ops *ops, const struct gt_trace_event *event)
{
	uint32_t number = gt_thread_number(&ops->thread_ids, event);

	if (number == GT_INTERN_FAILED)
		return NULL;
	if (number >= ops->thread_cap) {
		size_t cap = ops->thread_cap ? ops->thread_cap * 2 : 16;
		struct gt_op_thread *threads = realloc(ops->threads, cap * sizeof(*threads));

		if (!threads)
			return NULL;
		memset(threads + ops->thread_cap, 0, (cap - ops->thread_cap) * sizeof(*threads));
		ops->threads = threads;
		ops->thread_cap = cap;
	}
	ops->threads[number].pid = event->pid.number;
	ops->threads[number].tid = event->tid.number;
	ops->threads[number].is_first = !event->pid.text.ptr && !event->tid.text.ptr &&
					event->pid.number == event->tid.number;
	return &ops->threads[number];
}

/* ---- events ---------------------------------------------------------------------------------- */

static int add_slice(struct gt_ops *ops, const struct gt_trace_event *event,
		     struct gt_op_slice *slice, uint32_t kind)
{
	struct gt_op_key key = { .kind = kind };
	struct gt_op_name *info = gt_ops_name(ops, event->name, &key.name);
	struct gt_op_thread *thread;

	if (!info)
		return -ENOMEM;
	if (info->is_left_out && slice->kind != GT_SLICE_FAILURE)
		return 0;
	slice->row = slice->kind == GT_SLICE_FRAME ? key.name
						   : gt_ops_event_row(ops, event, info, &key);
	if (slice->row == GT_INTERN_FAILED)
		return -ENOMEM;
	thread = find_thread(ops, event);
	if (!thread)
		return -ENOMEM;
	if (slice->kind == GT_SLICE_OP) {
		thread->first_ns = thread->has_ops ? GT_MIN(thread->first_ns, slice->start_ns)
						   : slice->start_ns;
		thread->has_ops = true;
		thread->has_steps |= info->is_step;
	}
	return gt_op_slices_add(&thread->slices, slice);
}

static bool has_own_line(const struct gt_ops *ops, const struct gt_trace_event *event)
{
	return ops->by_line && (event->cat == GT_CAT_RUNTIME || event->cat == GT_CAT_DRIVER) &&
	       gt_json_unquote(gt_trace_event_arg(event, GT_STR("\"Call stack\""))).len;
}

/* What a call says about its operator. */
static int identify_call(struct gt_ops *ops, const struct gt_trace_event *event,
			 int64_t correlation, struct gt_op_slice *slice)
{
	int64_t external = gt_ops_external_id(event);

	slice->id = correlation;
	if (correlation && has_own_line(ops, event)) {
		slice->id_kind = GT_ID_LINE;
		return gt_id_map_add(&ops->line_calls, correlation, 0);
	}
	if (external && external != slice->id) {
		slice->id = external;
		slice->id_kind = GT_ID_EXTERNAL;
		return gt_id_map_add(&ops->by_external, external, 0);
	}
	if (slice->id)
		slice->id_kind = external ? GT_ID_EITHER : GT_ID_CORRELATION;
	return 0;
}

static int add_host(struct gt_ops *ops, const struct gt_trace_event *event, int64_t dur_ns,
		    int64_t correlation)
{
	struct gt_op_slice slice = { .start_ns = event->ts_ns, .end_ns = event->ts_ns + dur_ns };
	uint32_t kind = GT_OP_HOST;

	switch (event->cat) {
	case GT_CAT_ANNOTATION:
		kind = GT_OP_RANGE;
		break;
	case GT_CAT_CPU_OP:
		ops->has_operators = true;
		break;
	case GT_CAT_PYTHON:
		slice.kind = GT_SLICE_FRAME;
		return add_slice(ops, event, &slice, kind);
	default:
		slice.kind = GT_SLICE_CALL;
		if (identify_call(ops, event, correlation, &slice) < 0)
			return -ENOMEM;
		return add_slice(ops, event, &slice, kind);
	}
	slice.kind = GT_SLICE_OP;
	slice.id = gt_ops_external_id(event);
	slice.id_kind = slice.id ? GT_ID_EXTERNAL : GT_ID_NONE;
	if (ops->stack_depth && gt_op_stacks_add(ops, event, slice.id) < 0)
		return -ENOMEM;
	return add_slice(ops, event, &slice, kind);
}

/* The GPU's time goes to its operator by External id. From 2022 to 2024 Kineto put the correlation
 * in its place where there was no operator: such a one counts only when the call agrees. */
static int link_gpu(struct gt_ops *ops, const struct gt_trace_event *event, bool is_tf32,
		    int64_t dur_ns, int64_t correlation)
{
	int64_t external = gt_ops_external_id(event);
	bool by_external = external && external != correlation;

	if (GT_UNLIKELY(is_tf32) &&
	    !gt_id_map_put(&ops->tf32, by_external ? external : gt_ops_call_id(correlation)))
		return -ENOMEM;
	if (by_external && correlation && ops->by_line) {
		struct gt_op_claim claim = { external, correlation, dur_ns };

		gt_buf_append(&ops->claimed, &claim, sizeof(claim));
		return ops->claimed.failed ? -ENOMEM : 0;
	}
	if (by_external)
		return gt_id_map_add(&ops->by_external, external, dur_ns);
	return correlation ? gt_id_map_add(&ops->by_correlation, correlation, dur_ns) : 0;
}

static int add_gpu(struct gt_ops *ops, const struct gt_trace_event *event, int64_t dur_ns,
		   int64_t correlation)
{
	struct gt_op_key key = { .kind = event->cat == GT_CAT_GPU_ANNOTATION ? GT_OP_GPU_RANGE
									     : GT_OP_GPU };
	struct gt_op_name *info = gt_ops_name(ops, event->name, &key.name);
	uint32_t number = info ? gt_ops_event_row(ops, event, info, &key) : GT_INTERN_FAILED;
	struct gt_op_row *row;

	if (number == GT_INTERN_FAILED)
		return -ENOMEM;
	row = &ops->rows[number];
	row->calls++;
	gt_ops_sum(&row->self_gpu_ns, dur_ns);
	return key.kind == GT_OP_GPU ? link_gpu(ops, event, info->is_tf32, dur_ns, correlation) : 0;
}

int gt_ops_add(struct gt_ops *ops, const struct gt_trace_event *event, int64_t dur_ns,
	       int64_t correlation)
{
	if (!ops->has_ns)
		ops->has_ns = event->ts_ns % 1000 || dur_ns % 1000;
	switch (event->cat) {
	case GT_CAT_CPU_OP:
	case GT_CAT_ANNOTATION:
	case GT_CAT_RUNTIME:
	case GT_CAT_DRIVER:
	case GT_CAT_OVERHEAD:
		return add_host(ops, event, dur_ns, correlation);
	case GT_CAT_PYTHON:
		return ops->stack_depth ? add_host(ops, event, dur_ns, correlation) : 0;
	case GT_CAT_KERNEL:
	case GT_CAT_MEMCPY:
	case GT_CAT_MEMSET:
	case GT_CAT_GPU_ANNOTATION:
		return add_gpu(ops, event, dur_ns, correlation);
	case GT_CAT_SYNC: /* torch's tables have it beside kernels, though it is no work */
		return ops->by_line ? 0 : add_gpu(ops, event, dur_ns, correlation);
	default:
		return 0;
	}
}

int gt_ops_add_instant(struct gt_ops *ops, const struct gt_trace_event *event)
{
	struct gt_op_slice failure = { .start_ns = event->ts_ns,
				       .end_ns = event->ts_ns,
				       .kind = GT_SLICE_FAILURE };
	int64_t bytes, device;
	bool on_gpu;

	if (!event->has_ts)
		return 0;
	/* Its bytes were asked for, and never taken. */
	if (gt_str_equal(event->name, GT_OPS_FAILURE))
		return add_slice(ops, event, &failure, GT_OP_HOST);
	if (!gt_str_equal(event->name, GT_OPS_MEMORY))
		return 0;
	bytes = gt_trace_event_id(event, GT_STR("\"Bytes\""));
	device = gt_trace_event_id(event, GT_STR("\"Device Type\""));
	on_gpu = device == DEVICE_CUDA || device == DEVICE_HIP || device == DEVICE_XPU ||
		 device == DEVICE_PRIVATE;
	if (!on_gpu && device != DEVICE_CPU && device != DEVICE_MKLDNN && device != DEVICE_IDEEP)
		bytes = 0;
	ops->has_memory = true;
	ops->has_gpu_bytes |= on_gpu;
	return gt_op_memory_add(&ops->memory, event->ts_ns, bytes, on_gpu);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Now that all calls are known. */
static int settle_claims(struct gt_ops *ops)
{
	int rc = 0;

	for (size_t at = 0; !rc && at < ops->claimed.len; at += sizeof(struct gt_op_claim)) {
		struct gt_op_claim claim;
		bool is_of_call;

		memcpy(&claim, ops->claimed.data + at, sizeof(claim));
		is_of_call = gt_id_map_find(&ops->line_calls, claim.correlation);
		rc = gt_id_map_add(is_of_call ? &ops->by_correlation : &ops->by_external,
				   is_of_call ? claim.correlation : claim.external, claim.dur_ns);
	}
	return rc;
}

/* Whether an operator or range has the External id of GPU work or of a call. */
static bool is_linked(struct gt_ops *ops)
{
	for (uint32_t i = 0; i < ops->thread_ids.ids.count; i++) {
		const struct gt_op_slices *slices = &ops->threads[i].slices;

		for (size_t k = 0; k < slices->count; k++) {
			if (slices->items[k].kind == GT_SLICE_OP &&
			    gt_id_map_find(&ops->by_external, slices->items[k].id))
				return true;
		}
	}
	return false;
}

/* Memory that was taken or freed outside of everything. */
static int add_unclaimed(struct gt_ops *ops)
{
	struct gt_op_key key = { .kind = GT_OP_HOST };
	struct gt_op_bytes bytes;
	struct gt_op_row *row;
	uint64_t count;
	uint32_t number;

	bytes = gt_op_memory_unclaimed(&ops->memory, &count);
	if (!count)
		return 0;
	number = gt_ops_name(ops, GT_OPS_MEMORY, &key.name) ? gt_ops_row(ops, &key)
							    : GT_INTERN_FAILED;
	if (number == GT_INTERN_FAILED)
		return -ENOMEM;
	row = &ops->rows[number];
	row->calls = count;
	row->self_cpu_bytes = row->cpu_bytes = bytes.cpu;
	row->self_gpu_bytes = row->gpu_bytes = bytes.gpu;
	return 0;
}

/* Whether a, rather than b, is the thread that ran the profiler: it has the steps, or it is the
 * first of its process, or it began first. */
static bool is_rather_main(const struct gt_op_thread *a, const struct gt_op_thread *b)
{
	if (a->has_steps != b->has_steps)
		return a->has_steps;
	if (a->is_first != b->is_first)
		return a->is_first;
	return a->first_ns < b->first_ns;
}

/* NULL: there is none, or one of each of several processes. Any will do where no thread has
 * operators. */
static struct gt_op_thread *find_main_thread(struct gt_ops *ops)
{
	struct gt_op_thread *main_thread = NULL;

	for (uint32_t i = 0; i < ops->thread_ids.ids.count; i++) {
		struct gt_op_thread *thread = &ops->threads[i];

		if (!thread->has_ops)
			continue;
		if (main_thread && thread->pid != main_thread->pid)
			return NULL;
		if (!main_thread || is_rather_main(thread, main_thread))
			main_thread = thread;
	}
	if (!main_thread && ops->thread_ids.ids.count)
		return &ops->threads[0];
	return main_thread && ops->in_doubt ? NULL : main_thread;
}

/* Stacks of one thread may be those of another: then all are sorted first. */
static int find_stacks(struct gt_ops *ops)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < ops->thread_ids.ids.count; i++)
		rc = gt_op_slices_sort(&ops->threads[i].slices);
	return rc ? rc : gt_op_stacks_finish(ops);
}

static int nest_thread(struct gt_ops *ops, uint32_t thread)
{
	struct gt_op_slices *slices = &ops->threads[thread].slices;
	int rc = gt_op_slices_sort(slices);

	if (!rc && ops->sorted)
		rc = ops->sorted(ops->sorted_context, ops, thread);
	if (!rc)
		rc = gt_ops_nest(ops, slices);
	gt_op_slices_release(slices);
	return rc;
}

static void finish_gpu_rows(struct gt_ops *ops, bool widened)
{
	int64_t ticks_ns = 2 * (ops->has_ns ? 1 : 1000);

	for (uint32_t i = 0; i < gt_ops_row_count(ops); i++) {
		struct gt_op_row *row = &ops->rows[i];
		int64_t extra_ns;

		if (row->kind != GT_OP_GPU && row->kind != GT_OP_GPU_RANGE)
			continue;
		if (widened && row->kind == GT_OP_GPU_RANGE) {
			extra_ns =
				(int64_t)GT_MIN(row->calls, (uint64_t)INT64_MAX / 2000) * ticks_ns;
			row->self_gpu_ns -= GT_MIN(extra_ns, row->self_gpu_ns);
		}
		row->gpu_ns = row->self_gpu_ns;
	}
}

int gt_ops_finish(struct gt_ops *ops, bool from_torch)
{
	int rc = gt_op_memory_sort(&ops->memory);
	struct gt_op_thread *main_thread;

	finish_gpu_rows(ops, from_torch);
	if (!rc)
		rc = settle_claims(ops);
	if (!rc && ops->stack_depth)
		rc = find_stacks(ops);
	ops->in_doubt = !is_linked(ops);
	main_thread = from_torch ? find_main_thread(ops) : NULL;
	ops->strays = main_thread && !ops->by_line ? &main_thread->slices : NULL;
	for (uint32_t i = 0; !rc && i < ops->thread_ids.ids.count; i++) {
		if (&ops->threads[i] != main_thread)
			rc = nest_thread(ops, i);
	}
	ops->strays = NULL;
	if (!rc && main_thread)
		rc = nest_thread(ops, (uint32_t)(main_thread - ops->threads));
	return rc ? rc : add_unclaimed(ops);
}

void gt_ops_release(struct gt_ops *ops)
{
	for (uint32_t i = 0; i < ops->thread_ids.ids.count && i < ops->thread_cap; i++)
		gt_op_slices_release(&ops->threads[i].slices);
	free(ops->threads);
	free(ops->rows);
	free(ops->name_infos);
	gt_interner_release(&ops->names);
	gt_interner_release(&ops->texts);
	gt_interner_release(&ops->keys);
	gt_thread_ids_release(&ops->thread_ids);
	gt_id_map_release(&ops->by_external);
	gt_id_map_release(&ops->by_correlation);
	gt_id_map_release(&ops->line_calls);
	gt_buf_release(&ops->claimed);
	gt_id_map_release(&ops->tf32);
	gt_op_stacks_release(&ops->stacks);
	gt_op_memory_release(&ops->memory);
}
