/* The GPU runs steps behind the processor: records come late, in batches, in an unlucky order. */
#include "base.h"
#include "recorder_rig.h"

/* A record of a memset. */
static void set_memory(uint32_t correlation, double ms)
{
	enum { CUPTI_MEMSET = 2 };
	unsigned char record[256] = { 0 };

	ab_u32(record, 0, CUPTI_MEMSET);
	ab_u64(record, 16, AB_MS(ms));
	ab_u64(record, 24, AB_MS(ms + 1));
	ab_u32(record, 44, correlation);
	ab_record(&ab, record, ab.hello.record_bytes[CUPTI_MEMSET]);
}

static void kernel_of(uint32_t context, uint32_t correlation, uint64_t start_ns)
{
	ab_kernel_like(&ab, (struct ab_kernel){ .correlation = correlation,
						.context = context,
						.stream = 7,
						.start_ns = start_ns,
						.end_ns = start_ns + 20000,
						.name_ref = 1 });
}

/* Half of a graph's records are in one buffer, half in the next; steps went by meanwhile. */
static void graph_in_two_buffers(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	start();
	steps_to(2);
	launch_graph(2, 1, GT_STREAM_UNKNOWN, 21);
	steps_to(6);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	ab_kernel(&ab, 1, AB_MS(52));
	ab_flush(&ab);
	drain(65);
	drain(75);
	drain(180);
	assert_false(report.drained);
	ab_kernel(&ab, 1, AB_MS(53));
	ab_flush(&ab);
	drain(185);
	/* work of a whole step later is there */
	steps_to(9);
	ab_kernel(&ab, 50, AB_MS(71));
	ab_flush(&ab);
	drain(195);
	assert_true(report.drained);
	drain(400);
	trace = only_trace();
	assert_int_equal(trace->gpu_count, 2);
	assert_true(trace->health.complete);
	assert_int_equal(report.late_calls, 0);
	assert_int_equal(report.late_records, 0);
}

/* The second of two windows has all its records before the first has. */
static void second_window_is_first(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1, .repeat = 2 };
	start();
	ab_launch(&ab, MAIN, 0, 1, AB_MS(1));
	step(1);
	ab_launch(&ab, MAIN, 1, 2, AB_MS(11));
	steps_to(2);
	ab_kernel_on(&ab, 2, 8, AB_MS(12), AB_MS(13), 1);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 1, 10);
	phase(GT_WHAT_CLOSE, 1, 2, 20);
	drain(21);
	assert_false(report.drained);
	drain(30);
	assert_false(report.drained); /* the target would switch off */
	ab_kernel(&ab, 1, AB_MS(35));
	ab_flush(&ab);
	drain(40);
	assert_true(report.drained);
	assert_int_equal(report.drained_cycle, 1);
	drain(50);
	assert_false(report.drained);
}

/* Its end leaves GPU work of the one before alone, which has yet to find its launch. */
static void second_window_takes_nothing(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1, .repeat = 2 };
	start();
	ab_launch(&ab, MAIN, 0, 1, AB_MS(1));
	step(1);
	ab_launch(&ab, MAIN, 1, 3, AB_MS(11));
	steps_to(4);
	ab_kernel(&ab, 2, AB_MS(8)); /* its launch is not written yet */
	ab_kernel(&ab, 3, AB_MS(12));
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 1, 2, 20);
	drain(41);
	drain(50);
	drain(51);
	assert_int_equal(report.closed_count, 1); /* the first one waits for 1 */
	assert_int_equal(report.closed[0].cycle, 2);
	ab_call(&ab, (struct ab_call){ .tid = 11,
				       .step = 0,
				       .correlation = 2,
				       .klass = GT_CALL_KERNEL,
				       .start_ns = AB_MS(7),
				       .end_ns = AB_MS(51) });
	ab_kernel(&ab, 1, AB_MS(51));
	ab_flush(&ab);
	drain(55);
	drain(56);
	assert_int_equal(report.closed_count, 1);
	assert_true(report.closed[0].complete);
	assert_int_equal(fake_traces[1].gpu_count, 2); /* of the file that was made last */
}

