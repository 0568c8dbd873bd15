/* When a window has all its GPU work, and what is said of one that lacks some. */
#include "base.h"
#include "recorder_rig.h"

static void drained(void **state)
{
	(void)state;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	drain(25);
	assert_int_equal(report.open_cycle, 1);
	assert_int_equal(report.phase, GT_PHASE_ACTIVE);
	steps_to(4);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(45);
	drain(55);
	assert_false(report.drained);
	ab_kernel(&ab, 1, AB_MS(50));
	ab_flush(&ab);
	drain(65);
	assert_true(report.drained);
	assert_int_equal(report.drained_cycle, 0);
	assert_int_equal(report.closed_count, 0); /* for a step to compare with */
	phase(GT_WHAT_OFF, 0, 0, 70);
	drain(75);
	assert_false(report.drained); /* said once */
	assert_int_equal(report.closed_count, 0);
	steps_to(6);
	drain(76);
	assert_int_equal(report.closed_count, 1);
	assert_int_equal(report.open_cycle, 0);
	assert_int_equal(report.closed[0].cycle, 1);
	assert_int_equal(report.closed[0].first_step, 2);
	assert_int_equal(report.closed[0].last_step, 3);
	assert_true(report.closed[0].complete);
	assert_false(report.closed[0].whole_run);
	assert_string_equal(report.closed[0].path, "cycle1");
	assert_true(only_trace()->health.step_after_ms == 10.0);
	assert_true(only_trace()->health.step_active_ms == 10.0);
	assert_true(only_trace()->health.step_before_ms == 10.0);
	assert_true(only_trace()->closed);
}

/* A call that was under way when the window closed comes a moment after. */
static void late_call(void **state)
{
	(void)state;
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(41);
	drain(42);
	assert_false(report.drained);
	ab_call(&ab, (struct ab_call){ .tid = 55,
				       .step = 3,
				       .correlation = 2,
				       .klass = GT_CALL_COPY,
				       .start_ns = AB_MS(39),
				       .end_ns = AB_MS(43) });
	drain(50);
	assert_false(report.drained);
	ab_kernel(&ab, 2, AB_MS(41));
	ab_flush(&ab);
	drain(52);
	assert_true(report.drained);
	assert_int_equal(only_trace()->gpu_count, 2);
}

/* Without the message (the program closed its descriptors) the step tells, later. */
static void drained_without_message(void **state)
{
	(void)state;
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	ab_flush(&ab);
	drain(45);
	drain(60);
	assert_false(report.drained);
	drain(145);
	assert_true(report.drained);
}

static void no_record_expected(void **state)
{
	static const struct {
		uint32_t flags;
		uint16_t klass;
	} calls[] = {
		{ GT_CALL_CAPTURED, GT_CALL_KERNEL },
		{ GT_CALL_EMPTY, GT_CALL_COPY },
		{ GT_CALL_FAILED, GT_CALL_KERNEL },
		{ GT_CALL_CAPTURED, GT_CALL_GRAPH },
		{ 0, GT_CALL_SYNC },
		{ 0, GT_CALL_ALLOC },
	};
	const struct gt_trace *trace;
	size_t i;

	(void)state;
	start();
	steps_to(4);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		ab_call(&ab, (struct ab_call){ .tid = MAIN,
					       .step = 2,
					       .flags = calls[i].flags,
					       .correlation = (uint32_t)i + 1,
					       .stream = 7,
					       .klass = calls[i].klass,
					       .start_ns = AB_MS(21 + i) });
	close_cycle(50);
	assert_true(report.drained);
	trace = only_trace();
	assert_int_equal(trace->call_count, ARRAY_SIZE(calls));
	for (i = 0; i < trace->call_count; i++)
		assert_false(trace->calls[i].call.launches);
	assert_true(trace->calls[0].call.captured);
	drain(200);
	assert_true(trace->health.complete);
	assert_int_equal(trace->health.captured_launches, 2);
	assert_int_equal(trace->health.launches_without_gpu, 0);
}

