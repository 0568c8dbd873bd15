#include "base.h"
#include "ranges.h"
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

struct gt_str gt_range_name(const struct gt_range *range, const struct gt_names *names)
{
	if (range->name_id)
		return gt_names_get(names, range->name_id);
	return (struct gt_str){ range->text, range->len_bytes };
}

struct gt_str gt_range_inputs(const struct gt_range *range)
{
	return (struct gt_str){ range->text + range->len_bytes, range->inputs_bytes };
}

/* ---- life of a range ---- */

static size_t bytes_of(const struct gt_range *range)
{
	return sizeof(*range) + range->len_bytes + range->inputs_bytes;
}

/* like: what it is made after. Its text and inputs are copied. */
static struct gt_range *make_range(struct gt_ranges *ranges, const struct gt_range *like,
				   const char *text, const char *inputs)
{
	size_t bytes = bytes_of(like);
	struct gt_range *range;

	if (bytes > GT_RANGES_MAX_BYTES - ranges->bytes)
		goto refuse;
	range = malloc(bytes);
	if (!range)
		goto refuse;
	*range = *like;
	memcpy(range->text, text, like->len_bytes);
	memcpy(range->text + like->len_bytes, inputs, like->inputs_bytes);
	range->end_ns = UINT64_MAX;
	range->refs = 1;
	range->external_id = ++ranges->last_external_id;
	ranges->bytes += bytes;
	return range;
refuse:
	ranges->refused++;
	return NULL;
}

struct gt_range *gt_range_hold(struct gt_range *range)
{
	if (range)
		range->refs++;
	return range;
}

void gt_ranges_unhold(struct gt_ranges *ranges, struct gt_range *range)
{
	struct gt_range *outer;

	for (; range && !--range->refs; range = outer) {
		outer = range->outer;
		if (range->window != GT_WINDOW_NONE && range->span_count)
			ranges->sink.spans(ranges->sink.ctx, range);
		ranges->bytes -= bytes_of(range);
		ranges->bytes -= range->span_cap * sizeof(*range->spans);
		ranges->bytes -= range->args_bytes;
		free(range->spans);
		free(range->args);
		free(range);
	}
}

void gt_ranges_close(struct gt_ranges *ranges, struct gt_range *range, uint64_t end_ns)
{
	range->end_ns = GT_MAX(end_ns, range->start_ns);
	if (range->window != GT_WINDOW_NONE)
		ranges->sink.range(ranges->sink.ctx, range);
	gt_ranges_unhold(ranges, range);
}

/* What goes on of an open range outside of its window. NULL: no memory. */
static struct gt_range *rest_of(struct gt_ranges *ranges, const struct gt_range *range,
				struct gt_range *outer, uint32_t window)
{
	struct gt_range like = *range;
	struct gt_range *rest;

