/*
 * rec_windows.c - which windows of a process are open, what belongs to them, and when each is
 * complete.
 */
#include "base.h"
#include "rec_state.h"

#include <inttypes.h>
#include <stdlib.h>

/* A call that was under way when the window closed is written when it returns: wait so long. */
#define LATE_CALL_NS (5 * GT_NSEC_PER_MSEC)
/* The same when there is GPU work of the window whose launch is not known. */
#define LATE_LAUNCH_NS (100 * GT_NSEC_PER_MSEC)
/* How long a complete window waits for a step after it, to compare its own with. */
#define STEP_AFTER_NS (100 * GT_NSEC_PER_MSEC)
/*
 * So long GPU work is awaited from the window's end on, or from the last sign that the GPU is still
 * behind. There is none while it does what was launched before the target listened: as a program
 * can be ahead by 1024 launches, kernels of 10 ms each are 10 s.
 */
#define SILENT_NS    (10 * GT_NSEC_PER_SEC)
#define OVERTAKEN_NS (2 * GT_NSEC_PER_SEC) /* the GPU is seen to be further */

/* Of several threads' buffers one may come this much before another of the same time. */
#define API_LAG_NS (20 * GT_NSEC_PER_MSEC)
/* API records of the fall-back mode are not older than this when they come. */
#define HISTORY_NS (5 * GT_NSEC_PER_SEC)

struct gt_window *gt_windows_by_id(const struct gt_recorder *rec, uint32_t id)
{
	size_t i;

	for (i = rec->window_count; i--;)
		if (rec->windows[i]->id == id)
			return rec->windows[i];
	return NULL;
}

struct gt_window *gt_windows_of_time(const struct gt_recorder *rec, uint64_t time_ns)
{
	size_t i;

	for (i = 0; i < rec->window_count; i++)
		if (rec->windows[i]->start_ns <= time_ns && time_ns < rec->windows[i]->end_ns)
			return rec->windows[i];
	return NULL;
}

void gt_windows_find_end(const struct gt_recorder *rec, struct gt_window *window)
{
	const struct gt_step_mark *mark;

	if (window->id == GT_WHOLE_ID)
		return;
	/* What the target's control thread said came later than the mark that it followed. */
	mark = gt_steps_after(&rec->steps, window->last_step);
	if (mark)
		window->end_ns = GT_MIN(window->end_ns, mark->time_ns);
}

const struct gt_schedule *gt_windows_schedule(const struct gt_recorder *rec)
{
	static const struct gt_schedule capture = GT_SCHEDULE_CAPTURE;

	if (rec->steps.source == GT_STEP_CAPTURE && !rec->config.schedule.capture)
		return &capture;
	return &rec->config.schedule;
}

/* It has ended, and may be drained at any moment: not long ago, or the GPU is behind. */
static bool is_closing(const struct gt_recorder *rec, const struct gt_window *window)
{
	bool ended = window->id != GT_WHOLE_ID && rec->state.step > window->last_step;

	return (window->closed || ended) && !window->drained &&
	       (!window->closed_now_ns ||
		gt_sub(rec->now_ns, window->closed_now_ns) < LATE_LAUNCH_NS);
}

/*
 * Not a recording: the arena is full of it, and is to have room again soon. Nor where the rest is
 * not read on, or nobody waits for it.
 */
static bool is_to_hold(const struct gt_recorder *rec, const struct gt_window *window)
{
	return window->id != GT_WHOLE_ID && !rec->held.active && !rec->gone &&
	       is_closing(rec, window);
}

/* ---- opening ---- */

static struct gt_window *add_window(struct gt_recorder *rec, uint32_t id, uint64_t first_step,
				    uint64_t last_step, uint64_t start_ns)
{
	struct gt_window *window = gt_window_new(rec, id);
	size_t i;

	if (!window)
		return NULL;
	window->first_step = first_step;
	window->last_step = last_step;
	window->next_step = first_step;
	window->start_ns = start_ns;
	window->last_ns = start_ns;
	if (id != GT_WHOLE_ID && rec->steps.source == GT_STEP_CAPTURE) {
		window->own_steps = true;
		window->own_first = gt_window_number(rec, window, 0, start_ns);
		window->next_step = window->own_first;
	}
	for (i = 0; i < rec->window_count; i++)
		gt_ranges_move_shared(&rec->ranges, rec->windows[i]->id, id, start_ns);
	gt_ranges_move_shared(&rec->ranges, GT_WINDOW_NONE, id, start_ns);
	window->held = is_to_hold(rec, window); /* read as a whole in this drain */
	rec->windows[rec->window_count++] = window;
	return window;
}