static void switched_off(void **state)
{
	(void)state;
	start();
	steps_to(4);
	phase(GT_WHAT_OFF, 0, 0, 5); /* of an earlier time: means nothing for this window */
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_launch(&ab, MAIN, 2, 2, AB_MS(22));
	ab_kernel(&ab, 2, AB_MS(23));
	ab_flush(&ab);
	close_cycle(50);
	assert_int_equal(report.closed_count, 0);
	phase(GT_WHAT_OFF, 0, 0, 2040);
	drain(2045);
	assert_int_equal(report.closed_count, 1);
	assert_false(report.closed[0].complete);
	assert_int_equal(report.closed[0].losses, 1);
	assert_int_equal(only_trace()->health.launches_without_gpu, 1);
	assert_non_null(strstr(only_trace()->reason, "1 launch has no GPU record"));
	assert_false(call_of(only_trace(), 1)->call.launches);
	assert_true(call_of(only_trace(), 2)->call.launches);
	/* what comes after that is not lost unsaid */
	ab_kernel(&ab, 1, AB_MS(24));
	ab_flush(&ab);
	drain(2050);
	assert_int_equal(report.late_records, 1);
}

/* What comes after its file was complete is not lost unsaid. */
static void too_late_a_call(void **state)
{
	(void)state;
	start();
	steps_to(4);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	close_cycle(50);
	drain(200);
	assert_true(only_trace()->health.complete);
	assert_int_equal(report.late_calls, 0);
	ab_call(&ab, (struct ab_call){ .tid = 55,
				       .step = 3,
				       .correlation = 2,
				       .klass = GT_CALL_COPY,
				       .start_ns = AB_MS(39),
				       .end_ns = AB_MS(240) });
	drain(250);
	assert_int_equal(report.late_calls, 1);
}

/* Nor is another node of a graph whose launch had its record, so that the file is complete. */
static void too_late_a_node(void **state)
{
	(void)state;
	start();
	steps_to(4);
	launch_graph(2, 1, 7, 21);
	ab_kernel(&ab, 1, AB_MS(22));
	launch_and_kernel(3, 2, 35);
	ab_flush(&ab);
	close_cycle(50);
	phase(GT_WHAT_OFF, 0, 0, 60);
	drain(12000);
	assert_true(only_trace()->health.complete);
	assert_int_equal(report.late_records, 0);
	ab_kernel(&ab, 1, AB_MS(23));
	ab_flush(&ab);
	drain(12100);
	assert_int_equal(report.late_records, 1);
}

/* The mark of step 3 found no room: it begins with what is known of it, where the one before ends.
 */
static void lost_mark(void **state)
{
	const struct fake_range *two, *three;

	(void)state;
	start();
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	step(4);
	launch_and_kernel(3, 2, 33);
	launch_and_kernel(3, 3, 34);
	ab_flush(&ab);
	atomic_store(&ab.hdr->dropped_events, 1);
	close_cycle(50);
	drain(200);
	two = range_of(only_trace(), "ProfilerStep#2");
	three = range_of(only_trace(), "ProfilerStep#3");
	assert_int_equal(two->range.start_ns, AB_MS(20));
	assert_int_equal(two->range.end_ns, AB_MS(33));
	assert_int_equal(three->range.start_ns, AB_MS(33));
	assert_int_equal(three->range.end_ns, AB_MS(40));
	assert_int_equal(three->range.tid, two->range.tid);
}

static void dropped(void **state)
{
	(void)state;
	start();
	steps_to(1);
	atomic_store(&ab.hdr->dropped_cupti, 5); /* before the window */
	drain(15);
	steps_to(4);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	ab_flush(&ab);
	atomic_store(&ab.hdr->dropped_cupti, 7);
	atomic_store(&ab.hdr->dropped_arena, 3);
	atomic_store(&ab.hdr->dropped_events, 4);
	close_cycle(50);
	drain(200);
	assert_int_equal(only_trace()->health.dropped_cupti, 2);
	assert_int_equal(only_trace()->health.dropped_arena, 3);
	assert_int_equal(only_trace()->health.dropped_ring, 4);
	assert_false(only_trace()->health.complete);
	assert_int_equal(report.closed[0].losses, 9);
}

/* Of a window of which nothing was read there is no file: that is said. */
static void lost_windows(void **state)
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
	drain(75);
	assert_int_equal(report.closed_count, 1);
	assert_int_equal(report.closed[0].err.code, -ENOBUFS);
	assert_non_null(strstr(report.closed[0].err.msg, ": windows 2 to 3 are lost"));
	atomic_store(&ab.hdr->step, 10);
	gt_recorder_finish(rec, false, AB_MS(110), &report);
	assert_int_equal(failures(), 1);
	assert_non_null(
		strstr(report.closed[report.closed_count - 1].err.msg, ": window 5 is lost"));
	assert_int_equal(fake_count, 2);
}

