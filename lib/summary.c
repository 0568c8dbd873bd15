/*
 * summary.c - collects a summary from the events of a trace; see summary.h.
 */
#include "base.h"
#include "host_call.h"
#include "summary.h"
#include "summary_priv.h"

#include <stdlib.h>

#define STEP_PREFIX GT_STR("ProfilerStep#")

/* A producer that numbers more devices than this does not number devices. */
#define MAX_DEVICES 4096

uint64_t gt_summary_mean_ns(const struct gt_summary_stat *stat)
{
	uint64_t calls = stat->calls;

	if (!calls)
		return 0;
	/* total_ns may have saturated: nothing may be added to it. */
	return stat->total_ns / calls + (stat->total_ns % calls >= calls - calls / 2);
}

struct gt_summary_stat *gt_summary_row(struct gt_summary_table *table, struct gt_str name,
				       bool *ret_new)
{
	uint32_t number = gt_intern(&table->names, name);
	struct gt_summary_stat *stats;

	if (number == GT_INTERN_FAILED)
		return NULL;
	if (number >= table->cap) {
		uint32_t cap = table->cap ? table->cap * 2 : 64;

		stats = realloc(table->stats, cap * sizeof(*stats));
		if (!stats)
			return NULL;
		memset(stats + table->cap, 0, (cap - table->cap) * sizeof(*stats));
		table->stats = stats;
		table->cap = cap;
	}
	*ret_new = !table->stats[number].calls;
	return &table->stats[number];
}

void gt_summary_add_call(struct gt_summary_stat *row, uint64_t dur_ns)
{
	row->min_ns = row->calls ? GT_MIN(row->min_ns, dur_ns) : dur_ns;
	row->max_ns = GT_MAX(row->max_ns, dur_ns);
	row->total_ns = gt_summary_add_sat(row->total_ns, dur_ns);
	row->calls++;
}

static void release_table(struct gt_summary_table *table)
{
	gt_interner_release(&table->names);
	free(table->stats);
}

/* ---- GPU work -------------------------------------------------------------------------------- */

static struct gt_summary_gpu *find_gpu(struct gt_summary *summary, int64_t device)
{
	size_t at = summary->gpu_count;
	struct gt_summary_gpu *gpus;

	while (at > 0 && summary->gpus[at - 1].device > device)
		at--;
	if (at > 0 && summary->gpus[at - 1].device == device)
		return &summary->gpus[at - 1];
	gpus = realloc(summary->gpus, (summary->gpu_count + 1) * sizeof(*gpus));
	if (!gpus)
		return NULL;
	summary->gpus = gpus;
	memmove(gpus + at + 1, gpus + at, (summary->gpu_count - at) * sizeof(*gpus));
	gpus[at] = (struct gt_summary_gpu){ .device = device,
					    .first_ns = INT64_MAX,
					    .last_ns = INT64_MIN };
	summary->gpu_count++;
	return &gpus[at];
}

bool gt_summary_is_communication(struct gt_str name)
{
	return gt_str_has_nocase(name, GT_STR("nccl")) || gt_str_has_nocase(name, GT_STR("rccl")) ||
	       gt_str_has_nocase(name, GT_STR("cross_device_reduce"));
}

static int64_t device_of(const struct gt_trace_event *event)
{
	int64_t device = gt_trace_event_device(event);

	return device < 0 || device > MAX_DEVICES ? MAX_DEVICES : device;
}

static uint64_t bytes_of(const struct gt_trace_event *event)
{
	int64_t bytes = gt_trace_event_id(event, GT_STR("\"bytes\""));

	return bytes > 0 ? (uint64_t)bytes : 0;
}

