/* Windows that end before their time. */
#include "base.h"
#include "recorder_rig.h"

/* ---- the program ends ---- */

static void ends_in_the_window(void **state)
{
	(void)state;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	drain(25);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 3, 28); /* at its exit, in step 2 */
	finish(false, 30);
	assert_int_equal(report.closed_count, 1);
	assert_true(report.closed[0].complete);
	assert_int_equal(report.closed[0].last_step, 2);
	assert_non_null(strstr(only_trace()->warning, "ended before"));
	assert_non_null(strstr(report.closed[0].why, "ended before"));
	assert_int_equal(only_trace()->gpu_count, 1);
}

/* It does not wait for its GPU: CUPTI, told to, hands over what has not begun. */
static void ends_before_its_gpu(void **state)
{
	(void)state;
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(31));
	ab_launch(&ab, MAIN, 3, 2, AB_MS(32));
	ab_kernel(&ab, 1, AB_MS(33));
	ab_kernel_on(&ab, 2, 7, 0, 0, 1);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	finish(false, 41);
	assert_int_equal(report.closed[0].losses, 1);
	assert_string_equal(report.closed[0].why,
			    "1 launch was not done by the GPU when the program ended");
}

/* The same some steps behind the window, which waited so long. */
static void ends_later_before_its_gpu(void **state)
{
	(void)state;
	start();
	steps_to(6);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(31));
	ab_launch(&ab, MAIN, 3, 2, AB_MS(32));
	ab_kernel(&ab, 1, AB_MS(33));
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(61);
	ab_kernel_on(&ab, 2, 7, 0, 0, 1);
	ab_flush(&ab);
	finish(false, 70);
	assert_string_equal(report.closed[0].why,
			    "1 launch was not done by the GPU when the program ended");
}

/* Its last step is no whole one either: an exception, or nothing but the end of the program. */
static void ends_in_the_last_step(void **state)
{
	(void)state;
	start();
	steps_to(3);
	drain(35);
	phase(GT_WHAT_CLOSE, 0, 4, 38); /* at its exit, in step 3 */
	finish(false, 40);
	assert_true(report.closed[0].complete);
	assert_int_equal(report.closed[0].last_step, 3);
	assert_non_null(strstr(only_trace()->warning, "ended in the window's last step"));
}

static void killed(void **state)
{
	unsigned char zero[216] = { 0 };

	(void)state;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_launch(&ab, MAIN, 2, 2, AB_MS(22));
	ab_launch(&ab, MAIN, 2, 3, AB_MS(22.5));
	ab_name(&ab, GT_EV_POINTER, MAIN, 0x8f5a30, 1,
		0); /* in the heap of a program that is no PIE */
	ab_kernel_on(&ab, 1, 7, AB_MS(22), AB_MS(23), 0x8f5a30);
	ab_kernel_on(&ab, 2, 7, AB_MS(23), 0, 1); /* was running */
	ab_record(&ab, zero, sizeof(zero));       /* reserved, not written */
	ab_kernel_on(&ab, 3, 7, AB_MS(23), AB_MS(24), 1);
	/* CUPTI never said how much of its buffer is valid */
	atomic_store(&ab.records->used_bytes, 0);
	drain(25);
	assert_int_equal(report.gpu_ops, 0);
	finish(true, 30);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_string_equal(gpu_of(only_trace(), 1)->name, "kernel_one");
	assert_int_equal(only_trace()->call_count, 3);
	assert_int_equal(only_trace()->health.bad_records, 0);
	assert_int_equal(only_trace()->health.launches_without_gpu, 2);
	assert_false(report.closed[0].complete);
	assert_int_equal(report.closed[0].last_step, 2); /* not the last one asked for */
	assert_non_null(strstr(only_trace()->reason, "killed, or left by _exit() or exec"));
	assert_non_null(strstr(report.closed[0].why, "killed"));
}

