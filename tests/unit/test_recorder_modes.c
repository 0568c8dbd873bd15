/* Recordings without steps: kept until one is marked, or of the whole run. */
#include "base.h"
#include "recorder_rig.h"

/* ---- auto, before the first step ---- */

static void kept_then_steps(void **state)
{
	uint32_t i;

	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	ab_push(&ab, MAIN, 0, AB_MS(1), 1, "train");
	for (i = 0; i < 3; i++)
		launch_and_kernel(0, i + 1, i + 2);
	ab_flush(&ab);
	drain(5);
	drain(6);
	assert_int_equal(report.phase, GT_PHASE_IDLE);
	assert_int_equal(report.gpu_ops, 0);
	assert_int_equal(ab_count(&ab, GT_POOL_CUPTI, GT_CHUNK_DONE), 1); /* it is the recording */
	atomic_store(&ab.hdr->mode, GT_MODE_STEPS);
	step(1);
	drain(15);
	assert_int_equal(ab_count(&ab, GT_POOL_CUPTI, GT_CHUNK_DONE), 0);
	assert_int_equal(fake_count, 0);
	steps_to(2);
	launch_and_kernel(2, 10, 21);
	ab_flush(&ab);
	steps_to(4);
	ab_pop(&ab, MAIN, 4, AB_MS(45), 1);
	close_cycle(50);
	drain(200);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_int_equal(range_of(only_trace(), "train")->range.start_ns, AB_MS(20));
	assert_true(only_trace()->health.complete);
	assert_string_equal(only_trace()->step_source, "api");
}

/* A drain looks at the state, and the first mark and the window come before it has read. */
static void source_behind_the_state(void **state)
{
	(void)state;
	start();
	steps_to(2);
	launch_and_kernel(2, 10, 21);
	ab_flush(&ab);
	atomic_store(&ab.hdr->step_source, GT_STEP_NONE);
	drain(25);
	atomic_store(&ab.hdr->step_source, GT_STEP_API);
	steps_to(4);
	close_cycle(50);
	drain(200);
	assert_true(only_trace()->health.complete);
	assert_string_equal(only_trace()->step_source, "api");
}

static void kept_to_the_end(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	launch_and_kernel(0, 1, 2);
	ab_flush(&ab);
	drain(5);
	launch_and_kernel(0, 2, 6);
	ab_push(&ab, MAIN, 0, AB_MS(7), 1, "open");
	ab_flush(&ab);
	atomic_store(&ab.hdr->dropped_events, 1);
	finish(false, 10);
	trace = only_trace();
	assert_true(trace->meta.whole_run);
	assert_int_equal(trace->meta.cycle, 1);
	assert_string_equal(trace->step_source, "none");
	assert_int_equal(trace->gpu_count, 2);
	assert_int_equal(range_of(trace, "ProfilerStep#0")->range.start_ns, AB_MS(0));
	assert_int_equal(range_of(trace, "ProfilerStep#0")->range.end_ns, AB_MS(7));
	assert_int_equal(range_of(trace, "open")->range.end_ns, AB_MS(7));
	assert_non_null(span_of(trace, "ProfilerStep#0", 7));
	assert_int_equal(trace->health.dropped_ring, 1);
	assert_true(report.closed[0].whole_run);
	assert_int_equal(report.closed[0].cycle, 1);
}

static void kept_nothing(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	drain(5);
	finish(false, 10);
	assert_int_equal(fake_count, 0);
	assert_int_equal(report.closed_count, 0);
}

static void kept_until_full(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	launch_and_kernel(0, 1, 2);
	ab_launch(&ab, MAIN, 0, 2, AB_MS(3));
	ab_flush(&ab);
	drain(5);
	assert_int_equal(fake_count, 0);
	atomic_store(&ab.hdr->keep_full, 1);
	drain(6);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_int_equal(ab_count(&ab, GT_POOL_CUPTI, GT_CHUNK_DONE), 0);
	ab_kernel(&ab, 2, AB_MS(4));
	ab_flush(&ab);
	drain(20);
	drain(120);
	assert_int_equal(report.closed_count, 1);
	assert_true(report.closed[0].complete);
	assert_true(report.closed[0].whole_run);
	assert_non_null(strstr(only_trace()->warning, "bound"));
	assert_int_equal(only_trace()->gpu_count, 2);

	/* then a step is marked after all: its window replaces the file */
	atomic_store(&ab.hdr->mode, GT_MODE_STEPS);
	steps_to(2);
	launch_and_kernel(2, 10, 21);
	ab_flush(&ab);
	steps_to(4);
	close_cycle(150);
	assert_int_equal(fake_count, 2);
	assert_string_equal(fake_traces[1].path, fake_traces[0].path);
	assert_int_equal(fake_traces[1].flags, GT_TRACE_OVERWRITE);
	assert_int_equal(path_calls, 1);
	assert_false(fake_traces[1].meta.whole_run);
	assert_int_equal(fake_traces[1].gpu_count, 1);
	finish(false, 300);
	assert_int_equal(fake_count, 2);
}

