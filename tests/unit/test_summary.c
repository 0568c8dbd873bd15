/*
 * test_summary.c - the numbers of a small trace, and how they are printed.
 */
#include "base.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define GPU(cat, name, device, ts, dur)                                                          \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" ts \
	",\"dur\":" dur ",\"args\":{\"stream\":7,\"device\":" device "}},\n"
#define HOST(cat, name, ts, dur)                                                                 \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":9,\"tid\":9,\"ts\":" ts \
	",\"dur\":" dur "},\n"

static const char trace[] =
	"{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"Some GPU\"},"
	"{\"id\":1,\"name\":\"Some GPU\"}],\"cuda_runtime_version\":12040,"
	"\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":3,\"world_size\":8},\"traceEvents\":["
	/* device 0: 10 … 20 compute, 15 … 30 communication, 28 … 34 copy, 40 … 41 set */
	GPU("kernel", "gemm", "0", "10", "4.5") GPU("kernel", "gemm", "0", "14", "6") GPU(
		"kernel", "ncclDevKernel_AllReduce", "0", "15",
		"15") GPU("gpu_memcpy", "Memcpy DtoH", "0", "28", "6")
		GPU("gpu_memset", "Memset", "0", "40", "1") GPU("Kernel", "old", "1", "0", "0")
			HOST("cuda_runtime", "cudaLaunchKernel", "1",
			     "1") HOST("cuda_runtime", "cudaStreamSynchronize", "2",
				       "3") HOST("cuda_driver", "cuMemcpyDtoH_v2", "2", "5")
				HOST("cuda_runtime", "cudaMemcpyAsync", "2",
				     "9") HOST("user_annotation", "ProfilerStep#7", "50", "20")
					HOST("user_annotation", "ProfilerStep#6", "0",
					     "50") HOST("user_annotation", "forward", "1",
							"2") HOST("cpu_op", "aten::mm", "1", "2")
						HOST("user_annotation", "forward", "3",
						     "-1") "{\"ph\":\"X\",\"cat\":\"kernel\","
							   "\"name\":\"no time\"},{\"ph\":\"M\"}],"
							   "\"gtrace\":{\"version\":\"9.9\",\"step_"
							   "source\":\"api\",\"complete\":false,"
							   "\"dropped\":{\"cupti\":2,\"arena\":0,"
							   "\"ring\":1},\"launches_without_gpu\":4,"
							   "\"reason\":\"the program \\u001b "
							   "ended\",\"warnings\":[\"w1\",\"w2\"]}}";

static struct gt_summary *load_by(const char *text, size_t len, enum gt_summary_by by)
{
	const struct gt_summary_options options = { .by = by };
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;

	assert_int_equal(gt_gz_open_mem(&gz, text, len), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "some \x1b file", &options, &err), 0);
	gt_gz_close(gz);
	return summary;
}

static struct gt_summary *load(const char *text, size_t len)
{
	return load_by(text, len, GT_SUMMARY_BY_ANY);
}

static const struct gt_summary_stat *row(const struct gt_summary_table *table, const char *name)
{
	for (uint32_t i = 0; i < table->names.count; i++) {
		if (gt_str_equal(gt_interned(&table->names, i), gt_str_of(name)))
			return &table->stats[i];
	}
	fail_msg("no row %s", name);
	return NULL;
}

