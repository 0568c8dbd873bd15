/*
 * launches.c - see launches.h: a hash table with open addressing, at most half full, and a natural
 * merge sort.
 */
#include "base.h"
#include "hash.h"
#include "launches.h"

#include <stdlib.h>

#define FIRST_CAP 64
#define MAX_CALLS (UINT32_C(1) << 31)

int gt_launches_add(struct gt_launches *launches, const struct gt_launch_call *call)
{
	if (launches->count == launches->cap) {
		size_t cap = launches->cap ? launches->cap * 2 : FIRST_CAP;
		struct gt_launch_call *calls =
			cap > MAX_CALLS ? NULL : realloc(launches->calls, cap * sizeof(*calls));

		if (!calls)
			return -ENOMEM;
		launches->calls = calls;
		launches->cap = cap;
	}
	launches->calls[launches->count++] = *call;
	return 0;
}

int gt_launched_add(struct gt_launched_works *works, const struct gt_launched *work)
{
	if (works->count == works->cap) {
		size_t cap = works->cap ? works->cap * 2 : FIRST_CAP;
		struct gt_launched *items = realloc(works->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		works->items = items;
		works->cap = cap;
	}
	works->items[works->count++] = *work;
	return 0;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* The slot of a correlation, or the free one where it goes. */
static uint32_t *slot_of(const struct gt_launches *launches, int64_t correlation)
{
	size_t at = gt_hash_id(correlation) & (launches->slot_count - 1);

	while (launches->slots[at] &&
	       launches->calls[launches->slots[at] - 1].correlation != correlation)
		at = (at + 1) & (launches->slot_count - 1);
	return &launches->slots[at];
}

int gt_launches_index(struct gt_launches *launches)
{
	launches->slot_count = 2;
	while (launches->slot_count < 2 * launches->count)
		launches->slot_count *= 2;
	launches->slots = calloc(launches->slot_count, sizeof(*launches->slots));
	if (!launches->slots)
		return -ENOMEM;
	for (size_t i = 0; i < launches->count; i++) {
		uint32_t *slot = slot_of(launches, launches->calls[i].correlation);

		if (*slot)
			launches->calls[*slot - 1].is_ambiguous = true;
		else
			*slot = (uint32_t)i + 1;
	}
	return 0;
}

void gt_launches_link(struct gt_launches *launches, struct gt_launched_works *works)
{
	for (size_t i = 0; i < works->count; i++) {
		struct gt_launched *work = &works->items[i];
		uint32_t number = work->call ? *slot_of(launches, work->call) : 0;
		struct gt_launch_call *call = number ? &launches->calls[number - 1] : NULL;

		if (call && call->is_ambiguous)
			number = 0;
		else if (call && call->pieces < GT_PIECES_MAX)
			call->pieces++;
		work->call = number;
	}
}

/* ---- order ----------------------------------------------------------------------------------- */

static size_t run_end(const struct gt_launched *items, size_t at, size_t count)
{
	for (at++; at < count && items[at].start_ns >= items[at - 1].start_ns; at++)
		;
	return GT_MIN(at, count);
}

static void merge(struct gt_launched *to, const struct gt_launched *left,
		  const struct gt_launched *mid, const struct gt_launched *end)
{
	const struct gt_launched *right = mid;

	while (left < mid || right < end) {
		if (right == end || (left < mid && left->start_ns <= right->start_ns))
			*to++ = *left++;
		else
			*to++ = *right++;
	}
}

int gt_launched_sort(struct gt_launched_works *works)
{
	struct gt_launched *from = works->items, *to = NULL;
	size_t count = works->count;

	while (run_end(from, 0, count) < count) {
		struct gt_launched *merged = to ? to : malloc(count * sizeof(*to));

		if (!merged)
			return -ENOMEM;
		for (size_t at = 0, mid, end; at < count; at = end) {
			mid = run_end(from, at, count);
			end = mid < count ? run_end(from, mid, count) : mid;
			merge(merged + at, from + at, from + mid, from + end);
		}
		to = from;
		from = merged;
	}
	free(to);
	works->items = from;
	works->cap = to ? count : works->cap;
	return 0;
}

void gt_launches_release(struct gt_launches *launches)
{
	free(launches->calls);
	free(launches->slots);
	memset(launches, 0, sizeof(*launches));
}

void gt_launched_release(struct gt_launched_works *works)
{
	free(works->items);
	memset(works, 0, sizeof(*works));
}
