/*
 * test_launches.c - idle time by cause and the statistics of launches, of small traces whose
 * answers are counted by hand. Times are in us in the traces and in ns in what is expected.
 */
#include "base.h"
#include "sort_u64.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define WORK(cat, device, ts, dur, correlation)                                                    \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"k\",\"pid\":" device ",\"tid\":7,\"ts\":" ts \
	",\"dur\":" dur ",\"args\":{\"device\":" device                                            \
	",\"stream\":7,\"correlation\":" correlation "}},\n"
#define KERNEL(ts, dur, correlation) WORK("kernel", "0", ts, dur, correlation)
#define CALL(tid, ts, dur, correlation)                                                        \
	"{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,"      \
	"\"tid\":" tid ",\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"correlation\":" correlation \
	"}},\n"
#define HOST(cat, tid, name, ts, dur)                                                    \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":9,\"tid\":" tid \
	",\"ts\":" ts ",\"dur\":" dur "},\n"
#define TRACE(events) "{\"traceEvents\":[" events "{}]}"

static struct gt_summary *load(const char *text)
{
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;

	assert_int_equal(gt_gz_open_mem(&gz, text, strlen(text)), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "file", NULL, &err), 0);
	gt_gz_close(gz);
	for (size_t i = 0; i < summary->gpu_count; i++) {
		const struct gt_idle *idle = &summary->gpus[i].idle;

		assert_int_equal(idle->host_late_ns + idle->launch_latency_ns + idle->queued_ns +
					 idle->communication_ns + idle->data_loading_ns +
					 idle->unknown_ns,
				 summary->gpus[i].time.idle_ns);
	}
	return summary;
}

static void assert_idle(const struct gt_summary *summary, struct gt_idle want)
{
	const struct gt_idle *idle = &summary->gpus[0].idle;

	assert_int_equal(idle->host_late_ns, want.host_late_ns);
	assert_int_equal(idle->launch_latency_ns, want.launch_latency_ns);
	assert_int_equal(idle->queued_ns, want.queued_ns);
	assert_int_equal(idle->communication_ns, want.communication_ns);
	assert_int_equal(idle->data_loading_ns, want.data_loading_ns);
	assert_int_equal(idle->unknown_ns, want.unknown_ns);
}

/*
 * The GPU works from 10 to 20, 23 to 30, 50 to 60 and 70 to 80. The second piece was launched at 5,
 * while the first was running, the third at 42, the fourth at 59.5.
 */
static void test_late_or_latency(void **state)
{
	struct gt_summary *summary =
		load(TRACE(KERNEL("50", "10", "3") KERNEL("10", "10", "1") KERNEL("23", "7", "2")
				   KERNEL("70", "10", "4") CALL("9", "59.5", "3", "4")
					   CALL("9", "42", "3", "3") CALL("9", "1", "3", "1")
						   CALL("9", "5", "3", "2")));

	(void)state;
	/* 30 … 42; 42 … 50; 20 … 23 and 60 … 70 */
	assert_idle(summary, (struct gt_idle){ .host_late_ns = 12000,
					       .launch_latency_ns = 8000,
					       .queued_ns = 13000 });
	gt_summary_free(summary);
}

/* While the host is late from 20 to 100 the thread loads data and communicates; others do not
 * count, nor does what lies outside. */
static void test_waits(void **state)
{
	struct gt_summary *summary = load(TRACE(
		KERNEL("10", "10", "1") KERNEL("110", "10", "2") CALL("9", "1", "3", "1")
			CALL("9", "100", "3", "2")
		/* 20 … 30, and 35 … 45 twice */
		HOST("cpu_op", "9", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
		     "15", "15") HOST("user_annotation", "9", "My Dataloading", "35", "10")
			HOST("user_annotation", "9", "load_data", "40", "5")
		/* 42 … 60 but for 42 … 45; 70 … 75 */
		HOST("cpu_op", "9", "c10d::barrier", "42", "18")
			HOST("user_annotation", "9", "gloo:all_reduce", "70", "5")
				HOST("cpu_op", "9", "nccl:all_reduce", "105", "5")
		/* no waits: of another thread, of a name that only looks like one */
		HOST("cpu_op", "8", "c10d::barrier", "20", "80")
			HOST("cpu_op", "9", "ncclish", "20", "80")
				HOST("cpu_op", "9", "aten::dataload", "20", "80")));

	(void)state;
	assert_idle(summary, (struct gt_idle){ .host_late_ns = 80000 - 20000 - 20000,
					       .launch_latency_ns = 10000,
					       .communication_ns = 20000,
					       .data_loading_ns = 20000 });
	gt_summary_free(summary);
}

/* Of pieces that begin together the one launched first counts: at 25, not 28, and not the one
 * without a launch. */
