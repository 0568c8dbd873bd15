/* Graph launches, which have any number of GPU records. */
#include "base.h"
#include "recorder_rig.h"

static void graph_of_many(void **state)
{
	uint32_t i;

	(void)state;
	start();
	steps_to(4);
	launch_graph(3, 5, 7, 31);
	for (i = 0; i < 20; i++)
		ab_kernel(&ab, 5, AB_MS(32 + i));
	ab_flush(&ab);
	close_cycle(50);
	assert_false(report.drained); /* there may be more of it */
	steps_to(7);
	ab_kernel(&ab, 5, AB_MS(53));
	ab_flush(&ab);
	drain(75);
	assert_false(report.drained); /* for all that is known the GPU is in step 5 */
	ab_kernel_on(&ab, 9, 8, AB_MS(71), AB_MS(72), 1);
	ab_flush(&ab);
	drain(76);
	assert_true(report.drained); /* a further step went by */
	drain(200);
	assert_int_equal(only_trace()->call_count, 1);
	assert_int_equal(only_trace()->gpu_count, 21);
	assert_true(only_trace()->health.complete);
}

static void graph_and_later_work(void **state)
{
	(void)state;
	start();
	steps_to(4);
	launch_graph(3, 5, 7, 31);
	ab_kernel(&ab, 5, AB_MS(32));
	ab_kernel_on(&ab, 6, 8, AB_MS(41), AB_MS(42), 1); /* later, but on another stream */
	ab_flush(&ab);
	close_cycle(50);
	assert_false(report.drained);
	ab_kernel(&ab, 7, AB_MS(41)); /* launched after the window, on its stream */
	ab_flush(&ab);
	drain(61);
	assert_true(report.drained);
	drain(200);
	assert_true(only_trace()->health.complete);
}

/* A graph without kernels: work launched later on its stream proves it. */
static void graph_of_none(void **state)
{
	(void)state;
	start();
	steps_to(4);
	launch_graph(3, UINT32_MAX, 7, 31);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(33)); /* later: the ids have wrapped */
	close_cycle(50);
	assert_false(report.drained);
	ab_kernel(&ab, 1, AB_MS(34));
	ab_flush(&ab);
	drain(65);
	assert_true(report.drained);
	drain(200);
	assert_true(only_trace()->health.complete);
	assert_false(call_of(only_trace(), UINT32_MAX)->call.launches);
}

static void graph_without_records(void **state)
{
	(void)state;
	start();
	steps_to(4);
	launch_graph(3, 5, 7, 31);
	close_cycle(50);
	steps_to(6);
	drain(70);
	assert_false(report.drained);
	phase(GT_WHAT_OFF, 0, 0, 2050);
	drain(2060);
	assert_int_equal(only_trace()->health.launches_without_gpu, 1);
}

static void graph_as_one_record(void **state)
{
	unsigned char record[56] = { 0 };

	(void)state;
	start();
	steps_to(4);
	launch_graph(3, 5, 7, 31);
	ab_u32(record, 0, 51);
	ab_u32(record, 4, 5);
	ab_u64(record, 8, AB_MS(32));
	ab_u64(record, 16, AB_MS(35));
	ab_record(&ab, record, sizeof(record));
	ab_flush(&ab);
	close_cycle(50);
	assert_true(report.drained);
	assert_int_equal(gpu_of(only_trace(), 5)->op.kind, GT_GPU_GRAPH);
}

static void wait_for_device(uint32_t correlation, double ms)
{
	ab_string(&ab, MAIN, 50, "cudaDeviceSynchronize");
	ab_call(&ab, (struct ab_call){ .tid = MAIN,
				       .step = 3,
				       .correlation = correlation,
				       .name_id = 50,
				       .klass = GT_CALL_SYNC,
				       .start_ns = AB_MS(ms) });
}

static void end_with_graphs(uint32_t count, bool waits)
{
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(31));
	ab_kernel(&ab, 1, AB_MS(33));
	for (uint32_t i = 0; i < count; i++)
		launch_graph(3, 2 + i, 7, 34 + i);
	if (waits)
		wait_for_device(2 + count, 38);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	finish(false, 41);
}

/* Nothing comes after it that would prove that it has no work, but the program waited for it. */
static void ends_with_an_empty_graph(void **state)
{
	(void)state;
	end_with_graphs(1, true);
	assert_true(only_trace()->health.complete);
}

/* The program goes on: its next work would prove it. */
static void goes_on_after_a_graph(void **state)
{
	(void)state;
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(31));
	ab_kernel(&ab, 1, AB_MS(33));
	launch_graph(3, 2, 7, 34);
	wait_for_device(3, 38);
	ab_flush(&ab);
	close_cycle(50);
	steps_to(7);
	phase(GT_WHAT_OFF, 0, 0, 2050);
	drain(2060);
	drain(4000);
	assert_string_equal(only_trace()->reason, "1 launch has no GPU record");
}

/* It may as well be CUPTI that says nothing. */
static void ends_with_silent_graphs(void **state)
{
	(void)state;
	end_with_graphs(2, true);
	assert_string_equal(report.closed[0].why, "2 launches have no GPU record");
}

static void ends_with_a_graph_that_may_run(void **state)
{
	(void)state;
	end_with_graphs(1, false);
	assert_string_equal(report.closed[0].why, "1 launch has no GPU record");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(graph_of_many),
		TEST(graph_and_later_work),
		TEST(graph_of_none),
		TEST(graph_without_records),
		TEST(graph_as_one_record),
		TEST(ends_with_an_empty_graph),
		TEST(goes_on_after_a_graph),
		TEST(ends_with_silent_graphs),
		TEST(ends_with_a_graph_that_may_run),
	};

	return cmocka_run_group_tests_name("recorder_graphs", tests, NULL, NULL);
}
