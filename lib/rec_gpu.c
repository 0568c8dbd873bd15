/*
 * rec_gpu.c - matches launches and GPU records by CUPTI's correlation id. Either may come first: a
 * launch is written when its call returns, and that can be after its work was done.
 */
#include "base.h"
#include "rec_state.h"

/* GPU work this long before its launch belongs to another one of the same, reused id. */
#define STALE_NS (10 * GT_NSEC_PER_SEC)
/* A graph that has work has all of it when none has come for so long. */
#define GRAPH_QUIET_NS (2 * GT_NSEC_PER_SEC)

/* Correlation ids rise, and wrap. */
static bool is_newer(uint32_t correlation, uint32_t than)
{
	return (int32_t)(correlation - than) > 0;
}

/* Streams of several contexts, as each GPU has one, have the same ids. Never 0. */
static uint64_t stream_key(uint32_t context, uint32_t stream)
{
	return ((uint64_t)(uint8_t)context << 32 | stream) + 1;
}

static void note_stream(struct gt_recorder *rec, const struct gt_gpu_op *op)
{
	uint64_t key = stream_key(op->context, op->stream);
	uint32_t newest = gt_map_get(&rec->stream_newest, key);

	if (!newest || is_newer(op->correlation, newest))
		gt_map_put(&rec->stream_newest, key, op->correlation);
}

/*
 * Has the launch all its GPU work, as far as one can know? A graph has any number of records: it
 * has them all when work launched later on its stream is there; or when it has one and a whole
 * further step went by, on the GPU as well, which may be behind.
 */
static bool has_all(const struct gt_recorder *rec, const struct gt_launch *launch)
{
	uint32_t newest;

	if (!launch->graph)
		return launch->worked;
	if (launch->traced)
		return true;
	newest = gt_map_get(&rec->stream_newest, stream_key(launch->context, launch->stream));
	if (newest && is_newer(newest, launch->entry.correlation))
		return true;
	return launch->worked && (uint64_t)rec->state.step >= (uint64_t)launch->step_number + 2 &&
	       (uint64_t)gt_steps_at(&rec->steps, rec->newest_kernel_ns) >=
		       (uint64_t)gt_steps_at(&rec->steps, launch->worked_ns) + 2;
}

static void let_go(struct gt_recorder *rec, struct gt_launch *launch)
{
	gt_ranges_unhold(&rec->ranges, launch->range);
	gt_ranges_unhold(&rec->ranges, launch->step);
	launch->range = NULL;
	launch->step = NULL;
}

/* ---- the two halves meet ---- */

static void note_work(struct gt_launch *launch, const struct gt_record *record)
{
	launch->worked = true;
	if (record->type == GT_RECORD_GPU)
		launch->worked_ns = GT_MAX(launch->worked_ns, record->op.end_ns);
}

static void match(struct gt_recorder *rec, struct gt_window *window, struct gt_launch *launch,
		  const struct gt_record *record)
{
	const struct gt_gpu_op *op = &record->op;
	bool first = !launch->worked;

	note_work(launch, record);
	window->worked += first;
	launch->traced = op->kind == GT_GPU_GRAPH;
	if (record->type == GT_RECORD_UNTIMED) {
		/* CUPTI does not deliver it again. Alone it is a launch without work. */
		launch->untimed = true;
		rec->bad_records += launch->graph || launch->written;
	} else {
		if (!launch->written)
			gt_window_call(rec, window, launch, true, false);
		launch->written = true;
		gt_window_gpu(rec, window, op, launch);
		gt_ranges_work(&rec->ranges, launch->range, launch->start_ns, op);
		gt_ranges_work(&rec->ranges, launch->step, launch->start_ns, op);
		gt_ranges_shared_work(&rec->ranges, window->id, launch->start_ns, op);
	}
	if (first && !launch->graph) {
		window->waiting--;
		let_go(rec, launch);
	}
}

/*
 * A graph may have no kernels: nothing is launched after it, whose work would prove it, but the GPU
 * is done with it. Of several it may as well be CUPTI that says nothing.
 */
