/*
 * ranges_thread.c - the ranges and operators of a thread, which nest: PUSH and POP.
 */
#include "base.h"
#include "ranges_priv.h"
#include "torch_nvtx.h"

#include <stdlib.h>

struct gt_thread *gt_ranges_thread(struct gt_ranges *ranges, uint32_t tid)
{
	uint32_t index = gt_map_get(&ranges->by_tid, tid);
	struct gt_thread *grown;

	if (index)
		return &ranges->threads[index - 1];
	if (ranges->thread_count == ranges->thread_cap) {
		uint32_t cap = ranges->thread_cap ? ranges->thread_cap * 2 : 16;

		if (cap > GT_THREADS_MAX)
			return NULL;
		grown = realloc(ranges->threads, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		ranges->threads = grown;
		ranges->thread_cap = cap;
	}
	if (!gt_map_put(&ranges->by_tid, tid, ranges->thread_count + 1))
		return NULL;
	grown = &ranges->threads[ranges->thread_count++];
	*grown = (struct gt_thread){ .tid = tid,
				     .window = GT_WINDOW_NONE,
				     .calls.window = GT_WINDOW_NONE };
	return grown;
}

/* ---- PUSH and POP ---- */

/* Take an open range out of its thread's stack and end it. */
static void end_pushed(struct gt_ranges *ranges, struct gt_thread *thread, struct gt_range **place,
		       uint64_t end_ns)
{
	struct gt_range *range = *place;

	*place = range->below;
	thread->depth--;
	gt_ranges_close(ranges, range, end_ns);
}

static bool is_of(const struct gt_range *range, enum gt_range_kind kind, uint32_t domain_id)
{
	return range->kind == kind && range->domain_id == domain_id;
}

/*
 * End the ranges of this kind and domain that are at depth or deeper: their POP was lost. Much can
 * have been lost with it, so they last until what was seen last.
 */
static void end_stale(struct gt_ranges *ranges, struct gt_thread *thread, enum gt_range_kind kind,
		      uint32_t domain_id, uint64_t depth)
{
	struct gt_range **place = &thread->top;

	while (*place) {
		if (is_of((*place), kind, domain_id) && (*place)->number >= depth)
			end_pushed(ranges, thread, place, thread->last_ns);
		else
			place = &(*place)->below;
	}
}

/* like: what it is made after; its number is its depth. */
static struct gt_range *push(struct gt_ranges *ranges, struct gt_thread *thread,
			     struct gt_range *like, const char *text, const char *inputs)
{
	struct gt_range *range;

