/*
 * lanes.h - on which row of a track a slice may stand. A track is what a viewer shows as one unit
 * (a stream, a thread); its rows are pid/tid pairs on which slices must nest, or not overlap at
 * all. Slices come in any order; each gets the first row where it fits, gaps included.
 *
 * Memory is bounded: a row forgets what is long past and then takes nothing there any more.
 */
#ifndef GT_LANES_H
#define GT_LANES_H

#include "base.h"

enum gt_lane_rule {
	GT_LANE_DISJOINT = 0, /* slices may touch */
	GT_LANE_NESTED = 1,   /* slices may also lie within each other */
};

#define GT_LANE_ROWS_MAX 256 /* of a track; what fits on none of them goes to the last one */

struct gt_lane_pool { /* zero-initialised; shared by the tracks of one trace */
	size_t chunks;
};

struct gt_lane_row;

struct gt_track { /* zero-initialised but for the rule: no rows */
	enum gt_lane_rule rule;
	uint32_t row_count;
	struct gt_lane_row **rows;
};

/*
 * Place start_ns..end_ns on the first row from first on where it fits, and remember it there.
 * Slices without duration always fit. Returns the row; never fails: without memory rows only
 * become more cautious.
 */
uint32_t gt_track_place(struct gt_track *track, struct gt_lane_pool *pool, uint32_t first,
			uint64_t start_ns, uint64_t end_ns);

void gt_track_release(struct gt_track *track, struct gt_lane_pool *pool);

#endif