static void remove_window(struct gt_recorder *rec, struct gt_window *window, const char *why);

/* What a window can lack that has to make room, while events of later ones are read. NULL: nothing.
 */
static const char *missing_of(const struct gt_recorder *rec, const struct gt_window *window)
{
	if (window->drained)
		return NULL;
	if (!gt_rec_settled(rec, window, true))
		return "too many windows waited for GPU records";
	return rec->one_thread ? NULL
			       : "too many windows came while events of other threads were unread";
}

/* By this step, without plans. */
static uint64_t cycles_begun(const struct gt_schedule *sched, uint64_t step)
{
	struct gt_sched_pos pos;

	gt_schedule_at(sched, step, &pos);
	if (pos.phase == GT_PHASE_OVER)
		return sched->on_demand ? 0 : sched->repeat;
	return pos.cycle + (pos.phase == GT_PHASE_ACTIVE);
}

/*
 * The windows up to this cycle of which no event was read have no file to say so. Told only where
 * events were lost, and where no plan, profiler or stop is what left them out.
 */
static void report_lost(struct gt_recorder *rec, uint64_t cycle)
{
	char windows[64];
	struct gt_err err;

	/* One that begins as tracing is stopped may have been left out. */
	if (atomic_load(&rec->stopped_by))
		cycle = GT_MIN(cycle, cycles_begun(gt_windows_schedule(rec),
						   gt_sub(atomic_load(&rec->stopped_step), 1)));
	if (cycle <= rec->next_id || !rec->state.dropped_events || rec->plans.list[0].active ||
	    gt_windows_yield(rec, rec->next_id, cycle - 1))
		return;
	if (cycle == rec->next_id + 1)
		snprintf(windows, sizeof(windows), "window %" PRIu64 " is", cycle);
	else
		snprintf(windows, sizeof(windows), "windows %" PRIu64 " to %" PRIu64 " are",
			 rec->next_id + 1, cycle);
	gt_err_set(&err, -ENOBUFS,
		   "process %u: %s lost: events found no room in the arena (--max-buffer)",
		   rec->hello.pid, windows);
	gt_window_report_failure(rec, &err);
}

/* Nobody listened to it, while the target was told or ended what was open. */
static bool began_after_stop(const struct gt_recorder *rec, uint64_t start_ns)
{
	return atomic_load(&rec->stopped_by) && start_ns > atomic_load(&rec->stopped_ns);
}

static struct gt_window *open_cycle(struct gt_recorder *rec, const struct gt_sched_pos *pos,
				    uint64_t step, uint64_t time_ns)
{
	uint64_t first = step - pos->index;
	const struct gt_step_mark *mark = gt_steps_find(&rec->steps, first);
	const struct gt_msg_phase *yield = gt_windows_yield(rec, pos->cycle, pos->cycle);
	struct gt_window *window;

	if (mark)
		time_ns = mark->time_ns;
	if (pos->cycle < rec->next_id || began_after_stop(rec, time_ns))
		return NULL;
	/* Nobody can have been in a step that the process has not come to. */
	if (step > rec->step_limit) {
		rec->bad_records++;
		return NULL;
	}
	if (rec->whole)
		remove_window(rec, rec->whole, NULL);
	report_lost(rec, pos->cycle);
	if (rec->window_count == GT_WINDOWS_MAX)
		remove_window(rec, rec->windows[0], missing_of(rec, rec->windows[0]));
	if (!first)
		time_ns = GT_MIN(time_ns, rec->hello.realtime_ns);
	window = add_window(rec, (uint32_t)pos->cycle, first, first + pos->active - 1, time_ns);
	if (!window)
		return NULL;
	rec->next_id = pos->cycle + 1;
	window->began = *gt_rec_losses_before(rec, first);
	if (yield && yield->value >= first) /* or of a plan that was taken back */
		gt_window_hear_yield(window, yield);
	gt_window_hear_close(rec, window);
	window->since_step = gt_sub(first, pos->warmup + 1);
	if (rec->heard[pos->cycle % ARRAY_SIZE(rec->heard)].cycle == pos->cycle)
		window->heard = rec->heard[pos->cycle % ARRAY_SIZE(rec->heard)];
	gt_rec_forget(rec);
	return window;
}

