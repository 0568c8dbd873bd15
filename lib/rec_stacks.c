/*
 * rec_stacks.c - Python functions as slices, from the stacks of operators and ranges. A function
 * lasts from the first of those that it called to the last one, as far as that can be told: when it
 * is at another line, what it calls is another call.
 *
 * A slice begins and ends a nanosecond before and behind what is in it, so that readers, who see no
 * more than times, find which is in which.
 */
#include "base.h"
#include "rec_state.h"

#include <stdlib.h>

#define THREADS_MAX 1024 /* in Python code; 5 MiB */

/* Operators and calls that follow each other mostly have one stack. */
static bool is_at(struct gt_stack_text *last, uint32_t stack_id)
{
	if (last->stack_id == stack_id)
		return true;
	last->stack_id = stack_id;
	last->text.len = 0;
	return false;
}

bool gt_rec_calls(struct gt_recorder *rec, uint32_t stack_id, struct gt_str *ret)
{
	struct gt_stack_text *last = &rec->calls;

	if (!is_at(last, stack_id))
		gt_stacks_put_calls(&rec->stacks, &rec->names, stack_id, &last->text);
	*ret = gt_buf_str(&last->text);
	return !last->text.failed;
}

bool gt_rec_modules(struct gt_recorder *rec, uint32_t stack_id, struct gt_str *ret)
{
	struct gt_stack_text *last = &rec->modules;

	if (!is_at(last, stack_id))
		gt_stacks_put_modules(&rec->stacks, &rec->names, stack_id, &last->text);
	*ret = gt_buf_str(&last->text);
	return !last->text.failed;
}

/* What of a stack is wanted: its frames, the outermost first, or only those that call a module. */
static uint32_t wanted_frames(const struct gt_recorder *rec, uint32_t id,
			      uint32_t ret[GT_STACK_DEPTH_MAX])
{
	uint32_t count = gt_stacks_frames(&rec->stacks, id, ret), kept = 0, i;

	if (rec->config.with_stack)
		return count;
	for (i = 0; i < count; i++)
		if (gt_frame_is_module(gt_stacks_get(&rec->stacks, ret[i])))
			ret[kept++] = ret[i];
	return kept;
}

/* A thread's functions that are open belong to a step, so that their slices nest with those. */
static bool is_current(const struct gt_calls *calls, const struct gt_window *window, uint32_t step)
{
	return calls->window == window->id && calls->step == step;
}

static void put_call(struct gt_recorder *rec, struct gt_window *window,
		     const struct gt_thread *thread, const struct gt_call *call, uint64_t outer_id)
{
	const struct gt_frame *frame = gt_stacks_get(&rec->stacks, call->stack_id);
	struct gt_trace_function function = {
		.tid = thread->tid,
		.id = call->id,
		.outer_id = outer_id,
		.start_ns = GT_MAX(gt_sub(call->start_ns, call->early_ns), window->start_ns),
		.end_ns = GT_MIN(call->end_ns, window->end_ns),
		.is_module = gt_frame_is_module(frame),
		.instance = frame->instance,
	};

	if (!gt_window_open_file(rec, window))
		return;
	rec->text.len = 0;
	if (function.is_module)
		gt_frame_put_module(frame, &rec->names, &rec->text);
	else
		gt_frame_put(frame, &rec->names, frame->first_line, &rec->text);
	if (rec->text.failed) {
		gt_window_check_write(rec, window, -ENOMEM);
		return;
	}
	function.name = gt_buf_str(&rec->text);
	if (!gt_window_takes_stack(window, function.name.len))
		return;
	function.end_ns = GT_MAX(function.end_ns, function.start_ns);
	gt_window_check_write(rec, window, gt_trace_function(window->trace, &function));
}

