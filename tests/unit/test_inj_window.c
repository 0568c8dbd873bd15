/* How long CUPTI stays on behind a window. The clock, the steps and the buffers are the test's. */
#include "clock.h"
#include "capture.h"
#include "control.h"
#include "cupti_api.h"
#include "events.h"
#include "in_child.h"
#include "py_stacks.h"
#include "quiet.h"
#include "schedule.h"
#include "torch_memory.h"
#include "torch_ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct inj_live inj_live;
struct inj_config inj_config;
struct inj_cupti inj_cupti;
struct gt_arena_hdr *inj_arena;

static uint64_t now_ms = 1000;
static uint32_t buffers;
static enum gt_phase_what told; /* last */
static bool whole_graphs = true;

/* Steps 0, 1 idle, 2 warm-up, 3 active, 4, 5 idle, 6 warm-up, 7 active. */
static const struct gt_schedule schedule = { .wait = 2, .warmup = 1, .active = 1, .repeat = 2 };

/* ---- what is around it ---- */

uint64_t inj_now_ms(void)
{
	return now_ms;
}

uint64_t inj_now_ns(void)
{
	return now_ms * GT_NSEC_PER_MSEC;
}

uint32_t inj_activity_buffers(void)
{
	return buffers;
}

void inj_tell(enum gt_phase_what what, uint64_t cycle, uint64_t value)
{
	(void)cycle;
	(void)value;
	told = what;
}

const struct gt_schedule *inj_steps_schedule(void)
{
	return &schedule;
}

void inj_steps_at(uint64_t step, struct gt_sched_pos *ret)
{
	gt_schedule_at(&schedule, step, ret);
}

bool inj_steps_near(uint64_t step)
{
	(void)step;
	return false;
}

bool inj_capture_near(void)
{
	return false;
}

bool inj_steps_plan_near(const struct gt_plan *plan)
{
	(void)plan;
	return false;
}

void inj_activity_prepare(void)
{
}

bool inj_steps_plan(const struct gt_plan *plan, uint32_t *ret_step)
{
	(void)plan;
	*ret_step = 0;
	return false;
}

void inj_steps_cancel(uint64_t cycle)
{
	(void)cycle;
}

enum gt_step_source inj_steps_frozen(void)
{
	return GT_STEP_NONE;
}

int inj_activity_take(void)
{
	return 0;
}

int inj_activity_on(void)
{
	return 0;
}

int inj_launches_on(void)
{
	return 0;
}

bool inj_quiet_begin(void)
{
	return true;
}

bool inj_activity_seen(void)
{
	return true;
}

bool inj_launches_graph_seen(void)
{
	return false;
}

uint64_t inj_launches_total(void)
{
	return 0;
}

void inj_activity_flush(bool forced)
{
	(void)forced;
}

void inj_launches_listen(bool on)
{
	(void)on;
}

void inj_ops_follow(bool wanted)
{
	(void)wanted;
}

void inj_memory_follow(bool wanted)
{
	(void)wanted;
}

void inj_log(enum gt_log_level level, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
}

void inj_activity_off(void)
{
}

void inj_activity_name_held(void)
{
}

void inj_activity_end_graphs(void)
{
	whole_graphs = false;
}

void inj_activity_yield(void)
{
	whole_graphs = false;
}

void inj_launches_off(void)
{
}

void inj_quiet_end(void)
{
}

void inj_recording_full(void)
{
}

void inj_stacks_follow(void)
{
}

void inj_tell_devices(void)
{
}

/* ---- the cases ---- */

static int setup(void **state)
{
	(void)state;
	inj_arena = calloc(1, sizeof(*inj_arena));
	if (!inj_arena)
		return -1;
	atomic_store(&inj_arena->mode, GT_MODE_STEPS);
	inj_control.attached = true;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(inj_arena);
	return 0;
}

static void at(uint64_t ms)
{
	now_ms = ms;
	inj_window_follow(0, 0);
}

static void step(uint32_t number, uint64_t ms)
{
	atomic_store(&inj_arena->step, number);
	at(ms);
}

/* Its window is closed at 3000 ms. */
static void first_window(void)
{
	step(1, 1000);
	check(!inj_control.on);
	step(2, 2000);
	check(inj_control.on);
	step(3, 2500);
	check(told == GT_WHAT_OPEN);
	step(4, 3000);
	check(inj_control.on && told == GT_WHAT_CLOSE);
}

static void nothing_comes(void **state)
{
	(void)state;
	in_child_until(_exit, {
		first_window();
		at(12999);
		check(inj_control.on);
		at(13000);
		check(!inj_control.on && told == GT_WHAT_OFF);
	});
}