/* Steps of two seconds, with the GPU three of them behind; there is always a window ahead. */
static void seconds_behind(void **state)
{
	uint32_t i;

	(void)state;
	config.schedule = (struct gt_schedule){ .warmup = 1, .active = 1, .repeat = 3 };
	start();
	for (i = 0; i < 10; i++) {
		if (i)
			ab_step(&ab, MAIN, i, AB_MS(2000 * i));
		if (i < 6)
			ab_launch(&ab, MAIN, i, 100 + i, AB_MS(2000 * i + 1));
		if (i && i % 2 == 0 && i <= 6)
			phase(GT_WHAT_CLOSE, i / 2 - 1, i, 2000 * i);
		if (i >= 3 && i - 3 < 6)
			ab_kernel(&ab, 100 + i - 3, AB_MS(2000 * i + 1));
		ab_flush(&ab);
		for (uint32_t j = 1; j < 20; j++)
			drain(2000 * i + 100 * j);
	}
	finish(false, 30000);
	assert_int_equal(fake_count, 3);
	for (i = 0; i < 3; i++) {
		assert_true(fake_traces[i].health.complete);
		assert_int_equal(fake_traces[i].gpu_count, 1);
	}
}

/* A window of steps 2 and 3 with one launch that has no record so far. */
static void close_waiting(void)
{
	start();
	steps_to(3);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(31));
	steps_to(4);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(45);
}

/* What the GPU does is older than all that is recorded: nothing comes for seconds. */
static void silent_for_seconds(void **state)
{
	(void)state;
	close_waiting();
	assert_true(report.closing);
	for (double ms = 1000; ms < 9000; ms += 1000)
		drain(ms);
	assert_false(report.closing);
	assert_false(report.drained);
	ab_kernel(&ab, 1, AB_MS(9100));
	ab_flush(&ab);
	drain(9200);
	assert_true(report.drained);
	drain(9400);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_true(only_trace()->health.complete);
}

static void silent_for_good(void **state)
{
	(void)state;
	close_waiting();
	drain(10000);
	assert_int_equal(report.closed_count, 0);
	drain(10100);
	assert_true(report.drained); /* the target need not listen any more */
	assert_int_equal(report.drained_cycle, 0);
	assert_int_equal(only_trace()->health.launches_without_gpu, 1);
	drain(10200);
	assert_false(report.drained);
}

/* Of nine launches more it has the records. */
static void have_most(void)
{
	for (uint32_t i = 0; i < 9; i++) {
		ab_launch(&ab, MAIN, 3, 10 + i, AB_MS(32 + 0.1 * i));
		ab_kernel(&ab, 10 + i, AB_MS(33 + 0.1 * i));
	}
}

/* The GPU is in later steps already: what is missing is lost. */
static void overtaken(void **state)
{
	(void)state;
	close_waiting();
	have_most();
	ab_launch(&ab, MAIN, 4, 2, AB_MS(41));
	ab_kernel(&ab, 2, AB_MS(42));
	ab_flush(&ab);
	drain(50);
	drain(2000);
	assert_int_equal(report.closed_count, 0);
	drain(2100);
	assert_true(report.drained);
	assert_int_equal(only_trace()->health.launches_without_gpu, 1);
}

/* The same with what is no kernel, which can be far ahead on a stream of its own. */
static void overtaken_by_a_memset(void **state)
{
	(void)state;
	close_waiting();
	have_most();
	ab_launch(&ab, MAIN, 4, 2, AB_MS(41));
	set_memory(2, 42);
	ab_flush(&ab);
	drain(50);
	drain(3000);
	assert_int_equal(report.closed_count, 0);
	drain(9000);
	assert_int_equal(report.closed_count, 0);
}

/* Each GPU's context has a stream 7: work on that of another one says nothing of the graph. */
static void graph_and_another_gpu(void **state)
{
	enum { ONE = 1, OTHER = 2 };

	(void)state;
	start();
	steps_to(3);
	ab_call(&ab, (struct ab_call){ .tid = MAIN,
				       .step = 3,
				       .correlation = 1,
				       .klass = GT_CALL_GRAPH,
				       .stream = 7,
				       .context = ONE,
				       .start_ns = AB_MS(31) });
	ab_launch(&ab, MAIN, 3, 2, AB_MS(32));
	kernel_of(OTHER, 2, AB_MS(33));
	kernel_of(ONE, 1, AB_MS(34));
	ab_flush(&ab);
	steps_to(4);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(45);
	drain(55);
	assert_false(report.drained);
	kernel_of(ONE, 3, AB_MS(60));
	ab_flush(&ab);
	drain(65);
	assert_true(report.drained);
}

/* A graph may have any number of records; the program does nothing any more. */
static void graph_is_last(void **state)
{
	(void)state;
	start();
	steps_to(3);
	launch_graph(3, 1, 7, 31);
	ab_kernel(&ab, 1, AB_MS(32));
	ab_flush(&ab);
	steps_to(4);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(45);
	drain(2000);
	assert_false(report.drained);
	drain(2100);
	assert_true(report.drained);
}

/* Of a window whose events were lost the target has to hear, too. */
static void unseen(void **state)
{
	(void)state;
	start();
	drain(1);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(45);
	assert_false(report.drained);
	drain(145);
	assert_true(report.drained);
	assert_int_equal(report.drained_cycle, 0);
	drain(155);
	assert_false(report.drained);
}

