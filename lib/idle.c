/*
 * idle.c - see idle.h.
 */
#include "base.h"
#include "idle.h"

static void add_gap(struct gt_idle *idle, const struct gt_host_waits *waits,
		    const struct gt_launch_call *call, int64_t from_ns, int64_t to_ns)
{
	struct gt_waited waited;
	int64_t launch_ns;

	if (!call) {
		idle->unknown_ns += (uint64_t)(to_ns - from_ns);
		return;
	}
	if (call->start_ns <= from_ns) {
		idle->queued_ns += (uint64_t)(to_ns - from_ns);
		return;
	}
	launch_ns = GT_MIN(call->start_ns, to_ns);
	waited = gt_host_waited(waits, call->thread, from_ns, launch_ns);
	idle->data_loading_ns += waited.data_ns;
	idle->communication_ns += waited.communication_ns;
	idle->host_late_ns +=
		(uint64_t)(launch_ns - from_ns) - waited.data_ns - waited.communication_ns;
	idle->launch_latency_ns += (uint64_t)(to_ns - launch_ns);
}

/* The first call that launched any of the work that begins with that at i. */
static const struct gt_launch_call *first_call(const struct gt_launches *launches,
					       const struct gt_launched_works *works, size_t i)
{
	int64_t start_ns = works->items[i].start_ns;
	const struct gt_launch_call *first = NULL;

	for (; i < works->count && works->items[i].start_ns == start_ns; i++) {
		const struct gt_launch_call *call = gt_launch_of(launches, &works->items[i]);

		if (call && (!first || call->start_ns < first->start_ns))
			first = call;
	}
	return first;
}

struct gt_idle gt_idle_of(const struct gt_launches *launches, const struct gt_launched_works *works,
			  const struct gt_host_waits *waits)
{
	struct gt_idle idle = { 0 };
	int64_t end_ns = works->count ? works->items[0].start_ns : 0;

	for (size_t i = 0; i < works->count; i++) {
		const struct gt_launched *work = &works->items[i];

		if (work->start_ns > end_ns)
			add_gap(&idle, waits, first_call(launches, works, i), end_ns,
				work->start_ns);
		end_ns = GT_MAX(end_ns, work->end_ns);
	}
	return idle;
}
