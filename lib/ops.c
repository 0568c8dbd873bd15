/*
 * ops.c - see ops.h: sorts the events of a trace into rows and threads.
 */
#include "base.h"
#include "ops.h"
#include "ops_priv.h"
#include "buf.h"
#include "flops.h"

#include <stdlib.h>

#define MEMORY_NAME  GT_STR("[memory]")
#define FAILURE_NAME GT_STR("[OutOfMemory]")
#define STEP_PREFIX  GT_STR("ProfilerStep#")
#define STEP_NAME    GT_STR("ProfilerStep*")

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
		MEMORY_NAME,
		FAILURE_NAME,
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (gt_str_equal(name, names[i]))
			return true;
	}
	return false;
}

/* The number of a name, and what is known by it; NULL: out of memory. */
static struct gt_op_name *find_name(struct gt_ops *ops, struct gt_str name, uint32_t *ret_number)
{
	uint32_t number =
		gt_intern(&ops->names, gt_str_starts(name, STEP_PREFIX) ? STEP_NAME : name);
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
	return number;
}

/* Add the text to the key; the empty one is 0. */
static bool put_text(struct gt_ops *ops, struct gt_str text, uint32_t *field)
{
	*field = text.len ? gt_intern(&ops->texts, text) : 0;
	return *field != GT_INTERN_FAILED;
}

/* The first frames of "a;b;c", which PyTorch wrote up to 1.12 and for TorchScript. */
static bool put_stack(struct gt_ops *ops, struct gt_str stack, uint32_t *field)
{
	struct gt_buf text = { 0 };
	const char *at = stack.ptr, *end = stack.ptr + stack.len;
	bool done;

	for (size_t i = 0; i < ops->stack_depth && at < end; i++) {
		const char *semicolon = memchr(at, ';', (size_t)(end - at));
		size_t len = (size_t)((semicolon ? semicolon : end) - at);

		gt_buf_append(&text, at, len);
		gt_buf_byte(&text, '\n');
		at += len + 1;
	}
	done = !text.failed && put_text(ops, gt_buf_str(&text), field);
	gt_buf_release(&text);
	return done;
}

/* Up to 2021 categories began with a capital letter, and some members of args did not. */
static bool is_old(const struct gt_trace_event *event)
{
	return event->cat_text.len && event->cat_text.ptr[0] >= 'A' &&
	       event->cat_text.ptr[0] <= 'Z';
}

static struct gt_str dims_of(const struct gt_trace_event *event)
{
	struct gt_str dims = gt_trace_event_arg(event, GT_STR("\"Input Dims\""));

	if (!dims.len && is_old(event))
		return gt_trace_event_arg(event, GT_STR("\"Input dims\""));
	return dims;
}

/* Whether an event of this kind with these dims, and nothing else, belongs to the row. */
static bool fits_row(const struct gt_ops *ops, uint32_t row_plus_1, uint32_t kind,
		     struct gt_str dims)
{
	const struct gt_op_row *row;

	if (!row_plus_1)
		return false;
	row = &ops->rows[row_plus_1 - 1];

	return row->kind == kind && !row->values && !row->stack &&
	       gt_str_equal(gt_interned(&ops->texts, row->dims), dims);
}

/* The row of an event; GT_INTERN_FAILED: out of memory. */
static uint32_t find_row(struct gt_ops *ops, const struct gt_trace_event *event,
			 struct gt_op_name *info, struct gt_op_key *key)
{
	struct gt_str dims = { NULL, 0 };
	bool is_operator = event->cat == GT_CAT_CPU_OP;
	bool is_plain = !is_operator || (!info->has_values && !ops->stack_depth);
	uint32_t row;