	like.window = range->op ? GT_WINDOW_NONE : window;
	like.outer = outer;
	like.spans = NULL;
	like.span_count = 0;
	like.span_cap = 0;
	like.args = NULL;
	like.args_bytes = 0;
	like.gpu_args_bytes = 0;
	rest = make_range(ranges, &like, range->text, gt_range_inputs(range).ptr);
	if (rest)
		gt_range_hold(outer);
	return rest;
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
	range = make_range(ranges, like, text, inputs);
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
		if (range->window == GT_WINDOW_NONE) {
			if (!range->op)
				range->window = window;
		} else {
			rest = rest_of(ranges, range, thread->top, window);
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

/* ---- START and END ---- */

/* The shared list is searched by each GPU op and END: beyond this many its tail is cut short. */
#define SHARED_WAIT_MAX 64
#define SHARED_MAX      4096

void gt_ranges_start(struct gt_ranges *ranges, uint32_t tid, uint32_t window,
		     const struct gt_ev_range *ev)
{
	struct gt_range *range = NULL;

	if (ranges->shared_count < SHARED_MAX)
		range = make_range(ranges,
				   &(struct gt_range){
					   .below = ranges->shared,
					   .start_ns = ev->ev.time_ns,
					   .number = ev->range_id,
					   .tid = tid,
					   .window = window,
					   .domain_id = ev->domain_id,
					   .name_id = ev->name_id,
					   .kind = GT_RANGE_PROCESS,
					   .len_bytes = ev->name_id ? 0 : ev->len_bytes,
				   },
				   ev->bytes, "");
	else
		ranges->refused++;
	if (!range)
		return;
	ranges->shared = range;
	ranges->shared_count++;
}

static bool is_open(const struct gt_range *range)
{
	return range->end_ns == UINT64_MAX;
}

/* Let go of a range of the shared list. */
static void drop_shared(struct gt_ranges *ranges, struct gt_range **place)
{
	struct gt_range *range = *place;

	*place = range->below;
	ranges->shared_count--;
	gt_ranges_unhold(ranges, range);
}

/* It is in the trace now, and stays in the list until its GPU work can no longer come. */
static void end_shared(struct gt_ranges *ranges, struct gt_range **place, uint64_t end_ns)
{
	bool wait = (*place)->window != GT_WINDOW_NONE && ranges->shared_count <= SHARED_WAIT_MAX;

	gt_ranges_close(ranges, gt_range_hold(*place), end_ns);
	if (!wait)
		drop_shared(ranges, place);
}

void gt_ranges_end(struct gt_ranges *ranges, const struct gt_ev_end *ev)
{
	struct gt_range **place = &ranges->shared;

	while (*place && !(is_open(*place) && (*place)->number == ev->range_id))
		place = &(*place)->below;
	if (*place)
		end_shared(ranges, place, ev->ev.time_ns);
}

void gt_ranges_move_shared(struct gt_ranges *ranges, uint32_t from, uint32_t window,
			   uint64_t end_ns)
{
	struct gt_range **place = &ranges->shared;

	while (*place) {
		struct gt_range *range = *place, *rest;

		if (!is_open(range) || range->window != from) {
			place = &range->below;
			continue;
		}
		if (from == GT_WINDOW_NONE) {
			range->window = window;
			place = &range->below;
			continue;
		}
		rest = rest_of(ranges, range, NULL, window);
		end_shared(ranges, place, end_ns);
		if (*place == range)
			place = &range->below;
		if (rest) {
			rest->below = ranges->shared;
			if (place == &ranges->shared)
				place = &rest->below;
			ranges->shared = rest;
			ranges->shared_count++;
		}
	}
}

void gt_ranges_settle(struct gt_ranges *ranges, uint32_t window, uint64_t waiting_ns)
{
	struct gt_range **place = &ranges->shared;

	while (*place) {
		const struct gt_range *range = *place;

		if (!is_open(range) && (range->window == window || range->end_ns <= waiting_ns))
			drop_shared(ranges, place);
		else
			place = &(*place)->below;
	}
}

/* ---- GPU work ---- */

static struct gt_range_span *find_span(struct gt_ranges *ranges, struct gt_range *range,
				       const struct gt_gpu_op *op)
{
	struct gt_range_span *span;
	uint16_t i, cap;

	for (i = range->span_count; i--;) {
		span = &range->spans[i];
		if (span->stream == op->stream && span->device == op->device)
			return span;
	}
	if (range->span_count == range->span_cap) {
		cap = range->span_cap ? range->span_cap * 2 : 2;
		if (cap > GT_RANGE_LANES_MAX)
			return NULL;
		span = realloc(range->spans, cap * sizeof(*span));
		if (!span)
			return NULL;
		ranges->bytes += (cap - range->span_cap) * sizeof(*span);
		range->spans = span;
		range->span_cap = cap;
	}
	span = &range->spans[range->span_count++];
	*span = (struct gt_range_span){
		.start_ns = op->start_ns,
		.end_ns = op->end_ns,
		.device = op->device,
		.stream = op->stream,
	};
	return span;
}

static void add_work(struct gt_ranges *ranges, struct gt_range *range, const struct gt_gpu_op *op)
{
	struct gt_range_span *span = find_span(ranges, range, op);

	if (!span)
		return;
	span->start_ns = GT_MIN(span->start_ns, op->start_ns);
	span->end_ns = GT_MAX(span->end_ns, op->end_ns);
}

void gt_ranges_work(struct gt_ranges *ranges, struct gt_range *range, uint64_t launch_ns,
		    const struct gt_gpu_op *op)
{
	/* Pops out of order leave an outer range that ended before the launch: hence the test. */
	for (; range; range = range->outer)
		if (!range->op && launch_ns <= range->end_ns)
			add_work(ranges, range, op);
}

void gt_ranges_shared_work(struct gt_ranges *ranges, uint32_t window, uint64_t launch_ns,
			   const struct gt_gpu_op *op)
{
	struct gt_range *range = ranges->shared;
	uint32_t i;

	for (i = 0; range && i < SHARED_WAIT_MAX; i++, range = range->below)
		if (range->window == window && range->start_ns <= launch_ns &&
		    launch_ns <= range->end_ns)
			add_work(ranges, range, op);
}

/* ---- steps and all ---- */

struct gt_range *gt_ranges_step(struct gt_ranges *ranges, uint32_t tid, uint32_t window,
				uint32_t step, uint64_t start_ns)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "ProfilerStep#%u", step);

	return make_range(ranges,
			  &(struct gt_range){
				  .start_ns = start_ns,
				  .tid = tid,
				  .window = window,
				  .step = step,
				  .kind = GT_RANGE_STEP,
				  .len_bytes = (uint32_t)len,
			  },
			  text, "");
}

void gt_ranges_release(struct gt_ranges *ranges)
{
	uint32_t i;

	for (i = 0; i < ranges->thread_count; i++) {
		struct gt_thread *thread = &ranges->threads[i];

		while (thread->top) {
			struct gt_range *range = thread->top;

			thread->top = range->below;
			gt_ranges_unhold(ranges, range);
		}
		free(thread->calls.open);
	}
	while (ranges->shared)
		drop_shared(ranges, &ranges->shared);
	free(ranges->threads);
	gt_map_release(&ranges->by_tid);
	ranges->threads = NULL;
	ranges->thread_count = 0;
	ranges->thread_cap = 0;
}
