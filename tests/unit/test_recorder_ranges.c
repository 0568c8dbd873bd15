/* Ranges and steps in a window's file: which are in it, where they are cut, what is inside them. */
#include "base.h"
#include "recorder_rig.h"

static size_t shown; /* the file that the checks below are about */

static void show_cycle(uint64_t cycle)
{
	for (shown = 0; fake_traces[shown].meta.cycle != cycle; shown++)
		assert_true(shown < fake_count);
}

static uint64_t id_of(const char *range)
{
	const struct fake_range *found = range_of(&fake_traces[shown], range);

	assert_non_null(found);
	assert_int_not_equal(found->range.external_id, 0);
	return found->range.external_id;
}

static uint64_t id_of_call(uint32_t correlation)
{
	return call_of(&fake_traces[shown], correlation)->call.external_id;
}

static void assert_interval(const char *name, double start_ms, double end_ms)
{
	const struct fake_range *found = range_of(&fake_traces[shown], name);

	assert_non_null(found);
	assert_int_equal(found->range.start_ns, AB_MS(start_ms));
	assert_int_equal(found->range.end_ns, AB_MS(end_ms));
}

static void assert_span(const char *name, uint32_t stream, double start_ms, double end_ms)
{
	const struct fake_span *found = span_of(&fake_traces[shown], name, stream);

	assert_non_null(found);
	assert_int_equal(found->span.start_ns, AB_MS(start_ms));
	assert_int_equal(found->span.end_ns, AB_MS(end_ms));
	assert_int_equal(found->span.external_id, id_of(name));
}

static void kernel(uint32_t correlation, uint32_t stream, double start_ms, double end_ms)
{
	ab_kernel_on(&ab, correlation, stream, AB_MS(start_ms), AB_MS(end_ms), 1);
	ab_flush(&ab);
}

static void nested(void **state)
{
	(void)state;
	start();
	steps_to(2);
	ab_push(&ab, MAIN, 2, AB_MS(21), 1, "outer");
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21.1));
	ab_push(&ab, MAIN, 2, AB_MS(22), 2, "inner");
	ab_launch(&ab, MAIN, 2, 2, AB_MS(22.1));
	ab_pop(&ab, MAIN, 2, AB_MS(23), 2);
	ab_launch(&ab, MAIN, 2, 3, AB_MS(23.1));
	ab_pop(&ab, MAIN, 2, AB_MS(24), 1);
	ab_launch(&ab, MAIN, 2, 4, AB_MS(24.1));
	drain(25);
	kernel(1, 7, 25, 26);
	kernel(2, 7, 26, 27);
	kernel(2, 9, 26, 31); /* the second record of one launch: written, without a span */
	kernel(4, 7, 28, 29);
	drain(35);
	assert_null(span_of(only_trace(), "outer", 7)); /* one launch of it is still out */
	assert_span("inner", 7, 26, 27);
	kernel(3, 8, 30, 32);
	drain(36);
	assert_interval("outer", 21, 24);
	assert_interval("inner", 22, 23);
	assert_span("outer", 7, 25, 27);
	assert_span("outer", 8, 30, 32);
	assert_int_equal(id_of_call(1), id_of("outer"));
	assert_int_equal(id_of_call(2), id_of("inner"));
	assert_int_equal(id_of_call(3), id_of("outer"));
	assert_int_equal(gpu_of(only_trace(), 2)->launch.external_id, id_of("inner"));
	steps_to(3);
	drain(37);
	assert_int_equal(id_of_call(4), id_of("ProfilerStep#2"));
	assert_span("ProfilerStep#2", 7, 25, 29);
	assert_span("ProfilerStep#2", 8, 30, 32);
	assert_true(span_of(only_trace(), "ProfilerStep#2", 7)->span.is_step);
}

static void of_each_thread(void **state)
{
	(void)state;
	start();
	steps_to(2);
	ab_push(&ab, 11, 2, AB_MS(21), 1, "a");
	ab_push(&ab, 12, 2, AB_MS(21), 1, "b");
	ab_launch(&ab, 12, 2, 1, AB_MS(22));
	ab_launch(&ab, 11, 2, 2, AB_MS(22));
	ab_launch(&ab, 13, 2, 3, AB_MS(22));
	ab_pop(&ab, 11, 2, AB_MS(23), 1);
	ab_pop(&ab, 12, 2, AB_MS(24), 1);
	ab_pop(&ab, 12, 2, AB_MS(25), 1); /* nothing is open */
	kernel(1, 7, 25, 26);
	kernel(2, 7, 26, 27);
	kernel(3, 7, 27, 28);
	drain(30);
	assert_interval("a", 21, 23);
	assert_interval("b", 21, 24);
	assert_int_equal(range_of(only_trace(), "a")->range.tid, 11);
	assert_int_equal(id_of_call(1), id_of("b"));
	assert_int_equal(id_of_call(2), id_of("a"));
	assert_int_equal(id_of_call(3), 0); /* the step is the main thread's */
}