static void test_tables(void **state)
{
	struct gt_summary *summary = load(trace, sizeof(trace) - 1);
	const struct gt_summary_stat *stat = row(&summary->kernels, "gemm");
	uint32_t *rows;
	size_t count;

	(void)state;
	assert_int_equal(summary->kernels.names.count, 3);
	assert_int_equal(stat->calls, 2);
	assert_int_equal(stat->total_ns, 10500);
	assert_int_equal(stat->min_ns, 4500);
	assert_int_equal(stat->max_ns, 6000);
	assert_int_equal(gt_summary_mean_ns(stat), 5250);
	assert_int_equal(summary->copies.names.count, 2);
	stat = row(&summary->ranges, "forward");
	assert_int_equal(stat->calls, 2);
	assert_int_equal(stat->total_ns, 2000);
	assert_int_equal(stat->min_ns, 0);
	assert_int_equal(summary->negative, 1);
	assert_int_equal(summary->without_dur, 1);

	rows = gt_summary_order(&summary->calls, &(struct gt_summary_style){ 0 }, true, &count);
	assert_int_equal(count, 2);
	assert_true(gt_str_equal(gt_interned(&summary->calls.names, rows[0]),
				 GT_STR("cuMemcpyDtoH_v2")));
	assert_true(gt_str_equal(gt_interned(&summary->calls.names, rows[1]),
				 GT_STR("cudaStreamSynchronize")));
	free(rows);
	rows = gt_summary_order(&summary->kernels,
				&(struct gt_summary_style){ .sort = GT_SUMMARY_BY_NAME }, false,
				&count);
	assert_int_equal(count, 3);
	assert_true(gt_str_equal(gt_interned(&summary->kernels.names, rows[1]),
				 GT_STR("ncclDevKernel_AllReduce")));
	free(rows);
	gt_summary_free(summary);
}

static void test_gpu_time(void **state)
{
	struct gt_summary *summary = load(trace, sizeof(trace) - 1);
	const struct gt_summary_gpu *gpu = &summary->gpus[0];

	(void)state;
	assert_int_equal(summary->gpu_count, 2);
	assert_int_equal(gpu->device, 0);
	assert_int_equal(gpu->ops, 5);
	assert_int_equal(gpu->time.span_ns, 31000);
	assert_int_equal(gpu->time.compute_ns, 11000);
	assert_int_equal(gpu->time.comm_ns, 15000);
	assert_int_equal(gpu->time.exposed_comm_ns, 10000);
	assert_int_equal(gpu->time.memcpy_ns, 6000);
	assert_int_equal(gpu->time.exposed_memcpy_ns, 4000);
	assert_int_equal(gpu->time.busy_ns, 25000);
	assert_int_equal(gpu->time.idle_ns, 6000);
	assert_int_equal(summary->gpus[1].time.span_ns, 0);
	assert_int_equal(summary->gpus[1].ops, 1);
	gt_summary_free(summary);
}

static void test_meta(void **state)
{
	struct gt_summary *summary = load(trace, sizeof(trace) - 1);

	(void)state;
	assert_int_equal(summary->rank, 3);
	assert_int_equal(summary->world_size, 8);
	assert_true(gt_str_equal(gt_buf_str(&summary->producer), GT_STR("gtrace 9.9, CUDA 12.4")));
	assert_true(gt_str_equal(gt_buf_str(&summary->devices), GT_STR("Some GPU")));
	assert_int_equal(summary->step_count, 2);
	assert_int_equal(summary->steps[0].start_ns, 0);
	assert_int_equal(summary->steps[0].dur_ns, 50000);
	assert_true(gt_str_equal(gt_interned(&summary->step_names, summary->steps[1].name),
				 GT_STR("ProfilerStep#7")));
	assert_true(summary->own.present);
	assert_false(summary->own.complete);
	assert_int_equal(summary->own.dropped, 3);
	assert_int_equal(summary->own.launches_without_gpu, 4);
	gt_summary_free(summary);
}

