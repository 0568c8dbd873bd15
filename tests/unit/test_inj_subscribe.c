/* CUPTI's callbacks, which one tool alone can have: for windows, for captured ranges, or not. */
#include "callbacks_rig.h"

#define API_KINDS \
	(UINT64_C(1) << CUPTI_ACTIVITY_KIND_RUNTIME | UINT64_C(1) << CUPTI_ACTIVITY_KIND_DRIVER)

static void place_is_taken(void **state)
{
	static const CUptiResult results[] = { CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
					       CUPTI_ERROR_MAX_LIMIT_REACHED };

	(void)state;
	cupti.thread_ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		uint64_t events = inj_events_total();

		cupti.subscribe_result = results[i];
		assert_int_equal(inj_launches_on(), -EBUSY);
		assert_null(cupti.callback);
		assert_int_equal(cupti.kinds, API_KINDS);
		assert_false(cupti.left_out[0][LAUNCH]);
		assert_false(cupti.left_out[0][SYNC]);
		assert_true(cupti.left_out[0][OTHER]);
		assert_false(cupti.left_out[1][DRIVER_LAUNCH]);
		assert_int_equal(cupti.thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
		/* what the callback ids in the records mean, once */
		assert_int_equal(inj_events_total(), events + (i ? 0 : 5));
		inj_launches_off();
		assert_int_equal(cupti.kinds, 0);
		assert_int_equal(cupti.thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
	}
	/* without the filter: the kinds as a whole */
	inj_cupti.cuptiActivityEnableRuntimeApi = NULL;
	assert_int_equal(inj_launches_on(), -EBUSY);
	assert_int_equal(cupti.kinds, API_KINDS);
	inj_launches_off();
	assert_int_equal(cupti.kinds, 0);
	inj_cupti.cuptiActivityEnableRuntimeApi = set_runtime_record;
}

/* One that is made while not all of them are heard of: the first to count is one after which none
 * is missing. */
static void call_while_subscribing(void **state)
{
	(void)state;
	inj_launches_off();
	cupti.call_at = 2;
	assert_int_equal(inj_launches_on(), 0);
	cupti.call_at = 0;
	assert_no_call();
	enter(RUNTIME, LAUNCH, 2);
	leave(RUNTIME, LAUNCH, 2);
	assert_int_equal(the_call().correlation, 2);
}

/* The calls that begin and end captured ranges, while nothing else is wanted. */
static void captures_alone(void **state)
{
	(void)state;
	cupti.subscribe_result = CUPTI_SUCCESS;
	inj_config.capture = INJ_CAPTURE_PROFILER;
	inj_config.schedule = (struct gt_schedule)GT_SCHEDULE_CAPTURE;
	inj_config.sources = 1U << GT_STEP_CAPTURE;
	atomic_store(&inj_arena->step, 0);
	inj_launches_listen(true);
	assert_non_null(cupti.callback);
	assert_int_equal(cupti.enabled, 2);
	assert_false(inj_live.heard);
	enter(RUNTIME, START, 1); /* a range begins when it returns */
	assert_int_equal(inj_arena->step, 0);
	leave(RUNTIME, START, 1);
	assert_int_equal(inj_arena->step, 2);
	assert_int_equal(inj_launches_on(), 0);
	assert_int_equal(cupti.enabled, 8);
	enter(DRIVER, DRIVER_STOP, 2); /* and ends when it is called */
	assert_int_equal(inj_arena->step, 3);
	leave(DRIVER, DRIVER_STOP, 2);
	assert_int_equal(inj_arena->step, 3);
	inj_launches_off();
	assert_int_equal(cupti.enabled, 2);
	assert_non_null(cupti.callback);
	inj_launches_listen(false);
	assert_null(cupti.callback);
}

static void captures_when_the_place_is_taken(void **state)
{
	(void)state;
	cupti.subscribe_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	inj_launches_listen(true);
	assert_null(cupti.callback);
	cupti.subscribe_result = CUPTI_SUCCESS;
	/* Not asked for again and again, but once the program's profiler is gone. */
	inj_launches_listen(true);
	assert_null(cupti.callback);
	inj_launches_listen(false);
	inj_launches_listen(true);
	assert_int_equal(cupti.enabled, 2);
	/* Given up in the middle of a window: when that is over. */
	assert_int_equal(inj_launches_on(), 0);
	inj_launches_listen(false);
	assert_int_equal(cupti.enabled, 8);
	inj_launches_off();
	assert_null(cupti.callback);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SUBSCRIBED(call_while_subscribing),
		cmocka_unit_test(place_is_taken),
		cmocka_unit_test(captures_alone),
		cmocka_unit_test(captures_when_the_place_is_taken),
	};

	return cmocka_run_group_tests(tests, create, NULL);
}