static void operators_had_their_share(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	atomic_store(&ab.hdr->ops_full, 1);
	launch_and_kernel(0, 1, 2);
	ab_flush(&ab);
	drain(5);
	assert_int_equal(fake_count, 0);
	finish(false, 6);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_non_null(strstr(only_trace()->warning, "operators"));
}

static void full_and_switched_off(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	ab_launch(&ab, MAIN, 0, 1, AB_MS(2));
	atomic_store(&ab.hdr->keep_full, 1);
	phase(GT_WHAT_OFF, 0, 0, 4);
	drain(5);
	assert_int_equal(report.closed_count, 1);
	assert_int_equal(only_trace()->health.launches_without_gpu, 1);
	finish(false, 10);
	assert_int_equal(report.closed_count, 0);
}

static void full_then_the_end(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	launch_and_kernel(0, 1, 2);
	ab_flush(&ab);
	atomic_store(&ab.hdr->keep_full, 1);
	finish(true, 6);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_true(report.closed[0].complete);
}

/* ---- no steps asked for ---- */

static void whole_run(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_WHOLE);
	start();
	launch_and_kernel(0, 1, 2);
	ab_flush(&ab);
	drain(5);
	assert_int_equal(report.phase, GT_PHASE_ACTIVE);
	assert_int_equal(report.open_cycle, 1);
	assert_int_equal(only_trace()->gpu_count, 1);
	launch_and_kernel(0, 2, 6);
	phase(GT_WHAT_YIELD, 0, 0, 7); /* a pause, not an end */
	launch_and_kernel(0, 3, 8);
	ab_flush(&ab);
	drain(10);
	assert_int_equal(only_trace()->gpu_count, 3);
	phase(GT_WHAT_CLOSE, 0, 1, 12); /* at exit */
	drain(13);
	drain(20);
	assert_true(report.drained);
	assert_int_equal(report.drained_cycle, 0);
	assert_int_equal(report.closed_count, 1);
	assert_false(report.closed[0].complete);
	assert_non_null(strstr(only_trace()->reason, "torch.profiler"));
	assert_int_equal(range_of(only_trace(), "ProfilerStep#0")->range.end_ns, AB_MS(12));
	finish(false, 30);
	assert_int_equal(fake_count, 1);
}

/* A long run without an end: what has its work does not take room for ever. */
static void long_run(void **state)
{
	uint32_t i, round;

	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_WHOLE);
	start();
	fake_discard = true;
	for (round = 0; round < 50; round++) {
		for (i = 0; i < 1000; i++)
			ab_launch(&ab, MAIN, 0, round * 1000 + i, AB_MS(round + i * 0.001));
		for (i = 0; i < 1000; i++)
			ab_kernel(&ab, round * 1000 + i, AB_MS(round + 0.5 + i * 0.001));
		ab_flush(&ab);
		drain(round + 2);
	}
	assert_int_equal(report.gpu_ops, 50000);
	finish(false, 100);
	assert_true(only_trace()->health.complete);
}

static void killed_whole_run(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_WHOLE);
	start();
	launch_and_kernel(0, 1, 2);
	finish(true, 5);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_false(report.closed[0].complete);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kept_then_steps),
		TEST(source_behind_the_state),
		TEST(kept_to_the_end),
		TEST(kept_nothing),
		TEST(kept_until_full),
		TEST(operators_had_their_share),
		TEST(full_and_switched_off),
		TEST(full_then_the_end),
		TEST(whole_run),
		TEST(long_run),
		TEST(killed_whole_run),
	};

	return cmocka_run_group_tests_name("recorder_modes", tests, NULL, NULL);
}
