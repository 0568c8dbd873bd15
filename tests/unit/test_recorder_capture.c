/* Captured ranges: windows whose steps are the program's own. */
#include "base.h"
#include "recorder_rig.h"

static void work_of_this_step(uint32_t correlation, double ms)
{
	launch_and_kernel(atomic_load(&ab.hdr->step), correlation, ms);
}

/* A range begins, which a mark precedes, or ends. */
static void mark(double ms)
{
	uint32_t next = atomic_load(&ab.hdr->step) + 1;

	if (next % 3 == 1)
		ab_step_source(&ab, MAIN, next++, AB_MS(ms - 1), GT_STEP_CAPTURE);
	ab_step_source(&ab, MAIN, next, AB_MS(ms), GT_STEP_CAPTURE);
}

static void own(uint32_t number, double ms)
{
	ab_own_step(&ab, MAIN, number, AB_MS(ms), GT_STEP_OPTIMIZER);
}

static void begin_captured(void)
{
	config.schedule = (struct gt_schedule)GT_SCHEDULE_CAPTURE;
	start();
}

static void end_range(uint64_t cycle, uint64_t next, double ms)
{
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, cycle, next, ms);
	drain(ms + 5);
	assert_int_equal(failures(), 0);
	drain(ms + 15);
	assert_int_equal(failures(), 0);
	drain(ms + 200);
	assert_int_equal(failures(), 0);
}

static void assert_step(const char *name, double from_ms, double to_ms)
{
	const struct fake_range *range = range_of(only_trace(), name);

	assert_non_null(range);
	assert_true(range->range.is_step);
	assert_int_equal(range->range.start_ns, AB_MS(from_ms));
	assert_int_equal(range->range.end_ns, AB_MS(to_ms));
	assert_false(range->range.cut); /* the range ends it */
}

static uint64_t id_of(const char *name)
{
	return range_of(only_trace(), name)->range.external_id;
}

static void steps_within(void **state)
{
	(void)state;
	begin_captured();
	work_of_this_step(1, 2);
	own(6, 5);
	mark(10);
	work_of_this_step(2, 12);
	own(7, 20);
	work_of_this_step(3, 21);
	drain(25); /* a step that has ended is written */
	own(8, 30);
	work_of_this_step(4, 35);
	mark(40);
	work_of_this_step(5, 45);
	own(9, 50);
	end_range(0, 3, 41);
	/* Cut where the range begins and ends, and numbered as the program counts. */
	assert_step("ProfilerStep#6", 10, 20);
	assert_step("ProfilerStep#7", 20, 30);
	assert_step("ProfilerStep#8", 30, 40);
	assert_int_equal(only_trace()->range_count, 3);
	assert_int_equal(only_trace()->gpu_count, 3);
	assert_int_equal(call_of(only_trace(), 2)->call.external_id, id_of("ProfilerStep#6"));
	assert_int_equal(call_of(only_trace(), 4)->call.external_id, id_of("ProfilerStep#8"));
	assert_non_null(span_of(only_trace(), "ProfilerStep#7", 7));
	assert_true(only_trace()->health.complete);
	assert_true(isnan(only_trace()->health.step_active_ms));
	assert_string_equal(only_trace()->step_source, "capture");
}

static void closed_says_them(void **state)
{
	(void)state;
	begin_captured();
	own(6, 5);
	mark(10);
	own(7, 20);
	work_of_this_step(1, 21);
	mark(40);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 3, 41);
	drain(46);
	finish(false, 60);
	assert_int_equal(report.closed_count, 1);
	assert_true(report.closed[0].captured && report.closed[0].complete);
	assert_int_equal(report.closed[0].first_step, 6);
	assert_int_equal(report.closed[0].last_step, 7);
}

