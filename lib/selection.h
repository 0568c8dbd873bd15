/*
 * selection.h - which events belong to a part of a trace: some steps, a span of time, a GPU, a
 * stream, categories.
 *
 * Slices of the host are taken whole when they reach into the span. GPU work belongs to the span of
 * its launch, wherever it ran, and arrows to their ends: what is linked in the trace stays linked,
 * and no arrow loses an end. Slices in two events are taken whole, too.
 */
#ifndef GT_SELECTION_H
#define GT_SELECTION_H

#include "base.h"
#include "err.h"
#include "event_pairs.h"
#include "id_map.h"
#include "trace_reader.h"

struct gt_choice { /* { 0 } but for device is everything */
	bool has_steps;
	int64_t first_step; /* ProfilerStep#N */
	int64_t last_step;  /* included */
	bool has_time;
	int64_t from_ns; /* since the first slice of the trace */
	int64_t to_ns;
	int64_t device; /* of GPU work; -1: all */
	bool has_stream;
	int64_t stream;         /* of GPU work */
	const char *categories; /* "kernel,cuda_runtime"; NULL: all */
};

struct gt_selection {
	const struct gt_choice *choice;
	bool has_span;
	int64_t from_ns;
	int64_t to_ns;
	/* the first reading */
	int64_t first_ns;
	int64_t last_ns;
	int64_t lowest_step;
	int64_t highest_step;
	/* the second */
	struct gt_id_map correlations;
	struct gt_id_map annotations; /* by External id */
	struct gt_id_map arrows;      /* by a hash of category and id */
	struct gt_event_pairs pairs;
	bool saw_work;          /* where it is wanted */
	uint64_t categories;    /* bit n: there are events of gt_trace_cat n */
	uint64_t names_seen;    /* bit n: of the nth of choice->categories */
	uint64_t other_devices; /* bit n: GPU n has work that is not wanted */
};

/* choice is borrowed. Free it with gt_selection_release(). */
void gt_selection_init(struct gt_selection *selection, const struct gt_choice *choice);

/*
 * Find what belongs to the choice: the trace at path is read, twice when there are steps or a time.
 * A choice of GPUs, streams and categories needs it for the arrows alone. -ENODATA: it has no such
 * step or time; otherwise as gt_gz_open() and gt_trace_read().
 */
int gt_selection_find(struct gt_selection *selection, const char *path, struct gt_err *err);

bool gt_selection_takes(struct gt_selection *selection, const struct gt_trace_event *event);

/*
 * After a reading: -ENODATA when there is no work of the GPU or stream that was chosen, or no event
 * of a category.
 */
int gt_selection_check(const struct gt_selection *selection, struct gt_err *err);

void gt_selection_release(struct gt_selection *selection);

#endif
