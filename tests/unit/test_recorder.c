/* Which launches and GPU records are in which window's file, in whatever order they are read. */
#include "base.h"
#include "recorder_rig.h"

static void by_the_step_of_the_launch(void **state)
{
	const struct gt_trace *trace;
	uint32_t i;

	(void)state;
	start();
	for (i = 0; i < 6; i++) {
		if (i)
			step(i);
		/* its GPU work always runs in the step after */
		ab_launch(&ab, MAIN, i, 100 + i, AB_MS(10 * i + 5));
		ab_kernel(&ab, 100 + i, AB_MS(10 * i + 15));
	}
	ab_flush(&ab);
	close_cycle(60);
	drain(71);
	trace = only_trace();
	assert_int_equal(trace->call_count, 2);
	assert_int_equal(trace->gpu_count, 2);
	assert_non_null(call_of(trace, 102));
	assert_non_null(gpu_of(trace, 103));
	assert_true(gpu_of(trace, 103)->has_launch);
	assert_true(call_of(trace, 102)->call.launches);
	assert_string_equal(gpu_of(trace, 102)->name, "kernel_one");
	assert_true(trace->closed);
	assert_true(trace->health.complete);
	assert_int_equal(trace->health.gpu_without_launch, 0);
	assert_int_equal(report.late_calls, 0);
	assert_int_equal(report.late_records, 0);
	assert_int_equal(report.gpu_ops, 6);
}

/* The window ends; of all GPU work in its time one piece is its own, and nothing is missing. */
static void expect_one_gpu_op(void)
{
	const struct gt_trace *trace;

	steps_to(5);
	ab_flush(&ab);
	close_cycle(60);
	drain(71);
	trace = only_trace();
	assert_int_equal(trace->gpu_count, 1);
	assert_int_equal(trace->health.gpu_without_launch, 0);
	assert_true(trace->health.complete);
}

/* More launches than the first table of them holds, read before any of their records is. */
static void work_of_a_busy_warm_up(void **state)
{
	enum { LAUNCHES = 1500 };
	uint32_t i;

	(void)state;
	start();
	step(1);
	for (i = 0; i < LAUNCHES; i++)
		ab_launch(&ab, MAIN, 1, 1000 + i, AB_MS(11));
	step(2);
	ab_launch(&ab, MAIN, 2, 1000 + LAUNCHES, AB_MS(21));
	for (i = 0; i <= LAUNCHES; i++)
		ab_kernel(&ab, 1000 + i, AB_MS(22)); /* in the window, all but one of the warm-up */
	expect_one_gpu_op();
}

/* Queued before CUPTI was on; correlation ids rise, so they are older than any that was heard. */
static void work_from_before_the_warm_up(void **state)
{
	(void)state;
	start();
	step(1);
	ab_launch(&ab, MAIN, 1, 100, AB_MS(11));
	step(2);
	ab_launch(&ab, MAIN, 2, 101, AB_MS(21));
	ab_kernel(&ab, 99, AB_MS(21));
	ab_kernel(&ab, 100, AB_MS(22));
	ab_kernel(&ab, 101, AB_MS(23));
	expect_one_gpu_op();
}

static void record_before_launch(void **state)
{
	(void)state;
	start();
	steps_to(2);
	ab_kernel(&ab, 7, AB_MS(21));
	ab_flush(&ab);
	drain(25);
	assert_int_equal(fake_count, 0);
	ab_launch(&ab, MAIN, 2, 7, AB_MS(20.9)); /* its call blocked until the kernel's end */
	drain(35);
	assert_true(gpu_of(only_trace(), 7)->has_launch);
	assert_int_equal(only_trace()->call_count, 1);
}

static void names_come_late(void **state)
{
	(void)state;
	start();
	steps_to(2);
	/* the thread that uses a name is read before the one that announced it */
	ab_call(&ab, (struct ab_call){ .tid = 11,
				       .step = 2,
				       .correlation = 7,
				       .name_id = 50,
				       .klass = GT_CALL_SYNC,
				       .start_ns = AB_MS(21) });
	ab_string(&ab, 12, 50, "cudaStreamSynchronize");
	drain(25);
	assert_string_equal(call_of(only_trace(), 7)->name, "cudaStreamSynchronize");
	assert_false(call_of(only_trace(), 7)->call.launches);
}

static void unnamed(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_launch(&ab, MAIN, 2, 2, AB_MS(22));
	ab_kernel_on(&ab, 1, 7, AB_MS(22), AB_MS(23), 999);
	ab_kernel_on(&ab, 2, 7, AB_MS(22), AB_MS(23), UINT64_C(0x7fff00001000));
	ab_flush(&ab);
	drain(25);
	trace = only_trace();
	assert_string_equal(call_of(trace, 1)->name, "cuda 211");
	assert_string_equal(gpu_of(trace, 1)->name, "kernel 0x3e7");
	assert_string_equal(gpu_of(trace, 2)->name, "kernel 0x7fff00001000");
	finish(true, 60);
	assert_int_equal(trace->health.dropped_names, 2);
	assert_false(trace->health.complete);
}

