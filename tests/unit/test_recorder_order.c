/* Orders of what is said and what is read, in which the collector is late. */
#include "base.h"
#include "recorder_rig.h"

/* ---- the program's own profiler ---- */

/* It came in the first window. The second one, which was read before that was heard, is whole. */
static void yielded_a_window_ago(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .wait = 1, .active = 1 };
	start();
	steps_to(1);
	launch_and_kernel(1, 1, 11);
	steps_to(3);
	launch_and_kernel(3, 2, 31);
	ab_flush(&ab);
	steps_to(4);
	drain(41);
	phase(GT_WHAT_OPEN, 0, 1, 10);
	phase(GT_WHAT_YIELD, 0, 1, 15);
	phase(GT_WHAT_OFF, 0, 0, 16);
	phase(GT_WHAT_RESUME, 0, 0, 18);
	phase(GT_WHAT_OPEN, 1, 3, 30);
	phase(GT_WHAT_CLOSE, 1, 4, 40);
	drain(45);
	drain(55);
	drain(160);
	assert_int_equal(fake_count, 2);
	assert_true(fake_traces[0].closed && fake_traces[1].closed);
	assert_false(fake_traces[0].health.complete);
	assert_int_equal(fake_traces[1].gpu_count, 1);
	assert_true(fake_traces[1].health.complete);
}

/* ---- losses ---- */

/* The plan's steps went by, with a loss, before it was decided on: the loss is of its window. */
static void loss_in_a_held_window(void **state)
{
	static const struct gt_plan plan = {
		.cycle = 0, .first_step = 5, .warmup = 1, .active = 2
	};

	(void)state;
	config.schedule = (struct gt_schedule){ .on_demand = true, .active = 3 };
	start();
	steps_to(3);
	drain(35);
	gt_recorder_hold(rec, &plan);
	steps_to(5);
	launch_and_kernel(5, 1, 51);
	atomic_store(&ab.hdr->dropped_events, 1000); /* the arena was full: ranges, operators */
	steps_to(7);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 7, 70);
	drain(75);
	drain(85);
	gt_recorder_decide(rec, true);
	drain(95);
	drain(105);
	drain(300);
	assert_true(only_trace()->closed);
	assert_int_equal(only_trace()->health.dropped_ring, 1000);
	assert_false(only_trace()->health.complete);
}

/*
 * The arena was full as the second window began, since the collector was late: its first launches
 * are not in it. Then it was read, and the rest of the window found room.
 */
static void full_as_the_window_begins(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1 };
	start();
	step(1);
	launch_and_kernel(1, 1, 11);
	drain(15);
	/* Here it is late. Step 2 begins; of its mark, its ranges and two launches is no event. */
	atomic_store(&ab.hdr->step, 2);
	atomic_store(&ab.hdr->dropped_events, 50);
	ab_kernel(&ab, 2, AB_MS(22));
	ab_kernel(&ab, 3, AB_MS(23));
	drain(24);
	launch_and_kernel(2, 4, 25);
	ab_flush(&ab);
	steps_to(3);
	phase(GT_WHAT_CLOSE, 2, 3, 30);
	for (int ms = 31; ms < 45; ms += 3)
		drain(ms);
	drain(250);
	trace = &fake_traces[1];
	assert_int_equal(trace->meta.cycle, 3);
	assert_true(trace->closed);
	assert_false(trace->health.complete);
}

/* Windows were lost, and over, long before tracing was stopped; they are read of after that. */
static void lost_before_the_stop(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .wait = 1, .active = 1 };
	start();
	steps_to(2);
	drain(25);
	atomic_store(&ab.hdr->dropped_events, 100);
	atomic_store(&ab.hdr->step, 8); /* windows 2 and 3 are in steps 3 and 5 */
	step(7);
	ab_flush(&ab);
	gt_recorder_stop(rec, "a test", AB_MS(90));
	drain(95);
	assert_int_equal(report.closed_count, 1);
	assert_int_equal(report.closed[0].err.code, -ENOBUFS);
	assert_non_null(strstr(report.closed[0].err.msg, ": windows 2 to 3 are lost"));
}