static bool has_none(const struct gt_recorder *rec, const struct gt_window *window,
		     const struct gt_launch *launch)
{
	return rec->ended && launch->graph && !launch->untimed &&
	       launch->end_ns <= rec->synced_ns && window->worked &&
	       !window->launches_without_gpu && launch->entry.correlation == window->newest;
}

/* A launch leaves the ring, or its window ends: what can be said of it now? */
static void conclude(struct gt_recorder *rec, struct gt_launch *launch)
{
	struct gt_window *window = gt_windows_by_id(rec, launch->window);

	if (window) {
		if (launch->graph)
			window->graphs--;
		else if (!launch->worked)
			window->waiting--;
		if (!launch->written) {
			if (launch->untimed ||
			    !(has_all(rec, launch) || has_none(rec, window, launch)))
				window->launches_without_gpu++;
			window->untimed += launch->untimed;
			gt_window_call(rec, window, launch, false, false);
		}
	}
	launch->written = true;
	let_go(rec, launch);
}

/* Is the launch still of use to what may come? */
static bool is_needed(const struct gt_recorder *rec, const struct gt_launch *launch)
{
	return launch->window != GT_WINDOW_NONE && !has_all(rec, launch) &&
	       gt_windows_by_id(rec, launch->window);
}

/* A launch of no window tells its GPU work, which may run in one, from work without a launch. */
static bool is_awaited(const struct gt_recorder *rec, const struct gt_launch *launch)
{
	if (launch->window == GT_WINDOW_NONE)
		return !has_all(rec, launch);
	return is_needed(rec, launch);
}

static struct gt_launch *make_room(struct gt_recorder *rec, uint32_t correlation)
{
	struct gt_launch *launch = gt_ring_push(&rec->launches, correlation), *oldest;

	if (launch)
		return launch;
	oldest = rec->launches.cap ? gt_ring_at(&rec->launches, rec->launches.tail) : NULL;
	if (!oldest || is_awaited(rec, oldest))
		if (!gt_ring_grow(&rec->launches))
			return gt_ring_push(&rec->launches, correlation);
	if (!oldest)
		return NULL;
	conclude(rec, oldest);
	gt_ring_drop(&rec->launches);
	return gt_ring_push(&rec->launches, correlation);
}

static bool is_stale(const struct gt_record *record, const struct gt_launch *launch)
{
	return record->type == GT_RECORD_GPU &&
	       record->op.end_ns < gt_sub(launch->start_ns, STALE_NS);
}

/* Was this launched behind the window? There the target takes no launches. */
static bool is_later(const struct gt_window *window, uint32_t correlation)
{
	return window->closed && window->launched && is_newer(correlation, window->newest);
}

/* How far the GPU is, for windows that wait for it. launch: NULL, where it is not known. */
static void note_place(struct gt_recorder *rec, const struct gt_launch *launch,
		       const struct gt_gpu_op *op)
{
	for (size_t i = 0; i < rec->window_count; i++) {
		struct gt_window *window = rec->windows[i];

		if (launch && launch->step_number <= window->last_step)
			window->behind_now_ns = rec->now_ns;
		else if (op->kind == GT_GPU_KERNEL && /* copies can be ahead, on their stream */
			 (launch || is_later(window, op->correlation)))
			window->overtaken = true;
	}
}

static void give_up_orphan(struct gt_recorder *rec, const struct gt_orphan *orphan);

static void adopt_orphans(struct gt_recorder *rec, struct gt_launch *launch)
{
	struct gt_window *window = gt_windows_by_id(rec, launch->window);
	uint32_t correlation = launch->entry.correlation;
	struct gt_orphan *orphan;

	while ((orphan = gt_ring_find(&rec->orphans, correlation))) {
		bool stale = window && is_stale(&orphan->record, launch);

		if (stale)
			give_up_orphan(rec, orphan); /* which skips what is unlinked */
		gt_ring_unlink(&rec->orphans, orphan);
		if (stale)
			continue;
		note_place(rec, launch, &orphan->record.op);
		if (window)
			match(rec, window, launch, &orphan->record);
		else
			note_work(launch, &orphan->record);
	}
}

