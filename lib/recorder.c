#include "base.h"
#include "rec_state.h"

#include <stdlib.h>
#include <unistd.h>

/* CUPTI chunks of one drain: what a worker thread reads and writes in a third of a second. */
#define CHUNKS_PER_DRAIN 256
/* So far back the system's clock may be set while the process runs. */
#define CLOCK_SET_NS (3600 * GT_NSEC_PER_SEC)
/* Launches that wait, above which GPU records are read before more events are. */
#define LAUNCHES_ENOUGH (GT_LAUNCHES_MAX / 2)
/* GPU records that wait for their launches, above which events are read first. */
#define ORPHANS_ENOUGH (GT_ORPHANS_MAX / 2)

/* ---- life ---- */

static void on_range(void *ctx, const struct gt_range *range)
{
	struct gt_recorder *rec = ctx;
	struct gt_window *window = gt_windows_by_id(rec, range->window);

	if (!window)
		return;
	gt_windows_find_end(rec, window);
	if (range->op) {
		gt_rec_stack_end(rec, range);
		gt_window_op(rec, window, range);
	} else if (range->end_ns >= window->start_ns) {
		gt_window_range(rec, window, range);
	}
}

static void on_spans(void *ctx, const struct gt_range *range)
{
	struct gt_recorder *rec = ctx;
	struct gt_window *window = gt_windows_by_id(rec, range->window);

	if (window)
		gt_window_spans(rec, window, range);
}

int gt_recorder_new(struct gt_recorder **ret, int arena_fd, const struct gt_msg_hello *hello,
		    const struct gt_recorder_config *config, struct gt_err *err)
{
	struct gt_recorder *rec = calloc(1, sizeof(*rec));
	size_t i;
	int rc;

	if (!rec) {
		close(arena_fd);
		return gt_err_sys(err, -ENOMEM, "cannot record the process");
	}
	rc = gt_arena_open(&rec->arena, arena_fd, hello->arena_bytes, err);
	if (rc < 0)
		goto fail;
	for (i = 0; i < ARRAY_SIZE(rec->chunks); i++) {
		enum gt_pool pool = i == GT_LIST_RECORDS ? GT_POOL_CUPTI : GT_POOL_EVENT;

		rec->chunks[i] =
			calloc(gt_arena_count(rec->arena, pool) + 1u, sizeof(*rec->chunks[i]));
		if (!rec->chunks[i]) {
			rc = gt_err_sys(err, -ENOMEM, "cannot record the process");
			goto fail;
		}
	}
	rec->config = *config;
	rec->hello = *hello;
	rec->hello.comm[sizeof(rec->hello.comm) - 1] = '\0';
	rec->hello.python[sizeof(rec->hello.python) - 1] = '\0';
	rec->hello.torch[sizeof(rec->hello.torch) - 1] = '\0';
	gt_record_sizes(rec->record_bytes, hello->record_bytes);
	rec->launches = (struct gt_ring)GT_RING(struct gt_launch, GT_LAUNCHES_MAX);
	rec->orphans = (struct gt_ring)GT_RING(struct gt_orphan, GT_ORPHANS_MAX);
	rec->ranges.sink = (struct gt_range_sink){
		.range = on_range,
		.spans = on_spans,
		.ctx = rec,
	};
	*ret = rec;
	return 0;
fail:
	gt_recorder_free(rec);
	return rc;
}

void gt_recorder_free(struct gt_recorder *rec)
{
	uint64_t pos;
	size_t i, j;

	if (!rec)
		return;
	for (pos = rec->launches.tail; pos < rec->launches.head; pos++) {
		struct gt_launch *launch = gt_ring_at(&rec->launches, pos);

		gt_ranges_unhold(&rec->ranges, launch->range);
		gt_ranges_unhold(&rec->ranges, launch->step);
	}
	for (i = 0; i < rec->window_count; i++)
		for (j = 0; j < rec->windows[i]->step_count; j++)
			gt_ranges_unhold(&rec->ranges, rec->windows[i]->steps[j]);
	gt_range_history_release(&rec->history, &rec->ranges);
	gt_ranges_release(&rec->ranges);
	gt_nccl_release(&rec->nccl);
	for (i = 0; i < rec->window_count; i++)
		gt_window_free(rec->windows[i]);
	for (i = 0; i < ARRAY_SIZE(rec->chunks); i++)
		free(rec->chunks[i]);
	gt_ring_release(&rec->launches);
	gt_ring_release(&rec->orphans);
	gt_names_release(&rec->names);
	gt_stacks_release(&rec->stacks);
	gt_buf_release(&rec->text);
	gt_buf_release(&rec->calls.text);
	gt_buf_release(&rec->modules.text);
	gt_map_release(&rec->pointers);
	gt_map_release(&rec->thread_names);
	gt_map_release(&rec->api_names);
	gt_map_release(&rec->api_classes);
	gt_map_release(&rec->stream_newest);
	gt_arena_close(rec->arena);
	free(rec->whole_path);
	free(rec->closed);
	free(rec);
}

