/*
 * launch_stats.c - see launch_stats.h.
 */
#include "base.h"
#include "launch_stats.h"
#include "sort_u64.h"

#include <stdlib.h>

/* Room for a number for each piece of work, three times. */
struct room {
	uint64_t *a;
	uint64_t *b;
	uint64_t *spare;
};

static void measure_kernels(struct gt_launches *launches, const struct gt_launched_works *works,
			    uint64_t *delays, struct gt_launch_stats *ret)
{
	/* A graph may have launched on another GPU, too. */
	for (size_t i = 0; i < works->count; i++) {
		if (works->items[i].call)
			launches->calls[works->items[i].call - 1].has_begun = false;
	}
	for (size_t i = 0; i < works->count; i++) {
		const struct gt_launched *work = &works->items[i];
		struct gt_launch_call *call = work->call ? &launches->calls[work->call - 1] : NULL;
		uint64_t dur_ns = (uint64_t)(work->end_ns - work->start_ns);

		if (!work->is_kernel)
			continue;
		ret->kernels++;
		ret->short_kernels += dur_ns < GT_SHORT_KERNEL_NS;
		if (!call)
			continue;
		if (call->pieces == 1) {
			ret->alone++;
			ret->shorter_than_call += dur_ns <
						  (uint64_t)(call->end_ns - call->start_ns);
		}
		if (!call->has_begun)
			delays[ret->launches++] =
				(uint64_t)GT_MAX(work->start_ns - call->end_ns, 0);
		call->has_begun = true;
	}
}

static void measure_delays(uint64_t *delays, uint64_t *spare, struct gt_launch_stats *ret)
{
	size_t count = ret->launches;

	if (!count)
		return;
	gt_sort_u64(delays, spare, count);
	ret->delay_median_ns =
		delays[(count - 1) / 2] + (delays[count / 2] - delays[(count - 1) / 2]) / 2;
	ret->delay_p99_ns = delays[count - 1 - count / 100];
	ret->delay_max_ns = delays[count - 1];
}

/* Work that began before its launch, by clocks that disagree, was launched when it began. */
static int64_t queued_ns(const struct gt_launch_call *call, const struct gt_launched *work)
{
	return GT_MIN(call->start_ns, work->start_ns);
}

static void measure_queue(const struct gt_launches *launches, const struct gt_launched_works *works,
			  struct room *room, struct gt_launch_stats *ret)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN, zero_ns = INT64_MAX;
	uint64_t *begins = room->a, *ends = room->b;
	size_t count = 0, ended = 0;
	double queued = 0;

	for (size_t i = 0; i < works->count; i++) {
		const struct gt_launched *work = &works->items[i];
		const struct gt_launch_call *call = gt_launch_of(launches, work);

		first_ns = GT_MIN(first_ns, work->start_ns);
		last_ns = GT_MAX(last_ns, work->end_ns);
		if (call)
			zero_ns = GT_MIN(zero_ns, queued_ns(call, work));
	}
	for (size_t i = 0; i < works->count; i++) {
		const struct gt_launched *work = &works->items[i];
		const struct gt_launch_call *call = gt_launch_of(launches, work);

		if (!call)
			continue;
		begins[count] = (uint64_t)(queued_ns(call, work) - zero_ns);
		ends[count++] = (uint64_t)(work->end_ns - zero_ns);
		queued += (double)(work->end_ns - GT_MAX(queued_ns(call, work), first_ns));
	}
	gt_sort_u64(begins, room->spare, count);
	gt_sort_u64(ends, room->spare, count);
	for (size_t i = 0; i < count; i++) {
		while (ended < i && ends[ended] <= begins[i])
			ended++;
		ret->queue_max = GT_MAX(ret->queue_max, (uint64_t)(i + 1 - ended));
	}
	ret->linked = count;
	ret->queue_mean = last_ns > first_ns ? queued / (double)(last_ns - first_ns) : 0;
}

int gt_launch_stats_of(struct gt_launches *launches, const struct gt_launched_works *works,
		       struct gt_launch_stats *ret)
{
	uint64_t *all = calloc(works->count + 1, 3 * sizeof(*all));
	struct room room = { all, all + works->count, all + 2 * works->count };

	*ret = (struct gt_launch_stats){ 0 };
	if (!all)
		return -ENOMEM;
	measure_kernels(launches, works, room.a, ret);
	measure_delays(room.a, room.spare, ret);
	measure_queue(launches, works, &room, ret);
	free(all);
	return 0;
}