static void test_together(void **state)
{
	struct gt_summary *summary =
		load(TRACE(KERNEL("10", "10", "1") KERNEL("30", "5", "9") KERNEL("30", "4", "3")
				   KERNEL("30", "3", "2") CALL("9", "25", "1", "2")
					   CALL("9", "28", "1", "3") CALL("9", "1", "1", "1")));

	(void)state;
	assert_idle(summary, (struct gt_idle){ .host_late_ns = 5000, .launch_latency_ns = 5000 });
	gt_summary_free(summary);
}

/* No launch in the file, one that two calls claim, one after its kernel: by clocks that disagree.
 */
static void test_unknown(void **state)
{
	struct gt_summary *summary = load(TRACE(
		KERNEL("10", "10", "1") KERNEL("30", "10", "7") KERNEL("50", "10", "2")
			KERNEL("70", "10", "3") CALL("9", "1", "1", "1") CALL("9", "41", "1", "2")
				CALL("8", "42", "1", "2") CALL("9", "72", "1", "3")));

	(void)state;
	assert_idle(summary, (struct gt_idle){ .host_late_ns = 10000, .unknown_ns = 20000 });
	assert_int_equal(summary->gpus[0].launch.linked, 2);
	assert_int_equal(summary->gpus[0].launch.launches, 2);
	assert_int_equal(summary->gpus[0].launch.delay_max_ns, 8000);
	gt_summary_free(summary);
}

static void print(const struct gt_summary *summary, enum gt_summary_format format,
		  struct gt_buf *out)
{
	struct gt_summary_style style = { .format = format, .width = 100 };

	assert_int_equal(gt_summary_print(summary, &style, out), 0);
	gt_buf_byte(out, '\0');
}

static void test_without_correlations(void **state)
{
	struct gt_summary *summary = load(TRACE(KERNEL("10", "10", "0") KERNEL("30", "10", "5")));
	struct gt_buf table = { 0 }, json = { 0 };

	(void)state;
	assert_int_equal(summary->gpus[0].idle.unknown_ns, 10000);
	assert_int_equal(summary->gpus[0].launch.linked, 0);
	print(summary, GT_SUMMARY_TABLE, &table);
	assert_null(strstr(table.data, "Idle time"));
	assert_null(strstr(table.data, "launches"));
	print(summary, GT_SUMMARY_JSON, &json);
	assert_non_null(strstr(json.data, ",\"idle\":null,\"launch\":null}"));
	gt_buf_release(&table);
	gt_buf_release(&json);
	gt_summary_free(summary);
}

/*
 * Calls from 0 to 4 and from 5 to 7 with a kernel each, a graph from 8 to 30 with two, a copy from
 * 9 to 10; one more kernel without a call. Delays: 10 - 4, 20 - 7, and 0, since the graph's first
 * kernel begins at 26, before its call ends at 30.
 */
static const char launches[] = TRACE(
	CALL("9", "0", "4", "1") CALL("9", "5", "2", "2") CALL("9", "8", "22", "3")
		CALL("9", "9", "1", "4") KERNEL("10", "3", "1") KERNEL("20", "2", "2")
			KERNEL("26", "10", "3") KERNEL("40", "2", "3")
				WORK("gpu_memcpy", "0", "50", "10", "4") KERNEL("55", "1", "99"));

static void test_launch_stats(void **state)
{
	struct gt_summary *summary = load(launches);
	const struct gt_launch_stats *stats = &summary->gpus[0].launch;

	(void)state;
	assert_int_equal(stats->linked, 5);
	assert_int_equal(stats->launches, 3);
	assert_int_equal(stats->delay_median_ns, 6000);
	assert_int_equal(stats->delay_p99_ns, 13000);
	assert_int_equal(stats->delay_max_ns, 13000);
	assert_int_equal(stats->kernels, 5);
	assert_int_equal(stats->short_kernels, 4); /* 10 us is not shorter than 10 us */
	/* The first takes 3 of a call of 4, the second 2 of a call of 2. */
	assert_int_equal(stats->alone, 2);
	assert_int_equal(stats->shorter_than_call, 1);
	/* From 9 on all five wait. */
	assert_int_equal(stats->queue_max, 5);
	/* From 10 to 60: 13 - 10, 22 - 10, 36 - 10, 42 - 10 and 60 - 10 over 50. */
	assert_int_equal((uint64_t)(stats->queue_mean * 1e6 + 0.5), 123 * 1000000 / 50);
	gt_summary_free(summary);
}