void gt_rec_launch(struct gt_recorder *rec, const struct gt_launch *from)
{
	struct gt_window *window = gt_windows_by_id(rec, from->window);
	struct gt_launch *launch = make_room(rec, from->entry.correlation);
	struct gt_ring_entry entry;

	if (!launch) {
		if (window) {
			window->launches_without_gpu++;
			gt_window_call(rec, window, from, false, false);
		}
		return;
	}
	entry = launch->entry;
	*launch = *from;
	launch->entry = entry;
	gt_range_hold(launch->range);
	gt_range_hold(launch->step);
	if (window && (!window->launched++ || is_newer(entry.correlation, window->newest)))
		window->newest = entry.correlation;
	if (window && launch->graph)
		window->graphs++;
	else if (window && !launch->worked)
		window->waiting++;
	adopt_orphans(rec, launch);
}

void gt_rec_write_calls(struct gt_recorder *rec, uint64_t pos)
{
	for (pos = GT_MAX(pos, rec->launches.tail); pos < rec->launches.head; pos++) {
		struct gt_launch *launch = gt_ring_at(&rec->launches, pos);
		struct gt_window *window = gt_windows_by_id(rec, launch->window);

		if (!window || !launch->worked || launch->untimed || launch->written)
			continue;
		gt_window_call(rec, window, launch, false, false);
		launch->written = true;
		let_go(rec, launch);
	}
}

/* ---- GPU records without a launch ---- */

void gt_rec_heard(struct gt_recorder *rec, uint32_t correlation)
{
	uint64_t cycle = rec->cached_cycle;
	struct gt_window *window = cycle < GT_WHOLE_ID ? gt_windows_by_id(rec, (uint32_t)cycle)
						       : NULL;
	struct gt_heard *heard = window ? &window->heard
					: &rec->heard[cycle % ARRAY_SIZE(rec->heard)];

	if (rec->whole_mode || !rec->cached_armed)
		return;
	if (!heard->any || heard->cycle != cycle)
		*heard = (struct gt_heard){ cycle, correlation, true };
	else if (is_newer(heard->oldest, correlation))
		heard->oldest = correlation;
}

/* Was this launched before the target switched on for this window? */
static bool is_older(const struct gt_window *window, const struct gt_orphan *orphan)
{
	return window->heard.any && is_newer(window->heard.oldest, orphan->record.op.correlation);
}

/* Nobody will call for it any more. Work of a window counts, other work is none of ours. */
static void give_up_orphan(struct gt_recorder *rec, const struct gt_orphan *orphan)
{
	struct gt_window *window;

	if (!orphan->entry.linked || orphan->record.type != GT_RECORD_GPU)
		return;
	window = gt_windows_of_time(rec, orphan->record.op.start_ns);
	if (!window || is_older(window, orphan))
		return;
	window->gpu_without_launch++;
	gt_window_gpu(rec, window, &orphan->record.op, NULL);
}

static void keep_orphan(struct gt_recorder *rec, const struct gt_record *record)
{
	struct gt_ring *ring = &rec->orphans;
	uint32_t correlation = record->op.correlation;
	struct gt_orphan *orphan = gt_ring_push(ring, correlation), *oldest;

	while (!orphan) {
		oldest = ring->cap ? gt_ring_at(ring, ring->tail) : NULL;
		if (!oldest ||
		    (oldest->entry.linked && gt_windows_of_time(rec, oldest->record.op.start_ns)))
			if (!gt_ring_grow(ring))
				oldest = NULL;
		if (oldest) {
			give_up_orphan(rec, oldest);
			gt_ring_drop(ring);
		} else if (!ring->cap) {
			return;
		}
		orphan = gt_ring_push(ring, correlation);
	}
	orphan->record = *record;
}