/* End the inner ones, down to this depth. window: theirs; NULL: it is complete. */
static void end_calls(struct gt_recorder *rec, struct gt_window *window, struct gt_thread *thread,
		      uint32_t depth)
{
	struct gt_calls *calls = &thread->calls;

	while (calls->depth > depth) {
		struct gt_call *call = &calls->open[--calls->depth];
		struct gt_call *outer = calls->depth ? call - 1 : NULL;

		bool lasted = call->end_ns > call->start_ns;

		if (outer)
			outer->end_ns = GT_MAX(outer->end_ns, call->end_ns + lasted);
		/* Else no operator was in it: it did no more than to begin or end a range. */
		if (window && lasted)
			put_call(rec, window, thread, call, outer ? outer->id : 0);
	}
}

/*
 * How many of the open ones are in this stack; the last of them can be at another line now. Of a
 * module that would be another call.
 */
static uint32_t count_same(const struct gt_stacks *stacks, const struct gt_calls *calls,
			   const uint32_t *frames, uint32_t count)
{
	uint32_t i = 0;

	while (i < count && i < calls->depth && calls->open[i].stack_id == frames[i])
		i++;
	if (i < count && i < calls->depth &&
	    !gt_frame_is_module(gt_stacks_get(stacks, frames[i])) &&
	    gt_frame_same_function(gt_stacks_get(stacks, calls->open[i].stack_id),
				   gt_stacks_get(stacks, frames[i])))
		i++;
	return i;
}

static bool make_room(struct gt_recorder *rec, struct gt_calls *calls)
{
	if (rec->stack_threads < THREADS_MAX)
		calls->open = malloc(GT_STACK_DEPTH_MAX * sizeof(*calls->open));
	if (calls->open)
		rec->stack_threads++;
	else
		rec->stacks.refused++;
	return calls->open;
}

void gt_rec_stack(struct gt_recorder *rec, struct gt_window *window, struct gt_thread *thread,
		  uint32_t stack_id, const struct gt_ev *ev)
{
	struct gt_calls *calls = &thread->calls;
	uint32_t frames[GT_STACK_DEPTH_MAX], count, same, step;

	if (!window || !stack_id)
		return;
	step = gt_window_number(rec, window, ev->step, ev->time_ns);
	if (!is_current(calls, window, step)) {
		end_calls(rec, gt_windows_by_id(rec, calls->window), thread, 0);
		calls->window = window->id;
		calls->step = step;
	}
	count = wanted_frames(rec, stack_id, frames);
	same = count_same(&rec->stacks, calls, frames, count);
	end_calls(rec, window, thread, same);
	if (!calls->open && !make_room(rec, calls))
		return;
	if (same) {
		calls->open[same - 1].stack_id = frames[same - 1];
		calls->open[same - 1].end_ns = GT_MAX(calls->open[same - 1].end_ns, ev->time_ns);
	}
	for (; same < count; same++)
		calls->open[calls->depth++] = (struct gt_call){
			.id = ++window->function_count,
			.stack_id = frames[same],
			.start_ns = ev->time_ns,
			.end_ns = ev->time_ns,
			.early_ns = count - same,
		};
}

void gt_rec_stack_end(struct gt_recorder *rec, const struct gt_range *op)
{
	struct gt_thread *thread = op->stack_id ? gt_ranges_thread(&rec->ranges, op->tid) : NULL;
	uint32_t frames[GT_STACK_DEPTH_MAX], same;
	struct gt_calls *calls;

	if (!thread || !thread->calls.depth || thread->calls.window != op->window)
		return;
	calls = &thread->calls;
	same = calls->depth;
	/* Functions that operators in it called are not, or no longer, those that called it. */
	if (calls->open[same - 1].stack_id != op->stack_id)
		same = count_same(&rec->stacks, calls, frames,
				  wanted_frames(rec, op->stack_id, frames));
	if (same)
		calls->open[same - 1].end_ns = GT_MAX(calls->open[same - 1].end_ns, op->end_ns + 1);
}

void gt_rec_stacks_finish(struct gt_recorder *rec, struct gt_window *window)
{
	uint32_t i;

	for (i = 0; i < rec->ranges.thread_count; i++)
		if (rec->ranges.threads[i].calls.window == window->id)
			end_calls(rec, window, &rec->ranges.threads[i], 0);
}
