/* Steps that end with the trace, and not by themselves. */
#include "base.h"
#include "recorder_rig.h"

static bool is_cut(const char *step_name)
{
	return range_of(only_trace(), step_name)->range.cut;
}

/* What is left of a step is no measure of it. */
static void its_last_step_is_cut(void **state)
{
	(void)state;
	start();
	steps_to(3);
	ab_flush(&ab);
	drain(35);
	phase(GT_WHAT_CLOSE, 0, 4, 36);
	finish(false, 37);
	assert_false(is_cut("ProfilerStep#2"));
	assert_true(is_cut("ProfilerStep#3"));
}

static void killed_in_a_step(void **state)
{
	(void)state;
	start();
	steps_to(3);
	ab_launch(&ab, MAIN, 3, 1, AB_MS(31));
	ab_flush(&ab);
	drain(35);
	finish(true, 37);
	assert_false(is_cut("ProfilerStep#2"));
	assert_true(is_cut("ProfilerStep#3"));
}

static void ends_behind_the_window(void **state)
{
	(void)state;
	start();
	steps_to(4);
	ab_flush(&ab);
	finish(false, 45);
	assert_false(is_cut("ProfilerStep#2"));
	assert_false(is_cut("ProfilerStep#3"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(its_last_step_is_cut),
		TEST(killed_in_a_step),
		TEST(ends_behind_the_window),
	};

	return cmocka_run_group_tests_name("recorder_cut", tests, NULL, NULL);
}