void gt_rec_gpu(struct gt_recorder *rec, const struct gt_record *record)
{
	struct gt_launch *launch = gt_ring_find(&rec->launches, record->op.correlation);
	struct gt_window *window;

	rec->gpu_ops++;
	note_stream(rec, &record->op);
	if (record->type == GT_RECORD_GPU && record->op.kind == GT_GPU_KERNEL)
		rec->newest_kernel_ns = GT_MAX(rec->newest_kernel_ns, record->op.start_ns);
	note_place(rec, launch, &record->op);
	if (!launch) {
		keep_orphan(rec, record);
		return;
	}
	window = gt_windows_by_id(rec, launch->window);
	if (window)
		match(rec, window, launch, record);
	else
		note_work(launch, record);
	if (!window && launch->window != GT_WINDOW_NONE)
		rec->late_records++;
}

/* ---- windows end ---- */

static bool has_orphans(const struct gt_recorder *rec, const struct gt_window *window)
{
	uint64_t pos;

	for (pos = rec->orphans.tail; pos < rec->orphans.head; pos++) {
		const struct gt_orphan *orphan = gt_ring_at(&rec->orphans, pos);
		uint64_t start_ns = orphan->record.op.start_ns;

		if (orphan->entry.linked && orphan->record.type == GT_RECORD_GPU &&
		    start_ns >= window->start_ns && start_ns < window->end_ns &&
		    !is_older(window, orphan))
			return true;
	}
	return false;
}

static bool is_quiet(const struct gt_recorder *rec, const struct gt_window *window,
		     const struct gt_launch *launch)
{
	return launch->worked && gt_sub(rec->now_ns, window->behind_now_ns) >= GRAPH_QUIET_NS;
}

bool gt_rec_settled(const struct gt_recorder *rec, const struct gt_window *window,
		    bool wait_for_launches)
{
	uint64_t pos;

	if (window->waiting)
		return false;
	for (pos = rec->launches.tail; window->graphs && pos < rec->launches.head; pos++) {
		const struct gt_launch *launch = gt_ring_at(&rec->launches, pos);

		if (launch->window == window->id && launch->graph && !has_all(rec, launch) &&
		    (wait_for_launches || !is_quiet(rec, window, launch)))
			return false;
	}
	return !wait_for_launches || !has_orphans(rec, window);
}

/* May GPU work of this time be of an older window, which still waits for its launches? */
static bool is_of_older(const struct gt_recorder *rec, const struct gt_window *window,
			uint64_t start_ns)
{
	size_t i;

	for (i = 0; rec->windows[i] != window; i++)
		if (rec->windows[i]->start_ns <= start_ns)
			return true;
	return false;
}

void gt_rec_give_up(struct gt_recorder *rec, struct gt_window *window)
{
	uint64_t pos;

	for (pos = rec->launches.tail; pos < rec->launches.head; pos++) {
		struct gt_launch *launch = gt_ring_at(&rec->launches, pos);

		if (launch->window == window->id)
			conclude(rec, launch);
	}
	for (pos = rec->orphans.tail; pos < rec->orphans.head; pos++) {
		struct gt_orphan *orphan = gt_ring_at(&rec->orphans, pos);
		uint64_t start_ns = orphan->record.op.start_ns;

		if (start_ns >= window->end_ns)
			continue;
		if (start_ns >= window->start_ns)
			give_up_orphan(rec, orphan);
		else if (is_of_older(rec, window, start_ns))
			continue;
		gt_ring_unlink(&rec->orphans, orphan);
	}
}

void gt_rec_forget(struct gt_recorder *rec)
{
	uint64_t step = UINT64_MAX;
	size_t i;

	for (i = 0; i < rec->window_count; i++)
		step = GT_MIN(step, rec->windows[i]->since_step);
	while (rec->launches.tail < rec->launches.head) {
		struct gt_launch *launch = gt_ring_at(&rec->launches, rec->launches.tail);

		if (launch->step_number >= step || gt_windows_by_id(rec, launch->window))
			return;
		gt_ring_drop(&rec->launches);
	}
}

uint64_t gt_rec_oldest_waiting_ns(const struct gt_recorder *rec)
{
	uint64_t pos;

	for (pos = rec->launches.tail; pos < rec->launches.head; pos++) {
		const struct gt_launch *launch = gt_ring_at(&rec->launches, pos);

		if (is_needed(rec, launch))
			return launch->start_ns;
	}
	return UINT64_MAX;
}