static void records_come(void **state)
{
	(void)state;
	in_child_until(_exit, {
		first_window();
		buffers = 1;
		at(11000);
		at(20999);
		check(inj_control.on);
		at(21000);
		check(!inj_control.on && told == GT_WHAT_OFF);
	});
}

/* The collector does not say anything, and the program goes on. */
static void records_come_for_ever(void **state)
{
	(void)state;
	in_child_until(_exit, {
		first_window();
		for (uint64_t ms = 4000; ms < 63000; ms += 1000) {
			buffers++;
			at(ms);
			check(inj_control.on);
		}
		buffers++;
		at(63000);
		check(!inj_control.on && told == GT_WHAT_OFF);
		buffers++;
		at(64000);
		check(!inj_control.draining);
	});
}

/* We were held up, and the collector says so before we have seen the window's end. */
static void drained_sooner(void **state)
{
	(void)state;
	in_child_until(_exit, {
		step(2, 2000);
		step(3, 2500);
		inj_window_drained(0);
		check(inj_control.on && inj_control.opened);
		step(4, 3000);
		check(!inj_control.on && told == GT_WHAT_OFF);
		step(6, 4000);
		step(7, 5000);
		step(8, 6000);
		check(inj_control.on);
		inj_window_drained(1);
		at(6001);
		check(!inj_control.on);
	});
}

/* Tracing ends. */
static void stopped(void **state)
{
	(void)state;
	in_child_until(_exit, {
		first_window();
		inj_control.stopped = true;
		at(3001);
		buffers++;
		at(3200);
		check(inj_control.on && whole_graphs);
		at(3201);
		check(!inj_control.on && !whole_graphs);
	});
}

/* Between two windows. */
static void stopped_while_off(void **state)
{
	(void)state;
	in_child_until(_exit, {
		step(1, 1000);
		check(whole_graphs);
		inj_control.stopped = true;
		at(1001);
		check(!whole_graphs);
	});
}

/* The program's own profiler came before its CUDA did. */
static void yielded_before_cuda(void **state)
{
	(void)state;
	in_child_until(_exit, {
		inj_control.attached = false;
		now_ms = 1000;
		inj_window_follow(1, 0);
		check(whole_graphs);
		inj_control.attached = true;
		inj_window_follow(1, 0);
		check(!whole_graphs && !inj_control.on);
	});
}

/* The plan of the next window is taken back when it is open; the first one waits. */
static void next_is_cancelled(void **state)
{
	(void)state;
	in_child_until(_exit, {
		first_window();
		step(6, 4000);
		step(7, 5000);
		check(inj_control.opened);
		inj_window_cancel(1);
		step(8, 6000);
		check(!inj_control.opened && inj_control.on);
		at(12999);
		check(inj_control.on);
		at(13000);
		check(!inj_control.on);
	});
}

/* The same when it is closed already. */
static void next_is_cancelled_late(void **state)
{
	(void)state;
	in_child_until(_exit, {
		first_window();
		step(6, 4000);
		step(7, 5000);
		step(8, 6000);
		inj_window_cancel(1);
		at(6001);
		check(inj_control.on);
		inj_window_drained(0);
		at(6002);
		check(!inj_control.on);
	});
}

/* The same; the first one has all its records. */
static void next_alone_is_cancelled(void **state)
{
	(void)state;
	in_child_until(_exit, {
		first_window();
		inj_window_drained(0);
		step(6, 4000);
		step(7, 5000);
		inj_window_cancel(1);
		step(8, 6000);
		check(!inj_control.on);
	});
}

/* The program's own profiler comes: of what is in flight in the window no record can come. */
static void interrupted(void **state)
{
	(void)state;
	in_child_until(_exit, {
		step(1, 1000);
		step(2, 2000);
		step(3, 2500);
		inj_window_follow(1, 0);
		check(!inj_control.on && told == GT_WHAT_OFF);
		told = GT_WHAT_CLOSE;
		inj_window_follow(0, 3);
		check(told == GT_WHAT_RESUME);
	});
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(nothing_comes),          TEST(records_come),
		TEST(records_come_for_ever),  TEST(stopped),
		TEST(next_is_cancelled),      TEST(next_alone_is_cancelled),
		TEST(next_is_cancelled_late), TEST(interrupted),
		TEST(drained_sooner),         TEST(stopped_while_off),
		TEST(yielded_before_cuda),
	};

	return cmocka_run_group_tests_name("injection: window", tests, NULL, NULL);
}
