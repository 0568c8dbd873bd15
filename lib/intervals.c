/*
 * intervals.c - see intervals.h.
 */
#include "base.h"
#include "intervals.h"

#include <stdlib.h>

int gt_intervals_add(struct gt_intervals *set, int64_t start_ns, int64_t end_ns)
{
	if (set->count == set->cap) {
		size_t cap = set->cap ? set->cap * 2 : 64;
		struct gt_interval *items = realloc(set->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		set->items = items;
		set->cap = cap;
	}
	set->items[set->count++] = (struct gt_interval){ start_ns, end_ns };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	int64_t left = ((const struct gt_interval *)a)->start_ns;
	int64_t right = ((const struct gt_interval *)b)->start_ns;

	return (left > right) - (left < right);
}

static bool is_sorted(const struct gt_intervals *set)
{
	for (size_t i = 1; i < set->count; i++) {
		if (set->items[i].start_ns < set->items[i - 1].start_ns)
			return false;
	}
	return true;
}

void gt_intervals_merge(struct gt_intervals *set)
{
	size_t last = 0;

	if (!set->count)
		return;
	if (!is_sorted(set))
		qsort(set->items, set->count, sizeof(*set->items), by_start);
	for (size_t i = 1; i < set->count; i++) {
		struct gt_interval next = set->items[i];

		if (next.start_ns > set->items[last].end_ns)
			set->items[++last] = next;
		else if (next.end_ns > set->items[last].end_ns)
			set->items[last].end_ns = next.end_ns;
	}
	set->count = last + 1;
}

uint64_t gt_intervals_union_ns(const struct gt_intervals *const *sets, size_t count)
{
	size_t at[GT_INTERVALS_MAX_SETS] = { 0 };
	int64_t covered_to = INT64_MIN;
	uint64_t total = 0;

	for (;;) {
		const struct gt_interval *next = NULL;
		size_t from = 0;

		for (size_t i = 0; i < count; i++) {
			const struct gt_intervals *set = sets[i];

			if (at[i] < set->count &&
			    (!next || set->items[at[i]].start_ns < next->start_ns)) {
				next = &set->items[at[i]];
				from = i;
			}
		}
		if (!next)
			return total;
		at[from]++;
		if (next->end_ns > covered_to) {
			total += (uint64_t)next->end_ns -
				 (uint64_t)GT_MAX(next->start_ns, covered_to);
			covered_to = next->end_ns;
		}
	}
}

void gt_intervals_release(struct gt_intervals *set)
{
	free(set->items);
	memset(set, 0, sizeof(*set));
}