/* The step began inside of a range that is open across steps: it is the inner one. */
static void step_inside_of_range(void **state)
{
	(void)state;
	start();
	steps_to(1);
	ab_push(&ab, MAIN, 1, AB_MS(15), 1, "epoch");
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_push(&ab, MAIN, 2, AB_MS(22), 2, "part");
	ab_launch(&ab, MAIN, 2, 2, AB_MS(23));
	ab_pop(&ab, MAIN, 2, AB_MS(24), 2);
	kernel(1, 7, 25, 26);
	kernel(2, 7, 26, 27);
	steps_to(4);
	ab_pop(&ab, MAIN, 4, AB_MS(45), 1);
	close_cycle(50);
	drain(200);
	assert_int_equal(id_of_call(1), id_of("ProfilerStep#2"));
	assert_int_equal(id_of_call(2), id_of("part"));
	/* cut at both ends of the window */
	assert_interval("epoch", 20, 40);
	assert_interval("ProfilerStep#2", 20, 30);
	assert_interval("ProfilerStep#3", 30, 40);
	assert_span("epoch", 7, 25, 27);
}

static void open_to_the_end(void **state)
{
	(void)state;
	start();
	steps_to(1);
	ab_push(&ab, 11, 1, AB_MS(15), 1, "silent"); /* its thread does nothing more */
	ab_push(&ab, 12, 1, AB_MS(15), 1, "passing");
	steps_to(2);
	ab_push(&ab, MAIN, 2, AB_MS(21), 1, "unended");
	ab_launch(&ab, MAIN, 2, 1, AB_MS(22));
	kernel(1, 7, 25, 26);
	steps_to(4);
	ab_pop(&ab, 12, 4, AB_MS(45), 1); /* nothing in the window, but around it */
	close_cycle(50);
	drain(200);
	assert_interval("silent", 20, 40);
	assert_interval("passing", 20, 40);
	assert_interval("unended", 21, 40);
	assert_span("unended", 7, 25, 26);
	assert_int_equal(id_of_call(1), id_of("unended"));
}

/* A thread that was in no window comes by one that is not written yet: once, and only with what was
 * open in it. */
static void begun_after_window(void **state)
{
	(void)state;
	start();
	steps_to(1);
	ab_push(&ab, 12, 1, AB_MS(15), 1, "around");
	steps_to(2);
	ab_push(&ab, MAIN, 2, AB_MS(21), 1, "first");
	ab_pop(&ab, MAIN, 2, AB_MS(22), 1);
	steps_to(4);
	ab_push(&ab, 11, 4, AB_MS(41), 1, "later");
	ab_push(&ab, 11, 4, AB_MS(42), 2, "later");
	ab_pop(&ab, 11, 4, AB_MS(43), 2);
	ab_push(&ab, 12, 4, AB_MS(44), 2, "later");
	ab_pop(&ab, 12, 4, AB_MS(45), 2);
	ab_push(&ab, 13, 4, AB_MS(46), 1, "later"); /* and is silent */
	close_cycle(50);
	drain(200);
	assert_interval("around", 20, 40);
	for (size_t i = 0; i < only_trace()->range_count; i++)
		assert_string_not_equal(only_trace()->ranges[i].name, "later");
}

static void two_windows(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .skip_first = 1, .active = 1, .repeat = 2 };
	start();
	steps_to(1);
	ab_push(&ab, MAIN, 1, AB_MS(15), 1, "both");
	ab_push(&ab, MAIN, 1, AB_MS(16), 2, "too");
	ab_launch(&ab, MAIN, 1, 1, AB_MS(17));
	ab_push(&ab, 12, 1, AB_MS(15), 1, "passing");
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 2, AB_MS(21));
	ab_pop(&ab, MAIN, 2, AB_MS(25), 2);
	ab_pop(&ab, MAIN, 2, AB_MS(26), 1);
	steps_to(3);
	ab_pop(&ab, 12, 3, AB_MS(32), 1);
	drain(35);
	kernel(2, 7, 35, 36); /* the later window's work is there first */
	kernel(1, 7, 36, 37);
	phase(GT_WHAT_CLOSE, 1, 3, 30);
	drain(45);
	drain(150);
	assert_int_equal(fake_count, 2);
	assert_true(fake_traces[0].closed && fake_traces[1].closed);
	show_cycle(1);
	assert_interval("both", 15, 20);
	assert_interval("too", 16, 20);
	assert_interval("passing", 15, 20);
	assert_span("both", 7, 36, 37);
	assert_int_equal(id_of_call(1), id_of("too"));
	show_cycle(2);
	assert_interval("both", 20, 26);
	assert_interval("too", 20, 25);
	assert_interval("passing", 20, 30);
	assert_span("both", 7, 35, 36);
	assert_int_equal(id_of_call(2), id_of("ProfilerStep#2")); /* began after "too" */
}

