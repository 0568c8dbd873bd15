/*
 * intervals.h - exact arithmetic on sets of time intervals, in integer ns.
 */
#ifndef GT_INTERVALS_H
#define GT_INTERVALS_H

#include "base.h"

struct gt_interval {
	int64_t start_ns;
	int64_t end_ns; /* >= start_ns */
};

struct gt_intervals { /* { 0 } is the empty set */
	struct gt_interval *items;
	size_t count;
	size_t cap;
};

/* 0 or -ENOMEM. */
int gt_intervals_add(struct gt_intervals *set, int64_t start_ns, int64_t end_ns);

/* Sort, and merge what overlaps or touches. The functions below want sets so treated. */
void gt_intervals_merge(struct gt_intervals *set);

/* The length of the union of up to GT_INTERVALS_MAX_SETS merged sets. */
#define GT_INTERVALS_MAX_SETS 4
uint64_t gt_intervals_union_ns(const struct gt_intervals *const *sets, size_t count);

/* How much of that union lies before each of these times, which ascend. */
void gt_intervals_before(const struct gt_intervals *const *sets, size_t count,
			 const int64_t *times_ns, size_t time_count, uint64_t *ret_ns);

void gt_intervals_release(struct gt_intervals *set);

#endif
