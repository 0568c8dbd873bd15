/* What begins and ends captured ranges: calls, NVTX ranges, the clock. */
#include "capture.h"
#include "events.h"
#include "in_child.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* In place of the control thread, for which the beginning of a range waits. */
static void *control(void *arg)
{
	for (;;) {
		uint32_t request = atomic_load(&inj_arena->request);

		atomic_store(&inj_live.armed, 1);
		inj_control_next(request, request, 1000);
	}
	return arg;
}

/* Each case has a session of its own. step: how many marks there were; three are a range. */
static void start(const char *text, enum gt_arena_mode mode)
{
	pthread_t thread;
	int fd;

	inj_config.schedule = (struct gt_schedule)GT_SCHEDULE_CAPTURE;
	inj_config.schedule.repeat = 0;
	inj_config.sources = 1U << GT_STEP_CAPTURE | 1U << GT_STEP_API;
	check(inj_capture_init(text));
	if (inj_config.capture == INJ_CAPTURE_AUTO || inj_config.capture == INJ_CAPTURE_NONE)
		inj_config.schedule = (struct gt_schedule)GT_SCHEDULE_DEFAULT;
	check(!inj_arena_create(GT_ARENA_MIN_BYTES, mode, &fd));
	check(!inj_events_init() && !inj_names_init() && !inj_steps_init());
	atomic_store(&inj_live.alive, 1);
	if (inj_config.capture != INJ_CAPTURE_TIME)
		check(!pthread_create(&thread, NULL, control, NULL));
}

#define in_session(text_, mode_, ...) in_child_until(_exit, start(text_, mode_); __VA_ARGS__)

static void calls_do_not_nest(void **state)
{
	(void)state;
	in_session("cuda-profiler", GT_MODE_STEPS, {
		inj_capture_call(INJ_CALL_ENDS);
		check(inj_arena->step == 0);
		inj_capture_call(INJ_CALL_BEGINS);
		inj_capture_call(INJ_CALL_BEGINS);
		check(inj_arena->step == 2);
		inj_capture_call(INJ_CALL_ENDS);
		inj_capture_call(INJ_CALL_ENDS);
		check(inj_arena->step == 3);
		inj_capture_call(INJ_CALL_BEGINS);
		check(inj_arena->step == 5 && !inj_arena->late_step);
	});
}

static void calls_by_name(void **state)
{
	(void)state;
	assert_int_equal(inj_capture_call_of("cudaProfilerStart"), INJ_CALL_BEGINS);
	assert_int_equal(inj_capture_call_of("cuProfilerStop"), INJ_CALL_ENDS);
	assert_int_equal(inj_capture_call_of("cuProfilerInitialize"), INJ_CALL_NO_MARK);
}

static void when_calls_are_obeyed(void **state)
{
	(void)state;
	in_session(NULL, GT_MODE_KEEP, {
		check(inj_capture_hears());
		inj_capture_call(INJ_CALL_BEGINS);
		check(inj_arena->step == 2 && inj_arena->step_source == GT_STEP_CAPTURE);
		inj_capture_call(INJ_CALL_ENDS);
		check(inj_arena->step == 3);
	});
	in_session("", GT_MODE_KEEP, {
		inj_step(GT_STEP_API, 0); /* steps rule */
		check(!inj_capture_hears());
		inj_capture_call(INJ_CALL_BEGINS);
		check(inj_arena->step == 1 && inj_arena->step_source == GT_STEP_API);
	});
	in_session(NULL, GT_MODE_WHOLE, {
		inj_capture_call(INJ_CALL_BEGINS);
		check(inj_arena->step == 0);
	});
	in_session("steps", GT_MODE_KEEP, {
		check(!inj_capture_hears());
		inj_capture_call(INJ_CALL_BEGINS);
		check(inj_arena->step == 0);
	});
	in_session("nvtx:x", GT_MODE_STEPS, {
		check(!inj_capture_hears());
		inj_capture_call(INJ_CALL_BEGINS);
		check(inj_arena->step == 0);
	});
}

static void ranges_nest(void **state)
{
	(void)state;
	in_session("nvtx:x", GT_MODE_STEPS, {
		inj_capture_range_ends(); /* of none */
		check(inj_arena->step == 0);
		inj_capture_range_begins();
		inj_capture_range_begins();
		inj_capture_range_ends();
		check(inj_arena->step == 2);
		inj_capture_range_ends();
		check(inj_arena->step == 3);
	});
}

static bool is_name(const char *name)
{
	return inj_capture_is_name(name, strlen(name));
}