/* It ends just behind a mark: that is no step. */
static void nothing_behind_the_last_mark(void **state)
{
	(void)state;
	begin_captured();
	mark(10);
	work_of_this_step(1, 12);
	own(1, 20);
	own(2, 39.99);
	mark(40);
	end_range(0, 3, 41);
	assert_step("ProfilerStep#0", 10, 20);
	assert_step("ProfilerStep#1", 20, 39.99);
	assert_int_equal(only_trace()->range_count, 2);
}

static void no_steps_within(void **state)
{
	(void)state;
	begin_captured();
	mark(10);
	work_of_this_step(1, 12);
	mark(40);
	own(1, 41); /* the first one, but too late */
	end_range(0, 3, 41);
	assert_step("ProfilerStep#0", 10, 40);
	assert_int_equal(only_trace()->range_count, 1);
}

static void nothing_within(void **state)
{
	(void)state;
	begin_captured();
	own(3, 5);
	mark(10);
	mark(40);
	end_range(0, 3, 41);
	assert_step("ProfilerStep#3", 10, 40);
}

static void two_ranges(void **state)
{
	size_t i;

	(void)state;
	config.schedule = (struct gt_schedule)GT_SCHEDULE_CAPTURE;
	config.schedule.repeat = 0;
	start();
	own(1, 5);
	mark(10);
	work_of_this_step(1, 12);
	mark(20);
	own(2, 25);
	end_range(0, 3, 21);
	mark(300);
	work_of_this_step(2, 310);
	own(3, 320);
	work_of_this_step(3, 330);
	mark(340);
	end_range(1, 6, 341);
	assert_int_equal(fake_count, 2);
	for (i = 0; i < 2; i++) {
		assert_true(fake_traces[i].health.complete);
		assert_int_equal(fake_traces[i].meta.cycle, i + 1);
	}
	assert_non_null(range_of(&fake_traces[0], "ProfilerStep#1"));
	assert_non_null(range_of(&fake_traces[1], "ProfilerStep#2"));
	assert_non_null(range_of(&fake_traces[1], "ProfilerStep#3"));
	assert_int_equal(fake_traces[1].gpu_count, 2);
}

static void by_threads(void **state)
{
	(void)state;
	begin_captured();
	own(1, 5);
	mark(10);
	ab_launch(&ab, 4711, 2, 1, AB_MS(12));
	ab_kernel(&ab, 1, AB_MS(13));
	own(2, 20);
	ab_launch(&ab, 4711, 2, 2, AB_MS(22));
	ab_kernel(&ab, 2, AB_MS(23));
	mark(40);
	end_range(0, 3, 41);
	assert_step("ProfilerStep#1", 10, 20);
	assert_step("ProfilerStep#2", 20, 40);
	assert_non_null(span_of(only_trace(), "ProfilerStep#2", 7));
}

/* Another source of more authority counts for itself; there is no way back in numbers. */
static void another_source_within(void **state)
{
	(void)state;
	begin_captured();
	own(50, 5);
	mark(10);
	work_of_this_step(1, 12);
	ab_own_step(&ab, MAIN, 1, AB_MS(20), GT_STEP_API);
	work_of_this_step(2, 22);
	mark(40);
	end_range(0, 3, 41);
	assert_int_equal(only_trace()->gpu_count, 2);
	assert_true(only_trace()->health.complete);
}

/* Nobody asked for ranges, but one came before the first step: the schedule is no longer that of
 * steps. */
static void ranges_take_over(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	work_of_this_step(1, 2);
	ab_flush(&ab);
	drain(5);
	atomic_store(&ab.hdr->mode, GT_MODE_STEPS);
	mark(10);
	work_of_this_step(2, 12);
	drain(15);
	assert_int_equal(report.phase, GT_PHASE_ACTIVE);
	mark(40);
	end_range(0, 3, 41);
	assert_int_equal(report.phase, GT_PHASE_OVER);
	assert_step("ProfilerStep#0", 10, 40);
	assert_int_equal(only_trace()->gpu_count, 1);
}