/* Marked so by CUPTI 13.0 until it hands the buffer over. */
static void killed_with_held_records(void **state)
{
	unsigned char record[216] = { 0 };

	(void)state;
	start();
	steps_to(2);
	ab_name(&ab, GT_EV_POINTER, MAIN, 0x8f5a30, 1, 0);
	for (uint32_t i = 1; i <= 3; i++) {
		ab_launch(&ab, MAIN, 2, i, AB_MS(21));
		ab_u32(record, 0, UINT32_C(0x8000000A));
		ab_u64(record, 16, i < 3 ? AB_MS(22) : 0); /* the second runs, the third waits */
		ab_u64(record, 24, i < 2 ? AB_MS(23) : 0);
		ab_u32(record, 92, i);
		ab_u64(record, 104, 0x8f5a30);
		ab_record(&ab, record, sizeof(record));
	}
	atomic_store(&ab.records->used_bytes, 0);
	finish(true, 30);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_string_equal(gpu_of(only_trace(), 1)->name, "kernel_one");
	assert_int_equal(only_trace()->health.bad_records, 0);
	assert_int_equal(only_trace()->health.launches_without_gpu, 2);
}

/* Work after the stop is none of the window's, although the step of the stop goes on. */
static void stopped_in_the_window(void **state)
{
	(void)state;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	gt_recorder_stop(rec, "a test", AB_MS(25));
	ab_kernel(&ab, 2, AB_MS(29));
	step(3);
	ab_flush(&ab);
	drain(35);
	phase(GT_WHAT_CLOSE, 0, 3, 28);
	phase(GT_WHAT_OFF, 0, 3, 29);
	finish(true, 40);
	assert_int_equal(report.closed_count, 1);
	assert_true(report.closed[0].complete);
	assert_int_equal(report.closed[0].last_step, 2);
	assert_string_equal(only_trace()->warning,
			    "stopped by a test in step 2, before the window's last step");
	assert_string_equal(report.closed[0].why, only_trace()->warning);
	assert_int_equal(only_trace()->gpu_count, 1);
}

/* The program was in a later step before that was told: what was read of it stays, as a step. */
static void stopped_a_step_ago(void **state)
{
	(void)state;
	config.schedule.active = 5;
	start();
	steps_to(3);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(31));
	ab_kernel(&ab, 1, AB_MS(32));
	ab_flush(&ab);
	gt_recorder_stop(rec, "a test", AB_MS(33));
	drain(33);
	phase(GT_WHAT_CLOSE, 0, 3, 35);
	phase(GT_WHAT_OFF, 0, 3, 36);
	finish(true, 40);
	assert_true(report.closed[0].complete);
	assert_int_equal(report.closed[0].last_step, 3);
	assert_string_equal(only_trace()->warning,
			    "stopped by a test in step 3, before the window's last step");
	assert_int_equal(only_trace()->gpu_count, 1);
}

/* Steps go on while it is told: what is read of them later is none of the window's. */
static void stopped_while_steps_go_on(void **state)
{
	(void)state;
	config.schedule.active = 5;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	ab_flush(&ab);
	drain(25);
	gt_recorder_stop(rec, "a test", AB_MS(25));
	phase(GT_WHAT_CLOSE, 0, 3, 38);
	steps_to(3);
	ab_launch(&ab, MAIN, 3, 2, AB_MS(31));
	ab_kernel(&ab, 2, AB_MS(32));
	ab_flush(&ab);
	drain(39);
	phase(GT_WHAT_OFF, 0, 3, 40);
	finish(true, 45);
	assert_int_equal(report.closed[0].last_step, 2);
	assert_int_equal(only_trace()->gpu_count, 1);
}

/* Nobody listened to the windows that it came to while it was told, which are none then. */
static void stopped_before_the_window(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .wait = 1, .active = 1 };
	start();
	steps_to(1);
	launch_and_kernel(1, 1, 11);
	ab_flush(&ab);
	drain(15);
	gt_recorder_stop(rec, "a test", AB_MS(25));
	phase(GT_WHAT_CLOSE, 0, 2, 20);
	steps_to(3);
	ab_launch(&ab, MAIN, 3, 2, AB_MS(31));
	step(4);
	ab_flush(&ab);
	drain(45);
	phase(GT_WHAT_OFF, 0, 0, 50);
	finish(true, 55);
	assert_int_equal(report.late_calls, 0);
	assert_int_equal(report.late_records, 0);
	assert_true(only_trace()->health.complete);
	assert_int_equal(only_trace()->gpu_count, 1);
}