static void launched_before_recording(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	start();
	steps_to(5);
	ab_launch(&ab, MAIN, 2, 1, AB_MS(21));
	ab_kernel(&ab, 1, AB_MS(22));
	ab_kernel(&ab, 90, AB_MS(25)); /* nothing is known of its launch */
	/* launched before the first call that was heard: it waited when CUPTI was switched on */
	ab_kernel(&ab, UINT32_MAX, AB_MS(26));
	ab_kernel(&ab, 91, AB_MS(19)); /* nor of these, but they are not of the window's time */
	ab_kernel(&ab, 92, AB_MS(41));
	ab_flush(&ab);
	close_cycle(60);
	assert_false(report.drained); /* the launch of 90 could still be written */
	drain(161);
	assert_true(report.drained);
	trace = only_trace();
	assert_int_equal(trace->gpu_count, 2);
	assert_false(gpu_of(trace, 90)->has_launch);
	assert_int_equal(trace->health.gpu_without_launch, 1);
}

/* The work of a long warm-up runs on in the window, and is none of it. */
static void warmup_in_flight(void **state)
{
	uint32_t i;

	(void)state;
	start();
	steps_to(1);
	for (i = 1; i <= 3000; i++)
		ab_launch(&ab, MAIN, 1, i, AB_MS(11) + i * 2000);
	steps_to(2);
	for (i = 3001; i <= 3100; i++)
		ab_launch(&ab, MAIN, 2, i, AB_MS(21) + i * 2000);
	steps_to(4);
	for (i = 1; i <= 3100; i++)
		ab_kernel(&ab, i, AB_MS(20) + i * 5000);
	ab_flush(&ab);
	close_cycle(50);
	drain(200);
	assert_int_equal(only_trace()->gpu_count, 100);
	assert_true(only_trace()->health.complete);
}

/* The GPU is so far behind that several windows wait when the first records come. */
static void work_behind_several_windows(void **state)
{
	uint32_t i;

	(void)state;
	config.schedule = (struct gt_schedule){ .warmup = 1, .active = 1, .repeat = 0 };
	start();
	for (i = 0; i < 8; i++) {
		if (i)
			step(i);
		ab_launch(&ab, MAIN, i, 100 + i, AB_MS(10 * i + 1));
	}
	drain(75);
	ab_kernel(&ab, 99, AB_MS(11)); /* queued before CUPTI was on */
	for (i = 0; i < 8; i++)
		ab_kernel(&ab, 100 + i, AB_MS(10 * i + 12)); /* that of a warm-up in its window */
	ab_flush(&ab);
	drain(100);
	finish(false, 500);
	assert_int_equal(fake_count, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(fake_traces[i].health.gpu_without_launch, 0);
		assert_int_equal(fake_traces[i].gpu_count, 1);
		assert_non_null(gpu_of(&fake_traces[i], 101 + 2 * i));
		assert_true(fake_traces[i].health.complete);
	}
}

static void only_active_steps_make_files(void **state)
{
	(void)state;
	start();
	steps_to(1);
	ab_launch(&ab, MAIN, 1, 1, AB_MS(11));
	ab_kernel(&ab, 1, AB_MS(12));
	ab_flush(&ab);
	drain(15);
	finish(false, 20);
	assert_int_equal(fake_count, 0);
	assert_int_equal(path_calls, 0);
	assert_int_equal(report.closed_count, 0);
}

static void cycles(void **state)
{
	uint32_t i;

	(void)state;
	config.schedule = (struct gt_schedule){ .wait = 1, .active = 1, .repeat = 0 };
	start();
	for (i = 0; i < 8; i++) {
		if (i)
			step(i);
		ab_launch(&ab, MAIN, i, i + 1, AB_MS(10 * i + 1));
		ab_kernel(&ab, i + 1, AB_MS(10 * i + 2));
		ab_flush(&ab);
		drain(10 * i + 5);
	}
	drain(80);
	finish(false, 500);
	assert_int_equal(fake_count, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(fake_traces[i].meta.cycle, i + 1);
		assert_int_equal(fake_traces[i].gpu_count, 1);
		assert_non_null(gpu_of(&fake_traces[i], 2 * i + 2));
		assert_true(fake_traces[i].health.complete);
	}
}

/* Each step a window of its own, and no GPU record comes: only so many wait. */
static void many_windows(void **state)
{
	uint32_t i;

	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1, .repeat = 0 };
	start();
	for (i = 0; i < 40; i++) {
		if (i)
			step(i);
		ab_launch(&ab, MAIN, i, i + 1, AB_MS(10 * i + 1));
	}
	drain(401);
	assert_int_equal(report.closed_count, 24);
	assert_false(report.closed[0].complete);
	assert_int_equal(report.closed[0].losses, 1);
	finish(false, 500);
	assert_int_equal(report.closed_count, 16);
	assert_int_equal(fake_count, 40);
}