/* What was not traced for another reason was not lost. */
static void passed_windows(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .wait = 1, .active = 1 };
	start();
	steps_to(2);
	drain(25);
	atomic_store(&ab.hdr->dropped_events, 100);
	phase(GT_WHAT_LEFT_OUT, 1, 3, 30);
	phase(GT_WHAT_LEFT_OUT, 2, 5, 50);
	atomic_store(&ab.hdr->step, 8);
	step(7);
	ab_flush(&ab);
	finish(false, 110);
	assert_int_equal(fake_count, 2);
}

static void untimed_records(void **state)
{
	(void)state;
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_launch(&ab, MAIN, 2, 2, AB_MS(22));
	ab_kernel_on(&ab, 1, 7, 0, 0, 1);
	ab_kernel_on(&ab, 3, 7, AB_MS(30), AB_MS(29), 1); /* before its launch */
	ab_kernel(&ab, 2, AB_MS(23));
	ab_flush(&ab);
	drain(45);
	ab_launch(&ab, MAIN, 2, 3, AB_MS(29));
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(50);
	assert_true(report.drained); /* they never come again */
	drain(200);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_int_equal(only_trace()->call_count, 3);
	assert_false(call_of(only_trace(), 1)->call.launches);
	assert_int_equal(only_trace()->health.bad_records, 0); /* each is counted once */
	assert_int_equal(only_trace()->health.launches_without_gpu, 2);
	assert_int_equal(report.closed[0].losses, 2);
	assert_non_null(strstr(only_trace()->reason, "2 launches have no GPU record"));
}

/* A launch that has other work does not say it. */
static void untimed_among_others(void **state)
{
	(void)state;
	start();
	steps_to(4);
	ab_call(&ab, (struct ab_call){ .tid = MAIN,
				       .step = 2,
				       .correlation = 1,
				       .stream = 7,
				       .klass = GT_CALL_GRAPH,
				       .start_ns = AB_MS(21) });
	ab_kernel(&ab, 1, AB_MS(22));
	ab_kernel_on(&ab, 1, 7, 0, 0, 1);
	ab_kernel(&ab, 2, AB_MS(41));
	ab_flush(&ab);
	close_cycle(50);
	drain(200);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_int_equal(only_trace()->health.bad_records, 1);
	assert_int_equal(only_trace()->health.launches_without_gpu, 0);
	assert_false(only_trace()->health.complete);
}

/* A record that was never written ends what can be read of a buffer: it is not silently so. */
static void hole_in_buffer(void **state)
{
	const uint64_t hole[8] = { 0 };

	(void)state;
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	ab_record(&ab, hole, sizeof(hole)); /* at the end it hides nothing */
	ab_flush(&ab);
	ab_launch(&ab, MAIN, 2, 2, AB_MS(23));
	ab_kernel(&ab, 2, AB_MS(24));
	ab_record(&ab, hole, sizeof(hole));
	ab_kernel(&ab, 3, AB_MS(25));
	ab_flush(&ab);
	close_cycle(50);
	drain(200);
	assert_int_equal(only_trace()->gpu_count, 2);
	assert_int_equal(only_trace()->health.bad_records, 1);
	assert_false(only_trace()->health.complete);
}

static void late_for_its_window(void **state)
{
	(void)state;
	start();
	steps_to(2);
	atomic_store(&ab.hdr->late_step, 2 + 1);
	launch_and_kernel(2, 1, 25);
	steps_to(5);
	ab_flush(&ab);
	close_cycle(60);
	drain(71);
	assert_true(only_trace()->closed);
	assert_false(only_trace()->health.complete);
}

/* Something of it was read: there is a file. */
static void begin_window(void)
{
	start();
	steps_to(3);
	launch_and_kernel(3, 1, 31);
	ab_flush(&ab);
	drain(35);
}

/* Until its records are read the program waits, traced: what takes longer is done after that. */
static void compressed_when_drained(void **state)
{
	struct gt_trace *trace = fake_traces;

	(void)state;
	begin_window();
	assert_int_equal(fake_count, 1);
	assert_false(trace->held);
	trace->pending_bytes = 4 << 20;
	steps_to(4);
	ab_launch(&ab, MAIN, 3, 2, AB_MS(39));
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(41);
	assert_true(trace->held);
	assert_int_equal(trace->flushes, 0);
	ab_kernel(&ab, 2, AB_MS(39.5));
	ab_flush(&ab);
	drain(47);
	assert_true(report.drained);
	assert_int_equal(trace->flushes, 0);
	drain(57);
	assert_false(trace->held);
	assert_int_equal(trace->flushes, 1);
}

