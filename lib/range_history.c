#include "base.h"
#include "range_history.h"

#include <stdlib.h>

struct gt_past {
	struct past_range {
		uint64_t start_ns;
		struct gt_range *range;
	} * ranges; /* by start */
	size_t count;
	size_t cap;
};

static struct gt_past *past_of(struct gt_range_history *history, uint32_t tid)
{
	uint32_t index = gt_map_get(&history->by_tid, tid);
	struct gt_past *grown;

	if (index)
		return &history->threads[index - 1];
	if (history->count == history->cap) {
		uint32_t cap = history->cap ? history->cap * 2 : 8;

		if (cap > GT_THREADS_MAX)
			return NULL;
		grown = realloc(history->threads, cap * sizeof(*grown));
		if (!grown)
			return NULL;
		history->threads = grown;
		history->cap = cap;
	}
	if (!gt_map_put(&history->by_tid, tid, history->count + 1))
		return NULL;
	history->threads[history->count] = (struct gt_past){ 0 };
	return &history->threads[history->count++];
}

void gt_range_history_add(struct gt_range_history *history, struct gt_range *range,
			  uint64_t start_ns)
{
	struct gt_past *past = past_of(history, range->tid);
	struct past_range *grown;
	size_t cap;

	if (!past)
		return;
	if (past->count == past->cap) {
		cap = past->cap ? past->cap * 2 : 64;
		grown = realloc(past->ranges, cap * sizeof(*grown));
		if (!grown)
			return;
		past->ranges = grown;
		past->cap = cap;
	}
	past->ranges[past->count++] = (struct past_range){ start_ns, gt_range_hold(range) };
}

struct gt_range *gt_range_history_find(const struct gt_range_history *history, uint32_t tid,
				       uint32_t window, uint64_t time_ns)
{
	uint32_t index = gt_map_get(&history->by_tid, tid);
	const struct gt_past *past;
	struct gt_range *range;
	size_t low = 0, high;

	if (!index)
		return NULL;
	past = &history->threads[index - 1];
	high = past->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (past->ranges[mid].start_ns > time_ns)
			high = mid;
		else
			low = mid + 1;
	}
	/* The one that began last, or, when that is over, the nearest around it that is not. */
	range = low ? past->ranges[low - 1].range : NULL;
	while (range && (range->end_ns < time_ns || range->window != window))
		range = range->outer;
	return range;
}

void gt_range_history_trim(struct gt_range_history *history, struct gt_ranges *ranges,
			   uint32_t window, uint64_t before_ns)
{
	uint32_t i;

	for (i = 0; i < history->count; i++) {
		struct gt_past *past = &history->threads[i];
		size_t j, kept = 0;

		for (j = 0; j < past->count; j++) {
			struct gt_range *range = past->ranges[j].range;

			if (range->window == window || range->end_ns < before_ns)
				gt_ranges_unhold(ranges, range);
			else
				past->ranges[kept++] = past->ranges[j];
		}
		past->count = kept;
	}
}

void gt_range_history_release(struct gt_range_history *history, struct gt_ranges *ranges)
{
	uint32_t i;

	for (i = 0; i < history->count; i++) {
		struct gt_past *past = &history->threads[i];

		while (past->count)
			gt_ranges_unhold(ranges, past->ranges[--past->count].range);
		free(past->ranges);
	}
	free(history->threads);
	gt_map_release(&history->by_tid);
	*history = (struct gt_range_history){ 0 };
}
