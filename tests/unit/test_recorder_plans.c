/* Windows on demand: what is in the steps of a plan waits for the decision on it. */
#include "base.h"
#include "recorder_rig.h"

static const struct gt_plan plan = { .cycle = 0, .first_step = 5, .warmup = 1, .active = 2 };

static void start_on_demand(void)
{
	config.schedule = (struct gt_schedule){ .on_demand = true, .active = 3 };
	start();
	steps_to(3);
	drain(35);
	assert_int_equal(report.phase, GT_PHASE_OVER);
}

static void launch(uint32_t number, uint32_t correlation)
{
	ab_launch(&ab, MAIN, number, correlation, AB_MS(10 * number + 1));
	ab_kernel(&ab, correlation, AB_MS(10 * number + 2));
}

/* The program goes through the steps of the plan. */
static void run_window(void)
{
	for (uint32_t number = 4; number <= 7; number++) {
		steps_to(number);
		launch(number, number);
	}
	ab_flush(&ab);
}

static void close_window(uint64_t cycle, double ms)
{
	phase(GT_WHAT_CLOSE, cycle, 7, 70);
	drain(ms);
	drain(ms + 10);
	drain(ms + 200);
}

static void expect_window(void)
{
	assert_int_equal(only_trace()->gpu_count, 2);
	assert_non_null(gpu_of(only_trace(), 5));
	assert_non_null(gpu_of(only_trace(), 6));
	assert_true(only_trace()->health.complete);
	assert_int_equal(only_trace()->health.gpu_without_launch, 0);
}

static void decided_in_time(void **state)
{
	(void)state;
	start_on_demand();
	gt_recorder_hold(rec, &plan);
	drain(36);
	gt_recorder_decide(rec, true);
	drain(37);
	assert_int_equal(report.phase, GT_PHASE_IDLE);
	run_window();
	close_window(0, 80);
	expect_window();
	assert_int_equal(report.phase, GT_PHASE_OVER);
}

static void decided_afterwards(void **state)
{
	(void)state;
	start_on_demand();
	gt_recorder_hold(rec, &plan);
	run_window();
	phase(GT_WHAT_CLOSE, 0, 7, 70);
	drain(75);
	drain(80);
	assert_int_equal(fake_count, 0);
	assert_int_equal(report.open_cycle, 0);
	gt_recorder_decide(rec, true);
	drain(100);
	assert_int_equal(report.open_cycle, 1);
	close_window(0, 110);
	expect_window();
}

/* The window that it closed is not the one that has its number later. */
static void taken_back_afterwards(void **state)
{
	const struct gt_plan next = { .cycle = 0, .first_step = 9, .warmup = 1, .active = 1 };

	(void)state;
	start_on_demand();
	gt_recorder_hold(rec, &plan);
	run_window();
	phase(GT_WHAT_CLOSE, 0, 7, 70);
	drain(75);
	gt_recorder_decide(rec, false);
	drain(76);
	assert_int_equal(fake_count, 0);
	assert_int_equal(ab_count(&ab, GT_POOL_CUPTI, GT_CHUNK_DONE), 0);
	gt_recorder_hold(rec, &next);
	drain(77);
	gt_recorder_decide(rec, true);
	steps_to(9);
	launch(9, 9);
	ab_flush(&ab);
	drain(95);
	assert_int_equal(report.open_cycle, 1);
	steps_to(10);
	phase(GT_WHAT_CLOSE, 0, 10, 100);
	drain(110);
	drain(120);
	drain(300);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_non_null(gpu_of(only_trace(), 9));
	assert_true(only_trace()->health.complete);
}

static void dies_undecided(void **state)
{
	(void)state;
	start_on_demand();
	gt_recorder_hold(rec, &plan);
	run_window();
	drain(75);
	finish(true, 80);
	assert_int_equal(fake_count, 0);
	assert_int_equal(report.closed_count, 0);
}

/* Between the window of a schedule, whose records still come, and the decision. */
static void behind_another_window(void **state)
{
	const struct gt_plan second = { .cycle = 1, .first_step = 6, .warmup = 1, .active = 1 };

	(void)state;
	start();
	steps_to(3);
	launch(3, 3);
	drain(35);
	gt_recorder_hold(rec, &second);
	for (uint32_t number = 4; number <= 7; number++) {
		steps_to(number);
		launch(number, number);
	}
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(75);
	drain(85);
	assert_int_equal(report.closed_count, 0); /* it may not be read to its end */
	gt_recorder_decide(rec, true);
	drain(90);
	phase(GT_WHAT_CLOSE, 1, 7, 70);
	drain(100);
	drain(300);
	assert_int_equal(fake_count, 2);
	assert_non_null(gpu_of(&fake_traces[0], 3));
	assert_non_null(gpu_of(&fake_traces[1], 6));
	assert_int_equal(fake_traces[1].gpu_count, 1);
	assert_int_equal(fake_traces[1].meta.cycle, 2);
	assert_true(fake_traces[0].health.complete && fake_traces[1].health.complete);
}

/* A window of its schedule that ends meanwhile is not read further: its text does not wait for it.
 */
static void undecided_at_the_end_of_another(void **state)
{
	const struct gt_plan later = { .cycle = 1, .first_step = 4, .active = 1 };

	(void)state;
	start();
	steps_to(3);
	launch(3, 3);
	ab_flush(&ab);
	drain(35);
	assert_int_equal(fake_count, 1);
	gt_recorder_hold(rec, &later);
	steps_to(5);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	fake_traces[0].pending_bytes = 4 << 20;
	drain(45);
	assert_false(fake_traces[0].held);
	assert_int_equal(fake_traces[0].flushes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(decided_in_time),       TEST(decided_afterwards),
		TEST(taken_back_afterwards), TEST(dies_undecided),
		TEST(behind_another_window), TEST(undecided_at_the_end_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
