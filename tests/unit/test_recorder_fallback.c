/* The fall-back mode: calls come as CUPTI's records, as another tool has the callbacks. */
#include "base.h"
#include "recorder_rig.h"

enum { LAUNCH = 211, CU_LAUNCH = 307, SYNC = 131, CU_SYNC = 140, OTHER = 9 };

/* The names of calls, which come before the first of their records. */
static void start_with_names(void)
{
	start();
	ab_string(&ab, MAIN, 3, "cuLaunchKernel");
	ab_string(&ab, MAIN, 4, "cudaStreamSynchronize");
	ab_string(&ab, MAIN, 5, "cuStreamSynchronize");
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(2) << 32 | LAUNCH, 2, GT_CALL_KERNEL);
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(1) << 32 | CU_LAUNCH, 3, GT_CALL_KERNEL);
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(2) << 32 | SYNC, 4, GT_CALL_SYNC);
	ab_name(&ab, GT_EV_API_NAME, MAIN, UINT64_C(1) << 32 | CU_SYNC, 5, GT_CALL_SYNC);
}

static void start_fallback(void)
{
	start_with_names();
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

/* A drain under way reads no messages, and can find the window's records before the first of them.
 */
static void records_before_the_message(void **state)
{
	(void)state;
	start_with_names();
	steps_to(2);
	ab_api(&ab, true, LAUNCH, MAIN, 1, AB_MS(22), AB_MS(22.1));
	ab_flush(&ab);
	ab_kernel(&ab, 1, AB_MS(23));
	ab_flush(&ab);
	drain(26);
	phase(GT_WHAT_FALLBACK, 0, 0, 5);
	steps_to(5);
	ab_api(&ab, true, OTHER, MAIN, 2, AB_MS(61), AB_MS(61.1));
	ab_flush(&ab);
	close_cycle(62);
	drain(300);
	drain(401);
	assert_true(only_trace()->closed);
	assert_true(only_trace()->health.fallback);
	assert_true(only_trace()->health.complete);
	assert_non_null(call_of(only_trace(), 1));
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

/* However many launches wait, calls are read before their records are thrown away. */
static void calls_behind_many_launches(void **state)
{
	enum { MANY = 270000 };
	uint32_t i;

	(void)state;
	start_fallback();
	steps_to(2);
	for (i = 1; i <= MANY; i++) {
		ab_api(&ab, true, LAUNCH, MAIN, i, AB_MS(21) + i * 10, AB_MS(21) + i * 10 + 5);
		if (i % 50000 == 0 || i == MANY) {
			ab_flush(&ab);
			drain(25);
		}
	}
	steps_to(3);
	ab_api(&ab, true, SYNC, MAIN, MANY + 1, AB_MS(31), AB_MS(32));
	ab_flush(&ab);
	drain(35);
	assert_non_null(call_of(only_trace(), MANY + 1));
}

/* The other tool is gone by the second window: its calls are events again. */
static void callbacks_are_free_again(void **state)
{
	(void)state;
	config.schedule.repeat = 2; /* active: 2, 3; 5, 6 */
	start();
	phase(GT_WHAT_FALLBACK, 0, 0, 5);
	steps_to(4);
	drain(45);
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	phase(GT_WHAT_OFF, 0, 0, 46);
	drain(47);
	assert_int_equal(report.closed_count, 1);
	steps_to(5);
	phase(GT_WHAT_CALLBACKS, 1, 0, 50.1);
	launch_and_kernel(5, 1, 55);
	ab_flush(&ab);
	steps_to(8);
	phase(GT_WHAT_CLOSE, 1, 7, 70);
	drain(85);
	drain(95);
	assert_true(report.drained); /* nor does the target wait for what never comes */
	drain(300);
	phase(GT_WHAT_OFF, 1, 0, 10080);
	drain(10081);
	assert_true(fake_traces[1].closed);
	assert_null(strstr(fake_traces[1].reason, "another tool"));
	assert_true(fake_traces[1].health.complete);
}

/* Both was said before the names of its calls were read, which say that it began. */
static void names_behind_the_end(void **state)
{
	(void)state;
	config.schedule.repeat = 2; /* active: 2, 3; 5, 6 */
	start_with_names();
	phase(GT_WHAT_FALLBACK, 0, 0, 5);
	phase(GT_WHAT_OFF, 0, 0, 44);
	phase(GT_WHAT_CALLBACKS, 1, 0, 45);
	steps_to(5);
	launch_and_kernel(5, 1, 55);
	ab_flush(&ab);
	steps_to(7);
	drain(71);
	phase(GT_WHAT_CLOSE, 1, 7, 70);
	drain(85);
	assert_true(report.drained);
	finish(false, 300);
	assert_int_equal(fake_count, 2);
	for (size_t i = 0; i < fake_count; i++) {
		assert_int_equal(fake_traces[i].health.fallback, fake_traces[i].meta.cycle == 1);
		assert_int_equal(fake_traces[i].health.complete, fake_traces[i].meta.cycle == 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(fallback),
		TEST(records_before_the_message),
		TEST(fallback_without_records),
		TEST(calls_behind_many_launches),
		TEST(callbacks_are_free_again),
		TEST(names_behind_the_end),
	};

	return cmocka_run_group_tests_name("recorder_fallback", tests, NULL, NULL);
}