/* ---- messages ---- */

void gt_recorder_phase(struct gt_recorder *rec, const struct gt_msg_phase *phase)
{
	switch (phase->what) {
	case GT_WHAT_ATTACHED:
		rec->hello.cupti_version = phase->cupti_version;
		rec->hello.driver_version = phase->driver_version;
		rec->hello.runtime_version = phase->runtime_version;
		gt_record_sizes(rec->record_bytes, phase->record_bytes);
		break;
	case GT_WHAT_FALLBACK:
		gt_rec_fall_back(rec, phase->time_ns);
		break;
	case GT_WHAT_CALLBACKS:
		rec->callbacks_ns = phase->time_ns;
		break;
	case GT_WHAT_NO_CUPTI:
		rec->no_cupti = true;
		break;
	default:
		gt_windows_phase(rec, phase);
	}
}

void gt_recorder_rank(struct gt_recorder *rec, const struct gt_msg_rank *rank)
{
	rec->hello.rank = rank->rank;
	rec->hello.world_size = rank->world_size;
	rec->hello.rank_source = (uint8_t)rank->rank_source;
}

void gt_recorder_device(struct gt_recorder *rec, const struct gt_msg_device *device)
{
	size_t i;

	if (device->id >= GT_DEVICES_KEPT) /* pids of files below that are GPUs */
		return;
	for (i = 0; i < rec->device_count && rec->devices[i].id != device->id; i++)
		;
	rec->devices[i] = *device;
	rec->devices[i].name[sizeof(device->name) - 1] = '\0';
	rec->device_count = GT_MAX(rec->device_count, i + 1);
	for (size_t w = 0; w < rec->window_count; w++)
		gt_window_device(rec, rec->windows[w], &rec->devices[i]);
}

/* ---- plans ---- */

void gt_recorder_hold(struct gt_recorder *rec, const struct gt_plan *plan)
{
	rec->held = *plan;
}

void gt_recorder_decide(struct gt_recorder *rec, bool commit)
{
	if (commit)
		gt_plans_add(&rec->plans, &rec->held);
	rec->held.active = 0;
	rec->cached_valid = false;
}

const struct gt_plans *gt_recorder_plans(const struct gt_recorder *rec)
{
	return &rec->plans;
}

uint32_t gt_recorder_step(const struct gt_recorder *rec)
{
	return gt_arena_step(rec->arena);
}

bool gt_recorder_has_ended(const struct gt_recorder *rec)
{
	return gt_arena_has_ended(rec->arena);
}

void gt_recorder_stop(struct gt_recorder *rec, const char *by, uint64_t now_ns)
{
	atomic_store(&rec->stopped_ns, now_ns);
	atomic_store(&rec->stopped_step, gt_arena_step(rec->arena));
	atomic_store(&rec->stopped_by, by);
}

void gt_recorder_wake(const struct gt_recorder *rec)
{
	gt_arena_wake(rec->arena);
}

/* ---- reading ---- */

static void flush_windows(struct gt_recorder *rec, bool due)
{
	size_t i;

	for (i = 0; i < rec->window_count; i++)
		gt_window_flush(rec, rec->windows[i], due);
}

static void read_names(struct gt_recorder *rec)
{
	struct gt_arena_chunk *chunks = rec->chunks[GT_LIST_NAMES];
	size_t i, count = gt_arena_list(rec->arena, GT_POOL_EVENT, true, chunks);

	for (i = 0; i < count; i++) {
		struct gt_event_cursor cur;
		const struct gt_ev *ev;
		int rc;

		gt_arena_events(rec->arena, &chunks[i], GT_PASS_NAMES, &cur);
		while ((rc = gt_event_next(&cur, &ev)) > 0)
			gt_rec_name(rec, chunks[i].tid, ev);
		/* The events pass will meet the same place, and count it. */
	}
}

/* Is there anything behind the last record? CUPTI ends a buffer where its records end. */
static bool has_rest(const struct gt_record_cursor *cur)
{
	const unsigned char *pos = cur->pos;

	while (pos < cur->end && !*pos)
		pos++;
	return pos < cur->end;
}