/* It did not answer. */
static void stopped_in_vain(void **state)
{
	(void)state;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	ab_flush(&ab);
	gt_recorder_stop(rec, "a test", AB_MS(30));
	finish(true, 40);
	assert_string_equal(only_trace()->warning, "stopped by a test");
	assert_string_equal(only_trace()->reason,
			    "the program did not answer when it was told to stop");
	assert_int_equal(report.closed[0].last_step, 2);
}

static void killed_after_the_window(void **state)
{
	(void)state;
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	finish(true, 45);
	assert_true(report.closed[0].complete);
}

/* ---- the program's own profiler ---- */

/* One kernel in the window's first step, nothing of it read so far. */
static void start_with_work(void)
{
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	ab_flush(&ab);
}

static void yields(void **state)
{
	(void)state;
	start_with_work();
	phase(GT_WHAT_YIELD, 0, 2, 25); /* before anything was read */
	phase(GT_WHAT_OFF, 0, 0, 26);
	phase(GT_WHAT_FALLBACK, 0, 0, 27);     /* the profiler keeps the callbacks */
	ab_launch(&ab, MAIN, 2, 2, AB_MS(28)); /* the injection came back in the same window */
	drain(30);
	assert_int_equal(report.closed_count, 1);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_non_null(strstr(only_trace()->reason, "torch.profiler"));
	assert_false(only_trace()->health.complete);
	ab_launch(&ab, MAIN, 2, 3, AB_MS(29));
	drain(31);
	assert_int_equal(report.late_calls, 0);
	assert_int_equal(report.late_records, 0);
	assert_int_equal(fake_count, 1);
}

/* The collector was slow: it has seen the steps after the window before it hears of the profiler.
 */
static void yield_heard_late(void **state)
{
	(void)state;
	start_with_work();
	steps_to(6);
	drain(60);
	assert_int_equal(report.closed_count, 0);
	phase(GT_WHAT_YIELD, 0, 2, 25);
	phase(GT_WHAT_OFF, 0, 0, 26);
	drain(61);
	assert_int_equal(report.closed_count, 1);
	assert_non_null(strstr(only_trace()->reason, "torch.profiler"));
	assert_false(only_trace()->health.complete);
}

/* All that was said of several windows may come before the first of them is read. */
static void yields_heard_early(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .wait = 1, .active = 1 };
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(31));
	ab_kernel(&ab, 1, AB_MS(32));
	steps_to(6);
	ab_flush(&ab);
	phase(GT_WHAT_LEFT_OUT, 0, 1, 10);
	phase(GT_WHAT_YIELD, 1, 3, 35);
	phase(GT_WHAT_CLOSE, 2, 6, 60);
	phase(GT_WHAT_OFF, 0, 0, 61);
	drain(62);
	finish(false, 70);
	assert_int_equal(fake_count, 2);
	assert_int_equal(fake_traces[0].gpu_count, 1);
	assert_non_null(strstr(fake_traces[0].reason, "torch.profiler"));
	assert_true(fake_traces[1].health.complete);
}

/* It was that slow when a later window had begun: of that window the profiler took nothing. */
static void yield_heard_after_the_next_window(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .wait = 1, .active = 1 };
	start();
	steps_to(1);
	ab_launch(&ab, MAIN, 1, 1, AB_MS(11));
	ab_kernel(&ab, 1, AB_MS(12));
	steps_to(3);
	ab_launch(&ab, MAIN, 3, 2, AB_MS(31));
	ab_kernel(&ab, 2, AB_MS(32));
	steps_to(4);
	ab_flush(&ab);
	drain(40);
	phase(GT_WHAT_YIELD, 0, 1, 15);
	phase(GT_WHAT_CLOSE, 1, 4, 41);
	drain(42);
	finish(false, 50);
	assert_int_equal(fake_count, 2);
	assert_non_null(strstr(fake_traces[0].reason, "torch.profiler"));
	assert_int_equal(fake_traces[1].gpu_count, 1);
	assert_true(fake_traces[1].health.complete);
}

