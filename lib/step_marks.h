/*
 * step_marks.h - when the steps of a process began, as its step marks say, and how long they took.
 */
#ifndef GT_STEP_MARKS_H
#define GT_STEP_MARKS_H

#include "base.h"

#define GT_STEPS_KEPT 4096 /* marks; the oldest half goes when there are more */

struct gt_step_mark {
	uint64_t time_ns; /* this step began, and the one before it ended */
	uint32_t step;
	uint32_t tid; /* of the thread that marked it */
};

struct gt_steps {                                 /* { 0 } is an empty one */
	struct gt_step_mark marks[GT_STEPS_KEPT]; /* by step, and so by time */
	size_t count;
	uint32_t source; /* enum gt_step_source of all of them */
};

/*
 * A mark of a source with more authority throws the others away, since it counts for itself; one
 * with less is ignored, and so is one between others whose time does not lie between theirs. A
 * newest one that seems to be older than the one before it gets that one's time.
 */
void gt_steps_add(struct gt_steps *steps, const struct gt_step_mark *mark, uint32_t source);

/* "optimizer" for GT_STEP_OPTIMIZER; "none" for what is no source. */
const char *gt_step_source_name(uint32_t source);

/* The mark of this step, or NULL. Valid until the next gt_steps_add(). */
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

struct gt_steps_text {
	char text[56];
};

/* "step 3", "steps 3 to 5", of first and last. */
struct gt_steps_text gt_steps_text(uint64_t first, uint64_t last);

#endif