/*
 * A tool of the program's own can give CUPTI a clock at any time: the processor's ticks, or one
 * that began with the system. By all of these the work was done long before the process began.
 */
static bool is_of_another_clock(const struct gt_recorder *rec, const struct gt_gpu_op *op)
{
	return op->start_ns < gt_sub(rec->hello.realtime_ns, CLOCK_SET_NS);
}

/* One pass for calls of the fall-back mode, if it is one, and one for GPU work. */
static void read_records(struct gt_recorder *rec, const struct gt_arena_chunk *chunk, bool calls)
{
	struct gt_record_cursor cur = {
		.pos = gt_arena_bytes(rec->arena, GT_POOL_CUPTI, chunk),
		.record_bytes = rec->record_bytes,
	};
	struct gt_record record;
	int rc;

	/* A chunk that is not DONE is one of a process that is gone, or told to stop: it ends where
	 * its records do. */
	cur.end = cur.pos + (chunk->done ? chunk->used_bytes : GT_CUPTI_CHUNK);
	while ((rc = gt_record_next(&cur, &record)) > 0) {
		if (record.type == GT_RECORD_GPU && is_of_another_clock(rec, &record.op))
			record.type = GT_RECORD_UNTIMED;
		/* In a buffer that CUPTI holds, that is work in flight. */
		if (record.type == GT_RECORD_UNTIMED && !chunk->done)
			record.type = GT_RECORD_RUNNING;
		if (calls && record.type == GT_RECORD_API)
			gt_rec_api(rec, &record.api);
		else if (!calls &&
			 (record.type == GT_RECORD_GPU || record.type == GT_RECORD_UNTIMED))
			gt_rec_gpu(rec, &record);
	}
	/* A hole, which zeros of one that was never written are, hides what follows. */
	rec->bad_records += !calls && (rc < 0 || (chunk->done && has_rest(&cur)));
}

struct record_chunks { /* of one drain, in order */
	struct gt_arena_chunk *chunks;
	size_t count;
	size_t next;
};

static void read_next_records(struct gt_recorder *rec, struct record_chunks *records)
{
	struct gt_arena_chunk *chunk = &records->chunks[records->next++];

	read_records(rec, chunk, false);
	if (chunk->done)
		gt_arena_free_chunk(rec->arena, GT_POOL_CUPTI, chunk);
	flush_windows(rec, false);
}

static void read_calls(struct gt_recorder *rec, const struct record_chunks *records)
{
	uint64_t pos = rec->launches.head;
	size_t i;

	for (i = records->next; i < records->count; i++)
		read_records(rec, &records->chunks[i], true);
	gt_rec_write_calls(rec, pos);
}

/*
 * Are GPU records to be read before more events are? A long recording is read at once, and its
 * launches must not pile up; nor the windows of a collector that is late. In the fall-back mode
 * they do not come from events, and records are calls, which are read later.
 */
static bool is_full(const struct gt_recorder *rec)
{
	bool room = rec->orphans.head - rec->orphans.tail < ORPHANS_ENOUGH;
	bool fallback = rec->fallback && !rec->callbacks_ns;

	return !fallback && ((rec->window_count == GT_WINDOWS_MAX && room) ||
			     rec->launches.head - rec->launches.tail > LAUNCHES_ENOUGH);
}

static void read_events(struct gt_recorder *rec, struct gt_arena_chunk *chunks, size_t count,
			struct record_chunks *records)
{
	size_t i;

	rec->one_thread = true;
	for (i = 1; i < count; i++)
		rec->one_thread &= chunks[i].tid == chunks[0].tid;
	for (i = 0; i < count; i++) {
		struct gt_event_cursor cur;
		const struct gt_ev *ev;
		int rc;

		gt_arena_events(rec->arena, &chunks[i], GT_PASS_EVENTS, &cur);
		while ((rc = gt_event_next(&cur, &ev)) > 0) {
			while (records->next < records->count && is_full(rec))
				read_next_records(rec, records);
			gt_rec_event(rec, chunks[i].tid, ev);
		}
		if (rc < 0) {
			rec->bad_records++;
			gt_arena_spoil(rec->arena, &chunks[i]);
		}
		if (gt_arena_consumed(rec->arena, &chunks[i], GT_PASS_NAMES) &&
		    gt_arena_consumed(rec->arena, &chunks[i], GT_PASS_EVENTS))
			gt_arena_free_chunk(rec->arena, GT_POOL_EVENT, &chunks[i]);
	}
}