	if (like->number)
		end_stale(ranges, thread, like->kind, like->domain_id, like->number);
	thread->last_ns = like->start_ns;
	if (thread->depth >= GT_RANGE_DEPTH_MAX) {
		ranges->refused++;
		return NULL;
	}
	like->outer = thread->top;
	like->below = thread->top;
	like->tid = thread->tid;
	like->window = thread->window;
	range = gt_range_make(ranges, like, text, inputs);
	if (!range)
		return NULL;
	gt_range_hold(thread->top);
	thread->top = range;
	thread->depth++;
	return range;
}

static void pop(struct gt_ranges *ranges, struct gt_thread *thread, enum gt_range_kind kind,
		uint32_t domain_id, uint64_t depth, uint64_t end_ns)
{
	struct gt_range **place = &thread->top;

	if (depth)
		end_stale(ranges, thread, kind, domain_id, depth + 1);
	thread->last_ns = end_ns;
	while (*place && !is_of(*place, kind, domain_id))
		place = &(*place)->below;
	/* A POP whose PUSH was not kept must not end another one. */
	if (*place && (!depth || (*place)->number == depth))
		end_pushed(ranges, thread, place, end_ns);
}

struct gt_range *gt_ranges_push(struct gt_ranges *ranges, struct gt_thread *thread,
				const struct gt_ev_range *ev)
{
	struct gt_range like = {
		.kind = GT_RANGE_PUSHED,
		.start_ns = ev->ev.time_ns,
		.number = ev->range_id,
		.step = ev->ev.step,
		.domain_id = ev->domain_id,
		.name_id = ev->name_id,
		.inputs_bytes = ev->inputs_bytes,
		.stack_id = ev->stack_id,
	};
	struct gt_str text = { ev->bytes, ev->name_id ? 0 : ev->len_bytes };

	/* torch's own record_function() have a # in their names: "Optimizer.step#SGD.step" */
	if (!ev->domain_id && gt_torch_nvtx_parse(&text, &like.op_sequence))
		like.op = !gt_str_has(text, GT_STR("#"));
	like.len_bytes = (uint32_t)text.len;
	return push(ranges, thread, &like, ev->bytes, ev->bytes + GT_PAD8(ev->len_bytes));
}

void gt_ranges_pop(struct gt_ranges *ranges, struct gt_thread *thread, const struct gt_ev_end *ev)
{
	pop(ranges, thread, GT_RANGE_PUSHED, ev->domain_id, ev->range_id, ev->ev.time_ns);
}

/*
 * Autograd calls a node inside of "autograd::engine::evaluate_function: NAME", which has no number
 * of its own: torch gives it that of the node, the first operator in it.
 */
static void number_outer(struct gt_range *outer, const struct gt_ev_op *ev)
{
	if (!outer || outer->kind != GT_RANGE_OP)
		return;
	if (!outer->op_inner && outer->op_sequence < 0 && ev->sequence >= 0 && ev->fwd_thread) {
		outer->op_sequence = ev->sequence;
		outer->op_fwd_thread = ev->fwd_thread;
	}
	outer->op_inner = true;
}

void gt_ranges_op(struct gt_ranges *ranges, struct gt_thread *thread, const struct gt_ev_op *ev)
{
	number_outer(thread->top, ev);
	push(ranges, thread,
	     &(struct gt_range){
		     .kind = GT_RANGE_OP,
		     .op = true,
		     .start_ns = ev->ev.time_ns,
		     .number = ev->depth,
		     .step = ev->ev.step,
		     .name_id = ev->name_id,
		     .stack_id = ev->stack_id,
		     .op_sequence = ev->sequence,
		     .op_thread = ev->thread,
		     .op_fwd_thread = ev->fwd_thread,
		     .inputs_bytes = ev->inputs_bytes,
	     },
	     "", ev->inputs);
}

void gt_ranges_op_end(struct gt_ranges *ranges, struct gt_thread *thread,
		      const struct gt_ev_op_end *ev)
{
	pop(ranges, thread, GT_RANGE_OP, 0, ev->depth, ev->ev.time_ns);
}

void gt_ranges_op_args(struct gt_ranges *ranges, struct gt_thread *thread, uint32_t depth,
		       struct gt_str args, size_t gpu_bytes)
{
	struct gt_range *range = thread->top;

	if (!range || range->kind != GT_RANGE_OP || range->number != depth || range->args ||
	    !args.len)
		return;
	if (args.len <= GT_RANGES_MAX_BYTES - ranges->bytes)
		range->args = malloc(args.len);
	if (!range->args) {
		ranges->refused++;
		return;
	}
	memcpy(range->args, args.ptr, args.len);
	range->args_bytes = (uint32_t)args.len;
	range->gpu_args_bytes = (uint32_t)gpu_bytes;
	ranges->bytes += args.len;
}

void gt_ranges_move(struct gt_ranges *ranges, struct gt_thread *thread, uint32_t window,
		    uint64_t end_ns)
{
	struct gt_range *stack[GT_RANGE_DEPTH_MAX], *range, *rest;
	uint32_t count = 0;

	if (thread->window == window)
		return;
	thread->window = window;
	for (range = thread->top; range; range = range->below)
		stack[count++] = range;
	/* From the outermost on, since the rests of the inner ones point at its rest. */
	thread->top = NULL;
	thread->depth = 0;
	while (count) {
		range = stack[--count];
		/* One that began after the end of its window was never in it. */
		if (range->window == GT_WINDOW_NONE || (!range->op && range->start_ns > end_ns)) {
			if (!range->op)
				range->window = window;
		} else {
			rest = gt_range_rest(ranges, range, thread->top, window);
			gt_ranges_close(ranges, range, end_ns);
			if (!rest)
				continue;
			range = rest;
		}
		range->below = thread->top;
		thread->top = range;
		thread->depth++;
	}
}
