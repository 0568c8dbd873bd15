/*
 * op_tree.c - nests the slices of a thread and adds each to its row when it ends. The rules are
 * those of EventList in PyTorch's torch/autograd/profiler_util.py: a slice is in another when it
 * lies in it completely; one that is the only one in a slice of its own name is taken for the same.
 */
#include "base.h"
#include "buf.h"
#include "ops_priv.h"
#include "phases.h"

#include <stdlib.h>

/* How far up the External id of a call is looked for. */
#define LOOK_UP_MAX 128

struct node { /* a slice, with sums over those directly in it */
	uint32_t row;
	uint32_t inner_dtype; /* of an operator of the same name in it */
	bool has_tf32;
	int64_t cpu_ns;
	int64_t inner_cpu_ns;
	int64_t self_gpu_ns;
	int64_t inner_gpu_ns;
	struct gt_op_bytes bytes;
	struct gt_op_bytes inner_bytes;
};

struct open_slice {
	int64_t end_ns;
	int64_t id;
	struct node node;
	struct node only; /* the first one in it, not yet added to its row: it may be left out */
	uint64_t inner;
	uint8_t kind;
	bool in_backward; /* where all have the stack of the forward pass */
	bool in_op;       /* it is an operator, or in one */
	bool has_line;    /* by its own stack */
	uint32_t backward_stack;
};

struct nest {
	struct gt_ops *ops;
	struct open_slice *open;
	size_t depth;
	size_t cap;
	struct gt_op_frames frames;
};

static int64_t difference(int64_t a, int64_t b)
{
	int64_t ret;

	if (__builtin_sub_overflow(a, b, &ret))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return ret;
}

static void add_to_row(struct gt_ops *ops, const struct node *node)
{
	struct gt_op_row *row = &ops->rows[node->row];

	row->calls++;
	row->has_tf32 |= node->has_tf32;
	if (GT_UNLIKELY(node->inner_dtype)) {
		row->inner_dtype = node->inner_dtype;
		row->inner_calls++;
	}
	gt_ops_sum(&row->cpu_ns, node->cpu_ns);
	gt_ops_sum(&row->self_cpu_ns, node->cpu_ns - node->inner_cpu_ns);
	gt_ops_sum(&row->self_gpu_ns, node->self_gpu_ns);
	gt_ops_sum(&row->gpu_ns, node->self_gpu_ns);
	gt_ops_sum(&row->gpu_ns, node->inner_gpu_ns);
	gt_ops_sum(&row->cpu_bytes, node->bytes.cpu);
	gt_ops_sum(&row->gpu_bytes, node->bytes.gpu);
	gt_ops_sum(&row->self_cpu_bytes, difference(node->bytes.cpu, node->inner_bytes.cpu));
	gt_ops_sum(&row->self_gpu_bytes, difference(node->bytes.gpu, node->inner_bytes.gpu));
}

/* Autocast runs an operator again inside of itself, with inputs that it has cast. */
static void pass_dtype(const struct gt_ops *ops, const struct node *inner, struct node *outer)
{
	const struct gt_op_row *row = &ops->rows[inner->row];

	if (row->dtype && row->name == ops->rows[outer->row].name)
		outer->inner_dtype = inner->inner_dtype ? inner->inner_dtype : row->dtype;
}

/* The innermost slice ends. */
static void close_slice(struct nest *nest)
{
	struct open_slice *slice = &nest->open[--nest->depth];
	struct gt_ops *ops = nest->ops;
	struct node *node = &slice->node;
	struct open_slice *outer;

	if (slice->inner == 1) {
		if (ops->rows[slice->only.row].name == ops->rows[node->row].name) {
			node->inner_cpu_ns = slice->only.inner_cpu_ns;
			node->inner_gpu_ns = slice->only.inner_gpu_ns;
			node->self_gpu_ns = slice->only.self_gpu_ns;
			node->inner_bytes = slice->only.inner_bytes;
		} else {
			add_to_row(ops, &slice->only);
		}
	}
	if (!nest->depth) {
		add_to_row(ops, node);
		return;
	}
	outer = slice - 1;
	outer->node.has_tf32 |= node->has_tf32;
	pass_dtype(ops, node, &outer->node);
	gt_ops_sum(&outer->node.inner_cpu_ns, node->cpu_ns);
	gt_ops_sum(&outer->node.inner_gpu_ns, node->self_gpu_ns);
	gt_ops_sum(&outer->node.inner_gpu_ns, node->inner_gpu_ns);
	gt_ops_sum(&outer->node.inner_bytes.cpu, node->bytes.cpu);
	gt_ops_sum(&outer->node.inner_bytes.gpu, node->bytes.gpu);
	if (++outer->inner == 1) {
		outer->only = *node;
		return;
	}
	if (outer->inner == 2)
		add_to_row(ops, &outer->only);
	add_to_row(ops, node);
}

