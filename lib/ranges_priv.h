/*
 * ranges_priv.h - shared by the parts of ranges.h: ranges.c (any range), ranges_thread.c (those of
 * a thread), ranges_process.c (those of the process).
 */
#ifndef GT_RANGES_PRIV_H
#define GT_RANGES_PRIV_H

#include "ranges.h"

/* like: what it is made after. Its text and inputs are copied. NULL: no memory (counted). */
struct gt_range *gt_range_make(struct gt_ranges *ranges, const struct gt_range *like,
			       const char *text, const char *inputs);

/* What goes on of an open range outside of its window. NULL likewise. */
struct gt_range *gt_range_rest(struct gt_ranges *ranges, const struct gt_range *range,
			       struct gt_range *outer, uint32_t window);

/* Its span on the stream of this GPU op holds that, too. */
void gt_range_add_work(struct gt_ranges *ranges, struct gt_range *range,
		       const struct gt_gpu_op *op);

#endif
