/*
 * op_stacks.c - see op_stacks.h. The rules are those of _set_backward_stacktraces() in PyTorch's
 * torch/autograd/profiler_util.py.
 */
#include "base.h"
#include "buf.h"
#include "op_stacks.h"
#include "ops_priv.h"
#include "source_line.h"

#include <stdlib.h>

#define THREAD_BITS  20
#define THREAD_MASK  ((INT64_C(1) << THREAD_BITS) - 1)
#define SEQUENCE_MAX (INT64_C(1) << 40)

/* ---- frames ---------------------------------------------------------------------------------- */

static int push_frame(struct gt_op_frames *frames, const struct gt_ops *ops,
		      const struct gt_op_slice *slice)
{
	struct gt_op_frame frame = { .end_ns = slice->end_ns, .name = slice->row };
	enum gt_source_kind source = (enum gt_source_kind)ops->name_infos[slice->row].source;

	if (frames->depth == frames->cap) {
		size_t cap = frames->cap ? frames->cap * 2 : 64;
		struct gt_op_frame *items = realloc(frames->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		frames->items = items;
		frames->cap = cap;
	}
	if (frames->depth) {
		frame.program_line = frames->items[frames->depth - 1].program_line;
		frame.library_line = frames->items[frames->depth - 1].library_line;
	}
	if (source == GT_SOURCE_PROGRAM)
		frame.program_line = slice->row + 1;
	else if (source == GT_SOURCE_LIBRARY)
		frame.library_line = slice->row + 1;
	frames->items[frames->depth++] = frame;
	return 0;
}

int gt_op_frames_pass(struct gt_op_frames *frames, const struct gt_ops *ops,
		      const struct gt_op_slice *slice)
{
	while (frames->depth) {
		int64_t end_ns = frames->items[frames->depth - 1].end_ns;

		if (end_ns > slice->start_ns &&
		    (slice->kind != GT_SLICE_FRAME || end_ns >= slice->end_ns))
			break;
		frames->depth--;
	}
	return slice->kind == GT_SLICE_FRAME ? push_frame(frames, ops, slice) : 0;
}

static uint32_t line_of(const struct gt_op_frames *frames, struct gt_ops *ops)
{
	const struct gt_op_frame *frame = frames->depth ? &frames->items[frames->depth - 1] : NULL;
	uint32_t line;

	if (!frame)
		return 0;
	line = frame->program_line ? frame->program_line : frame->library_line;
	return line ? gt_intern(&ops->texts, gt_interned(&ops->names, line - 1)) : 0;
}

uint32_t gt_op_frames_stack(const struct gt_op_frames *frames, struct gt_ops *ops, uint32_t row)
{
	struct gt_buf text = { 0 };
	uint32_t stack = ops->rows[row].stack;
	size_t shown = 0;

	if (stack || ops->by_line)
		return stack ? stack : line_of(frames, ops);
	for (size_t i = frames->depth; i-- && shown < ops->stack_depth;) {
		struct gt_str name = gt_interned(&ops->names, frames->items[i].name);

		if (gt_ops_is_hidden_frame(name))
			continue;
		gt_buf_append(&text, name.ptr, name.len);
		gt_buf_byte(&text, '\n');
		shown++;
	}
	if (text.failed)
		stack = GT_INTERN_FAILED;
	else if (shown)
		stack = gt_intern(&ops->texts, gt_buf_str(&text));
	gt_buf_release(&text);
	return stack;
}

/* ---- the backward pass ----------------------------------------------------------------------- */

static int64_t sequence_of(int64_t value)
{
	return (value >> THREAD_BITS) - 1;
}

static int64_t torch_thread_of(int64_t value)
{
	return value & THREAD_MASK;
}

static int64_t forward_key(uint32_t thread, int64_t sequence)
{
	return (int64_t)(thread & THREAD_MASK) * SEQUENCE_MAX + sequence;
}

int gt_op_stacks_add(struct gt_ops *ops, const struct gt_trace_event *event, int64_t external_id)
{
	struct gt_op_stacks *stacks = &ops->stacks;
	struct gt_str raw = gt_trace_event_arg(event, GT_STR("\"Sequence number\""));
	int64_t sequence = -1, thread = 0, *value;

	/* The time of the engine is time of the line. */
	if (!external_id || (!ops->by_line && gt_str_starts(event->name, GT_OPS_ENGINE_PREFIX)))
		return 0;
	if (gt_str_equal(event->name, GT_OPS_LEAF_NAME))
		thread = 1;
	else if (!gt_json_int(raw, &sequence) || sequence < 0 || sequence >= SEQUENCE_MAX - 1)
		return 0;
	else
		thread = gt_trace_event_id(event, GT_STR("\"Fwd thread id\""));
	if (thread < 0 || thread > THREAD_MASK)
		return 0;
	value = gt_id_map_put(&stacks->sequences, external_id);
	if (!value)
		return -ENOMEM;
	*value = (sequence + 1) << THREAD_BITS | thread;
	stacks->has_backward |= thread != 0;
	return 0;
}

/* The index of number in the list, where it is put if there is room. */
static size_t index_in(uint32_t *list, size_t *count, uint32_t number)
{
	size_t i = 0;

	while (i < *count && list[i] != number)
		i++;
	if (i == *count && i < GT_OP_STACK_THREADS_MAX)
		list[(*count)++] = number;
	return i;
}

/*
 * The number of an operator is that of the node which is made next, so that the last one with it
 * made the node, and those before it have no gradients. Lines tell that; for stacks the first one
 * counts, as in torch.
 */
static int add_forward(struct gt_ops *ops, const struct gt_op_frames *frames, uint32_t thread,
		       int64_t sequence, uint32_t row)
{
	struct gt_op_stacks *stacks = &ops->stacks;
	int64_t key = forward_key(thread, sequence), *value;
	uint32_t stack;

	if (index_in(stacks->threads, &stacks->thread_count, thread) == GT_OP_STACK_THREADS_MAX ||
	    (!ops->by_line && gt_id_map_find(&stacks->forward, key)))
		return 0;
	stack = gt_op_frames_stack(frames, ops, row);
	value = stack == GT_INTERN_FAILED ? NULL : gt_id_map_put(&stacks->forward, key);
	if (!value)
		return -ENOMEM;
	*value = stack;
	return 0;
}

static int find_forward(struct gt_ops *ops, uint32_t thread)
{
	const struct gt_op_slices *slices = &ops->threads[thread].slices;
	struct gt_op_frames frames = { 0 };
	int64_t backward_end_ns = INT64_MIN;
	int rc = 0;

	for (size_t i = 0; !rc && i < slices->count; i++) {
		const struct gt_op_slice *slice = &slices->items[i];
		const int64_t *value;

		rc = gt_op_frames_pass(&frames, ops, slice);
		if (rc || slice->kind != GT_SLICE_OP || slice->start_ns < backward_end_ns)
			continue;
		value = slice->id ? gt_id_map_find(&ops->stacks.sequences, slice->id) : NULL;
		if (value && torch_thread_of(*value))
			backward_end_ns = slice->end_ns;
		else if (value)
			rc = add_forward(ops, &frames, thread, sequence_of(*value), slice->row);
	}
	free(frames.items);
	return rc;
}

/* Torch's numbers of threads are not those of the file: they are told by what they have in common.
 */
static void match_threads(struct gt_op_stacks *stacks)
{
	for (uint32_t i = 0; i < stacks->sequences.slot_count; i++) {
		const struct gt_id_slot *slot = &stacks->sequences.slots[i];
		size_t torch_thread;

		if (!slot->id || !torch_thread_of(slot->value) || sequence_of(slot->value) < 0)
			continue;
		torch_thread = index_in(stacks->torch_threads, &stacks->torch_thread_count,
					(uint32_t)torch_thread_of(slot->value));
		if (torch_thread == GT_OP_STACK_THREADS_MAX)
			continue;
		for (size_t k = 0; k < stacks->thread_count; k++) {
			int64_t key = forward_key(stacks->threads[k], sequence_of(slot->value));

			stacks->hits[torch_thread][k] += gt_id_map_find(&stacks->forward, key) !=
							 NULL;
		}
	}
}

int gt_op_stacks_finish(struct gt_ops *ops)
{
	int rc = 0;

	if (!ops->stacks.has_backward)
		return 0;
	for (uint32_t i = 0; !rc && i < ops->thread_ids.ids.count; i++)
		rc = find_forward(ops, i);
	match_threads(&ops->stacks);
	return rc;
}

bool gt_op_stacks_backward(struct gt_ops *ops, int64_t external_id, uint32_t *ret)
{
	struct gt_op_stacks *stacks = &ops->stacks;
	const int64_t *value = external_id && stacks->has_backward
				       ? gt_id_map_find(&stacks->sequences, external_id)
				       : NULL;
	const int64_t *stack;
	size_t torch_thread = 0, best = 0;

	if (!value || !torch_thread_of(*value))
		return false;
	*ret = 0;
	while (torch_thread < stacks->torch_thread_count &&
	       stacks->torch_threads[torch_thread] != torch_thread_of(*value))
		torch_thread++;
	if (torch_thread == stacks->torch_thread_count || sequence_of(*value) < 0)
		return true;
	for (size_t i = 1; i < stacks->thread_count; i++) {
		if (stacks->hits[torch_thread][i] > stacks->hits[torch_thread][best])
			best = i;
	}
	stack = gt_id_map_find(&stacks->forward,
			       forward_key(stacks->threads[best], sequence_of(*value)));
	if (stack)
		*ret = (uint32_t)*stack;
	return true;
}

void gt_op_stacks_release(struct gt_op_stacks *stacks)
{
	gt_id_map_release(&stacks->sequences);
	gt_id_map_release(&stacks->forward);
}