/* ---- the moment from which a window is recorded ---- */

/* Two windows in a row began before CUPTI was on for them: the first is told of, too. */
static void late_for_both_windows(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .wait = 1, .warmup = 1, .active = 1 };
	start();
	steps_to(2);
	atomic_store(&ab.hdr->late_step, 2 + 1);
	launch_and_kernel(2, 1, 25);
	steps_to(3);
	drain(35);
	steps_to(5);
	atomic_store(&ab.hdr->late_step, 5 + 1);
	launch_and_kernel(5, 2, 55);
	steps_to(6);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 3, 30);
	phase(GT_WHAT_CLOSE, 1, 6, 60);
	drain(65);
	drain(75);
	drain(300);
	assert_true(fake_traces[0].closed && fake_traces[1].closed);
	assert_false(fake_traces[1].health.complete);
	assert_false(fake_traces[0].health.complete);
}

/* More windows than are open at one time, all of whose GPU work is there with their events. */
static void many_windows_at_once(void **state)
{
	enum { COUNT = 40 };

	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1 };
	start();
	for (uint32_t number = 1; number <= COUNT; number++) {
		step(number);
		launch_and_kernel(number, number, 10 * number + 1);
	}
	ab_flush(&ab);
	step(COUNT + 1);
	phase(GT_WHAT_CLOSE, COUNT, COUNT + 1, 10 * COUNT + 10);
	drain(10 * COUNT + 11);
	finish(false, 10 * COUNT + 20);
	assert_in_range(fake_count, COUNT, COUNT + 2); /* of steps 0 and COUNT + 1, too */
	for (size_t i = 0; i < fake_count; i++) {
		bool worked = fake_traces[i].meta.cycle > 1 &&
			      fake_traces[i].meta.cycle <= COUNT + 1;

		assert_int_equal(fake_traces[i].gpu_count, worked);
		assert_true(fake_traces[i].health.complete);
	}
}

/* ---- the fall-back mode ---- */

enum { LAUNCH = 211 };

/* A range that was read before another tool was met, around calls that came after. */
static void range_before_the_fall_back(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_WHOLE);
	start();
	ab_push(&ab, MAIN, 0, AB_MS(1), 1, "outer");
	drain(5);
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(2) << 32 | LAUNCH, 2, GT_CALL_KERNEL);
	phase(GT_WHAT_FALLBACK, 0, 0, 10);
	ab_api(&ab, true, LAUNCH, MAIN, 1, AB_MS(22), AB_MS(22.1));
	ab_flush(&ab);
	ab_kernel(&ab, 1, AB_MS(23));
	ab_flush(&ab);
	drain(25);
	ab_pop(&ab, MAIN, 0, AB_MS(30), 1);
	finish(false, 40);
	assert_non_null(call_of(only_trace(), 1));
	assert_int_equal(call_of(only_trace(), 1)->call.external_id,
			 range_of(only_trace(), "outer")->range.external_id);
}

/* The recording was interrupted, and reached its bound later: the first is what it lacks. */
static void interrupted_before_its_bound(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	launch_and_kernel(0, 1, 2);
	ab_flush(&ab);
	atomic_store(&ab.hdr->keep_yielded, 1);
	atomic_store(&ab.hdr->keep_full, 1);
	drain(3);
	drain(9);
	drain(120);
	drain(240);
	assert_true(only_trace()->closed);
	assert_false(only_trace()->health.complete);
	assert_non_null(strstr(only_trace()->health.reason, "torch.profiler"));
}

/* A run without steps begins with the program's profiler: the first drain comes after that. */
static void yielded_before_the_first_drain(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_WHOLE);
	start();
	phase(GT_WHAT_YIELD, 0, 0, 2);
	phase(GT_WHAT_RESUME, 0, 0, 8);
	phase(GT_WHAT_OPEN, 0, 0, 8);
	launch_and_kernel(0, 1, 10);
	ab_flush(&ab);
	drain(12);
	finish(false, 40);
	assert_false(only_trace()->health.complete);
}