static void names(void **state)
{
	(void)state;
	in_child_until(_exit, {
		check(inj_capture_init("nvtx:^step [0-9]+$"));
		check(is_name("step 1") && !is_name("a step 1") && !inj_capture_domain());
		check(inj_capture_is_name("step 1 tail", 6)); /* it need not end in NUL */
	});
	in_child_until(_exit, {
		check(inj_capture_init("nvtx:a@b@my.domain"));
		check(is_name("a@b") && !is_name("a"));
		check(!strcmp(inj_capture_domain(), "my.domain"));
	});
	in_child_until(_exit, {
		check(inj_capture_init("nvtx:a@*"));
		check(is_name("a") && !inj_capture_domain());
	});
	in_child_until(_exit, {
		check(inj_capture_init("nvtx:a@"));
		check(!strcmp(inj_capture_domain(), "")); /* the default one */
	});
	in_child_until(_exit, check(!inj_capture_init("nvtx:(")));
	in_child_until(_exit, check(!inj_capture_init("something")));
	in_child_until(_exit, check(!inj_capture_init("time:1,2")));
	in_child_until(_exit, check(!inj_capture_init("time:1,2,3,4")));
	in_child_until(_exit, check(!inj_capture_init("time:1,x,3")));
}

static const char *time_text(int64_t begin_ms, uint64_t length_ms, uint64_t pause_ms)
{
	static char text[80];

	snprintf(text, sizeof(text), "time:%llu,%llu,%llu",
		 (unsigned long long)inj_now_ms() + (unsigned long long)begin_ms,
		 (unsigned long long)length_ms, (unsigned long long)pause_ms);
	return text;
}

#define LONG 20000 /* ms */

/* All that is due by now. Returns when the next mark is. */
static uint32_t follow(void)
{
	uint32_t wait_ms;

	while (!(wait_ms = inj_capture_follow()))
		atomic_store(&inj_live.armed, 1);
	return wait_ms;
}

static void time_that_is_near(void **state)
{
	(void)state;
	in_session(time_text(0, LONG, 0), GT_MODE_STEPS, {
		uint32_t wait_ms = follow();

		check(inj_arena->step == 2); /* warmed up, and begun */
		check(wait_ms > LONG / 2 && wait_ms <= LONG);
	});
	in_session(time_text(LONG, LONG, 0), GT_MODE_STEPS, {
		uint32_t wait_ms = follow();

		check(inj_arena->step == 0);
		check(wait_ms > LONG / 2 && wait_ms < LONG); /* the warm-up is before */
	});
	in_session(time_text(-1000, 0, 0), GT_MODE_STEPS, {
		check(follow() == UINT32_MAX); /* to the end */
		check(inj_arena->step == 2);
	});
}

static void time_that_has_passed(void **state)
{
	(void)state;
	/* The only one is from now on, whole. */
	in_session(time_text(-LONG, LONG / 4, 0), GT_MODE_STEPS, {
		uint32_t wait_ms;

		inj_config.schedule.repeat = 1;
		wait_ms = follow();
		check(inj_arena->step == 2);
		check(wait_ms > LONG / 8 && wait_ms <= LONG / 4);
	});
	/* Ranges are at the same moments in all processes: this one has missed some. */
	in_session(time_text(-LONG, LONG / 4, LONG), GT_MODE_STEPS, {
		uint32_t wait_ms = follow();

		check(inj_arena->step == 0);
		check(wait_ms > LONG / 8 && wait_ms < LONG / 4);
	});
	in_session(time_text(-LONG / 8, LONG / 4, LONG), GT_MODE_STEPS, {
		follow(); /* within the first one */
		check(inj_arena->step == 2);
	});
}

static void time_waits_for_what_is_not_on(void **state)
{
	(void)state;
	in_session(time_text(0, LONG, 0), GT_MODE_STEPS, {
		check(!inj_capture_follow()); /* the warm-up */
		check(!atomic_load(&inj_live.armed));
		check(inj_capture_follow() && inj_arena->step == 1);
		atomic_store(&inj_live.armed, 1);
		check(!inj_capture_follow() && inj_arena->step == 2);
	});
}

static void no_time(void **state)
{
	(void)state;
	in_session("cuda-profiler", GT_MODE_STEPS, check(inj_capture_follow() == UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_do_not_nest),
		cmocka_unit_test(calls_by_name),
		cmocka_unit_test(when_calls_are_obeyed),
		cmocka_unit_test(ranges_nest),
		cmocka_unit_test(names),
		cmocka_unit_test(time_that_is_near),
		cmocka_unit_test(time_that_has_passed),
		cmocka_unit_test(time_waits_for_what_is_not_on),
		cmocka_unit_test(no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