static int add_gpu_work(struct gt_summary *summary, struct gt_summary_table *table,
			const struct gt_trace_event *event, uint64_t dur_ns, int64_t correlation)
{
	struct gt_launched work = { .start_ns = event->ts_ns,
				    .end_ns = event->ts_ns + (int64_t)dur_ns,
				    .call = correlation,
				    .is_kernel = event->cat == GT_CAT_KERNEL };
	bool is_new;
	struct gt_summary_stat *row = gt_summary_row(table, event->name, &is_new);
	struct gt_summary_gpu *gpu = row ? find_gpu(summary, device_of(event)) : NULL;

	if (!gpu)
		return -ENOMEM;
	if (is_new)
		row->marked = gt_summary_is_communication(event->name);
	gt_summary_add_call(row, dur_ns);
	if (event->cat != GT_CAT_KERNEL)
		row->bytes = gt_summary_add_sat(row->bytes, bytes_of(event));
	else if (GT_UNLIKELY(summary->with_launches) &&
		 gt_kernel_stats_add(&summary->kernel_stats, (uint32_t)(row - table->stats), event,
				     (int64_t)dur_ns, correlation) < 0)
		return -ENOMEM;
	if (event->cat == GT_CAT_MEMCPY)
		work.kind = GT_LAUNCHED_MEMCPY;
	else
		work.kind = row->marked ? GT_LAUNCHED_COMM : GT_LAUNCHED_COMPUTE;
	gpu->ops++;
	gpu->first_ns = GT_MIN(gpu->first_ns, event->ts_ns);
	gpu->last_ns = GT_MAX(gpu->last_ns, work.end_ns);
	return gt_launched_add(&gpu->works, &work);
}

static int split_gpu_time(struct gt_summary_gpu *gpu)
{
	struct gt_intervals *const sets[] = { [GT_LAUNCHED_COMPUTE] = &gpu->compute,
					      [GT_LAUNCHED_COMM] = &gpu->comm,
					      [GT_LAUNCHED_MEMCPY] = &gpu->memcpy };
	int rc = gt_launched_sort(&gpu->works);

	for (size_t i = 0; !rc && i < gpu->works.count; i++) {
		const struct gt_launched *work = &gpu->works.items[i];

		rc = gt_intervals_add(sets[work->kind], work->start_ns, work->end_ns);
	}
	if (rc)
		return rc;
	gt_intervals_merge(&gpu->compute);
	gt_intervals_merge(&gpu->comm);
	gt_intervals_merge(&gpu->memcpy);
	gpu->time = gt_gpu_time_of((uint64_t)gpu->last_ns - (uint64_t)gpu->first_ns, &gpu->compute,
				   &gpu->comm, &gpu->memcpy);
	return 0;
}

/* ---- host ------------------------------------------------------------------------------------ */

static int add_host_call(struct gt_summary *summary, const struct gt_trace_event *event,
			 uint64_t dur_ns, int64_t correlation)
{
	bool is_new;
	struct gt_summary_stat *row = gt_summary_row(&summary->calls, event->name, &is_new);

	if (!row)
		return -ENOMEM;
	if (is_new)
		row->marked = gt_call_blocks_host(event->name);
	gt_summary_add_call(row, dur_ns);
	return gt_summary_add_launch(summary, event, dur_ns, correlation);
}