static void test_output(void **state)
{
	struct gt_summary *summary = load(launches);
	struct gt_buf table = { 0 }, json = { 0 };

	(void)state;
	print(summary, GT_SUMMARY_TABLE, &table);
	/* Idle of 50: 13 … 20, 22 … 26, 36 … 40, 42 … 50, all launched before. */
	assert_non_null(strstr(table.data,
			       "  0  23.00us      0.00%           0.00%  46.00%      0.00%"
			       "       0.00%  0.00%\n"));
	assert_non_null(strstr(table.data, "  0         3       6.000us  13.00us  13.00us"
					   "   80.0%   50.0%   2.46  5\n"));
	print(summary, GT_SUMMARY_JSON, &json);
	assert_non_null(strstr(json.data,
			       ",\"idle\":{\"host_late_us\":0.000,\"launch_latency_us\":0.000,"
			       "\"queued_us\":23.000,"
			       "\"communication_us\":0.000,\"data_loading_us\":0.000,"
			       "\"unknown_us\":0.000},\"launch\":{\"linked\":5,\"launches\":3,"
			       "\"delay_median_us\":6.000,\"delay_p99_us\":13.000,"
			       "\"delay_max_us\":13.000,\"kernels\":5,\"short_kernels\":4,"
			       "\"alone\":2,\"shorter_than_call\":1,\"queue_mean\":2.4600,"
			       "\"queue_max\":5}}"));
	gt_buf_release(&table);
	gt_buf_release(&json);
	gt_summary_free(summary);
}

/* One GPU's work is not in the other's queue, and a GPU with copies alone has no delays. */
static void test_gpus(void **state)
{
	struct gt_summary *summary =
		load(TRACE(CALL("9", "0", "1", "1") CALL("9", "2", "1", "2") KERNEL("10", "5", "1")
				   WORK("gpu_memset", "1", "10", "5", "2")));
	struct gt_buf table = { 0 };

	(void)state;
	assert_int_equal(summary->gpus[0].launch.queue_max, 1);
	assert_int_equal(summary->gpus[1].launch.queue_max, 1);
	assert_int_equal(summary->gpus[1].launch.launches, 0);
	print(summary, GT_SUMMARY_TABLE, &table);
	assert_non_null(strstr(table.data, "  1         0             -        -        -       -"
					   "       -   1.00  1\n"));
	gt_buf_release(&table);
	gt_summary_free(summary);
}

/* A graph with a kernel on one GPU and two on another launched work on both. */
static void test_graph_of_gpus(void **state)
{
	struct gt_summary *summary = load(TRACE(
		CALL("9", "0", "4", "1") WORK("kernel", "0", "10", "5", "1")
			WORK("kernel", "1", "12", "5", "1") WORK("kernel", "1", "20", "5", "1")));

	(void)state;
	assert_int_equal(summary->gpus[0].launch.launches, 1);
	assert_int_equal(summary->gpus[0].launch.delay_max_ns, 6000);
	assert_int_equal(summary->gpus[1].launch.launches, 1);
	assert_int_equal(summary->gpus[1].launch.delay_max_ns, 8000);
	gt_summary_free(summary);
}

static void test_sort(void **state)
{
	uint64_t values[] = { UINT64_MAX, 0, 256, 255, 1, UINT64_C(1) << 63, 65536, 1, 3 };
	uint64_t want[] = { 0, 1, 1, 3, 255, 256, 65536, UINT64_C(1) << 63, UINT64_MAX };
	uint64_t small[] = { 3, 1, 2 }, spare[ARRAY_SIZE(values)];

	(void)state;
	gt_sort_u64(values, spare, ARRAY_SIZE(values));
	assert_memory_equal(values, want, sizeof(want));
	gt_sort_u64(small, spare, ARRAY_SIZE(small)); /* an odd number of passes */
	assert_true(small[0] == 1 && small[1] == 2 && small[2] == 3);
	gt_sort_u64(NULL, NULL, 0);
}

/* Runs of several lengths, the last of one piece; what begins together stays in its order. */
static void test_sort_work(void **state)
{
	static const int64_t starts[] = { 5, 6, 7, 1, 5, 9, 2, 2, 8, 0 };
	static const int64_t want[] = { 0, 1, 2, 2, 5, 5, 6, 7, 8, 9 };
	struct gt_launched_works works = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct gt_launched work = { .start_ns = starts[i], .call = (int64_t)i };

		assert_int_equal(gt_launched_add(&works, &work), 0);
	}
	assert_int_equal(gt_launched_sort(&works), 0);
	assert_int_equal(works.count, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(works.items[i].start_ns, want[i]);
		if (i && want[i] == want[i - 1])
			assert_true(works.items[i].call > works.items[i - 1].call);
	}
	gt_launched_release(&works);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_or_latency),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_without_correlations),
		cmocka_unit_test(test_launch_stats),
		cmocka_unit_test(test_output),
		cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_graph_of_gpus),
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_sort_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