	if (is_operator)
		dims = dims_of(event);
	if (is_plain && fits_row(ops, info->recent_row, key->kind, dims))
		return info->recent_row - 1;
	if (!put_text(ops, dims, &key->dims))
		return GT_INTERN_FAILED;
	if (is_operator && info->has_values &&
	    !put_text(ops, gt_trace_event_arg(event, GT_STR("\"Concrete Inputs\"")), &key->values))
		return GT_INTERN_FAILED;
	if (is_operator && ops->stack_depth &&
	    !put_stack(ops, gt_json_unquote(gt_trace_event_arg(event, GT_STR("\"Call stack\""))),
		       &key->stack))
		return GT_INTERN_FAILED;
	row = gt_ops_row(ops, key);
	info->recent_row = row + 1;
	return row;
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool same_id(const struct gt_trace_id *a, const struct gt_trace_id *b)
{
	return !a->text.ptr && !b->text.ptr && a->number == b->number;
}

static void put_id(struct gt_buf *key, const struct gt_trace_id *id)
{
	gt_buf_append(key, &id->text.len, sizeof(id->text.len));
	if (id->text.ptr)
		gt_buf_append(key, id->text.ptr, id->text.len);
	else
		gt_buf_append(key, &id->number, sizeof(id->number));
}

static struct gt_op_thread *find_thread(struct gt_ops *ops, const struct gt_trace_event *event)
{
	struct gt_buf key = { 0 };
	uint32_t number;

	if (GT_LIKELY(ops->last_known && same_id(&event->pid, &ops->last_pid) &&
		      same_id(&event->tid, &ops->last_tid)))
		return &ops->threads[ops->last_thread];
	put_id(&key, &event->pid);
	put_id(&key, &event->tid);
	number = key.failed ? GT_INTERN_FAILED : gt_intern(&ops->thread_ids, gt_buf_str(&key));
	gt_buf_release(&key);
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
	ops->last_known = !event->pid.text.ptr && !event->tid.text.ptr;
	ops->last_pid = event->pid;
	ops->last_tid = event->tid;
	ops->last_thread = number;
	ops->threads[number].pid = event->pid.number;
	ops->threads[number].is_first = same_id(&event->pid, &event->tid);
	return &ops->threads[number];
}

/* ---- events ---------------------------------------------------------------------------------- */

static int64_t external_id(const struct gt_trace_event *event)
{
	int64_t id = gt_trace_event_id(event, GT_STR("\"External id\""));

	return id || !is_old(event) ? id : gt_trace_event_id(event, GT_STR("\"external id\""));
}

static int64_t correlation(const struct gt_trace_event *event)
{
	return gt_trace_event_id(event, GT_STR("\"correlation\""));
}

static int add_slice(struct gt_ops *ops, const struct gt_trace_event *event,
		     struct gt_op_slice *slice, uint32_t kind)
{
	struct gt_op_key key = { .kind = kind };
	struct gt_op_name *info = find_name(ops, event->name, &key.name);
	struct gt_op_thread *thread;

	if (!info)
		return -ENOMEM;
	if (info->is_left_out && slice->kind != GT_SLICE_FAILURE)
		return 0;
	slice->row = slice->kind == GT_SLICE_FRAME ? key.name : find_row(ops, event, info, &key);
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

/* What a call says about its operator. */
static int identify_call(struct gt_ops *ops, const struct gt_trace_event *event,
			 struct gt_op_slice *slice)
{
	int64_t external = external_id(event);

	slice->id = correlation(event);
	if (external && external != slice->id) {
		slice->id = external;
		slice->id_kind = GT_ID_EXTERNAL;
		return gt_id_map_add(&ops->by_external, external, 0);
	}
	if (slice->id)
		slice->id_kind = external ? GT_ID_EITHER : GT_ID_CORRELATION;
	return 0;
}

static int add_host(struct gt_ops *ops, const struct gt_trace_event *event, int64_t dur_ns)
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
		if (identify_call(ops, event, &slice) < 0)
			return -ENOMEM;
		return add_slice(ops, event, &slice, kind);
	}
	slice.kind = GT_SLICE_OP;
	slice.id = external_id(event);
	slice.id_kind = slice.id ? GT_ID_EXTERNAL : GT_ID_NONE;
	return add_slice(ops, event, &slice, kind);
}

/* The GPU's time goes to its operator by External id. From 2022 to 2024 Kineto put the correlation
 * in its place where there was no operator: such a one counts only when the call agrees. */
static int link_gpu(struct gt_ops *ops, const struct gt_trace_event *event, int64_t dur_ns)
{
	int64_t external = external_id(event), call = correlation(event);

	if (external && external != call)
		return gt_id_map_add(&ops->by_external, external, dur_ns);
	return call ? gt_id_map_add(&ops->by_correlation, call, dur_ns) : 0;
}