/* Escapes in keys say the same. */
static void test_escaped_meta(void **state)
{
	static const char text[] =
		"{\"deviceP\\u0072operties\":[{\"n\\u0061me\":\"Some GPU\"}],"
		"\"distributed\\u0049nfo\":{\"r\\u0061nk\":3},\"traceEvents\":[],"
		"\"gtrac\\u0065\":{\"compl\\u0065te\":true,\"v\\u0065rsion\":\"9.9\"}}";
	struct gt_summary *summary = load(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(summary->rank, 3);
	assert_true(gt_str_equal(gt_buf_str(&summary->producer), GT_STR("gtrace 9.9")));
	assert_true(gt_str_equal(gt_buf_str(&summary->devices), GT_STR("Some GPU")));
	assert_true(summary->own.complete);
	gt_summary_free(summary);
}

/* Each format in full; the width of the table is that of a wide terminal. */
static void print(enum gt_summary_format format, struct gt_buf *out)
{
	struct gt_summary *summary = load(trace, sizeof(trace) - 1);
	struct gt_summary_style style = { .format = format, .width = 100 };

	assert_int_equal(gt_summary_print(summary, &style, out), 0);
	assert_null(memchr(out->data, 0x1b, out->len));
	gt_buf_byte(out, '\0');
	gt_summary_free(summary);
}

static void assert_has(const struct gt_buf *text, const char *part)
{
	if (!strstr(text->data, part))
		fail_msg("no '%s' in:\n%s", part, text->data);
}

static void test_print_table(void **state)
{
	struct gt_buf out = { 0 };

	(void)state;
	print(GT_SUMMARY_TABLE, &out);
	assert_has(&out,
		   "some \\x1b file\ngtrace 9.9, CUDA 12.4, Some GPU, rank 3 of 8, 17 events\n"
		   "2 steps: 20.00us min, 35.00us median, 50.00us max\n");
	assert_has(&out, "warning: the trace is not complete: the program \\x1b ended\n"
			 "warning: 3 records were dropped while tracing\n"
			 "warning: 4 launches have no GPU work in the trace\n"
			 "warning: w1\nwarning: w2\n");
	assert_has(&out,
		   "    1  15.00us  15.00us  15.00us  15.00us  58.8%  ncclDevKernel_AllReduce\n"
		   "    2  10.50us  5.250us  4.500us  6.000us  41.2%  gemm\n");
	assert_has(
		&out,
		"  0  31.00us  80.65%       35.48%  19.35%        32.26%          12.90%  33.3%\n");
	gt_buf_release(&out);
}

static void test_print_csv(void **state)
{
	struct gt_buf out = { 0 };

	(void)state;
	print(GT_SUMMARY_CSV, &out);
	assert_has(&out, "table,calls,total_us,mean_us,min_us,max_us,name\n"
			 "kernel,1,15.000,15.000,15.000,15.000,\"ncclDevKernel_AllReduce\"\n");
	assert_has(&out, "\nstep,1,50.000,50.000,50.000,50.000,\"ProfilerStep#6\"\n");
	gt_buf_release(&out);
}

static void test_print_json(void **state)
{
	struct gt_buf out = { 0 };

	(void)state;
	print(GT_SUMMARY_JSON, &out);
	assert_has(&out,
		   "{\"files\":[{\"path\":\"some \\u001b file\",\"rank\":3,\"world_size\":8,");
	assert_has(&out,
		   "{\"name\":\"ProfilerStep#6\",\"start_us\":0.000,\"dur_us\":50.000,"
		   "\"gpu_busy_us\":25.000,\"phases\":{\"data_us\":0.000,\"forward_us\":2.000,"
		   "\"backward_us\":0.000,\"optimizer_us\":0.000,\"other_us\":48.000,"
		   "\"data_gpu_busy_us\":0.000}}");
	assert_has(&out,
		   "\"exposed_comm_us\":10.000,\"memcpy_us\":6.000,\"exposed_memcpy_us\":4.000,"
		   "\"idle_us\":6.000,\"overlap_pct\":33.3333");
	assert_has(&out, "{\"name\":\"gemm\",\"calls\":2,\"total_us\":10.500,\"min_us\":4.500,"
			 "\"max_us\":6.000}");
	assert_has(&out, "\"salvaged\":true,\"events\":17,\"skipped\":1,");
	gt_buf_release(&out);
}

static void join(void *context, struct gt_str text)
{
	gt_buf_append(context, text.ptr, text.len);
}

/* A long summary comes in pieces, which together are the same text. */
static void test_print_in_pieces(void **state)
{
	static const enum gt_summary_format formats[] = { GT_SUMMARY_JSON, GT_SUMMARY_CSV };
	struct gt_summary_style style = { .width = 80 };
	struct gt_buf text = { 0 };
	struct gt_summary *summary;

	(void)state;
	gt_buf_byte(&text, '[');
	for (int i = 0; i < 3000; i++)
		gt_buf_printf(&text,
			      GPU("kernel", "some kernel with a longer name %d", "0", "%d", "1"), i,
			      i);
	assert_false(text.failed);
	summary = load(text.data, text.len);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct gt_buf whole = { 0 }, joined = { 0 }, rest = { 0 };
		const struct gt_summary_sink sink = { join, &joined };

		style.format = formats[i];
		style.sink = NULL;
		assert_int_equal(gt_summary_print(summary, &style, &whole), 0);
		style.sink = &sink;
		assert_int_equal(gt_summary_print(summary, &style, &rest), 0);
		assert_true(joined.len > 0);
		assert_true(rest.cap <= 256 << 10);
		join(&joined, gt_buf_str(&rest));
		assert_int_equal(joined.len, whole.len);
		assert_memory_equal(joined.data, whole.data, whole.len);
		gt_buf_release(&whole);
		gt_buf_release(&joined);
		gt_buf_release(&rest);
	}
	gt_buf_release(&text);
	gt_summary_free(summary);
}