/* It came in the window of a plan that was taken back, whose number this window has now. */
static void yielded_in_a_plan_taken_back(void **state)
{
	static const struct gt_plan plan = {
		.cycle = 0, .first_step = 9, .warmup = 1, .active = 1
	};

	(void)state;
	config.schedule = (struct gt_schedule){ .on_demand = true, .active = 1 };
	start();
	steps_to(6);
	phase(GT_WHAT_LEFT_OUT, 0, 5, 50);
	drain(65);
	gt_recorder_hold(rec, &plan);
	gt_recorder_decide(rec, true);
	steps_to(9);
	launch_and_kernel(9, 1, 91);
	steps_to(10);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 10, 100);
	drain(105);
	drain(115);
	drain(300);
	assert_true(only_trace()->closed);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_true(only_trace()->health.complete);
}

/* The whole run is one trace, which says what it lacks: no window is lost beside it. */
static void whole_run_with_losses(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1 };
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	launch_and_kernel(0, 1, 2);
	ab_flush(&ab);
	atomic_store(&ab.hdr->dropped_events, 7);
	finish(false, 40); /* without failures */
	assert_int_equal(only_trace()->health.dropped_ring, 7);
}

/* A loss of long before the plan's steps, which is not its window's. */
static void loss_before_a_held_window(void **state)
{
	static const struct gt_plan plan = {
		.cycle = 0, .first_step = 9, .warmup = 1, .active = 1
	};

	(void)state;
	config.schedule = (struct gt_schedule){ .on_demand = true, .active = 1 };
	start();
	steps_to(3);
	drain(35);
	gt_recorder_hold(rec, &plan);
	atomic_store(&ab.hdr->dropped_events, 1000);
	steps_to(5);
	drain(55);
	steps_to(6);
	drain(65);
	steps_to(9);
	launch_and_kernel(9, 1, 91);
	steps_to(10);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 10, 100);
	drain(105);
	gt_recorder_decide(rec, true);
	drain(106);
	drain(115);
	drain(300);
	assert_true(only_trace()->closed);
	assert_int_equal(only_trace()->health.dropped_ring, 0);
	assert_true(only_trace()->health.complete);
}

/* As many windows as can be open; the last one has more GPU work than can wait for its launches. */
static void much_work_in_the_last_window(void **state)
{
	enum { WINDOWS = 16, COUNT = 80000 };

	(void)state;
	config.schedule = (struct gt_schedule){ .skip_first = 1, .active = 1, .repeat = WINDOWS };
	ab_release(&ab);
	ab_init_of(&ab, GT_MODE_STEPS, 128, 256);
	start();
	steps_to(WINDOWS);
	for (uint32_t i = 1; i <= COUNT; i++)
		launch_and_kernel(WINDOWS, i, 10 * WINDOWS + i * 1e-4);
	ab_flush(&ab);
	steps_to(WINDOWS + 1);
	phase(GT_WHAT_CLOSE, WINDOWS - 1, WINDOWS + 1, 10 * WINDOWS + 10);
	drain(10 * WINDOWS + 11);
	drain(10 * WINDOWS + 20);
	drain(10 * WINDOWS + 400);
	assert_int_equal(fake_count, WINDOWS);
	finish(false, 10 * WINDOWS + 500);
	for (size_t i = 0; i < fake_count; i++) {
		if (fake_traces[i].meta.cycle != WINDOWS)
			continue;
		assert_int_equal(fake_traces[i].gpu_count, COUNT);
		assert_true(fake_traces[i].health.complete);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(yielded_a_window_ago),           TEST(loss_in_a_held_window),
		TEST(full_as_the_window_begins),      TEST(lost_before_the_stop),
		TEST(late_for_both_windows),          TEST(many_windows_at_once),
		TEST(range_before_the_fall_back),     TEST(interrupted_before_its_bound),
		TEST(yielded_before_the_first_drain), TEST(loss_before_a_held_window),
		TEST(much_work_in_the_last_window),   TEST(yielded_in_a_plan_taken_back),
		TEST(whole_run_with_losses),
	};

	return cmocka_run_group_tests_name("recorder_order", tests, NULL, NULL);
}