/* Of a graph that is the last work of its stream no step tells that it has all its records. */
static void graph_at_the_end(void **state)
{
	(void)state;
	begin_captured();
	mark(10);
	launch_graph(2, 5, 7, 12);
	ab_kernel(&ab, 5, AB_MS(13));
	mark(40);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 3, 41);
	drain(45);
	drain(60);
	assert_false(report.drained); /* there may be more of it */
	drain(1600);                  /* it has a kernel that takes as long */
	assert_false(report.drained);
	ab_kernel(&ab, 5, AB_MS(1600));
	ab_flush(&ab);
	drain(1700);
	drain(3600);
	assert_false(report.drained);
	drain(3700);
	assert_true(report.drained);
	drain(3800);
	assert_true(only_trace()->health.complete);
	assert_int_equal(only_trace()->gpu_count, 2);
}

/* The GPU is behind: its records begin to come long after the range's end. */
static void graph_comes_late(void **state)
{
	(void)state;
	begin_captured();
	mark(10);
	launch_graph(2, 5, 7, 12);
	mark(40);
	phase(GT_WHAT_CLOSE, 0, 3, 41);
	drain(45);
	ab_kernel(&ab, 5, AB_MS(130));
	ab_flush(&ab);
	drain(150);
	drain(160);
	assert_false(report.drained);
	ab_kernel(&ab, 5, AB_MS(160));
	ab_flush(&ab);
	drain(170);
	drain(2170);
	assert_true(report.drained);
	drain(2300);
	assert_true(only_trace()->health.complete);
	assert_int_equal(only_trace()->gpu_count, 2);
}

static void op_of_main(double ms)
{
	ab_op(&ab, (struct ab_op){ .tid = MAIN,
				   .step = 2,
				   .name_id = 22,
				   .depth = 1,
				   .thread = 1,
				   .sequence = -1,
				   .stack_id = 1,
				   .start_ns = AB_MS(ms) });
	ab_op_end(&ab, MAIN, 2, AB_MS(ms + 1), 1);
}

static void own_steps_divide_functions(void **state)
{
	size_t i;

	(void)state;
	config.with_stack = true;
	begin_captured();
	ab_string(&ab, MAIN, 20, "train.py");
	ab_string(&ab, MAIN, 21, "main");
	ab_string(&ab, MAIN, 22, "aten::add");
	ab_frame(&ab, MAIN,
		 (struct gt_ev_frame){ .id = 1, .file_id = 20, .function_id = 21, .line = 9 });
	mark(10);
	op_of_main(12);
	op_of_main(15);
	own(1, 20);
	op_of_main(22);
	mark(40);
	end_range(0, 3, 41);
	assert_int_equal(only_trace()->function_count, 2);
	for (i = 0; i < 2; i++) {
		const struct gt_trace_function *main = &only_trace()->functions[i].function;

		assert_true(main->end_ns < AB_MS(20) || main->start_ns > AB_MS(20));
	}
}

static void killed_within(void **state)
{
	(void)state;
	begin_captured();
	mark(10);
	work_of_this_step(1, 12);
	own(1, 20);
	work_of_this_step(2, 22);
	ab_flush(&ab);
	drain(25);
	finish(true, 30);
	assert_non_null(range_of(only_trace(), "ProfilerStep#0"));
	assert_false(range_of(only_trace(), "ProfilerStep#0")->range.cut);
	assert_non_null(range_of(only_trace(), "ProfilerStep#1"));
	assert_true(range_of(only_trace(), "ProfilerStep#1")->range.cut);
	assert_false(only_trace()->health.complete);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(steps_within),
		TEST(closed_says_them),
		TEST(nothing_behind_the_last_mark),
		TEST(no_steps_within),
		TEST(nothing_within),
		TEST(two_ranges),
		TEST(by_threads),
		TEST(another_source_within),
		TEST(ranges_take_over),
		TEST(graph_at_the_end),
		TEST(graph_comes_late),
		TEST(own_steps_divide_functions),
		TEST(killed_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