static int add_range(struct gt_summary *summary, const struct gt_trace_event *event,
		     uint64_t dur_ns)
{
	bool is_new;
	struct gt_summary_stat *row = gt_summary_row(&summary->ranges, event->name, &is_new);

	if (!row)
		return -ENOMEM;
	if (is_new)
		row->wait = gt_host_wait_of_range(event->name);
	gt_summary_add_call(row, dur_ns);
	return gt_summary_add_wait(summary, event, dur_ns, row->wait);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* args has it of calls and of GPU work. 0: there is none. */
static int64_t correlation_of(const struct gt_trace_event *event)
{
	switch (event->cat) {
	case GT_CAT_KERNEL:
	case GT_CAT_MEMCPY:
	case GT_CAT_MEMSET:
	case GT_CAT_RUNTIME:
	case GT_CAT_DRIVER:
	case GT_CAT_OVERHEAD:
	case GT_CAT_SYNC:
		return gt_trace_event_id(event, GT_STR("\"correlation\""));
	default:
		return 0;
	}
}

static int add_span(struct gt_summary *summary, const struct gt_trace_event *event, uint64_t dur_ns,
		    int64_t correlation)
{
	switch (event->cat) {
	case GT_CAT_KERNEL:
		return add_gpu_work(summary, &summary->kernels, event, dur_ns, correlation);
	case GT_CAT_MEMCPY:
	case GT_CAT_MEMSET:
		return add_gpu_work(summary, &summary->copies, event, dur_ns, correlation);
	case GT_CAT_RUNTIME:
	case GT_CAT_DRIVER:
		return add_host_call(summary, event, dur_ns, correlation);
	case GT_CAT_CPU_OP:
		if (gt_str_starts(event->name, STEP_PREFIX)) /* of 2020 and 2021 */
			return gt_summary_add_step(summary, event, dur_ns);
		return gt_summary_add_wait(summary, event, dur_ns, gt_host_wait_of_op(event->name));
	case GT_CAT_ANNOTATION:
		if (gt_str_starts(event->name, STEP_PREFIX))
			return gt_summary_add_step(summary, event, dur_ns);
		return add_range(summary, event, dur_ns);
	default:
		return 0;
	}
}

/* What happens at a time that is sane. */
static int add_event(struct gt_summary *summary, const struct gt_trace_event *event)
{
	int64_t dur_ns, correlation;
	int rc = 0;

	if (event->phase == 'i')
		return summary->no_operators ? 0 : gt_ops_add_instant(&summary->ops, event);
	summary->is_kineto = true;
	summary->negative += event->dur_ns < 0;
	summary->clamped += event->dur_ns > GT_SUMMARY_TIME_MAX_NS;
	dur_ns = GT_MAX(GT_MIN(event->dur_ns, GT_SUMMARY_TIME_MAX_NS), 0);
	correlation = correlation_of(event);
	if (!summary->no_operators)
		rc = gt_ops_add(&summary->ops, event, dur_ns, correlation);
	if (!rc && GT_UNLIKELY(summary->with_launches) &&
	    (event->cat == GT_CAT_CPU_OP || event->cat == GT_CAT_ANNOTATION))
		rc = gt_kernel_stats_add_op(&summary->kernel_stats, event);
	return rc ? rc : add_span(summary, event, (uint64_t)dur_ns, correlation);
}

/* A slice that no table has: one in two events, or one whose phase is missing. */
static bool is_other_slice(const struct gt_trace_event *event)
{
	return (event->phase == 'B' || event->phase == 'b' || !event->phase) &&
	       event->cat != GT_CAT_OTHER && event->cat != GT_CAT_NONE &&
	       event->cat != GT_CAT_LAUNCH_FLOW && event->cat != GT_CAT_TRACE;
}

static int on_event(void *context, const struct gt_trace_event *event)
{
	struct gt_summary *summary = context;
	bool is_span = event->phase == 'X' && event->cat != GT_CAT_OTHER &&
		       event->cat != GT_CAT_NONE;
	bool is_untimed = event->phase == 'X' && !(event->has_ts && event->has_dur);
	struct gt_trace_event clamped;

	summary->not_spans += GT_UNLIKELY(!is_span && is_other_slice(event));
	if (!is_span && event->phase != 'i' && !summary->by && GT_LIKELY(!is_untimed))
		return 0;
	if (summary->selection && !gt_selection_takes(summary->selection, event))
		return 0;
	if (GT_UNLIKELY(is_untimed)) {
		summary->is_kineto |= is_span;
		summary->without_dur++;
		return 0;
	}
	if (GT_UNLIKELY(summary->by)) {
		int rc = gt_summary_add_by(summary, event);

		if (rc || (!is_span && event->phase != 'i'))
			return rc;
	}
	if (GT_LIKELY(event->ts_ns == gt_summary_clamp(event->ts_ns)))
		return add_event(summary, event);
	clamped = *event;
	clamped.ts_ns = gt_summary_clamp(event->ts_ns);
	summary->clamped++;
	return add_event(summary, &clamped);
}

static int on_member(void *context, struct gt_str key, struct gt_str raw)
{
	return gt_summary_member(context, key, raw);
}

static int finish(struct gt_summary *summary)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < summary->gpu_count; i++)
		rc = split_gpu_time(&summary->gpus[i]);
	if (!rc)
		rc = gt_summary_finish_launches(summary);
	if (!rc)
		rc = gt_summary_finish_steps(summary);
	if (rc)
		return rc;
	gt_summary_finish_by(summary);
	gt_summary_name_producer(summary);
	gt_summary_begin_phases(summary);
	rc = gt_ops_finish(&summary->ops, !summary->own.present);
	if (!rc && summary->phases.count)
		rc = gt_summary_finish_phases(summary);
	return rc || !summary->with_launches ? rc : gt_kernel_stats_finish(&summary->kernel_stats);
}