/* The window of a plan that was taken back after it had begun: its number is the next one's. */
static void taken_back(void **state)
{
	(void)state;
	start();
	drain(1);
	phase(GT_WHAT_CLOSE, 1, 40, 40);
	drain(45);
	drain(145);
	assert_false(report.drained);
}

/* It is not done when copies, on a stream of their own, are further. */
static void graph_and_copies_ahead(void **state)
{
	(void)state;
	start();
	steps_to(2);
	launch_graph(2, 1, GT_STREAM_UNKNOWN, 21);
	steps_to(9);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	ab_kernel(&ab, 1, AB_MS(52));
	set_memory(50, 71);
	ab_flush(&ab);
	drain(95);
	drain(105);
	assert_false(report.drained);
	drain(300);
	assert_int_equal(report.closed_count, 0);
}

/* Its first work is read before its launch, which is under way all the time. */
static void graph_comes_after_its_work(void **state)
{
	(void)state;
	start();
	steps_to(3);
	ab_kernel(&ab, 1, AB_MS(32));
	ab_flush(&ab);
	drain(33);
	launch_graph(3, 1, 7, 31);
	steps_to(4);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(45);
	drain(200);
	assert_false(report.drained);
	drain(2100);
	assert_true(report.drained);
}

/* The recording before the first step was full: its window is none that the target waits for. */
static void window_behind_a_recording(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	ab_launch(&ab, MAIN, 0, 1, AB_MS(1));
	ab_kernel(&ab, 1, AB_MS(2));
	ab_flush(&ab);
	atomic_store(&ab.hdr->keep_full, 1);
	drain(5);
	drain(500);
	assert_int_equal(report.closed_count, 1);
	atomic_store(&ab.hdr->mode, GT_MODE_STEPS);
	for (uint32_t i = 1; i <= 4; i++)
		ab_step(&ab, MAIN, i, AB_MS(1000 + 10 * i));
	ab_launch(&ab, MAIN, 3, 2, AB_MS(1031));
	ab_kernel(&ab, 2, AB_MS(1032));
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 4, 1040);
	drain(1045);
	drain(1055);
	assert_true(report.drained);
}

/* The target takes no launches behind the window; what they do has records all the same. */
static void overtaken_by_unknown(void **state)
{
	(void)state;
	close_waiting();
	have_most();
	ab_kernel(&ab, 20, AB_MS(42));
	ab_flush(&ab);
	drain(50);
	drain(2000);
	assert_int_equal(report.closed_count, 0);
	drain(2100);
	assert_true(report.drained);
	assert_int_equal(only_trace()->health.launches_without_gpu, 1);
}

/* They are no sign while much of the window is missing, but of a stream that is ahead. */
static void another_stream_is_ahead(void **state)
{
	(void)state;
	close_waiting();
	ab_launch(&ab, MAIN, 3, 2, AB_MS(32));
	ab_launch(&ab, MAIN, 4, 3, AB_MS(41));
	ab_kernel(&ab, 2, AB_MS(33));
	ab_kernel(&ab, 3, AB_MS(42));
	ab_flush(&ab);
	drain(50);
	drain(3000);
	assert_int_equal(report.closed_count, 0);
	drain(9000);
	assert_int_equal(report.closed_count, 0);
}

/* But the missing ones were dropped, and counted. */
static void another_stream_is_ahead_of_lost(void **state)
{
	(void)state;
	close_waiting();
	ab_launch(&ab, MAIN, 4, 3, AB_MS(41));
	ab_kernel(&ab, 3, AB_MS(42));
	ab_flush(&ab);
	atomic_store(&ab.hdr->dropped_cupti, 1);
	drain(50);
	drain(2000);
	assert_int_equal(report.closed_count, 0);
	drain(2100);
	assert_true(report.drained);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(graph_in_two_buffers),
		TEST(second_window_is_first),
		TEST(second_window_takes_nothing),
		TEST(seconds_behind),
		TEST(silent_for_seconds),
		TEST(silent_for_good),
		TEST(overtaken),
		TEST(overtaken_by_a_memset),
		TEST(graph_and_another_gpu),
		TEST(graph_is_last),
		TEST(graph_and_copies_ahead),
		TEST(graph_comes_after_its_work),
		TEST(unseen),
		TEST(taken_back),
		TEST(window_behind_a_recording),
		TEST(overtaken_by_unknown),
		TEST(another_stream_is_ahead),
		TEST(another_stream_is_ahead_of_lost),
	};

	return cmocka_run_group_tests_name("recorder lag", tests, NULL, NULL);
}