static void domains_interleave(void **state)
{
	(void)state;
	start();
	ab_string(&ab, MAIN, 9, "NCCL");
	steps_to(2);
	ab_range(&ab, GT_EV_PUSH, MAIN, 2, AB_MS(21), 0, 1, "mine");
	ab_range(&ab, GT_EV_PUSH, MAIN, 2, AB_MS(22), 9, 1, "theirs");
	ab_launch(&ab, MAIN, 2, 1, AB_MS(22.5));
	ab_end(&ab, GT_EV_POP, MAIN, 2, AB_MS(23), 0, 1);
	ab_launch(&ab, MAIN, 2, 2, AB_MS(24));
	ab_end(&ab, GT_EV_POP, MAIN, 2, AB_MS(25), 9, 1);
	kernel(1, 7, 26, 27);
	kernel(2, 7, 28, 29);
	drain(30);
	assert_interval("mine", 21, 23);
	assert_interval("theirs", 22, 25);
	assert_string_equal(range_of(only_trace(), "theirs")->domain, "NCCL");
	assert_string_equal(range_of(only_trace(), "mine")->domain, "");
	assert_int_equal(id_of_call(1), id_of("theirs"));
	assert_int_equal(id_of_call(2), id_of("theirs"));
	assert_span("mine", 7, 26, 27); /* the second was launched after it */
	assert_span("theirs", 7, 26, 29);
}

/* A lost POP, and a lost PUSH, cost one range each, and not the order of all that follow. */
static void lost_events(void **state)
{
	(void)state;
	start();
	steps_to(2);
	ab_push(&ab, MAIN, 2, AB_MS(21), 1, "one");
	ab_push(&ab, MAIN, 2, AB_MS(22), 2, "unpopped");
	ab_push(&ab, MAIN, 2, AB_MS(23), 2, "sibling");
	ab_launch(&ab, MAIN, 2, 1, AB_MS(23.5));
	ab_pop(&ab, MAIN, 2, AB_MS(24), 2);
	ab_pop(&ab, MAIN, 2, AB_MS(25), 2); /* its PUSH was lost: not the end of "one" */
	ab_push(&ab, MAIN, 2, AB_MS(26), 2, "deep");
	ab_push(&ab, MAIN, 2, AB_MS(27), 3, "deeper");
	ab_pop(&ab, MAIN, 2, AB_MS(28), 1);
	kernel(1, 7, 26, 27);
	drain(30);
	assert_interval("one", 21, 28);
	assert_interval("unpopped", 22, 22);
	assert_interval("sibling", 23, 24);
	assert_interval("deep", 26, 27);
	assert_interval("deeper", 27, 27);
	assert_int_equal(id_of_call(1), id_of("sibling"));
}

/* Deeper than is kept: what is kept stays right, the rest is counted. */
static void too_deep(void **state)
{
	uint32_t i;
	char name[16];

	(void)state;
	start();
	steps_to(2);
	for (i = 1; i <= 600; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		ab_push(&ab, MAIN, 2, AB_MS(20) + i * 1000, i, name);
	}
	for (; --i;)
		ab_pop(&ab, MAIN, 2, AB_MS(29) - i * 1000, i);
	steps_to(4);
	close_cycle(50);
	drain(200);
	assert_int_equal(only_trace()->range_count, 512 + 2);
	assert_int_equal(range_of(only_trace(), "r512")->range.end_ns, AB_MS(29) - 512000);
	assert_int_equal(only_trace()->health.dropped_ring, 88);
	assert_false(only_trace()->health.complete);
}

