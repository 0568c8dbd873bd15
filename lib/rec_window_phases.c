/*
 * rec_window_phases.c - what the target says of its windows: that it closed one, or made room for
 * the program's own profiler. It may come before the window's events are read, or long after.
 */
#include "base.h"
#include "rec_state.h"

#include <stdarg.h>

void gt_window_cut(struct gt_window *window, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(window->cut_text, sizeof(window->cut_text), fmt, args);
	va_end(args);
	window->cut = window->cut_text;
}

const struct gt_msg_phase *gt_windows_yield(const struct gt_recorder *rec, uint64_t first,
					    uint64_t last)
{
	uint64_t kept = GT_MIN(rec->yields, (uint64_t)GT_YIELDS_KEPT);

	for (uint64_t i = rec->yields; i > rec->yields - kept; i--) {
		const struct gt_msg_phase *yield = &rec->yield[(i - 1) % GT_YIELDS_KEPT];

		if (yield->cycle >= first && yield->cycle <= last)
			return yield;
	}
	return NULL;
}

void gt_window_hear_yield(struct gt_window *window, const struct gt_msg_phase *yield)
{
	bool whole = window->id == GT_WHOLE_ID;

	/* After its last step only its records are cut short; what is missing of them is counted.
	 */
	if (whole || yield->value <= window->last_step) {
		window->cut = "interrupted by the program's own torch.profiler";
		window->yielded = true;
		window->left_out = yield->what == GT_WHAT_LEFT_OUT && !whole;
	}
	if (whole)
		return;
	if (window->yielded) {
		window->end_ns = yield->time_ns;
		window->last_step = GT_MAX(yield->value, window->first_step);
	}
	window->closed = true;
	window->told = true;
}

/*
 * It ends before the step 'next', with the program or by a stop, unless its own end came first: in
 * all of these cases the target says so in the same way.
 */
static void cut_window(struct gt_recorder *rec, struct gt_window *window, uint64_t next)
{
	const char *by = atomic_load(&rec->stopped_by);
	bool to_the_end = window->id == GT_WHOLE_ID || window->own_steps;
	bool in_last;

	/* The program may have been further by the time that the target told it. */
	if (by && !to_the_end)
		next = GT_MAX(next, window->top_step + 1);
	in_last = next > window->last_step;
	if (in_last && (gt_arena_step(rec->arena) > window->last_step || (!by && to_the_end)))
		return;
	if (window->id != GT_WHOLE_ID && next <= window->first_step)
		return;
	window->last_step = GT_MIN(window->last_step, next - 1);
	rec->cached_valid = false;
	if (!by)
		window->cut = in_last ? "the program ended in the window's last step"
				      : "the program ended before the window's last step";
	else if (to_the_end)
		gt_window_cut(window, "stopped by %s", by);
	else
		gt_window_cut(window, "stopped by %s in step %llu, %s", by,
			      (unsigned long long)next - 1,
			      in_last ? "the window's last" : "before the window's last step");
}

void gt_window_hear_close(struct gt_recorder *rec, struct gt_window *window)
{
	const struct gt_msg_phase *close = &rec->close;
	bool whole = window->id == GT_WHOLE_ID;

	if (!close->hdr.type || window->told || (!whole && window->id > close->cycle))
		return;
	/* That was a window of the same number whose plan was taken back. */
	if (!whole && window->id == close->cycle && close->value <= window->first_step)
		return;
	if (whole || window->id == close->cycle) {
		cut_window(rec, window, close->value);
		gt_windows_find_end(rec, window);
		/* Sooner than at its end by a mark, when tracing ends. */
		window->end_ns = GT_MIN(window->end_ns, close->time_ns);
	}
	window->closed = true;
	window->told = true;
}

/* Did the arena say so before the message did? */
static bool is_known(const struct gt_recorder *rec, const struct gt_msg_phase *yield)
{
	const struct gt_msg_phase *known = gt_windows_yield(rec, yield->cycle, yield->cycle);

	return known && known->what == yield->what && known->value == yield->value;
}

/* Not a window that began after it, whose steps were read first. */
static bool is_of_yield(const struct gt_window *window, const struct gt_msg_phase *yield)
{
	if (yield->what == GT_WHAT_LEFT_OUT)
		return window->id == yield->cycle;
	return window->id == GT_WHOLE_ID || window->id <= yield->cycle;
}

void gt_windows_phase(struct gt_recorder *rec, const struct gt_msg_phase *phase)
{
	size_t i;

	switch (phase->what) {
	case GT_WHAT_OFF:
		rec->off_ns = phase->time_ns;
		return;
	case GT_WHAT_LEFT_OUT:
	case GT_WHAT_YIELD: /* may come before the window's events were read */
		if (is_known(rec, phase))
			return;
		rec->yield[rec->yields++ % GT_YIELDS_KEPT] = *phase;
		break;
	case GT_WHAT_CLOSE: /* likewise */
		rec->close = *phase;
		rec->close.hdr.type = GT_MSG_PHASE;
		break;
	default:
		return;
	}
	for (i = 0; i < rec->window_count; i++) {
		struct gt_window *window = rec->windows[i];

		if (phase->what == GT_WHAT_CLOSE)
			gt_window_hear_close(rec, window);
		else if (!window->told && /* maybe closed already, by steps that were read first */
			 is_of_yield(window, phase))
			gt_window_hear_yield(window, phase);
	}
}