/* Of the whole run, or the recording: what it lacks so far. */
static void cut_whole(struct gt_recorder *rec)
{
	const struct gt_arena_state *state = &rec->state;
	struct gt_window *whole = rec->whole;

	if (state->ops_full && !whole->cut)
		whole->cut = "operators had their share of the recording and are in it up to there "
			     "(--max-buffer)";
	if (state->mode == GT_MODE_WHOLE && rec->yields) /* maybe before it was opened */
		gt_window_hear_yield(whole, &rec->yield[(rec->yields - 1) % GT_YIELDS_KEPT]);
	if (state->keep_yielded) {
		whole->cut =
			state->ops_full
				? "interrupted by the program's own torch.profiler; of operators "
				  "it has only their share (--max-buffer)"
				: "interrupted by the program's own torch.profiler";
		whole->yielded = true;
	}
}

void gt_windows_open_whole(struct gt_recorder *rec)
{
	/* A target may say so again and again, or with all windows in use. */
	if (!rec->whole_done && !rec->whole && rec->window_count < GT_WINDOWS_MAX)
		rec->whole = add_window(rec, GT_WHOLE_ID, 0, 0, rec->hello.realtime_ns);
	if (rec->whole)
		cut_whole(rec);
	rec->whole_mode = true;
	rec->cached_valid = false;
}

struct gt_window *gt_windows_of_step(struct gt_recorder *rec, uint32_t step, uint64_t time_ns)
{
	const struct gt_schedule *sched = gt_windows_schedule(rec);
	struct gt_window *window = NULL;
	struct gt_sched_pos pos;

	if (rec->whole_mode) {
		rec->cached_late = !rec->whole;
		return rec->whole;
	}
	if (rec->cached_valid && rec->cached_step == step)
		return rec->cached;
	rec->cached_late = false;
	gt_plans_at(sched, &rec->plans, step, &pos);
	if (pos.phase == GT_PHASE_ACTIVE && pos.cycle < GT_WHOLE_ID) {
		window = gt_windows_by_id(rec, (uint32_t)pos.cycle);
		if (!window)
			window = open_cycle(rec, &pos, step, time_ns);
		rec->cached_late = !window && pos.cycle < rec->next_id &&
				   !gt_windows_yield(rec, pos.cycle, pos.cycle) &&
				   !began_after_stop(rec, time_ns);
		if (window && step > window->last_step) /* it was cut before */
			window = NULL;
	}
	rec->cached_step = step;
	rec->cached_phase = pos.phase;
	rec->cached_cycle = pos.cycle;
	rec->cached_armed = pos.armed;
	rec->cached = window;
	rec->cached_valid = true;
	return window;
}

/* ---- closing ---- */

/* All threads leave it, and what they have open is cut there. */
static void leave_window(struct gt_recorder *rec, struct gt_window *window)
{
	uint32_t i;

	if (window->end_ns == UINT64_MAX)
		window->end_ns = window->last_ns;
	for (i = 0; i < rec->ranges.thread_count; i++) {
		struct gt_thread *thread = &rec->ranges.threads[i];

		/* It may have been silent all the time, with ranges open. */
		if (thread->window == GT_WINDOW_NONE && thread->top &&
		    thread->last_step < window->first_step)
			gt_ranges_move(&rec->ranges, thread, window->id, 0);
		if (thread->window == window->id)
			gt_ranges_move(&rec->ranges, thread, GT_WINDOW_NONE, window->end_ns);
	}
	gt_ranges_move_shared(&rec->ranges, window->id, GT_WINDOW_NONE, window->end_ns);
}

/*
 * The target need not listen for its sake any more. A recording that was full when no step had been
 * seen is no cycle, and must not be taken for the first one, which may follow.
 */
static void note_over(struct gt_recorder *rec, const struct gt_window *window)
{
	uint64_t cycle = window->id == GT_WHOLE_ID ? 0 : window->id;

	if (window->id == GT_WHOLE_ID && rec->state.mode != GT_MODE_WHOLE)
		return;
	rec->over_cycles = GT_MAX(rec->over_cycles, cycle + 1);
}

