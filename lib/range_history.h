/*
 * range_history.h - PUSH ranges of the recent past by thread and time, for calls that are known
 * late and by their time only (the fall-back mode).
 */
#ifndef GT_RANGE_HISTORY_H
#define GT_RANGE_HISTORY_H

#include "base.h"
#include "ranges.h"

struct gt_past; /* of one thread */

struct gt_range_history {     /* { 0 } is an empty one */
	struct gt_map by_tid; /* tid -> index + 1 into threads */
	struct gt_past *threads;
	uint32_t count;
	uint32_t cap;
};

/*
 * Remember a range that is in a window, from start_ns on (where that begins, when it is older);
 * holds it. Ranges of a thread come in this order.
 */
void gt_range_history_add(struct gt_range_history *history, struct gt_range *range,
			  uint64_t start_ns);

/* The innermost range of this thread and window around this time. NULL: none. Borrowed. */
struct gt_range *gt_range_history_find(const struct gt_range_history *history, uint32_t tid,
				       uint32_t window, uint64_t time_ns);

/* Let go of ranges of this window, and of all that ended before before_ns. */
void gt_range_history_trim(struct gt_range_history *history, struct gt_ranges *ranges,
			   uint32_t window, uint64_t before_ns);

void gt_range_history_release(struct gt_range_history *history, struct gt_ranges *ranges);

#endif
