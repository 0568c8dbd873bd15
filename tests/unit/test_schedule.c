/* Where a step is: in cycles of the schedule, in plans between them, and how they are numbered. */
#include "base.h"
#include "schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct gt_schedule standard = GT_SCHEDULE_DEFAULT;
static const struct gt_schedule on_demand = { .on_demand = true, .active = 3, .warmup = 1 };
static struct gt_plans plans;

static int setup(void **state)
{
	(void)state;
	memset(&plans, 0, sizeof(plans));
	return 0;
}

static int add(const struct gt_schedule *sched, uint32_t first, uint32_t warmup, uint32_t active)
{
	struct gt_plan plan = { gt_plans_next_cycle(sched, &plans, first), first, warmup, active };
	int rc = gt_plans_check(sched, &plans, &plan);

	if (!rc)
		gt_plans_add(&plans, &plan);
	return rc;
}

/* A letter for each step from 0 on: the phase, and + when it is armed though it is idle. */
static void expect(const struct gt_schedule *sched, const char *phases)
{
	struct gt_sched_pos pos;
	char got[64] = "";

	for (size_t step = 0; step < strlen(phases); step++) {
		gt_plans_at(sched, &plans, step, &pos);
		got[step] = pos.phase == GT_PHASE_IDLE && pos.armed ? '+' : "iwao"[pos.phase];
		assert_int_equal(pos.armed, pos.phase == GT_PHASE_WARMUP ||
						    pos.phase == GT_PHASE_ACTIVE ||
						    got[step] == '+');
	}
	assert_string_equal(got, phases);
}

static uint64_t cycle_of(const struct gt_schedule *sched, uint64_t step)
{
	struct gt_sched_pos pos;

	gt_plans_at(sched, &plans, step, &pos);
	return pos.cycle;
}

static void without_plans(void **state)
{
	const struct gt_schedule unwarmed = {
		.skip_first = 2, .active = 1, .wait = 2, .repeat = 2
	};
	struct gt_sched_pos pos;

	(void)state;
	expect(&standard, "iiwaaaoo");
	expect(&unwarmed, "iii+ai+aoo");
	expect(&on_demand, "oooooooo");
	gt_schedule_at(&standard, 4, &pos);
	assert_int_equal(pos.active, 3);
	assert_int_equal(pos.warmup, 1);
	assert_int_equal(pos.index, 1);
	assert_false(pos.last);
}

static void on_their_own(void **state)
{
	(void)state;
	assert_int_equal(add(&on_demand, 4, 2, 2), 0);
	expect(&on_demand, "iiwwaaoooo");
	assert_int_equal(add(&on_demand, 8, 0, 1), 0);
	expect(&on_demand, "iiwwaai+aoo");
	assert_int_equal(cycle_of(&on_demand, 5), 0);
	assert_int_equal(cycle_of(&on_demand, 8), 1);
	/* one that was taken back gives its place and number to the next */
	plans.list[0].active = 0;
	expect(&on_demand, "iiwwaaooooo");
	assert_int_equal(add(&on_demand, 9, 1, 1), 0);
	assert_int_equal(cycle_of(&on_demand, 9), 1);
	expect(&on_demand, "iiwwaaiiwaoo");
}

static void position_in_a_plan(void **state)
{
	struct gt_sched_pos pos;

	(void)state;
	assert_int_equal(add(&on_demand, 10, 2, 3), 0);
	gt_plans_at(&on_demand, &plans, 9, &pos);
	assert_int_equal(pos.index, 1);
	assert_int_equal(pos.steps_to_active, 1);
	gt_plans_at(&on_demand, &plans, 12, &pos);
	assert_int_equal(pos.index, 2);
	assert_int_equal(pos.active, 3);
	assert_true(pos.last);
	gt_plans_at(&on_demand, &plans, 1, &pos);
	assert_int_equal(pos.steps_to_active, 9);
}

