/*
 * fuzz_summary.c - a whole summary in every format; its numbers cannot contradict each other and
 * no byte of the file steers a terminal.
 */
#include "base.h"
#include "summary.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_gpus(const struct gt_summary *summary)
{
	for (size_t i = 0; i < summary->gpu_count; i++) {
		const struct gt_summary_gpu *gpu = &summary->gpus[i];

		check(gpu->time.compute_ns + gpu->time.exposed_comm_ns +
			      gpu->time.exposed_memcpy_ns ==
		      gpu->time.busy_ns);
		check(gpu->time.busy_ns + gpu->time.idle_ns == gpu->time.span_ns);
		check(gpu->idle.host_late_ns + gpu->idle.launch_latency_ns + gpu->idle.queued_ns +
			      gpu->idle.communication_ns + gpu->idle.data_loading_ns +
			      gpu->idle.unknown_ns ==
		      gpu->time.idle_ns);
		check(gpu->launch.linked <= gpu->ops &&
		      gpu->launch.queue_max <= gpu->launch.linked);
		check(gpu->time.exposed_comm_ns <= gpu->time.comm_ns);
		check(gpu->time.exposed_memcpy_ns <= gpu->time.memcpy_ns);
	}
}

static void check_steps(const struct gt_summary *summary)
{
	for (size_t i = 0; i < summary->step_count; i++) {
		const struct gt_summary_step *step = &summary->steps[i];
		uint64_t phases_ns = 0;

		check(step->gpu_busy_ns / GT_MAX(summary->gpu_count, (size_t)1) <= step->dur_ns);
		for (size_t k = 0; step->has_phases && k < GT_TORCH_MAX; k++)
			phases_ns += step->phases.ns[k];
		check(!step->has_phases || phases_ns == step->dur_ns);
		check(step->data_gpu_busy_ns / GT_MAX(summary->gpu_count, (size_t)1) <=
		      step->phases.ns[GT_TORCH_DATA]);
	}
}

static void check_safe(const struct gt_buf *text)
{
	for (size_t i = 0; i < text->len; i++)
		check((unsigned char)text->data[i] >= 0x20 || text->data[i] == '\n');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_summary_options options = { .stack_depth = 3 };
	struct gt_summary_style style = { .width = 80, .limit = 5 };
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err = { 0 };
	int rc;

	/* A table alone, which one is by the size. */
	options.by = (enum gt_summary_by)(size % ((GT_SUMMARY_BY_LINE + 1)));
	check(gt_gz_open_mem(&gz, data, size) == 0);
	rc = gt_summary_read(&summary, gz, "fuzz", &options, &err);
	check(rc == 0 || (rc == -EBADMSG && err.msg[0]));
	/* Every format, first with all tables and then with one, operators told apart. */
	for (int i = 0; !rc && i < 2 * (GT_SUMMARY_MARKDOWN + 1); i++) {
		struct gt_buf out = { 0 };

		style.format = (enum gt_summary_format)(i / 2);
		style.by = i % 2 ? options.by : GT_SUMMARY_BY_ANY;
		style.by_shape = style.by_stack = i % 2;
		check(gt_summary_print(summary, &style, &out) == 0);
		check_safe(&out);
		gt_buf_release(&out);
	}
	if (!rc) {
		check_gpus(summary);
		check_steps(summary);
		gt_summary_free(summary);
	}
	gt_gz_close(gz);
	return 0;
}