int gt_summary_read(struct gt_summary **ret, struct gt_gz_reader *gz, const char *path,
		    const struct gt_summary_options *options, struct gt_err *err)
{
	struct gt_summary *summary = calloc(1, sizeof(*summary));
	struct gt_trace_hooks hooks = { .event = on_event, .member = on_member };
	int rc = -ENOMEM;

	if (summary) {
		summary->rank = -1;
		summary->path = strdup(path);
		summary->no_operators = options && options->no_operators;
		summary->selection = options ? options->selection : NULL;
		summary->by = options ? options->by : GT_SUMMARY_BY_ANY;
		hooks.context = summary;
	}
	if (!summary || !summary->path ||
	    gt_ops_init(&summary->ops, options ? options->stack_depth : 0) < 0) {
		gt_summary_free(summary);
		return gt_err_set(err, rc, "out of memory");
	}
	if (summary->by == GT_SUMMARY_BY_LINE) {
		summary->ops.by_line = true;
		summary->ops.stack_depth = 1;
	}
	if (summary->by == GT_SUMMARY_BY_BLOCKING) {
		summary->ops.called = gt_summary_add_blocking;
		summary->ops.called_context = summary;
	} else if (summary->by == GT_SUMMARY_BY_KERNEL || (options && options->with_launches)) {
		summary->with_launches = true;
		summary->kernel_stats.ops = &summary->ops;
		summary->ops.called = gt_kernel_stats_add_call;
		summary->ops.called_context = &summary->kernel_stats;
	}
	rc = gt_trace_read(gz, &hooks, &summary->read, err);
	if (!rc && summary->selection)
		rc = gt_selection_check(summary->selection, err);
	if (!rc)
		rc = finish(summary);
	if (rc) {
		gt_summary_free(summary);
		return rc == -ENOMEM ? gt_err_set(err, rc, "out of memory") : rc;
	}
	summary->gz = *gt_gz_status(gz);
	summary->selection = NULL;
	*ret = summary;
	return 0;
}

int gt_summary_load(struct gt_summary **ret, const char *path,
		    const struct gt_summary_options *options, struct gt_err *err)
{
	struct gt_gz_reader *gz;
	int rc = gt_gz_open(&gz, path, err);

	if (rc)
		return rc;
	rc = gt_summary_read(ret, gz, path, options, err);
	gt_gz_close(gz);
	return rc;
}

void gt_summary_free(struct gt_summary *summary)
{
	if (!summary)
		return;
	for (size_t i = 0; i < summary->gpu_count; i++) {
		gt_intervals_release(&summary->gpus[i].compute);
		gt_intervals_release(&summary->gpus[i].comm);
		gt_intervals_release(&summary->gpus[i].memcpy);
	}
	gt_summary_release_launches(summary);
	free(summary->gpus);
	free(summary->steps);
	free(summary->path);
	release_table(&summary->kernels);
	release_table(&summary->copies);
	release_table(&summary->calls);
	release_table(&summary->ranges);
	release_table(&summary->categories);
	release_table(&summary->blocking);
	gt_summary_release_by(summary);
	gt_interner_release(&summary->step_names);
	gt_ops_release(&summary->ops);
	gt_phases_release(&summary->phases);
	gt_kernel_stats_release(&summary->kernel_stats);
	gt_buf_release(&summary->producer);
	gt_buf_release(&summary->runtime);
	gt_buf_release(&summary->devices);
	gt_buf_release(&summary->own.version);
	gt_buf_release(&summary->own.step_source);
	gt_buf_release(&summary->own.reason);
	gt_buf_release(&summary->own.warnings);
	free(summary);
}