/* The profiler came after the window's last step: of the window only its last records can be
 * missing. */
static void yields_after_the_end(void **state)
{
	(void)state;
	start_with_work();
	steps_to(6);
	phase(GT_WHAT_YIELD, 0, 6, 60);
	phase(GT_WHAT_OFF, 0, 0, 61);
	drain(62);
	assert_int_equal(report.closed_count, 1);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_true(only_trace()->health.complete);
}

/* A later window's calls come otherwise, as that profiler kept the callbacks: not this one's. */
static void falls_back_after_the_end(void **state)
{
	(void)state;
	start_with_work();
	steps_to(6);
	phase(GT_WHAT_YIELD, 0, 6, 60);
	phase(GT_WHAT_OFF, 0, 0, 61);
	phase(GT_WHAT_FALLBACK, 1, 0, 62);
	drain(63);
	assert_int_equal(report.closed_count, 1);
	assert_true(only_trace()->health.complete);
	assert_false(only_trace()->health.fallback);
}

/* The profiler was there first, whether this is heard before its steps or after: there is no file.
 */
static void check_left_out(bool early)
{
	start();
	steps_to(2);
	if (early)
		phase(GT_WHAT_LEFT_OUT, 0, 2, 20);
	drain(21);
	if (!early)
		phase(GT_WHAT_LEFT_OUT, 0, 2, 20);
	steps_to(6);
	drain(60);
	drain(70);
	assert_int_equal(report.closed_count, 0);
	assert_int_equal(report.late_calls, 0);
	assert_int_equal(report.late_records, 0);
	assert_int_equal(fake_count, 0);
}

static void left_out(void **state)
{
	(void)state;
	check_left_out(true);
}

static void left_out_heard_late(void **state)
{
	(void)state;
	check_left_out(false);
}

/* ---- more windows than are kept, before the program is read again ---- */

static void every_step_a_window(void)
{
	config.schedule = (struct gt_schedule){ .active = 1 };
	start();
}

/* The files of these cycles are complete, or lack something. */
static void assert_first_four(const char *why)
{
	assert_int_equal(report.closed_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(report.closed[i].complete, !*why);
		assert_string_equal(report.closed[i].why, why);
	}
}

static void fast_steps(void **state)
{
	(void)state;
	every_step_a_window();
	steps_to(20);
	drain(205);
	assert_first_four("");
}

static void fast_steps_of_threads(void **state)
{
	(void)state;
	every_step_a_window();
	steps_to(20);
	ab_push(&ab, MAIN + 1, 2, AB_MS(22), 1, "of another thread");
	drain(205);
	assert_first_four("too many windows came while events of other threads were unread");
}

static void fast_steps_with_work(void **state)
{
	(void)state;
	every_step_a_window();
	for (uint32_t number = 1; number <= 20; number++) {
		step(number);
		ab_launch(&ab, MAIN, number, number, AB_MS(10 * number + 1));
	}
	drain(205);
	assert_first_four("too many windows waited for GPU records");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ends_in_the_window),
		TEST(ends_before_its_gpu),
		TEST(ends_later_before_its_gpu),
		TEST(ends_in_the_last_step),
		TEST(killed),
		TEST(killed_with_held_records),
		TEST(stopped_in_the_window),
		TEST(stopped_a_step_ago),
		TEST(stopped_while_steps_go_on),
		TEST(stopped_before_the_window),
		TEST(stopped_in_vain),
		TEST(killed_after_the_window),
		TEST(yields),
		TEST(yield_heard_late),
		TEST(yields_heard_early),
		TEST(yield_heard_after_the_next_window),
		TEST(yields_after_the_end),
		TEST(falls_back_after_the_end),
		TEST(left_out),
		TEST(left_out_heard_late),
		TEST(fast_steps),
		TEST(fast_steps_of_threads),
		TEST(fast_steps_with_work),
	};

	return cmocka_run_group_tests_name("recorder_ends", tests, NULL, NULL);
}