/* Plans go between the cycles of a schedule, which are numbered on behind them. */
static void among_cycles(void **state)
{
	const struct gt_schedule endless = { .wait = 8, .warmup = 1, .active = 1 };

	(void)state;
	expect(&endless, "iiiiiiiiwaiiiiiiiiwaii");
	assert_int_equal(add(&endless, 3, 1, 2), 0);
	assert_int_equal(add(&endless, 6, 1, 2), 0);
	expect(&endless, "iiwaawaawaiiiiiiiiwaii");
	assert_int_equal(cycle_of(&endless, 3), 0);
	assert_int_equal(cycle_of(&endless, 6), 1);
	assert_int_equal(cycle_of(&endless, 9), 2);
	assert_int_equal(add(&endless, 13, 1, 2), 0);
	assert_int_equal(cycle_of(&endless, 14), 3);
	assert_int_equal(cycle_of(&endless, 19), 4);
	assert_int_equal(cycle_of(&endless, 29), 5);
	/* after the last one */
	memset(&plans, 0, sizeof(plans));
	assert_int_equal(add(&standard, 9, 1, 1), 0);
	expect(&standard, "iiwaaaiiwaoo");
	assert_int_equal(cycle_of(&standard, 5), 0);
	assert_int_equal(cycle_of(&standard, 9), 1);
}

static void refused(void **state)
{
	const struct gt_schedule endless = { .wait = 8, .warmup = 1, .active = 1 };
	const struct gt_schedule unwarmed = { .wait = 8, .active = 1 };

	(void)state;
	assert_int_equal(add(&on_demand, 5, 1, 0), -EINVAL);
	assert_int_equal(add(&on_demand, 5, 5, 1), -EINVAL);
	assert_int_equal(add(&on_demand, 0, 0, 1), -EINVAL);
	assert_int_equal(add(&on_demand, 500, 256, 1), -EINVAL);
	assert_int_equal(add(&on_demand, 5, 1, GT_PLAN_ACTIVE_MAX + 1), -EINVAL);
	/* the cycle's warm-up is step 8, its active step 9 */
	assert_int_equal(add(&endless, 7, 1, 2), -EBUSY);
	assert_int_equal(add(&endless, 8, 1, 1), -EBUSY);
	assert_int_equal(add(&endless, 9, 1, 1), -EBUSY);
	assert_int_equal(add(&endless, 10, 1, 1), -EBUSY);
	assert_int_equal(add(&endless, 7, 1, 20), -EBUSY);
	assert_int_equal(add(&unwarmed, 6, 1, 2), -EBUSY);
	assert_int_equal(add(&unwarmed, 6, 1, 1), 0);
	memset(&plans, 0, sizeof(plans));
	assert_int_equal(add(&endless, 11, 1, 7), 0);
	/* another plan's last step is 17 */
	assert_int_equal(add(&on_demand, 18, 1, 1), -EBUSY);
	assert_int_equal(add(&on_demand, 18, 0, 1), -EBUSY);
	assert_int_equal(add(&on_demand, 19, 1, 1), 0);
}

/* Older plans than are kept only number what follows. */
static void many(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 20; i++)
		assert_int_equal(add(&on_demand, 10 * i, 1, 2), 0);
	assert_int_equal(cycle_of(&on_demand, 201), 19);
	assert_int_equal(cycle_of(&on_demand, 170), 16);
}

/* Nothing is on before a range is coming. */
static void captured_ranges(void **state)
{
	struct gt_schedule capture = GT_SCHEDULE_CAPTURE;

	(void)state;
	expect(&capture, "iwaoo");
	capture.repeat = 0;
	expect(&capture, "iwaiwaiwa");
	assert_int_equal(cycle_of(&capture, 5), 1);
}

static void as_text(void **state)
{
	const struct gt_schedule capture = GT_SCHEDULE_CAPTURE;
	struct gt_schedule got;
	char text[GT_SCHEDULE_TEXT_MAX];

	(void)state;
	assert_int_equal(gt_schedule_format(&on_demand, text, sizeof(text)), 0);
	assert_int_equal(gt_schedule_parse(text, &got), 0);
	assert_true(got.on_demand && !got.skip_first_wait);
	assert_int_equal(got.active, 3);
	assert_int_equal(gt_schedule_parse("skip_first_wait=1,repeat=0", &got), 0);
	assert_true(!got.on_demand && got.skip_first_wait);
	assert_int_equal(gt_schedule_parse("on_demand", &got), -EINVAL);
	assert_int_equal(gt_schedule_format(&capture, text, sizeof(text)), 0);
	assert_int_equal(gt_schedule_parse(text, &got), 0);
	assert_true(got.capture && !got.on_demand && got.wait == 1 && !got.skip_first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_plans, setup),
		cmocka_unit_test_setup(on_their_own, setup),
		cmocka_unit_test_setup(position_in_a_plan, setup),
		cmocka_unit_test_setup(among_cycles, setup),
		cmocka_unit_test_setup(refused, setup),
		cmocka_unit_test_setup(many, setup),
		cmocka_unit_test_setup(captured_ranges, setup),
		cmocka_unit_test_setup(as_text, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
