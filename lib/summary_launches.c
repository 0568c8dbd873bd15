/*
 * summary_launches.c - collects what links GPU work to its launches, for the causes of idle time
 * and the statistics of launches.
 */
#include "base.h"
#include "host_call.h"
#include "summary.h"
#include "summary_priv.h"

/* A graph may be empty, and what is captured into one is not done. */
static bool wants_work(const struct gt_trace_event *event)
{
	return gt_call_launches(event->name) && !gt_call_launches_graph(event->name) &&
	       gt_json_kind(gt_trace_event_arg(event, GT_STR("\"captured\""))) != GT_JSON_TRUE;
}

int gt_summary_add_launch(struct gt_summary *summary, const struct gt_trace_event *event,
			  uint64_t dur_ns, int64_t correlation)
{
	struct gt_launch_call call = { .correlation = correlation,
				       .start_ns = event->ts_ns,
				       .end_ns = event->ts_ns + (int64_t)dur_ns };

	if (!correlation)
		return 0;
	call.wants_work = wants_work(event);
	call.thread = gt_thread_number(&summary->thread_ids, event);
	return call.thread == GT_INTERN_FAILED ? -ENOMEM
					       : gt_launches_add(&summary->launches, &call);
}

int gt_summary_add_wait(struct gt_summary *summary, const struct gt_trace_event *event,
			uint64_t dur_ns, enum gt_host_wait wait)
{
	uint32_t thread;

	if (wait == GT_WAIT_NONE)
		return 0;
	thread = gt_thread_number(&summary->thread_ids, event);
	return thread == GT_INTERN_FAILED
		       ? -ENOMEM
		       : gt_host_waits_add(&summary->waits, wait, thread, event->ts_ns,
					   event->ts_ns + (int64_t)dur_ns);
}

/*
 * What the file says of itself is true of the trace that it was cut out of, of which a part can
 * lack no more. Of a choice of GPUs or categories nothing can be said.
 */
static void count_unlinked(struct gt_summary *summary)
{
	const struct gt_launches *launches = &summary->launches;
	struct gt_summary_own *own = &summary->own;
	uint64_t without_gpu = 0, without_launch = 0;

	for (size_t i = 0; i < launches->count && !summary->copy.by_kind; i++) {
		const struct gt_launch_call *call = &launches->calls[i];

		without_gpu += call->wants_work && !call->pieces && !call->is_ambiguous;
	}
	for (size_t i = 0; i < summary->gpu_count && !summary->copy.by_kind; i++) {
		const struct gt_launched_works *works = &summary->gpus[i].works;

		for (size_t k = 0; k < works->count; k++)
			without_launch += !works->items[k].call;
	}
	own->launches_without_gpu = GT_MIN(own->launches_without_gpu, without_gpu);
	own->gpu_without_launch = GT_MIN(own->gpu_without_launch, without_launch);
}

int gt_summary_finish_launches(struct gt_summary *summary)
{
	int rc = gt_launches_index(&summary->launches);

	gt_host_waits_sort(&summary->waits);
	for (size_t i = 0; !rc && i < summary->gpu_count; i++)
		gt_launches_link(&summary->launches, &summary->gpus[i].works);
	if (!rc && summary->copy.kind == GT_COPY_CUT)
		count_unlinked(summary);
	for (size_t i = 0; !rc && i < summary->gpu_count; i++) {
		struct gt_summary_gpu *gpu = &summary->gpus[i];

		gpu->idle = gt_idle_of(&summary->launches, &gpu->works, &summary->waits);
		rc = gt_launch_stats_of(&summary->launches, &gpu->works, &gpu->launch);
	}
	gt_summary_release_launches(summary);
	return rc;
}

void gt_summary_release_launches(struct gt_summary *summary)
{
	for (size_t i = 0; i < summary->gpu_count; i++)
		gt_launched_release(&summary->gpus[i].works);
	gt_thread_ids_release(&summary->thread_ids);
	gt_launches_release(&summary->launches);
	gt_host_waits_release(&summary->waits);
}
