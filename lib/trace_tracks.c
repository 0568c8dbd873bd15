/*
 * Which lane (tid) a slice goes to, and how the lanes are called.
 */
#include "hash.h"
#include "trace_priv.h"

#include <stdlib.h>

#define TRACKS_MAX 65536 /* more only come from a peer that makes them up: they get no lanes */

static uint64_t track_key(enum gt_track_kind kind, uint32_t device, uint32_t id)
{
	return (uint64_t)kind << 48 | (uint64_t)device << 32 | id;
}

static struct gt_trace_track *track_slot(struct gt_trace_track *tracks, uint32_t cap, uint64_t key)
{
	uint32_t at = (uint32_t)(key * GT_HASH_FACTOR >> 32) & (cap - 1);

	while (tracks[at].key && tracks[at].key != key)
		at = (at + 1) & (cap - 1);
	return &tracks[at];
}

static int tracks_grow(struct gt_trace *trace)
{
	uint32_t cap = trace->track_cap ? trace->track_cap * 2 : 64, i;
	struct gt_trace_track *tracks = calloc(cap, sizeof(*tracks));

	if (!tracks)
		return -ENOMEM;
	for (i = 0; i < trace->track_cap; i++) {
		if (trace->tracks[i].key)
			*track_slot(tracks, cap, trace->tracks[i].key) = trace->tracks[i];
	}
	free(trace->tracks);
	trace->tracks = tracks;
	trace->track_cap = cap;
	return 0;
}

/* NULL: there are too many, or no memory. */
static struct gt_trace_track *track_get(struct gt_trace *trace, enum gt_track_kind kind,
					uint32_t device, uint32_t id)
{
	uint64_t key = track_key(kind, device, id);
	struct gt_trace_track *track = NULL;

	if (trace->track_cap) {
		track = track_slot(trace->tracks, trace->track_cap, key);
		if (track->key)
			return track;
	}
	if (trace->track_count >= TRACKS_MAX)
		return NULL;
	if (trace->track_count >= trace->track_cap / 2) {
		if (tracks_grow(trace))
			return NULL;
		track = track_slot(trace->tracks, trace->track_cap, key);
	}
	trace->track_count++;
	track->key = key;
	track->rows.rule = kind == GT_TRACK_STREAM ? GT_LANE_DISJOINT : GT_LANE_NESTED;
	track->first_tid = id;
	if (kind == GT_TRACK_STREAM) {
		track->stride = GT_TRACE_STREAM_STRIDE;
	} else if (kind == GT_TRACK_THREAD) {
		track->stride = GT_TRACE_THREAD_STRIDE;
	} else {
		track->stride = 1;
		track->first_tid =
			GT_TRACE_GPU_RANGE_BASE +
			GT_LANE_ROWS_MAX * (trace->gpu_range_tracks++ % GT_TRACE_GPU_RANGE_TRACKS);
	}
	return track;
}

static uint32_t lane_tid(const struct gt_trace_track *track, uint32_t row)
{
	uint64_t tid = track->first_tid + (uint64_t)track->stride * row;

	return tid <= UINT32_MAX ? (uint32_t)tid : track->first_tid;
}

static void name_stream(struct gt_trace *trace, uint32_t device, uint32_t stream, uint32_t row,
			uint32_t tid)
{
	char name[64];

	if (row)
		snprintf(name, sizeof(name), "stream %u overflow %u", stream, row);
	else
		snprintf(name, sizeof(name), "stream %u ", stream);
	gt_trace_name_thread(trace, device, tid, gt_str_of(name), stream);
}

static void name_thread(struct gt_trace *trace, uint32_t thread, uint32_t row, uint32_t tid)
{
	char name[96];

	if (row)
		snprintf(name, sizeof(name), "thread %u ranges %u", thread, row);
	else if (thread == trace->real_pid && trace->comm[0])
		snprintf(name, sizeof(name), "thread %u (%s)", thread, trace->comm);
	else
		snprintf(name, sizeof(name), "thread %u", thread);
	gt_trace_name_thread(trace, trace->pid, tid, gt_str_of(name), thread);
}

/* Ranges and steps on a GPU stand above its streams. */
static void name_gpu_range(struct gt_trace *trace, bool steps, uint32_t device, uint32_t thread,
			   uint32_t tid)
{
	char name[64];

	snprintf(name, sizeof(name), "%s of thread %u", steps ? "steps" : "ranges", thread);
	gt_trace_name_thread(trace, device, tid, gt_str_of(name), steps ? -2 : -1);
}

static void name_lane(struct gt_trace *trace, enum gt_track_kind kind, uint32_t device, uint32_t id,
		      uint32_t row, uint32_t tid)
{
	if (kind == GT_TRACK_STREAM)
		name_stream(trace, device, id, row, tid);
	else if (kind == GT_TRACK_THREAD)
		name_thread(trace, id, row, tid);
	else
		name_gpu_range(trace, kind == GT_TRACK_GPU_STEP, device, id, tid);
}

uint32_t gt_trace_lane(struct gt_trace *trace, enum gt_track_kind kind, uint32_t device,
		       uint32_t id, uint32_t first, uint64_t start_ns, uint64_t end_ns)
{
	struct gt_trace_track *track = track_get(trace, kind, device, id);
	uint32_t row;

	if (!track)
		return kind == GT_TRACK_STREAM || kind == GT_TRACK_THREAD ? id
									  : GT_TRACE_GPU_RANGE_BASE;
	row = gt_track_place(&track->rows, &trace->pool, first, start_ns, end_ns);
	for (; track->named_rows <= row; track->named_rows++) {
		if (kind != GT_TRACK_THREAD)
			gt_trace_use_device(trace, device);
		name_lane(trace, kind, device, id, track->named_rows,
			  lane_tid(track, track->named_rows));
	}
	return lane_tid(track, row);
}

void gt_trace_tracks_release(struct gt_trace *trace)
{
	uint32_t i;

	for (i = 0; i < trace->track_cap; i++)
		gt_track_release(&trace->tracks[i].rows, &trace->pool);
	free(trace->tracks);
	trace->tracks = NULL;
}