static void test_limit_and_brief(void **state)
{
	struct gt_summary *summary = load(trace, sizeof(trace) - 1);
	struct gt_summary_style style = { .limit = 1, .width = 40, .brief = true };
	struct gt_buf out = { 0 };

	(void)state;
	assert_int_equal(gt_summary_print(summary, &style, &out), 0);
	gt_buf_byte(&out, '\0');
	assert_string_equal(out.data,
			    "\nKernels (1 of 3)\n"
			    "calls    total     mean      min      max  share  kernel\n"
			    "    1  15.00us  15.00us  15.00us  15.00us  58.8%  ncclD...duce\n");
	gt_buf_release(&out);
	gt_summary_free(summary);
}

/* Times at the ends of 64 bits neither overflow nor disturb others. */
static void test_extreme_times(void **state)
{
	static const char text[] = "[" GPU("kernel", "a", "0", "1e300", "1e300")
		GPU("kernel", "a", "0", "-1e300", "1e300") GPU("kernel", "a", "0", "0", "1e300")
			GPU("kernel", "b", "99999999999", "1", "1")
				GPU("kernel", "b", "-5", "1", "1");
	struct gt_summary *summary = load(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(row(&summary->kernels, "a")->calls, 3);
	assert_int_equal(summary->gpu_count, 2);
	assert_int_equal(summary->gpus[1].ops, 2);
	assert_true(summary->gpus[0].time.busy_ns <= summary->gpus[0].time.span_ns);
	gt_summary_free(summary);
}

#define TWICE(event)   event event
#define LONGEST(event) TWICE(TWICE(TWICE(event)))

/* Eight of the longest durations do not fit a sum, which stays at its end whatever is added. */
static void test_saturated_sums(void **state)
{
	static const char kernels[] = "[" LONGEST(GPU("kernel", "long", "0", "0", "1e300"))
		GPU("kernel", "short", "0", "0", "1") "]";
	static const char calls[] = "{\"traceEvents\":[" LONGEST(
		HOST("cuda_runtime", "cudaFree", "0", "1e300"))
		HOST("cuda_runtime", "cudaStreamSynchronize", "0",
		     "1") "],\"gtrace\":{\"complete\":true,\"dropped\":{\"a\":1e300,\"b\":1e300,"
			  "\"c\":2}}}";
	struct gt_summary_style style = { .width = 100 };
	struct gt_summary *summary;
	struct gt_buf out = { 0 };

	(void)state;
	summary = load_by(kernels, sizeof(kernels) - 1, GT_SUMMARY_BY_STREAM);
	assert_int_equal(summary->tracks.rows[0].parts_ns[0], UINT64_MAX);
	assert_int_equal(gt_summary_print(summary, &style, &out), 0);
	gt_summary_free(summary);
	summary = load(calls, sizeof(calls) - 1);
	assert_int_equal(gt_summary_print(summary, &style, &out), 0);
	gt_summary_free(summary);
	gt_buf_byte(&out, '\0');
	assert_has(&out, "100.0%  long");
	assert_has(&out, "100.0%  cudaFree");
	assert_has(&out, "18446744073709551615 records were dropped");
	out.len = 0;
	style.by = GT_SUMMARY_BY_KERNEL;
	summary = load_by(kernels, sizeof(kernels) - 1, style.by);
	assert_int_equal(gt_summary_print(summary, &style, &out), 0);
	gt_summary_free(summary);
	gt_buf_byte(&out, '\0');
	assert_has(&out, " 100.0% ");
	gt_buf_release(&out);
}

/* A sum that does not fit stays at the end of 64 bits, and so near it the mean. */
static void test_saturated_mean(void **state)
{
	const struct gt_summary_stat saturated = { .calls = 11, .total_ns = UINT64_MAX };
	const struct gt_summary_stat halves = { .calls = 4, .total_ns = 6 };
	const struct gt_summary_stat below = { .calls = 5, .total_ns = 7 };

	(void)state;
	assert_int_equal(gt_summary_mean_ns(&saturated), UINT64_MAX / 11);
	assert_int_equal(gt_summary_mean_ns(&halves), 2);
	assert_int_equal(gt_summary_mean_ns(&below), 1);
	assert_int_equal(gt_summary_mean_ns(&(struct gt_summary_stat){ 0 }), 0);
}

/* What is not as the file says is said. */
static void test_doubtful_events(void **state)
{
	static const char text[] = "[" GPU("kernel", "a", "0", "1e300", "1")
		GPU("kernel", "a", "0", "1", "1e300")
			GPU("kernel", "a", "0", "0",
			    "-1") "{\"ph\":\"B\",\"cat\":\"kernel\",\"name\":\"b\",\"ts\":1},\n"
				  "{\"ph\":\"E\",\"cat\":\"kernel\",\"name\":\"b\",\"ts\":2},\n"
				  "{\"cat\":\"cpu_op\",\"name\":\"c\",\"ts\":1,\"dur\":1},\n"
				  "{\"ph\":\"B\",\"cat\":\"other\",\"name\":\"d\",\"ts\":1},\n"
				  "{\"ph\":\"X\",\"cat\":\"other\",\"name\":\"e\",\"ts\":1},\n"
				  "{\"ph\":\"X\",\"name\":\"f\",\"ts\":\"1a\",\"dur\":1}]";
	struct gt_summary *summary = load(text, sizeof(text) - 1);
	struct gt_buf losses = { 0 };

	(void)state;
	gt_summary_losses(summary, &losses);
	assert_true(gt_summary_is_lossy(summary));
	assert_has(&losses, "2 events have no time or duration and were left out\n"
			    "1 negative duration was taken as 0\n"
			    "2 times are beyond 73 years and were taken as that\n"
			    "2 slices are not one event of phase X and were left out\n");
	gt_buf_release(&losses);
	gt_summary_free(summary);
}

/* GPU 0 works 5-15, 12-30 and 95-120, GPU 1 8-11; steps are 0-10, 10-40, 40-100 and, out of order
 * and overlapping as no producer writes them, 9-96. */
static void test_busy_in_steps(void **state)
{
	static const char text[] = "[" HOST("user_annotation", "ProfilerStep#1", "0", "10")
		HOST("user_annotation", "ProfilerStep#3", "40", "60")
			HOST("user_annotation", "ProfilerStep#2", "10", "30")
				HOST("user_annotation", "ProfilerStep#9", "9", "87")
					GPU("kernel", "late", "0", "95", "25") GPU("kernel", "k",
										   "0", "5", "10")
						GPU("gpu_memcpy", "c", "0", "12", "18")
							GPU("kernel", "nccl", "1", "8", "3") "]";
	static const uint64_t busy_us[] = { 5 + 2, 21 + 1 + 2, 20 + 1, 5 };
	struct gt_summary *summary = load(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(summary->step_count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(summary->steps[i].gpu_busy_ns, busy_us[i] * 1000);
	gt_summary_free(summary);
}

#define STEP(name, ts, dur, args)                                    \
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"" name \
	"\",\"pid\":9,\"tid\":9,\"ts\":" ts ",\"dur\":" dur ",\"args\":{" args "}},\n"

static void print_as(const struct gt_summary *summary, enum gt_summary_format format,
		     enum gt_summary_by by, struct gt_buf *out)
{
	const struct gt_summary_style style = { .format = format, .by = by, .width = 80 };

	out->len = 0;
	assert_int_equal(gt_summary_print(summary, &style, out), 0);
	gt_buf_byte(out, '\0');
}

/* What the trace has of a step that goes on behind its end is there, but no measure. */
static void test_cut_steps(void **state)
{
	static const char text[] = "[" STEP("ProfilerStep#1", "0", "10", "\"External id\":1")
		STEP("ProfilerStep#2", "10", "30", "\"External id\":2,\"cut\":false")
			STEP("ProfilerStep#3", "40", "1", "\"External id\":3,\"cut\":true") "]";
	static const char alone[] = "[" STEP("ProfilerStep#3", "40", "1", "\"cut\":true") "]";
	struct gt_buf out = { 0 };
	struct gt_range range;
	struct gt_summary *summary = load(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(summary->step_count, 3);
	assert_int_equal(gt_summary_step_range(summary, &range), 0);
	assert_int_equal(range.count, 2);
	assert_int_equal(range.min, 10000);
	assert_int_equal(range.median, 20000);
	print_as(summary, GT_SUMMARY_TABLE, GT_SUMMARY_BY_ANY, &out);
	assert_has(&out, "2 steps: 10.00us min, 20.00us median, 30.00us max; "
			 "1 more is cut by the end of the trace\n");
	assert_has(&out, "  30.00us  ProfilerStep#2\n  40.00us  1.000us  ProfilerStep#3 (cut)\n");
	print_as(summary, GT_SUMMARY_JSON, GT_SUMMARY_BY_ANY, &out);
	assert_has(&out, "\"dur_us\":30.000}");
	assert_has(&out, "\"dur_us\":1.000,\"cut\":true}");
	print_as(summary, GT_SUMMARY_CSV, GT_SUMMARY_BY_STEP, &out);
	assert_has(&out, "start_us,dur_us,gpu_busy_us,cut,name\n"
			 "0.000,10.000,0.000,,\"ProfilerStep#1\"\n");
	assert_has(&out, "\n40.000,1.000,0.000,true,\"ProfilerStep#3\"\n");
	gt_summary_free(summary);
	summary = load(alone, sizeof(alone) - 1);
	assert_int_equal(gt_summary_step_range(summary, &range), 0);
	assert_int_equal(range.count, 1);
	assert_int_equal(range.median, 1000);
	print_as(summary, GT_SUMMARY_TABLE, GT_SUMMARY_BY_ANY, &out);
	assert_has(&out, "1 step: 1.000us; cut by the end of the trace\n");
	gt_summary_free(summary);
	gt_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),          cmocka_unit_test(test_gpu_time),
		cmocka_unit_test(test_busy_in_steps),   cmocka_unit_test(test_meta),
		cmocka_unit_test(test_cut_steps),       cmocka_unit_test(test_print_table),
		cmocka_unit_test(test_print_csv),       cmocka_unit_test(test_print_json),
		cmocka_unit_test(test_print_in_pieces), cmocka_unit_test(test_limit_and_brief),
		cmocka_unit_test(test_extreme_times),   cmocka_unit_test(test_doubtful_events),
		cmocka_unit_test(test_saturated_mean),  cmocka_unit_test(test_saturated_sums),
		cmocka_unit_test(test_escaped_meta),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
