/*
 * summary_steps.c - the steps of a trace: how long they took, what the host did, and how long GPUs
 * worked meanwhile.
 */
#include "base.h"
#include "summary.h"
#include "summary_priv.h"

#include <stdlib.h>

int gt_summary_add_step(struct gt_summary *summary, const struct gt_trace_event *event,
			uint64_t dur_ns)
{
	uint32_t name = gt_intern(&summary->step_names, event->name);
	uint32_t thread = summary->no_operators ? 0
						: gt_thread_number(&summary->ops.thread_ids, event);
	struct gt_str cut = gt_trace_event_arg(event, GT_STR("\"cut\""));

	if (name == GT_INTERN_FAILED || thread == GT_INTERN_FAILED)
		return -ENOMEM;
	if (summary->step_count == summary->step_cap) {
		size_t cap = summary->step_cap ? summary->step_cap * 2 : 16;
		struct gt_summary_step *steps = realloc(summary->steps, cap * sizeof(*steps));

		if (!steps)
			return -ENOMEM;
		summary->steps = steps;
		summary->step_cap = cap;
	}
	summary->steps[summary->step_count++] = (struct gt_summary_step){
		.name = name,
		.start_ns = event->ts_ns,
		.dur_ns = dur_ns,
		.cut = gt_json_kind(cut) == GT_JSON_TRUE,
		.thread = thread,
	};
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct gt_summary_step *left = a, *right = b;

	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

static struct gt_interval interval_of(const struct gt_summary_step *step)
{
	return (struct gt_interval){ step->start_ns, step->start_ns + (int64_t)step->dur_ns };
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

/*
 * How long GPUs worked in each of these spans, of several GPUs the sum; malloc'd. NULL: out of
 * memory. They may overlap in a file that is not sane: one walk for all of them stays linear.
 */
static uint64_t *find_gpu_busy(const struct gt_summary *summary, const struct gt_interval *spans,
			       size_t span_count)
{
	size_t count = 2 * span_count;
	int64_t *times_ns = malloc((count + 1) * sizeof(*times_ns));
	uint64_t *before_ns = malloc((count + 1) * sizeof(*before_ns));
	uint64_t *busy_ns = calloc(span_count + 1, sizeof(*busy_ns));
	bool failed = !times_ns || !before_ns || !busy_ns;

	for (size_t i = 0; !failed && i < span_count; i++) {
		times_ns[2 * i] = spans[i].start_ns;
		times_ns[2 * i + 1] = spans[i].end_ns;
	}
	if (!failed)
		qsort(times_ns, count, sizeof(*times_ns), by_time);
	for (size_t i = 0; !failed && i < summary->gpu_count; i++) {
		const struct gt_summary_gpu *gpu = &summary->gpus[i];
		const struct gt_intervals *sets[] = { &gpu->compute, &gpu->comm, &gpu->memcpy };

		gt_intervals_before(sets, ARRAY_SIZE(sets), times_ns, count, before_ns);
		for (size_t k = 0; k < span_count; k++) {
			uint64_t ns = before_ns[index_of(times_ns, count, spans[k].end_ns)] -
				      before_ns[index_of(times_ns, count, spans[k].start_ns)];

			busy_ns[k] = GT_MIN(busy_ns[k] + ns, (uint64_t)INT64_MAX);
		}
	}
	free(times_ns);
	free(before_ns);
	if (failed) {
		free(busy_ns);
		return NULL;
	}
	return busy_ns;
}

int gt_summary_finish_steps(struct gt_summary *summary)
{
	struct gt_intervals spans = { 0 };
	uint64_t *busy_ns = NULL;
	int rc = 0;

	if (!summary->step_count)
		return 0;
	qsort(summary->steps, summary->step_count, sizeof(*summary->steps), by_start);
	for (size_t i = 0; !rc && i < summary->step_count; i++) {
		struct gt_interval span = interval_of(&summary->steps[i]);

		rc = gt_intervals_add(&spans, span.start_ns, span.end_ns);
	}
	if (!rc && summary->gpu_count) {
		busy_ns = find_gpu_busy(summary, spans.items, spans.count);
		rc = busy_ns ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !rc && busy_ns && i < summary->step_count; i++)
		summary->steps[i].gpu_busy_ns = busy_ns[i];
	free(busy_ns);
	gt_intervals_release(&spans);
	return rc;
}

/* ---- phases ---------------------------------------------------------------------------------- */

void gt_summary_begin_phases(struct gt_summary *summary)
{
	if (!summary->ops.has_operators)
		return;
	summary->phases.has_lanes = summary->own.present;
	for (size_t i = 0; i < summary->step_count; i++)
		gt_phases_add_step(&summary->phases, &summary->ops, summary->steps[i].thread);
	if (!summary->phases.count)
		return;
	summary->ops.sorted = gt_phases_add_thread;
	summary->ops.sorted_context = &summary->phases;
}

/* What the GPUs did while data were loaded: data has each step's pieces, from first[step] on. */
static int find_data_gpu_busy(struct gt_summary *summary, const struct gt_intervals *data,
			      const size_t *first)
{
	uint64_t *busy_ns;

	if (!summary->gpu_count || !data->count)
		return 0;
	busy_ns = find_gpu_busy(summary, data->items, data->count);
	for (size_t i = 0; busy_ns && i < summary->step_count; i++) {
		struct gt_summary_step *step = &summary->steps[i];

		for (size_t k = first[i]; k < first[i + 1]; k++)
			step->data_gpu_busy_ns =
				GT_MIN(step->data_gpu_busy_ns + busy_ns[k], (uint64_t)INT64_MAX);
	}
	free(busy_ns);
	return busy_ns ? 0 : -ENOMEM;
}

int gt_summary_finish_phases(struct gt_summary *summary)
{
	size_t *first = malloc((summary->step_count + 1) * sizeof(*first));
	struct gt_intervals data = { 0 };
	int rc = first ? 0 : -ENOMEM;

	gt_phases_finish(&summary->phases);
	for (size_t i = 0; !rc && i < summary->step_count; i++) {
		struct gt_summary_step *step = &summary->steps[i];

		first[i] = data.count;
		rc = gt_phases_of_step(&summary->phases, step->thread, interval_of(step),
				       &step->phases, &data);
		step->has_phases = !rc;
		rc = rc == -EINVAL ? 0 : rc;
	}
	if (!rc) {
		first[summary->step_count] = data.count;
		rc = find_data_gpu_busy(summary, &data, first);
	}
	free(first);
	gt_intervals_release(&data);
	gt_phases_release(&summary->phases);
	return rc;
}

struct gt_summary_phases gt_summary_phases(const struct gt_summary *summary)
{
	struct gt_summary_phases ret = { 0 };

	for (size_t i = 0; i < summary->step_count; i++) {
		const struct gt_summary_step *step = &summary->steps[i];

		if (!step->has_phases)
			continue;
		ret.steps++;
		ret.total_ns = gt_summary_add_sat(ret.total_ns, step->dur_ns);
		for (size_t k = 0; k < GT_TORCH_MAX; k++)
			ret.ns[k] = gt_summary_add_sat(ret.ns[k], step->phases.ns[k]);
		ret.data_gpu_busy_ns =
			gt_summary_add_sat(ret.data_gpu_busy_ns, step->data_gpu_busy_ns);
	}
	if (ret.ns[GT_TORCH_OTHER] == ret.total_ns)
		ret.steps = 0;
	if (summary->gpu_count > 1)
		ret.data_gpu_busy_ns /= summary->gpu_count;
	ret.data_gpu_busy_ns = GT_MIN(ret.data_gpu_busy_ns, ret.ns[GT_TORCH_DATA]);
	return ret;
}

bool gt_summary_is_data_bound(const struct gt_summary_phases *phases)
{
	uint64_t gain_ns = phases->ns[GT_TORCH_DATA] - phases->data_gpu_busy_ns;

	return phases->steps && gain_ns && gain_ns >= phases->total_ns / 10;
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

size_t gt_summary_steps_cut(const struct gt_summary *summary)
{
	size_t count = 0;

	for (size_t i = 0; i < summary->step_count; i++)
		count += summary->steps[i].cut;
	return count;
}

int gt_summary_step_range(const struct gt_summary *summary, struct gt_range *ret)
{
	uint64_t *times = malloc((summary->step_count + 1) * sizeof(*times));
	bool all_cut = gt_summary_steps_cut(summary) == summary->step_count;
	size_t count = 0;

	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < summary->step_count; i++) {
		if (all_cut || !summary->steps[i].cut)
			times[count++] = summary->steps[i].dur_ns;
	}
	*ret = gt_range_of(times, count);
	free(times);
	return 0;
}
