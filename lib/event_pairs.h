/*
 * event_pairs.h - slices whose beginning and end are events of their own (phases B and E; b, n and
 * e; S, T, p and F): which events belong together, so that a part of a trace has both or none.
 *
 * The file is read twice. As viewers do, an end closes the innermost slice that is open on its
 * thread or, of those with an id, under its id, in the order of the file. Memory: a bit for each
 * beginning, and what is open at a time, both bounded.
 */
#ifndef GT_EVENT_PAIRS_H
#define GT_EVENT_PAIRS_H

#include "base.h"
#include "buf.h"
#include "id_map.h"
#include "trace_event.h"

struct gt_event_pairs {         /* { 0 } before the first reading */
	struct gt_id_map heads; /* of each thread or id: the innermost open slice */
	struct gt_buf open;     /* struct open_slice, in lists */
	uint32_t free;          /* the first one that is unused, plus 1 */
	uint64_t count;         /* of beginnings so far */
	struct gt_buf kept;     /* a bit for each of them */
	bool is_rereading;
};

struct gt_event_span {
	int64_t start_ns;
	int64_t end_ns;
};

bool gt_event_is_paired(const struct gt_trace_event *event);

/*
 * The first reading. is_wanted: of a beginning, whether its slice may be taken at all; it is taken
 * when it reaches into span, which begins with start_ns and does not hold end_ns. 0 or -ENOMEM.
 */
int gt_event_pairs_note(struct gt_event_pairs *pairs, const struct gt_trace_event *event,
			bool is_wanted, struct gt_event_span span);

/* It is over. What is open has no end and reaches up to that of the trace. */
void gt_event_pairs_reread(struct gt_event_pairs *pairs, struct gt_event_span span);

/*
 * The second reading: is the event to be taken? alone: what to say when it is part of no slice that
 * is known.
 */
bool gt_event_pairs_take(struct gt_event_pairs *pairs, const struct gt_trace_event *event,
			 bool alone);

void gt_event_pairs_release(struct gt_event_pairs *pairs);

#endif