static void remove_window(struct gt_recorder *rec, struct gt_window *window, const char *why)
{
	size_t i;

	gt_windows_find_end(rec, window);
	leave_window(rec, window);
	gt_rec_give_up(rec, window);
	/* A run that did nothing has no step to show for it either. */
	if (window->id != GT_WHOLE_ID || window->trace || window->step_count)
		gt_window_close_steps(rec, window, true);
	gt_range_history_trim(&rec->history, &rec->ranges, window->id, 0);
	gt_ranges_settle(&rec->ranges, window->id, 0);
	gt_window_finish_file(rec, window, why);
	note_over(rec, window);
	if (window == rec->whole) {
		rec->whole = NULL;
		rec->whole_done = true;
		if (!rec->whole_path && window->path[0] && !window->failed)
			rec->whole_path = strdup(window->path);
	}
	for (i = 0; rec->windows[i] != window; i++)
		;
	rec->window_count--;
	memmove(&rec->windows[i], &rec->windows[i + 1],
		(rec->window_count - i) * sizeof(rec->windows[0]));
	rec->cached_valid = false;
	gt_window_free(window);
}

void gt_windows_close_whole(struct gt_recorder *rec)
{
	if (rec->whole->closed)
		return;
	if (!rec->whole->yielded)
		rec->whole->cut = "the recording without steps reached its bound";
	rec->whole->closed = true;
}

/* The target has switched off since it ended: no record can come any more. */
static bool is_off(const struct gt_recorder *rec, const struct gt_window *window)
{
	if (window->id == GT_WHOLE_ID)
		return rec->off_ns;
	return rec->off_ns >= window->end_ns;
}

/*
 * In the fall-back mode calls are records too, and a thread's come when its buffer does: all are
 * there when one of well after the window is, or when the target has switched off.
 */
static bool has_all_calls(const struct gt_recorder *rec, const struct gt_window *window)
{
	return !gt_window_fell_back(rec, window) ||
	       gt_sub(rec->newest_api_ns, API_LAG_NS) >= window->end_ns || is_off(rec, window);
}

/*
 * Is the GPU further than the window? Kernels of later steps alone do not say so, as they may be on
 * a stream that is far ahead of the others: what is missing must be a small part, or was dropped.
 */
static bool is_overtaken(const struct gt_recorder *rec, const struct gt_window *window)
{
	const struct gt_arena_state *now = &rec->state, *began = &window->began;
	uint64_t dropped = now->dropped_cupti - began->dropped_cupti + now->dropped_arena -
			   began->dropped_arena;
	uint64_t missing = window->launched - window->worked;

	return window->overtaken && missing <= GT_MAX(dropped, window->launched / 8);
}

/* Is the window complete, or as complete as it will be? */
static bool is_over(struct gt_recorder *rec, struct gt_window *window)
{
	uint64_t since_ns;

	if (!window->closed)
		return false;
	if (!window->closed_now_ns) /* this drain is the first that knows */
		window->closed_now_ns = rec->now_ns;
	since_ns = gt_sub(rec->now_ns, window->closed_now_ns);
	/* The target does not listen for it before it has closed the window itself. */
	if (!window->drained && since_ns >= (window->told ? LATE_CALL_NS : LATE_LAUNCH_NS) &&
	    has_all_calls(rec, window) && gt_rec_settled(rec, window, since_ns < LATE_LAUNCH_NS)) {
		window->drained = true;
		window->drained_now_ns = rec->now_ns;
		note_over(rec, window);
	}
	/* The target is told before what was held is compressed. */
	if (window->drained)
		return window->id == GT_WHOLE_ID ||
		       (!window->held && gt_steps_find(&rec->steps, window->last_step + 2)) ||
		       rec->now_ns - window->drained_now_ns >= STEP_AFTER_NS;
	since_ns = GT_MIN(since_ns, gt_sub(rec->now_ns, window->behind_now_ns));
	return (!rec->backlog && is_off(rec, window)) ||
	       since_ns >= (is_overtaken(rec, window) ? OVERTAKEN_NS : SILENT_NS);
}

