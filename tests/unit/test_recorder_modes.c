/* Recordings without steps, the fall-back mode, and what goes wrong on our side. */
#include "base.h"
#include "recorder_rig.h"

static void launch_and_kernel(uint32_t number, uint32_t correlation, double ms)
{
	ab_launch(&ab, MAIN, number, correlation, AB_MS(ms));
	ab_kernel(&ab, correlation, AB_MS(ms + 0.5));
}

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

/* ---- the fall-back mode ---- */

enum { LAUNCH = 211, CU_LAUNCH = 307, SYNC = 131, CU_SYNC = 140, OTHER = 9 };

static void start_fallback(void)
{
	start();
	ab_string(&ab, MAIN, 3, "cuLaunchKernel");
	ab_string(&ab, MAIN, 4, "cudaStreamSynchronize");
	ab_string(&ab, MAIN, 5, "cuStreamSynchronize");
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(2) << 32 | LAUNCH, 2, GT_CALL_KERNEL);
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(1) << 32 | CU_LAUNCH, 3, GT_CALL_KERNEL);
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(2) << 32 | SYNC, 4, GT_CALL_SYNC);
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(1) << 32 | CU_SYNC, 5, GT_CALL_SYNC);
	phase(GT_WHAT_FALLBACK, 0, 0, 5);
}

static void fallback(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	start_fallback();
	steps_to(2);
	ab_push(&ab, MAIN, 2, AB_MS(21), 1, "outer");
	ab_push(&ab, MAIN, 2, AB_MS(22), 2, "inner");
	ab_pop(&ab, MAIN, 2, AB_MS(23), 2);
	ab_pop(&ab, MAIN, 2, AB_MS(25), 1);
	drain(26);
	steps_to(4);
	drain(45); /* the records come long after */
	ab_api(&ab, false, CU_LAUNCH, MAIN, 1, AB_MS(22.2), AB_MS(22.3));
	ab_api(&ab, true, LAUNCH, MAIN, 1, AB_MS(22.1), AB_MS(22.4));
	ab_api(&ab, false, CU_LAUNCH, MAIN, 2, AB_MS(24.1), AB_MS(24.2)); /* by the driver */
	ab_api(&ab, true, LAUNCH, MAIN, 3, AB_MS(26), AB_MS(26.1));
	ab_api(&ab, true, LAUNCH, 99, 4, AB_MS(31), AB_MS(31.1));   /* another thread */
	ab_api(&ab, true, LAUNCH, MAIN, 5, AB_MS(11), AB_MS(11.1)); /* not in the window */
	ab_api(&ab, false, CU_SYNC, MAIN, 6, AB_MS(32.1), AB_MS(33));
	ab_api(&ab, true, SYNC, MAIN, 6, AB_MS(32), AB_MS(33.1));
	ab_api(&ab, true, OTHER, MAIN, 7, AB_MS(34), AB_MS(34.1));
	ab_flush(&ab);
	ab_kernel(&ab, 1, AB_MS(27));
	ab_kernel(&ab, 2, AB_MS(28));
	ab_kernel(&ab, 3, AB_MS(29));
	ab_kernel(&ab, 4, AB_MS(35));
	ab_kernel(&ab, 5, AB_MS(36));
	ab_flush(&ab);
	close_cycle(50);
	trace = only_trace();
	assert_false(report.drained); /* calls of the window may still come */
	ab_api(&ab, true, OTHER, MAIN, 8, AB_MS(61), AB_MS(61.1));
	ab_flush(&ab);
	drain(300);
	assert_true(report.drained);
	drain(401);
	assert_true(trace->closed);
	assert_true(trace->health.fallback);
	assert_true(trace->health.complete);
	assert_int_equal(trace->call_count, 5);
	assert_int_equal(trace->gpu_count, 4);
	assert_string_equal(call_of(trace, 1)->name, "cudaLaunchKernel");
	assert_true(call_of(trace, 1)->call.runtime);
	assert_int_equal(call_of(trace, 1)->call.start_ns, AB_MS(22.1));
	assert_string_equal(call_of(trace, 2)->name, "cuLaunchKernel");
	assert_false(call_of(trace, 2)->call.runtime);
	assert_string_equal(call_of(trace, 6)->name, "cudaStreamSynchronize");
	assert_false(call_of(trace, 6)->call.launches);
	assert_int_equal(call_of(trace, 1)->call.external_id,
			 range_of(trace, "inner")->range.external_id);
	assert_int_equal(call_of(trace, 2)->call.external_id,
			 range_of(trace, "outer")->range.external_id);
	assert_int_equal(call_of(trace, 3)->call.external_id,
			 range_of(trace, "ProfilerStep#2")->range.external_id);
	assert_int_equal(call_of(trace, 4)->call.external_id, 0);
	assert_int_equal(span_of(trace, "outer", 7)->span.end_ns, AB_MS(28.02));
	assert_int_equal(span_of(trace, "inner", 7)->span.end_ns, AB_MS(27.02));
	assert_int_equal(span_of(trace, "ProfilerStep#3", 7)->span.start_ns, AB_MS(35));
}

/* CUPTI's buffers can go to the tool that has its callbacks. */
static void fallback_without_records(void **state)
{
	(void)state;
	start_fallback();
	steps_to(5);
	close_cycle(60);
	drain(300);
	phase(GT_WHAT_OFF, 0, 0, 2100);
	drain(2101);
	drain(2300);
	assert_true(only_trace()->closed);
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
	assert_true(only_trace()->closed);
	assert_false(only_trace()->health.complete);
}

/* ---- our side ---- */

