/*
 * summary_steps.c - the steps of a trace: how long they took, and how long GPUs worked meanwhile.
 */
#include "base.h"
#include "summary.h"
#include "summary_priv.h"

#include <stdlib.h>

int gt_summary_add_step(struct gt_summary *summary, const struct gt_trace_event *event,
			uint64_t dur_ns)
{
	uint32_t name = gt_intern(&summary->step_names, event->name);

	if (name == GT_INTERN_FAILED)
		return -ENOMEM;
	if (summary->step_count == summary->step_cap) {
		size_t cap = summary->step_cap ? summary->step_cap * 2 : 16;
		struct gt_summary_step *steps = realloc(summary->steps, cap * sizeof(*steps));

		if (!steps)
			return -ENOMEM;
		summary->steps = steps;
		summary->step_cap = cap;
	}
	summary->steps[summary->step_count++] = (struct gt_summary_step){ .name = name,
									  .start_ns = event->ts_ns,
									  .dur_ns = dur_ns };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct gt_summary_step *left = a, *right = b;

	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static int64_t end_of(const struct gt_summary_step *step)
{
	return step->start_ns + (int64_t)step->dur_ns;
}

static int by_time(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static size_t index_of(const int64_t *times_ns, size_t count, int64_t time_ns)
{
	const int64_t *at = bsearch(&time_ns, times_ns, count, sizeof(*times_ns), by_time);

	return (size_t)(at - times_ns);
}

/* Steps may overlap in a file that is not sane: one walk for all of them stays linear. */
static int find_gpu_busy(struct gt_summary *summary)
{
	size_t count = 2 * summary->step_count;
	int64_t *times_ns = malloc(count * sizeof(*times_ns));
	uint64_t *before_ns = malloc(count * sizeof(*before_ns));

	for (size_t i = 0; times_ns && i < summary->step_count; i++) {
		times_ns[2 * i] = summary->steps[i].start_ns;
		times_ns[2 * i + 1] = end_of(&summary->steps[i]);
	}
	if (times_ns)
		qsort(times_ns, count, sizeof(*times_ns), by_time);
	for (size_t i = 0; times_ns && before_ns && i < summary->gpu_count; i++) {
		const struct gt_summary_gpu *gpu = &summary->gpus[i];
		const struct gt_intervals *sets[] = { &gpu->compute, &gpu->comm, &gpu->memcpy };

		gt_intervals_before(sets, ARRAY_SIZE(sets), times_ns, count, before_ns);
		for (size_t k = 0; k < summary->step_count; k++) {
			struct gt_summary_step *step = &summary->steps[k];

			uint64_t busy_ns = before_ns[index_of(times_ns, count, end_of(step))] -
					   before_ns[index_of(times_ns, count, step->start_ns)];

			step->gpu_busy_ns =
				GT_MIN(step->gpu_busy_ns + busy_ns, (uint64_t)INT64_MAX);
		}
	}
	free(times_ns);
	free(before_ns);
	return times_ns && before_ns ? 0 : -ENOMEM;
}

int gt_summary_finish_steps(struct gt_summary *summary)
{
	if (!summary->step_count)
		return 0;
	qsort(summary->steps, summary->step_count, sizeof(*summary->steps), by_start);
	return summary->gpu_count ? find_gpu_busy(summary) : 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

struct gt_range gt_range_of(uint64_t *values, size_t count)
{
	struct gt_range ret = { .count = count };

	if (!count)
		return ret;
	qsort(values, count, sizeof(*values), by_value);
	ret.min = values[0];
	ret.median =
		count % 2 ? values[count / 2]
			  : values[count / 2 - 1] + (values[count / 2] - values[count / 2 - 1]) / 2;
	ret.max = values[count - 1];
	return ret;
}

int gt_summary_step_range(const struct gt_summary *summary, struct gt_range *ret)
{
	size_t count = summary->step_count;
	uint64_t *times = malloc((count + 1) * sizeof(*times));

	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		times[i] = summary->steps[i].dur_ns;
	*ret = gt_range_of(times, count);
	free(times);
	return 0;
}