/* The target waits for a window of which no event was read: they were lost. */
static void note_unseen(struct gt_recorder *rec)
{
	const struct gt_msg_phase *close = &rec->close;
	struct gt_sched_pos pos;

	if (!close->hdr.type || rec->whole_mode || rec->backlog || close->cycle < rec->next_id ||
	    close->cycle < rec->over_cycles || gt_sub(rec->now_ns, close->time_ns) < LATE_LAUNCH_NS)
		return;
	/* Or it was of a plan that was taken back, whose number another window will have. */
	gt_plans_at(gt_windows_schedule(rec), &rec->plans, close->value - 1, &pos);
	if (pos.phase == GT_PHASE_ACTIVE && pos.cycle == close->cycle)
		rec->over_cycles = close->cycle + 1;
}

/* The target listens until then: not while records of a window before it are awaited. */
static void report_drained(struct gt_recorder *rec)
{
	size_t i;

	if (rec->drained_cycles >= rec->over_cycles)
		return;
	for (i = 0; i < rec->window_count; i++)
		if (rec->windows[i]->id < rec->over_cycles && !rec->windows[i]->drained)
			return;
	rec->drained_cycles = rec->over_cycles;
	rec->drained = true;
	rec->drained_cycle = rec->over_cycles - 1;
}

void gt_windows_advance(struct gt_recorder *rec)
{
	size_t i;

	for (i = 0; i < rec->window_count; i++) {
		struct gt_window *window = rec->windows[i];

		if (window->id == GT_WHOLE_ID)
			continue;
		gt_windows_find_end(rec, window);
		if (rec->state.step > window->last_step)
			window->closed = true;
		/*
		 * A step is over for all when the process was in a later one before we read; not in
		 * the fall-back mode, where its calls come later.
		 */
		if (!window->closed && !gt_window_fell_back(rec, window))
			gt_window_close_steps(rec, window, false);
	}
	for (i = 0; i < rec->window_count;) {
		if (is_over(rec, rec->windows[i]))
			remove_window(rec, rec->windows[i], NULL);
		else
			i++;
	}
	note_unseen(rec);
	report_drained(rec);
	if (rec->ranges.shared)
		gt_ranges_settle(&rec->ranges, GT_WINDOW_NONE, gt_rec_oldest_waiting_ns(rec));
	gt_range_history_trim(&rec->history, &rec->ranges, GT_WINDOW_NONE,
			      gt_sub(rec->now_ns, HISTORY_NS));
}

bool gt_windows_closing(const struct gt_recorder *rec)
{
	for (size_t i = 0; i < rec->window_count; i++)
		if (is_closing(rec, rec->windows[i]))
			return true;
	return false;
}

void gt_windows_hold(struct gt_recorder *rec)
{
	for (size_t i = 0; i < rec->window_count; i++) {
		struct gt_window *window = rec->windows[i];

		window->held = is_to_hold(rec, window);
		if (window->trace)
			gt_trace_hold(window->trace, window->held);
	}
}

/* Why the window lacks what was not read, NULL: nothing, or it is counted. */
static const char *lost_by_end(const struct gt_recorder *rec, const struct gt_window *window,
			       enum gt_end end)
{
	if (end == GT_END_ORDERLY || window->drained)
		return NULL;
	if (end == GT_END_EXEC)
		return "the program executed another one before its window was complete";
	if (!atomic_load(&rec->stopped_by))
		return "the program was killed, or left by _exit() or exec, before its window was "
		       "complete";
	return is_off(rec, window) ? NULL : "the program did not answer when it was told to stop";
}

void gt_windows_finish(struct gt_recorder *rec, enum gt_end end)
{
	const char *by = atomic_load(&rec->stopped_by);

	while (rec->window_count) {
		struct gt_window *window = rec->windows[0];
		bool cut = !window->closed && window->id != GT_WHOLE_ID;

		gt_windows_find_end(rec, window);
		if (window->closed && gt_rec_settled(rec, window, false))
			window->drained = true;
		if (cut && end != GT_END_ORDERLY && rec->state.step >= window->first_step)
			window->last_step = GT_MIN(window->last_step, rec->state.step);
		if (!window->closed && !window->cut && by)
			gt_window_cut(window, "stopped by %s", by);
		else if (cut && end == GT_END_ORDERLY && !window->cut)
			window->cut = "the program ended before the window's last step did";
		remove_window(rec, window, lost_by_end(rec, window, end));
	}
	if (!rec->whole_mode)
		report_lost(rec, cycles_begun(gt_windows_schedule(rec), rec->state.step));
}