/* The sizes of records come with a message, which the first of them may overtake: they wait. */
static bool knows_records(const struct gt_recorder *rec)
{
	static const uint16_t nothing[GT_KIND_MAX];

	return memcmp(rec->record_bytes, nothing, sizeof(nothing)) != 0;
}

/*
 * Read what was listed, and behind it all names. So a record's names, and what an event refers to,
 * are known when it is read. false: nothing but names is, because of a plan.
 */
static bool read_arena(struct gt_recorder *rec)
{
	struct record_chunks records = { .chunks = rec->chunks[GT_LIST_RECORDS] };

	if (rec->gone || knows_records(rec))
		records.count = rec->chunk_counts[GT_LIST_RECORDS];
	rec->backlog = !rec->gone && records.count > CHUNKS_PER_DRAIN;
	if (rec->backlog)
		records.count = CHUNKS_PER_DRAIN;
	read_names(rec);
	if (rec->held.active && rec->step_limit >= gt_plan_begin(&rec->held))
		return false;
	read_events(rec, rec->chunks[GT_LIST_EVENTS], rec->chunk_counts[GT_LIST_EVENTS], &records);
	if (rec->fallback)
		read_calls(rec, &records);
	while (records.next < records.count)
		read_next_records(rec, &records);
	return true;
}

/* ---- drains ---- */

static void begin_drain(struct gt_recorder *rec, uint64_t now_ns)
{
	rec->now_ns = now_ns;
	rec->cached_valid = false;
	rec->closed_count = 0;
	rec->drained = false;
}

static void end_drain(struct gt_recorder *rec, struct gt_recorder_report *report)
{
	struct gt_sched_pos pos;

	gt_plans_at(gt_windows_schedule(rec), &rec->plans, rec->state.step, &pos);
	*report = (struct gt_recorder_report){
		.step = rec->state.step,
		.phase = pos.phase,
		.step_source = rec->state.step_source < GT_STEP_SOURCE_MAX
				       ? (enum gt_step_source)rec->state.step_source
				       : GT_STEP_NONE,
		.gpu_ops = rec->gpu_ops,
		.open_cycle = rec->window_count ? rec->windows[0]->number : 0,
		.closing = gt_windows_closing(rec),
		.drained = rec->drained,
		.drained_cycle = rec->drained_cycle,
		.late_calls = rec->late_calls,
		.late_records = rec->late_records,
		.closed = rec->closed,
		.closed_count = rec->closed_count,
	};
	if (rec->state.mode == GT_MODE_WHOLE)
		report->phase = GT_PHASE_ACTIVE;
	else if (rec->state.mode == GT_MODE_KEEP)
		report->phase = GT_PHASE_IDLE;
}

/* Does the arena keep its content, since no step was seen so far? Or which rule is it read by? */
static bool choose_mode(struct gt_recorder *rec)
{
	if (rec->state.mode == GT_MODE_KEEP && !rec->state.keep_full)
		return true;
	/* The first step is marked at this moment: what is listed may be of it, and no recording.
	 */
	if (rec->state.mode == GT_MODE_KEEP && rec->step_limit && !rec->gone)
		return true;
	if (rec->state.mode != GT_MODE_KEEP && rec->state.mode != GT_MODE_WHOLE) {
		rec->whole_mode = false;
		return false;
	}
	if (!rec->whole_mode)
		gt_windows_open_whole(rec);
	if (rec->whole && rec->state.mode == GT_MODE_KEEP)
		gt_windows_close_whole(rec);
	return false;
}

void gt_recorder_drain(struct gt_recorder *rec, uint64_t now_ns, bool flush_due,
		       struct gt_recorder_report *report)
{
	begin_drain(rec, now_ns);
	if (choose_mode(rec)) {
		read_names(rec);
		end_drain(rec, report);
		return;
	}
	gt_windows_hold(rec);
	if (read_arena(rec))
		gt_windows_advance(rec);
	flush_windows(rec, flush_due);
	end_drain(rec, report);
}

void gt_recorder_finish(struct gt_recorder *rec, enum gt_end end, uint64_t now_ns,
			struct gt_recorder_report *report)
{
	rec->gone = true;
	gt_recorder_look(rec);
	begin_drain(rec, now_ns);
	rec->held.active = 0; /* it did not live to see the decision */
	rec->ended = end == GT_END_ORDERLY;
	if (choose_mode(rec))
		gt_windows_open_whole(rec);
	gt_windows_hold(rec);
	read_arena(rec);
	gt_windows_advance(rec);
	gt_windows_finish(rec, end);
	end_drain(rec, report);
}
