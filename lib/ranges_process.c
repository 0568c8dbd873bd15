/*
 * ranges_process.c - the ranges of the whole process, which overlap: START and END.
 */
#include "base.h"
#include "ranges_priv.h"

/* The shared list is searched by each GPU op and END: beyond this many its tail is cut short. */
#define SHARED_WAIT_MAX 64
#define SHARED_MAX      4096

void gt_ranges_start(struct gt_ranges *ranges, uint32_t tid, uint32_t window,
		     const struct gt_ev_range *ev)
{
	struct gt_range *range = NULL;

	if (ranges->shared_count < SHARED_MAX)
		range = gt_range_make(ranges,
				      &(struct gt_range){
					      .below = ranges->shared,
					      .start_ns = ev->ev.time_ns,
					      .number = ev->range_id,
					      .tid = tid,
					      .window = window,
					      .domain_id = ev->domain_id,
					      .name_id = ev->name_id,
					      .kind = GT_RANGE_PROCESS,
					      .len_bytes = ev->name_id ? 0 : ev->len_bytes,
				      },
				      ev->bytes, "");
	else
		ranges->refused++;
	if (!range)
		return;
	ranges->shared = range;
	ranges->shared_count++;
}

static bool is_open(const struct gt_range *range)
{
	return range->end_ns == UINT64_MAX;
}

/* Let go of a range of the shared list. */
static void drop_shared(struct gt_ranges *ranges, struct gt_range **place)
{
	struct gt_range *range = *place;

	*place = range->below;
	ranges->shared_count--;
	gt_ranges_unhold(ranges, range);
}

/* It is in the trace now, and stays in the list until its GPU work can no longer come. */
static void end_shared(struct gt_ranges *ranges, struct gt_range **place, uint64_t end_ns)
{
	bool wait = (*place)->window != GT_WINDOW_NONE && ranges->shared_count <= SHARED_WAIT_MAX;

	gt_ranges_close(ranges, gt_range_hold(*place), end_ns);
	if (!wait)
		drop_shared(ranges, place);
}

void gt_ranges_end(struct gt_ranges *ranges, const struct gt_ev_end *ev)
{
	struct gt_range **place = &ranges->shared;

	while (*place && !(is_open(*place) && (*place)->number == ev->range_id))
		place = &(*place)->below;
	if (*place)
		end_shared(ranges, place, ev->ev.time_ns);
}

void gt_ranges_move_shared(struct gt_ranges *ranges, uint32_t from, uint32_t window,
			   uint64_t end_ns)
{
	struct gt_range **place = &ranges->shared;

	while (*place) {
		struct gt_range *range = *place, *rest;

		if (!is_open(range) || range->window != from) {
			place = &range->below;
			continue;
		}
		if (from == GT_WINDOW_NONE) {
			range->window = window;
			place = &range->below;
			continue;
		}
		rest = gt_range_rest(ranges, range, NULL, window);
		end_shared(ranges, place, end_ns);
		if (*place == range)
			place = &range->below;
		if (rest) {
			rest->below = ranges->shared;
			if (place == &ranges->shared)
				place = &rest->below;
			ranges->shared = rest;
			ranges->shared_count++;
		}
	}
}

void gt_ranges_settle(struct gt_ranges *ranges, uint32_t window, uint64_t waiting_ns)
{
	struct gt_range **place = &ranges->shared;

	while (*place) {
		const struct gt_range *range = *place;

		if (!is_open(range) && (range->window == window || range->end_ns <= waiting_ns))
			drop_shared(ranges, place);
		else
			place = &(*place)->below;
	}
}

void gt_ranges_shared_work(struct gt_ranges *ranges, uint32_t window, uint64_t launch_ns,
			   const struct gt_gpu_op *op)
{
	struct gt_range *range = ranges->shared;
	uint32_t i;

	for (i = 0; range && i < SHARED_WAIT_MAX; i++, range = range->below)
		if (range->window == window && range->start_ns <= launch_ns &&
		    launch_ns <= range->end_ns)
			gt_range_add_work(ranges, range, op);
}
