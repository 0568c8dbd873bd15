/*
 * rec_window_steps.c - the steps of a window: the ranges that divide it, as the marks say.
 */
#include "base.h"
#include "rec_state.h"

#include <stdlib.h>

#define OPEN_STEPS_MAX 4096 /* of one window */

/* The marks that divide the window into steps; NULL: none do. */
static struct gt_steps *marks_of(struct gt_recorder *rec, const struct gt_window *window)
{
	if (window->id == GT_WHOLE_ID)
		return NULL;
	return window->own_steps ? &rec->own_steps : &rec->steps;
}

/* The program's own step at this time in a captured range; 0 as long as it marks none. */
static uint32_t own_step(const struct gt_recorder *rec, const struct gt_window *window,
			 uint64_t time_ns)
{
	time_ns = GT_MIN(time_ns, window->end_ns - 1);
	return gt_steps_at(&rec->own_steps, GT_MAX(time_ns, window->start_ns));
}

uint32_t gt_window_number(const struct gt_recorder *rec, const struct gt_window *window,
			  uint32_t step, uint64_t time_ns)
{
	if (window->id == GT_WHOLE_ID)
		return 0;
	return window->own_steps ? own_step(rec, window, time_ns) : step;
}

/* The mark of this step found no room: it counts from the first event that is read of it. */
static const struct gt_step_mark *mark_for_lost(struct gt_recorder *rec, struct gt_steps *marks,
						uint32_t step, uint64_t time_ns)
{
	const struct gt_step_mark *later = gt_steps_after(marks, step);
	struct gt_step_mark mark = { .time_ns = time_ns, .step = step, .tid = rec->hello.pid };

	if (later)
		mark.tid = later->tid;
	else if (marks->count)
		mark.tid = marks->marks[marks->count - 1].tid;
	gt_steps_add(marks, &mark, marks->source);
	return gt_steps_find(marks, step);
}

struct gt_range *gt_window_step(struct gt_recorder *rec, struct gt_window *window, uint32_t step,
				uint64_t time_ns)
{
	struct gt_steps *marks = marks_of(rec, window);
	const struct gt_step_mark *mark;
	struct gt_range **grown, *range;
	uint64_t first, last;
	size_t i, cap;

	step = gt_window_number(rec, window, step, time_ns);
	mark = marks ? gt_steps_find(marks, step) : NULL;
	for (i = window->step_count; i--;)
		if (window->steps[i]->step == step)
			return window->steps[i];
	if (step < window->next_step || (!window->own_steps && step > window->last_step))
		return NULL;
	gt_window_numbers(window, &first, &last);
	if (marks && !mark && step != first) {
		mark = mark_for_lost(rec, marks, step, time_ns);
		if (!mark)
			return NULL;
	}
	if (window->step_count == window->step_cap) {
		cap = window->step_cap ? window->step_cap * 2 : 4;
		if (cap > OPEN_STEPS_MAX)
			return NULL;
		grown = realloc(window->steps, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		window->steps = grown;
		window->step_cap = cap;
	}
	/* The first step of a program has no mark: it is its main thread's. */
	range = gt_ranges_step(&rec->ranges, mark ? mark->tid : rec->hello.pid, window->id, step,
			       mark ? GT_MAX(mark->time_ns, window->start_ns) : window->start_ns);
	if (!range)
		return NULL;
	window->steps[window->step_count++] = range;
	window->top_step = GT_MAX(window->top_step, step);
	return range;
}

void gt_window_numbers(const struct gt_window *window, uint64_t *ret_first, uint64_t *ret_last)
{
	*ret_first = window->own_steps ? window->own_first : window->first_step;
	*ret_last = window->own_steps ? window->top_step : window->last_step;
}

/*
 * Whether a step that the mark 'next' (NULL: none) follows goes on behind its window: it ended by
 * no mark, of its own or of the window. A captured range without marks is one step, and whole.
 */
static bool is_cut(const struct gt_recorder *rec, const struct gt_window *window,
		   const struct gt_step_mark *next)
{
	const struct gt_step_mark *end = gt_steps_after(&rec->steps, window->last_step);

	if (window->id == GT_WHOLE_ID || (window->own_steps && !rec->own_steps.count))
		return false;
	return !(next && next->time_ns <= window->end_ns) &&
	       !(end && end->time_ns <= window->end_ns);
}

/* Close the steps before 'until' whose end is marked; all when the window is 'over'. */
static void close_steps(struct gt_recorder *rec, struct gt_window *window, uint64_t until,
			bool over)
{
	const struct gt_steps *marks = marks_of(rec, window);
	const struct gt_step_mark *mark, *next;
	uint64_t first, last;
	size_t i, kept = 0;

	gt_window_numbers(window, &first, &last);
	while (window->next_step < until) {
		next = marks ? gt_steps_after(marks, window->next_step) : NULL;
		if (!next && !over)
			break;
		/* Only its mark, or what happened in it, makes a step. */
		mark = marks ? gt_steps_find(marks, window->next_step) : NULL;
		if (window->next_step == first || mark)
			gt_window_step(rec, window, (uint32_t)window->next_step,
				       mark ? mark->time_ns : window->start_ns);
		window->next_step = next ? GT_MIN(until, next->step) : until;
	}
	for (i = 0; i < window->step_count; i++) {
		struct gt_range *range = window->steps[i];

		next = marks ? gt_steps_after(marks, range->step) : NULL;
		if (!over && (range->step >= until || !next)) {
			window->steps[kept++] = range;
			continue;
		}
		range->cut = is_cut(rec, window, next);
		gt_ranges_close(&rec->ranges, range,
				next ? GT_MIN(next->time_ns, window->end_ns) : window->end_ns);
	}
	window->step_count = kept;
}

/*
 * The same of a captured range, up to the step that the program is in. Its last step, in which it
 * ends, counts only for what happened in it, unless that is all there is.
 */
static void close_own_steps(struct gt_recorder *rec, struct gt_window *window, bool over)
{
	uint32_t last = own_step(rec, window, UINT64_MAX);

	if (over && last == window->own_first)
		gt_window_step(rec, window, 0, window->start_ns);
	close_steps(rec, window, last, over);
}

void gt_window_close_steps(struct gt_recorder *rec, struct gt_window *window, bool over)
{
	uint64_t until = window->last_step + 1;

	if (window->own_steps)
		close_own_steps(rec, window, over);
	else
		close_steps(rec, window, over ? until : GT_MIN(rec->state.step, until), over);
}
