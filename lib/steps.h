/*
 * steps.h - when the steps of a process began, as its step marks say, and how long they took.
 */
#ifndef GT_STEPS_H
#define GT_STEPS_H

#include "base.h"

#define GT_STEPS_KEPT 4096 /* the newest marks are kept */

struct gt_step_mark {
	uint64_t time_ns; /* this step began, and the one before it ended */
	uint32_t step;
	uint32_t tid; /* of the thread that marked it */
};

struct gt_steps { /* { 0 } is an empty one */
	struct gt_step_mark marks[GT_STEPS_KEPT];
	uint64_t count; /* since the start */
};

/* Steps and times only rise: a mark that does not fit behind the last one is ignored. */
void gt_steps_add(struct gt_steps *steps, uint32_t step, uint64_t time_ns, uint32_t tid);

/* The mark of this step, or NULL. */
const struct gt_step_mark *gt_steps_find(const struct gt_steps *steps, uint64_t step);

/* The first mark of a later step, or NULL. */
const struct gt_step_mark *gt_steps_after(const struct gt_steps *steps, uint64_t step);

/* The step that was under way at this time; 0 before the first mark. */
uint32_t gt_steps_at(const struct gt_steps *steps, uint64_t time_ns);

/*
 * Median duration of the steps from first to last whose two ends are marked, at most 'most' of
 * them, the latest; NaN: none.
 */
double gt_steps_median_ms(const struct gt_steps *steps, uint64_t first, uint64_t last, size_t most);

#endif