static void correlation_wraps(void **state)
{
	const struct gt_trace *trace;
	uint32_t i, id;

	(void)state;
	start();
	steps_to(2);
	for (i = 0; i < 10; i++) {
		id = UINT32_MAX - 4 + i;
		ab_launch(&ab, MAIN, 2, id, AB_MS(20) + i * 20000);
		ab_kernel(&ab, id, AB_MS(20) + i * 20000 + 15000);
	}
	ab_flush(&ab);
	steps_to(4);
	close_cycle(50);
	drain(200);
	trace = only_trace();
	assert_int_equal(trace->gpu_count, 10);
	assert_true(trace->health.complete);
}

/* An id that comes again in a later window finds its new launch, whichever half is first. */
static void correlation_reused(void **state)
{
	(void)state;
	config.schedule.repeat = 2;
	start();
	steps_to(4);
	ab_launch(&ab, MAIN, 2, 7, AB_MS(21)); /* its record is lost */
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	phase(GT_WHAT_OFF, 0, 0, 45);
	drain(50);
	assert_int_equal(report.closed_count, 1);
	assert_int_equal(fake_traces[0].health.launches_without_gpu, 1);
	steps_to(5);
	ab_launch(&ab, MAIN, 5, 1000, AB_MS(51));
	drain(55);
	ab_kernel(&ab, 7, AB_MS(52));
	ab_kernel(&ab, 1000, AB_MS(52));
	ab_flush(&ab);
	drain(56);
	assert_int_equal(report.late_calls, 0);
	assert_int_equal(report.late_records, 0);
	ab_launch(&ab, MAIN, 5, 7, AB_MS(51.5));
	drain(58);
	assert_int_equal(fake_traces[1].gpu_count, 2);
}

/* Work whose launch is lost does not become that of a much later one with the same id. */
static void correlation_reused_within_a_window(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 2, 1000, AB_MS(21));
	ab_kernel(&ab, 1000, AB_MS(22));
	ab_kernel(&ab, 7, AB_MS(22));
	ab_flush(&ab);
	drain(25);
	ab_launch(&ab, MAIN, 2, 7, AB_MS(20000));
	ab_kernel(&ab, 7, AB_MS(20001));
	ab_flush(&ab);
	phase(GT_WHAT_CLOSE, 0, 4, 20050);
	phase(GT_WHAT_OFF, 0, 0, 20055);
	drain(20060);
	trace = only_trace();
	assert_int_equal(trace->gpu_count, 3);
	assert_int_equal(trace->health.gpu_without_launch, 1);
	assert_string_equal(trace->reason, "1 GPU record has no launch");
}

static void attached_later(void **state)
{
	struct gt_msg_phase msg = { .what = GT_WHAT_ATTACHED, .cupti_version = 28 };

	(void)state;
	ab_set_sizes(msg.record_bytes, &ab_versions[0]);
	memset(ab.hello.record_bytes, 0, sizeof(ab.hello.record_bytes));
	start();
	gt_recorder_phase(rec, &msg);
	ab.kernel_bytes = ab_versions[0].kernel;
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	launch_and_kernel(2, 2, 22);
	ab_flush(&ab);
	drain(23);
	assert_int_equal(only_trace()->gpu_count, 2);
	assert_int_equal(only_trace()->meta.cupti_version, 28);
}

/* A buffer can be complete before the message that says how long its records are. */
static void records_before_their_sizes(void **state)
{
	struct gt_msg_phase msg = { .what = GT_WHAT_ATTACHED };

	(void)state;
	memcpy(msg.record_bytes, ab.hello.record_bytes, sizeof(msg.record_bytes));
	memset(ab.hello.record_bytes, 0, sizeof(ab.hello.record_bytes));
	start();
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	assert_int_equal(ab_count(&ab, GT_POOL_CUPTI, GT_CHUNK_DONE), 1);
	gt_recorder_phase(rec, &msg);
	drain(23);
	assert_int_equal(only_trace()->gpu_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(by_the_step_of_the_launch),
		TEST(work_of_a_busy_warm_up),
		TEST(work_from_before_the_warm_up),
		TEST(record_before_launch),
		TEST(names_come_late),
		TEST(unnamed),
		TEST(launched_before_recording),
		TEST(warmup_in_flight),
		TEST(work_behind_several_windows),
		TEST(only_active_steps_make_files),
		TEST(cycles),
		TEST(many_windows),
		TEST(correlation_wraps),
		TEST(correlation_reused),
		TEST(correlation_reused_within_a_window),
		TEST(attached_later),
		TEST(records_before_their_sizes),
	};

	return cmocka_run_group_tests_name("recorder", tests, NULL, NULL);
}
