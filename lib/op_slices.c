/*
 * op_slices.c - see op_slices.h: a natural merge sort, which copies only the shorter of two runs.
 */
#include "base.h"
#include "op_slices.h"

#include <stdlib.h>

#define FIRST_CAP 4 /* a file may have as many threads as slices */

int gt_op_slices_add(struct gt_op_slices *slices, const struct gt_op_slice *slice)
{
	if (slices->count == slices->cap) {
		size_t cap = slices->cap ? slices->cap * 2 : FIRST_CAP;
		struct gt_op_slice *items = realloc(slices->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		slices->items = items;
		slices->cap = cap;
	}
	slices->items[slices->count++] = *slice;
	return 0;
}

/* Whether b must come before a, which stands before it. */
static inline bool is_before(const struct gt_op_slice *b, const struct gt_op_slice *a)
{
	if (b->start_ns != a->start_ns)
		return b->start_ns < a->start_ns;
	if (b->end_ns != a->end_ns)
		return b->end_ns > a->end_ns;
	return b->kind < a->kind;
}

static size_t run_end(const struct gt_op_slice *items, size_t at, size_t count)
{
	for (at++; at < count && !is_before(&items[at], &items[at - 1]); at++)
		;
	return GT_MIN(at, count);
}

/* The left run was copied; the place that it leaves is filled from the front. */
static void merge_forward(struct gt_op_slice *to, const struct gt_op_slice *left, size_t left_count,
			  const struct gt_op_slice *right, const struct gt_op_slice *end)
{
	const struct gt_op_slice *left_end = left + left_count;

	while (left < left_end) {
		if (right < end && is_before(right, left))
			*to++ = *right++;
		else
			*to++ = *left++;
	}
}

/* The right run was copied; filled from the back. */
static void merge_backward(struct gt_op_slice *to_end, const struct gt_op_slice *left,
			   const struct gt_op_slice *left_end, const struct gt_op_slice *right,
			   size_t right_count)
{
	const struct gt_op_slice *right_end = right + right_count;

	while (right_end > right) {
		if (left_end > left && is_before(right_end - 1, left_end - 1))
			*--to_end = *--left_end;
		else
			*--to_end = *--right_end;
	}
}

struct spare {
	struct gt_op_slice *items;
	size_t cap;
};

/* Merge the runs from at to mid and from mid to end. */
static int merge(struct gt_op_slice *items, size_t at, size_t mid, size_t end, struct spare *spare)
{
	size_t need;

	while (at < mid && !is_before(&items[mid], &items[at]))
		at++;
	while (end > mid && !is_before(&items[end - 1], &items[mid - 1]))
		end--;
	need = GT_MIN(mid - at, end - mid);
	if (need > spare->cap) {
		free(spare->items);
		spare->items = malloc(need * sizeof(*items));
		spare->cap = spare->items ? need : 0;
	}
	if (need > spare->cap)
		return -ENOMEM;
	if (need == mid - at) {
		memcpy(spare->items, items + at, need * sizeof(*items));
		merge_forward(items + at, spare->items, need, items + mid, items + end);
	} else {
		memcpy(spare->items, items + mid, need * sizeof(*items));
		merge_backward(items + end, items + at, items + mid, spare->items, need);
	}
	return 0;
}

int gt_op_slices_sort(struct gt_op_slices *slices)
{
	struct spare spare = { 0 };
	size_t count = slices->count;
	int rc = 0;

	while (!rc && run_end(slices->items, 0, count) < count) {
		size_t at = 0, mid, end;

		while (!rc && at < count) {
			mid = run_end(slices->items, at, count);
			end = mid < count ? run_end(slices->items, mid, count) : mid;
			if (mid < end)
				rc = merge(slices->items, at, mid, end, &spare);
			at = end;
		}
	}
	free(spare.items);
	return rc;
}

void gt_op_slices_release(struct gt_op_slices *slices)
{
	free(slices->items);
	memset(slices, 0, sizeof(*slices));
}