static void of_the_process(void **state)
{
	(void)state;
	start();
	steps_to(1);
	ab_range(&ab, GT_EV_RANGE_START, 11, 1, AB_MS(15), 0, 100, "older");
	steps_to(2);
	ab_range(&ab, GT_EV_RANGE_START, 11, 2, AB_MS(21), 0, 101, "a");
	ab_range(&ab, GT_EV_RANGE_START, 12, 2, AB_MS(22), 0, 102, "b");
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21.5));
	ab_launch(&ab, MAIN, 2, 2, AB_MS(22.5));
	drain(22.6);
	ab_end(&ab, GT_EV_RANGE_END, 13, 2, AB_MS(23), 0, 101); /* by another thread */
	drain(23.1);
	ab_launch(&ab, MAIN, 2, 3, AB_MS(24));
	ab_end(&ab, GT_EV_RANGE_END, 13, 2, AB_MS(25), 0, 101); /* is over */
	ab_end(&ab, GT_EV_RANGE_END, 13, 2, AB_MS(25), 0, 999); /* never was */
	kernel(1, 7, 30, 31);
	kernel(2, 7, 32, 33);
	kernel(3, 7, 34, 35);
	drain(36);
	assert_interval("a", 21, 23);
	assert_true(range_of(only_trace(), "a")->range.process_range);
	assert_int_equal(range_of(only_trace(), "a")->range.tid, 11);
	assert_span("a", 7, 30, 33);
	steps_to(4);
	close_cycle(50);
	drain(200);
	assert_interval("b", 22, 40);
	assert_span("b", 7, 32, 35);
	assert_interval("older", 20, 40);
	assert_span("older", 7, 30, 35);
	/* they are no one's enclosing range */
	assert_int_equal(id_of_call(1), id_of("ProfilerStep#2"));
}

static void marks_and_thread_names(void **state)
{
	(void)state;
	start();
	ab_string(&ab, MAIN, 30, "loader");
	ab_name(&ab, GT_EV_THREAD_NAME, MAIN, 77, 30, 0);
	steps_to(1);
	ab_range(&ab, GT_EV_MARK, MAIN, 1, AB_MS(15), 0, 0, "early");
	steps_to(2);
	ab_range(&ab, GT_EV_MARK, MAIN, 2, AB_MS(25), 0, 0, "here");
	steps_to(4);
	close_cycle(50);
	drain(200);
	assert_int_equal(only_trace()->mark_count, 1);
	assert_string_equal(only_trace()->mark, "here");
	assert_int_equal(only_trace()->thread_names, 1);
}

static void steps_alone(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	start();
	steps_to(4);
	close_cycle(50);
	drain(200);
	trace = only_trace();
	assert_int_equal(trace->range_count, 2);
	assert_interval("ProfilerStep#2", 20, 30);
	assert_interval("ProfilerStep#3", 30, 40);
	assert_true(trace->ranges[0].range.is_step);
	assert_int_equal(trace->ranges[0].range.tid, MAIN);
	assert_true(trace->health.complete);
}

/* The mark was lost: the step before it goes on to the next one that is known. */
static void lost_mark(void **state)
{
	(void)state;
	config.schedule.active = 3;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	kernel(1, 7, 22, 23);
	atomic_store(&ab.hdr->step, 3);
	steps_to(5);
	phase(GT_WHAT_CLOSE, 0, 5, 50);
	drain(60);
	drain(70);
	drain(200);
	assert_interval("ProfilerStep#2", 20, 40);
	assert_interval("ProfilerStep#4", 40, 50);
	assert_int_equal(only_trace()->range_count, 2);
}

static void first_step(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .active = 2, .repeat = 1 };
	start();
	ab_launch(&ab, MAIN, 0, 1, AB_MS(5));
	kernel(1, 7, 6, 7);
	steps_to(2);
	phase(GT_WHAT_CLOSE, 0, 2, 20);
	drain(25);
	drain(35);
	drain(150);
	/* from the hello on, on the main thread */
	assert_interval("ProfilerStep#0", 0, 10);
	assert_interval("ProfilerStep#1", 10, 20);
	assert_int_equal(id_of_call(1), id_of("ProfilerStep#0"));
	assert_true(isnan(only_trace()->health.step_before_ms));
	assert_true(only_trace()->base_ns <= AB_MS(0));
}

static int setup_shown(void **state)
{
	shown = 0;
	return setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nested, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(of_each_thread, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(step_inside_of_range, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(open_to_the_end, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(begun_after_window, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(two_windows, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(domains_interleave, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(lost_events, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(too_deep, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(of_the_process, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(marks_and_thread_names, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(steps_alone, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(lost_mark, setup_shown, teardown),
		cmocka_unit_test_setup_teardown(first_step, setup_shown, teardown),
	};

	return cmocka_run_group_tests_name("recorder_ranges", tests, NULL, NULL);
}