/* The innermost open slice that holds the call and has its External id; NULL: there is none. */
static struct open_slice *find_operator(struct nest *nest, const struct gt_op_slice *call)
{
	size_t last = nest->depth > LOOK_UP_MAX ? nest->depth - LOOK_UP_MAX : 0;

	if (call->id_kind != GT_ID_EXTERNAL && call->id_kind != GT_ID_EITHER)
		return NULL;
	for (size_t i = nest->depth; i-- > last;) {
		if (nest->open[i].id == call->id && nest->open[i].end_ns >= call->end_ns)
			return &nest->open[i];
	}
	return NULL;
}

static struct open_slice *innermost_operator(struct nest *nest, const struct gt_op_slice *call)
{
	size_t last = nest->depth > LOOK_UP_MAX ? nest->depth - LOOK_UP_MAX : 0;

	for (size_t i = nest->depth; i-- > last;) {
		if (nest->open[i].kind == GT_SLICE_OP && nest->open[i].end_ns >= call->end_ns &&
		    nest->ops->rows[nest->open[i].node.row].kind == GT_OP_HOST)
			return &nest->open[i];
	}
	return NULL;
}

/* Give the GPU work that only its correlation links to the operator of the call. False: it has
 * none, or the work is the call's own. */
static bool link_call(struct nest *nest, const struct gt_op_slice *call)
{
	struct gt_ops *ops = nest->ops;
	struct open_slice *op;
	const int64_t *gpu_ns;

	if (call->id_kind == GT_ID_LINE)
		return false;
	op = ops->in_doubt ? innermost_operator(nest, call) : find_operator(nest, call);
	if (!op || (call->id_kind != GT_ID_EITHER && !ops->in_doubt))
		return op != NULL;
	gpu_ns = gt_id_map_find(&ops->by_correlation, call->id);
	if (gpu_ns)
		gt_ops_sum(&op->node.self_gpu_ns, *gpu_ns);
	if (ops->tf32.count && gt_id_map_find(&ops->tf32, gt_ops_call_id(call->id)))
		op->node.has_tf32 = true;
	return true;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* The row of a slice that has just been opened, with its stack. */
static uint32_t row_with_stack(struct nest *nest, const struct gt_op_slice *slice)
{
	struct gt_ops *ops = nest->ops;
	struct open_slice *open = &nest->open[nest->depth - 1];
	const struct gt_op_row *row = &ops->rows[slice->row];
	struct gt_op_key key = { row->name,  row->kind,  row->dims, row->values,
				 row->stack, row->dtype, 0 };

	open->in_backward = nest->depth > 1 && open[-1].in_backward;
	open->backward_stack = open->in_backward ? open[-1].backward_stack : 0;
	if (slice->kind == GT_SLICE_OP && gt_op_stacks_backward(ops, slice->id, &key.stack)) {
		open->in_backward = true;
		open->backward_stack = key.stack;
	}
	if (open->in_backward)
		key.stack = open->backward_stack;
	else if (slice->kind == GT_SLICE_OP)
		key.stack = gt_op_frames_stack(&nest->frames, ops, slice->row);
	if (key.stack == row->stack || key.stack == GT_INTERN_FAILED)
		return key.stack == row->stack ? slice->row : GT_INTERN_FAILED;
	return gt_ops_row(ops, &key);
}

/*
 * The same with its line: that of the forward pass in the backward pass, or its own, or what is
 * around it.
 */
static uint32_t row_with_line(struct nest *nest, const struct gt_op_slice *slice)
{
	struct gt_ops *ops = nest->ops;
	struct open_slice *open = &nest->open[nest->depth - 1];
	const struct open_slice *outer = nest->depth > 1 ? open - 1 : NULL;
	const struct gt_op_row *row = &ops->rows[slice->row];
	struct gt_op_key key = { row->name, row->kind, row->dims, row->values, 0, row->dtype, 0 };
	bool is_op = slice->kind == GT_SLICE_OP && row->kind == GT_OP_HOST;
	bool is_called = is_op || slice->kind == GT_SLICE_CALL;
	uint32_t number;

	open->in_op = is_op || (outer && outer->in_op);
	open->has_line = row->stack;
	open->in_backward = outer && outer->in_backward;
	if (slice->kind == GT_SLICE_OP && gt_op_stacks_backward(ops, slice->id, &key.stack))
		open->in_backward = true;
	open->in_backward |= is_op && ops->name_infos[row->name].phase == GT_TORCH_BACKWARD;
	if (!key.stack && open->in_backward && outer)
		key.stack = ops->rows[outer->node.row].stack;
	if (!key.stack && !is_op && !row->stack && outer && outer->has_line) {
		key.stack = ops->rows[outer->node.row].stack;
		open->has_line = true;
	}
	if (!key.stack) {
		key.stack = gt_op_frames_stack(&nest->frames, ops, slice->row);
		ops->has_functions |= row->kind == GT_OP_HOST && key.stack != row->stack;
	}
	if (!key.stack && outer)
		key.stack = ops->rows[outer->node.row].stack;
	if (key.stack == GT_INTERN_FAILED)
		return GT_INTERN_FAILED;
	key.is_backward = open->in_backward;
	/* What an operator calls is no call of the line, unless Python is between. */
	is_called &= !outer || !outer->in_op || key.stack != ops->rows[outer->node.row].stack;
	number = gt_ops_row(ops, &key);
	if (number != GT_INTERN_FAILED)
		ops->rows[number].line_calls += is_called;
	return number;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool ends_before(int64_t end_ns, const struct gt_op_slice *next)
{
	return next->start_ns >= end_ns || next->end_ns > end_ns;
}

static int open_slice(struct nest *nest, const struct gt_op_slice *slice)
{
	struct gt_ops *ops = nest->ops;
	struct open_slice *open;
	const int64_t *gpu_ns;

	if (nest->depth == nest->cap) {
		size_t cap = nest->cap ? nest->cap * 2 : 64;

		open = realloc(nest->open, cap * sizeof(*open));
		if (!open)
			return -ENOMEM;
		nest->open = open;
		nest->cap = cap;
	}
	open = &nest->open[nest->depth++];
	open->end_ns = slice->end_ns;
	open->id = slice->kind == GT_SLICE_OP ? slice->id : 0;
	open->node = (struct node){ .row = slice->row, .cpu_ns = slice->end_ns - slice->start_ns };
	open->inner = 0;
	open->kind = slice->kind;
	if (slice->kind == GT_SLICE_OP) {
		gpu_ns = gt_id_map_find(&ops->by_external, slice->id);
		open->node.self_gpu_ns = gpu_ns ? *gpu_ns : 0;
		open->node.has_tf32 = ops->tf32.count && gt_id_map_find(&ops->tf32, slice->id);
	}
	if (ops->by_line)
		open->node.row = row_with_line(nest, slice);
	else if (ops->stack_depth)
		open->node.row = row_with_stack(nest, slice);
	if (ops->memory.count && slice->kind != GT_SLICE_FAILURE)
		open->node.bytes = gt_op_memory_claim(&ops->memory, slice->start_ns, slice->end_ns);
	return open->node.row == GT_INTERN_FAILED ? -ENOMEM : 0;
}

/* Say where a call was made, once: strays are nested twice. */
static int tell_call(struct nest *nest, const struct gt_op_slice *call)
{
	const struct gt_ops *ops = nest->ops;
	int64_t op = -1;

	if (!ops->called || call->told)
		return 0;
	for (size_t i = nest->depth; i--;) {
		const struct open_slice *open = &nest->open[i];

		if (open->kind != GT_SLICE_OP || open->end_ns < call->end_ns)
			continue;
		op = ops->rows[open->node.row].name;
		break;
	}
	return ops->called(ops->called_context, call, op);
}

/* The GPU work of a call that no operator made, or with a line of its own, is that of its line,
 * once. */
static void keep_gpu_work(struct nest *nest, const struct gt_op_slice *call)
{
	int64_t *gpu_ns = call->id_kind == GT_ID_EXTERNAL
				  ? NULL
				  : gt_id_map_find(&nest->ops->by_correlation, call->id);

	if (!gpu_ns)
		return;
	nest->open[nest->depth - 1].node.self_gpu_ns = *gpu_ns;
	*gpu_ns = 0;
}

static int nest_slice(struct nest *nest, const struct gt_op_slice *slice)
{
	bool is_alone = false;
	int rc;

	if (nest->ops->stack_depth && gt_op_frames_pass(&nest->frames, nest->ops, slice) < 0)
		return -ENOMEM;
	if (slice->kind == GT_SLICE_FRAME)
		return 0;
	while (nest->depth && nest->open[nest->depth - 1].end_ns <= slice->start_ns)
		close_slice(nest);
	if (slice->kind == GT_SLICE_CALL) {
		struct gt_op_slice stray = *slice;

		rc = tell_call(nest, slice);
		stray.told = true;
		is_alone = !rc && !link_call(nest, slice);
		if (rc || (is_alone && nest->ops->strays))
			return rc ? rc : gt_op_slices_add(nest->ops->strays, &stray);
	}
	while (nest->depth && ends_before(nest->open[nest->depth - 1].end_ns, slice))
		close_slice(nest);
	rc = open_slice(nest, slice);
	if (!rc && is_alone && nest->ops->by_line)
		keep_gpu_work(nest, slice);
	return rc;
}

int gt_ops_nest(struct gt_ops *ops, const struct gt_op_slices *slices)
{
	struct nest nest = { .ops = ops };
	int rc = 0;

	for (size_t i = 0; !rc && i < slices->count; i++)
		rc = nest_slice(&nest, &slices->items[i]);
	while (!rc && nest.depth)
		close_slice(&nest);
	free(nest.open);
	free(nest.frames.items);
	return rc;
}
