/*
 * summary_by.c - collects what only one table needs, when it is asked for: categories, streams,
 * threads, and where calls block the host.
 */
#include "base.h"
#include "host_call.h"
#include "summary.h"
#include "summary_priv.h"

#include <stdlib.h>

static int add_category(struct gt_summary *summary, const struct gt_trace_event *event,
			uint64_t dur_ns)
{
	bool is_new;
	struct gt_summary_stat *row =
		gt_summary_row(&summary->categories, event->cat_text, &is_new);

	if (!row)
		return -ENOMEM;
	gt_summary_add_call(row, dur_ns);
	return 0;
}

/* ---- streams and threads --------------------------------------------------------------------- */

static struct gt_summary_track *find_track(struct gt_summary_tracks *tracks, struct gt_str name)
{
	uint32_t number = gt_intern(&tracks->names, name);
	struct gt_summary_track *rows;

	if (number == GT_INTERN_FAILED)
		return NULL;
	if (number >= tracks->cap) {
		uint32_t cap = tracks->cap ? tracks->cap * 2 : 16;

		rows = realloc(tracks->rows, cap * sizeof(*rows));
		if (!rows)
			return NULL;
		memset(rows + tracks->cap, 0, (cap - tracks->cap) * sizeof(*rows));
		tracks->rows = rows;
		tracks->cap = cap;
	}
	return &tracks->rows[number];
}

static void put_id(struct gt_buf *text, const struct gt_trace_id *id)
{
	if (id->text.ptr)
		gt_buf_append(text, id->text.ptr, id->text.len);
	else
		gt_buf_printf(text, "%lld", (long long)id->number);
}

/* NULL: out of memory. */
static struct gt_summary_track *track_of(struct gt_summary *summary,
					 const struct gt_trace_event *event)
{
	struct gt_summary_track *track = NULL;
	struct gt_buf name = { 0 };

	if (summary->by == GT_SUMMARY_BY_STREAM) {
		gt_buf_printf(&name, "GPU %lld stream %lld",
			      (long long)gt_trace_event_device(event),
			      (long long)gt_trace_event_stream(event));
	} else {
		gt_buf_text(&name, "process ");
		put_id(&name, &event->pid);
		gt_buf_text(&name, " thread ");
		put_id(&name, &event->tid);
	}
	if (!name.failed)
		track = find_track(&summary->tracks, gt_buf_str(&name));
	gt_buf_release(&name);
	return track;
}

static int add_slice(struct gt_summary *summary, const struct gt_trace_event *event,
		     uint64_t dur_ns, const bool parts[GT_TRACK_PARTS])
{
	struct gt_summary_track *track = track_of(summary, event);
	int64_t start_ns = gt_summary_clamp(event->ts_ns);

	if (!track)
		return -ENOMEM;
	track->slices++;
	for (size_t i = 0; i < GT_TRACK_PARTS; i++) {
		if (parts[i])
			track->parts_ns[i] = gt_summary_add_sat(track->parts_ns[i], dur_ns);
	}
	return gt_intervals_add(&track->busy, start_ns, start_ns + (int64_t)dur_ns);
}

static int add_to_stream(struct gt_summary *summary, const struct gt_trace_event *event,
			 uint64_t dur_ns)
{
	bool is_copy = event->cat == GT_CAT_MEMCPY;
	bool is_comm = !is_copy && gt_summary_is_communication(event->name);

	if (event->cat != GT_CAT_KERNEL && !is_copy && event->cat != GT_CAT_MEMSET)
		return 0;
	return add_slice(summary, event, dur_ns,
			 (const bool[]){ !is_copy && !is_comm, is_comm, is_copy });
}

static int add_to_thread(struct gt_summary *summary, const struct gt_trace_event *event,
			 uint64_t dur_ns)
{
	bool is_call = event->cat == GT_CAT_RUNTIME || event->cat == GT_CAT_DRIVER;

	switch (event->cat) {
	case GT_CAT_CPU_OP:
	case GT_CAT_ANNOTATION:
	case GT_CAT_RUNTIME:
	case GT_CAT_DRIVER:
	case GT_CAT_PYTHON:
	case GT_CAT_OVERHEAD:
		return add_slice(summary, event, dur_ns,
				 (const bool[GT_TRACK_PARTS]){
					 is_call, is_call && gt_call_blocks_host(event->name) });
	default:
		return 0;
	}
}

static int name_thread(struct gt_summary *summary, const struct gt_trace_event *event)
{
	struct gt_str name = gt_trace_event_arg(event, GT_STR("\"name\""));
	struct gt_summary_track *track;

	if (!gt_json_unquote(name).len || !gt_str_equal(event->name, GT_STR("thread_name")))
		return 0;
	track = track_of(summary, event);
	if (!track)
		return -ENOMEM;
	track->label.len = 0;
	return gt_json_put_text(&track->label, name);
}

/* ---- all of it ------------------------------------------------------------------------------- */

int gt_summary_add_by(struct gt_summary *summary, const struct gt_trace_event *event)
{
	uint64_t dur_ns = (uint64_t)GT_MAX(gt_summary_clamp(event->dur_ns), 0);

	if (event->phase == 'M' && summary->by == GT_SUMMARY_BY_THREAD)
		return name_thread(summary, event);
	if (event->phase != 'X')
		return 0;
	switch (summary->by) {
	case GT_SUMMARY_BY_CATEGORY:
		return add_category(summary, event, dur_ns);
	case GT_SUMMARY_BY_STREAM:
		return add_to_stream(summary, event, dur_ns);
	case GT_SUMMARY_BY_THREAD:
		return add_to_thread(summary, event, dur_ns);
	default:
		return 0;
	}
}

int gt_summary_add_blocking(void *context, const struct gt_op_slice *slice, int64_t op)
{
	struct gt_summary *summary = context;
	const struct gt_ops *ops = &summary->ops;
	struct gt_str call = gt_interned(&ops->names, ops->rows[slice->row].name);
	struct gt_summary_stat *row = NULL;
	struct gt_buf name = { 0 };
	bool is_new;

	if (!gt_call_blocks_host(call))
		return 0;
	gt_buf_append(&name, call.ptr, call.len);
	if (op >= 0) {
		struct gt_str op_name = gt_interned(&ops->names, (uint32_t)op);

		gt_buf_text(&name, " < ");
		gt_buf_append(&name, op_name.ptr, op_name.len);
	}
	if (!name.failed)
		row = gt_summary_row(&summary->blocking, gt_buf_str(&name), &is_new);
	gt_buf_release(&name);
	if (!row)
		return -ENOMEM;
	gt_summary_add_call(row, (uint64_t)(slice->end_ns - slice->start_ns));
	return 0;
}

void gt_summary_finish_by(struct gt_summary *summary)
{
	for (uint32_t i = 0; i < summary->tracks.names.count; i++) {
		struct gt_summary_track *track = &summary->tracks.rows[i];
		const struct gt_intervals *busy = &track->busy;

		gt_intervals_merge(&track->busy);
		track->busy_ns = gt_intervals_union_ns(&busy, 1);
	}
}

void gt_summary_release_by(struct gt_summary *summary)
{
	for (uint32_t i = 0; i < summary->tracks.cap; i++) {
		gt_intervals_release(&summary->tracks.rows[i].busy);
		gt_buf_release(&summary->tracks.rows[i].label);
	}
	free(summary->tracks.rows);
	gt_interner_release(&summary->tracks.names);
}
