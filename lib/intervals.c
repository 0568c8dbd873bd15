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

/* Walks the union of some sets, from piece to piece that no piece before covers. */
struct walk {
	const struct gt_intervals *const *sets;
	size_t count;
	size_t at[GT_INTERVALS_MAX_SETS];
	int64_t covered_to;
};

static const struct gt_interval *next_interval(struct walk *walk)
{
	const struct gt_interval *next = NULL;
	size_t from = 0;

	for (size_t i = 0; i < walk->count; i++) {
		const struct gt_intervals *set = walk->sets[i];

		if (walk->at[i] < set->count &&
		    (!next || set->items[walk->at[i]].start_ns < next->start_ns)) {
			next = &set->items[walk->at[i]];
			from = i;
		}
	}
	walk->at[from] += next != NULL;
	return next;
}

static bool next_piece(struct walk *walk, struct gt_interval *ret)
{
	const struct gt_interval *next;

	do {
		next = next_interval(walk);
		if (!next)
			return false;
	} while (next->end_ns <= walk->covered_to);
	*ret = (struct gt_interval){ GT_MAX(next->start_ns, walk->covered_to), next->end_ns };
	walk->covered_to = next->end_ns;
	return true;
}

static uint64_t length(int64_t start_ns, int64_t end_ns)
{
	return (uint64_t)end_ns - (uint64_t)start_ns;
}

uint64_t gt_intervals_union_ns(const struct gt_intervals *const *sets, size_t count)
{
	struct walk walk = { .sets = sets, .count = count, .covered_to = INT64_MIN };
	struct gt_interval piece;
	uint64_t total = 0;

	while (next_piece(&walk, &piece))
		total += length(piece.start_ns, piece.end_ns);
	return total;
}

void gt_intervals_before(const struct gt_intervals *const *sets, size_t count,
			 const int64_t *times_ns, size_t time_count, uint64_t *ret_ns)
{
	struct walk walk = { .sets = sets, .count = count, .covered_to = INT64_MIN };
	struct gt_interval piece;
	uint64_t total = 0;
	size_t i = 0;

	while (i < time_count && next_piece(&walk, &piece)) {
		for (; i < time_count && times_ns[i] < piece.end_ns; i++)
			ret_ns[i] =
				total + length(piece.start_ns, GT_MAX(times_ns[i], piece.start_ns));
		total += length(piece.start_ns, piece.end_ns);
	}
	for (; i < time_count; i++)
		ret_ns[i] = total;
}

void gt_intervals_release(struct gt_intervals *set)
{
	free(set->items);
	memset(set, 0, sizeof(*set));
}