static int add_gpu(struct gt_ops *ops, const struct gt_trace_event *event, int64_t dur_ns)
{
	struct gt_op_key key = { .kind = event->cat == GT_CAT_GPU_ANNOTATION ? GT_OP_GPU_RANGE
									     : GT_OP_GPU };
	struct gt_op_name *info = find_name(ops, event->name, &key.name);
	uint32_t number = info ? find_row(ops, event, info, &key) : GT_INTERN_FAILED;
	struct gt_op_row *row;

	if (number == GT_INTERN_FAILED)
		return -ENOMEM;
	row = &ops->rows[number];
	row->calls++;
	gt_ops_sum(&row->self_gpu_ns, dur_ns);
	return key.kind == GT_OP_GPU ? link_gpu(ops, event, dur_ns) : 0;
}

int gt_ops_add(struct gt_ops *ops, const struct gt_trace_event *event, int64_t dur_ns)
{
	if (!ops->has_ns)
		ops->has_ns = event->ts_ns % 1000 || dur_ns % 1000;
	switch (event->cat) {
	case GT_CAT_CPU_OP:
	case GT_CAT_ANNOTATION:
	case GT_CAT_RUNTIME:
	case GT_CAT_DRIVER:
	case GT_CAT_OVERHEAD:
		return add_host(ops, event, dur_ns);
	case GT_CAT_PYTHON:
		return ops->stack_depth ? add_host(ops, event, dur_ns) : 0;
	case GT_CAT_KERNEL:
	case GT_CAT_MEMCPY:
	case GT_CAT_MEMSET:
	case GT_CAT_SYNC:
	case GT_CAT_GPU_ANNOTATION:
		return add_gpu(ops, event, dur_ns);
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
	if (gt_str_equal(event->name, FAILURE_NAME))
		return add_slice(ops, event, &failure, GT_OP_HOST);
	if (!gt_str_equal(event->name, MEMORY_NAME))
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

/* Whether an operator or range has the External id of GPU work or of a call. */
static bool is_linked(struct gt_ops *ops)
{
	for (uint32_t i = 0; i < ops->thread_ids.count; i++) {
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
	number = find_name(ops, MEMORY_NAME, &key.name) ? gt_ops_row(ops, &key) : GT_INTERN_FAILED;
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

	for (uint32_t i = 0; i < ops->thread_ids.count; i++) {
		struct gt_op_thread *thread = &ops->threads[i];

		if (!thread->has_ops)
			continue;
		if (main_thread && thread->pid != main_thread->pid)
			return NULL;
		if (!main_thread || is_rather_main(thread, main_thread))
			main_thread = thread;
	}
	if (!main_thread && ops->thread_ids.count)
		return &ops->threads[0];
	return main_thread && ops->in_doubt ? NULL : main_thread;
}

static int nest_thread(struct gt_ops *ops, struct gt_op_slices *slices)
{
	int rc = gt_op_slices_sort(slices);

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
	ops->in_doubt = !is_linked(ops);
	main_thread = from_torch ? find_main_thread(ops) : NULL;
	ops->strays = main_thread ? &main_thread->slices : NULL;
	for (uint32_t i = 0; !rc && i < ops->thread_ids.count; i++) {
		if (&ops->threads[i] != main_thread)
			rc = nest_thread(ops, &ops->threads[i].slices);
	}
	ops->strays = NULL;
	if (!rc && main_thread)
		rc = nest_thread(ops, &main_thread->slices);
	return rc ? rc : add_unclaimed(ops);
}

void gt_ops_release(struct gt_ops *ops)
{
	for (uint32_t i = 0; i < ops->thread_ids.count && i < ops->thread_cap; i++)
		gt_op_slices_release(&ops->threads[i].slices);
	free(ops->threads);
	free(ops->rows);
	free(ops->name_infos);
	gt_interner_release(&ops->names);
	gt_interner_release(&ops->texts);
	gt_interner_release(&ops->keys);
	gt_interner_release(&ops->thread_ids);
	gt_id_map_release(&ops->by_external);
	gt_id_map_release(&ops->by_correlation);
	gt_op_memory_release(&ops->memory);
}