static void no_path(void **state)
{
	(void)state;
	start();
	path_rc = -EACCES;
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(25);
	assert_int_equal(failures(), 1);
	assert_int_equal(report.closed[0].err.code, -EACCES);
	assert_string_equal(report.closed[0].err.msg, "no path");
	launch_and_kernel(2, 2, 26);
	ab_flush(&ab);
	drain(28);
	assert_int_equal(failures(), 0); /* said once; it goes on without */
	assert_int_equal(path_calls, 1);
	steps_to(4);
	close_cycle(50);
	assert_true(report.drained || report.open_cycle);
	drain(200);
	assert_int_equal(report.open_cycle, 0);
	assert_int_equal(report.closed_count, 0);
}

static void disk_full(void **state)
{
	(void)state;
	start();
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	fake_write_rc = -ENOSPC;
	launch_and_kernel(2, 2, 26);
	ab_flush(&ab);
	drain(28);
	assert_int_equal(failures(), 1);
	assert_int_equal(report.closed[0].err.code, -ENOSPC);
	assert_non_null(strstr(report.closed[0].err.msg, "cycle1"));
	steps_to(4);
	close_cycle(50);
	drain(200);
	assert_true(only_trace()->closed);
	assert_int_equal(report.closed_count, 0);
}

/* In the same drain the first window cannot be written and the second one has no path. */
static void two_windows_fail(void **state)
{
	(void)state;
	config.schedule.repeat = 2;
	start();
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	fake_write_rc = -ENOSPC;
	path_rc = -EACCES;
	launch_and_kernel(2, 2, 26);
	steps_to(5);
	launch_and_kernel(5, 3, 51);
	ab_flush(&ab);
	drain(52);
	assert_int_equal(failures(), 2);
	assert_int_equal(report.closed[0].err.code, -ENOSPC);
	assert_int_equal(report.closed[1].err.code, -EACCES);
}

static void flushes(void **state)
{
	(void)state;
	start();
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	assert_int_equal(only_trace()->flushes, 0);
	gt_recorder_drain(rec, AB_MS(23), true, &report);
	assert_int_equal(only_trace()->flushes, 1);
	assert_false(only_trace()->health.complete);
	assert_null(only_trace()->health.reason);
	fake_traces[0].pending_bytes = 2 << 20;
	drain(24);
	assert_int_equal(only_trace()->flushes, 2);
}

static void devices(void **state)
{
	struct gt_msg_device device = { .id = 1, .num_sms = 132 };

	(void)state;
	start();
	memset(device.name, 'x', sizeof(device.name)); /* without an end */
	gt_recorder_device(rec, &device);
	device.id = 64;
	gt_recorder_device(rec, &device); /* no pid of a GPU in a trace */
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_flush(&ab);
	drain(22);
	assert_int_equal(only_trace()->meta.device_count, 1);
	device.id = 0;
	gt_recorder_device(rec, &device);
	device.id = 1;
	gt_recorder_device(rec, &device);
	assert_int_equal(only_trace()->late_devices, 2);
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

static void bad_chunks(void **state)
{
	const struct gt_ev bad = ab_ev(GT_EV_CALL, 24, 2, 0);
	uint32_t kind = 9; /* of no known size */

	(void)state;
	start();
	steps_to(1);
	drain(15);
	steps_to(2);
	launch_and_kernel(2, 1, 21);
	ab_record(&ab, &kind, 4);
	ab_kernel(&ab, 2, AB_MS(22));
	ab_flush(&ab);
	ab_launch(&ab, 11, 2, 3, AB_MS(22));
	ab_put(&ab, 11, &bad, sizeof(bad));
	ab_launch(&ab, 11, 2, 4, AB_MS(23));
	ab_done(&ab, 11);
	steps_to(4);
	close_cycle(50);
	assert_int_equal(only_trace()->gpu_count, 1);
	assert_int_equal(ab_count(&ab, GT_POOL_CUPTI, GT_CHUNK_FREE), 16);
	assert_int_equal(ab_count(&ab, GT_POOL_EVENT, GT_CHUNK_FREE), 31);
	phase(GT_WHAT_OFF, 0, 0, 60);
	drain(70);
	assert_int_equal(only_trace()->health.bad_records, 2);
	assert_int_equal(only_trace()->health.launches_without_gpu, 1);
	assert_null(call_of(only_trace(), 4));
}

/* Events of a step that the process has not come to open no window. */
static void impossible_step(void **state)
{
	(void)state;
	config.schedule = (struct gt_schedule){ .active = 1, .repeat = 0 };
	start();
	steps_to(2);
	ab_launch(&ab, MAIN, 1000, 1, AB_MS(21));
	drain(25);
	finish(false, 30);
	assert_int_equal(fake_count, 2);
	assert_int_equal(fake_traces[0].meta.cycle, 2);
	assert_int_equal(fake_traces[1].meta.cycle, 3);
	assert_int_equal(fake_traces[1].health.bad_records, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kept_then_steps),
		TEST(kept_to_the_end),
		TEST(kept_nothing),
		TEST(kept_until_full),
		TEST(operators_had_their_share),
		TEST(full_and_switched_off),
		TEST(full_then_the_end),
		TEST(whole_run),
		TEST(long_run),
		TEST(killed_whole_run),
		TEST(fallback),
		TEST(fallback_without_records),
		TEST(late_for_its_window),
		TEST(no_path),
		TEST(disk_full),
		TEST(two_windows_fail),
		TEST(flushes),
		TEST(devices),
		TEST(attached_later),
		TEST(records_before_their_sizes),
		TEST(bad_chunks),
		TEST(impossible_step),
	};

	return cmocka_run_group_tests_name("recorder_modes", tests, NULL, NULL);
}