/* However short its steps are: the one to compare with is there already. */
static void told_before_compressed(void **state)
{
	struct gt_trace *trace = fake_traces;

	(void)state;
	begin_window();
	steps_to(6);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(41);
	drain(47);
	assert_true(report.drained);
	assert_false(trace->closed);
	drain(57);
	assert_true(trace->closed);
}

/* One that is drained lacks nothing, also where it has to make room before it was closed. */
static void drained_makes_room(void **state)
{
	enum { WINDOWS = 20, DRAINED = 12 };
	size_t complete = 0;

	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1 };
	start();
	for (uint32_t i = 0; i < WINDOWS; i++) {
		if (i) {
			step(i);
			phase(GT_WHAT_CLOSE, i - 1, i, 10 * i);
		}
		if (i == DRAINED) {
			ab_flush(&ab);
			drain(10 * i + 1);
			drain(10 * i + 7);
			assert_true(report.drained);
			assert_int_equal(report.closed_count, 0);
		}
		launch_and_kernel(i, i + 1, 10 * i + 8);
	}
	ab_launch(&ab, 11, WINDOWS - 1, 100, AB_MS(10 * WINDOWS - 2)); /* another thread's */
	ab_kernel(&ab, 100, AB_MS(10 * WINDOWS - 1));
	ab_flush(&ab);
	drain(10 * WINDOWS);
	for (size_t i = 0; i < report.closed_count; i++)
		complete += report.closed[i].complete;
	assert_int_equal(complete, DRAINED);
}

/* Nothing waits for the end of a program that has ended: what is read is soon to be in the file. */
static void not_held_at_the_end(void **state)
{
	(void)state;
	begin_window();
	steps_to(4);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(41);
	assert_true(fake_traces[0].held);
	launch_and_kernel(3, 2, 39);
	ab_flush(&ab);
	finish(true, 42);
	assert_false(fake_traces[0].held);
}

/* Nor if all of the window is read then. */
static void never_held_at_the_end(void **state)
{
	(void)state;
	start();
	steps_to(4);
	launch_and_kernel(3, 1, 31);
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	finish(true, 42);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_false(only_trace()->held);
}

/* Nor does what waits grow without end when records do not come. */
static void compressed_when_late(void **state)
{
	struct gt_trace *trace = fake_traces;

	(void)state;
	start();
	steps_to(3);
	launch_and_kernel(3, 1, 31);
	ab_launch(&ab, MAIN, 3, 2, AB_MS(32));
	ab_flush(&ab);
	steps_to(4);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(41);
	assert_true(trace->held);
	trace->pending_bytes = 4 << 20;
	drain(140);
	assert_int_equal(trace->flushes, 0);
	drain(150);
	assert_false(trace->held);
	assert_int_equal(trace->flushes, 1);
	assert_false(report.drained);
}

/* Of a recording there is much, and room for it is short. */
static void recording_is_compressed(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	launch_and_kernel(0, 1, 1);
	ab_launch(&ab, MAIN, 0, 2, AB_MS(2));
	ab_flush(&ab);
	atomic_store(&ab.hdr->keep_full, 1);
	drain(5);
	assert_int_equal(fake_count, 1);
	assert_false(fake_traces[0].held);
	fake_traces[0].pending_bytes = 4 << 20;
	drain(15);
	assert_int_equal(fake_traces[0].flushes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(drained),
		TEST(late_call),
		TEST(too_late_a_call),
		TEST(drained_without_message),
		TEST(no_record_expected),
		TEST(switched_off),
		TEST(too_late_a_node),
		TEST(lost_mark),
		TEST(dropped),
		TEST(lost_windows),
		TEST(passed_windows),
		TEST(untimed_records),
		TEST(untimed_among_others),
		TEST(hole_in_buffer),
		TEST(late_for_its_window),
		TEST(compressed_when_drained),
		TEST(told_before_compressed),
		TEST(drained_makes_room),
		TEST(not_held_at_the_end),
		TEST(never_held_at_the_end),
		TEST(compressed_when_late),
		TEST(recording_is_compressed),
	};

	return cmocka_run_group_tests_name("recorder_drain", tests, NULL, NULL);
}
