#include "base.h"
#include "step_marks.h"
#include "wire.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define MS(n) ((uint64_t)(n)*GT_NSEC_PER_MSEC)

static struct gt_steps steps;

static int setup(void **state)
{
	(void)state;
	memset(&steps, 0, sizeof(steps));
	return 0;
}

static void add(uint32_t step, uint64_t time_ns)
{
	gt_steps_add(&steps, &(struct gt_step_mark){ .step = step, .time_ns = time_ns, .tid = 9 },
		     GT_STEP_OPTIMIZER);
}

static void find(void **state)
{
	(void)state;
	assert_null(gt_steps_find(&steps, 0));
	assert_null(gt_steps_after(&steps, 0));
	assert_int_equal(gt_steps_at(&steps, MS(5)), 0);
	add(1, MS(10));
	add(2, MS(20));
	add(4, MS(40));
	assert_null(gt_steps_find(&steps, 0));
	assert_null(gt_steps_find(&steps, 3));
	assert_int_equal(gt_steps_find(&steps, 2)->time_ns, MS(20));
	assert_int_equal(gt_steps_find(&steps, 2)->tid, 9);
	assert_int_equal(gt_steps_after(&steps, 0)->step, 1);
	assert_int_equal(gt_steps_after(&steps, 2)->step, 4);
	assert_null(gt_steps_after(&steps, 4));
	assert_int_equal(gt_steps_at(&steps, MS(9)), 0);
	assert_int_equal(gt_steps_at(&steps, MS(10)), 1);
	assert_int_equal(gt_steps_at(&steps, MS(39)), 2);
	assert_int_equal(gt_steps_at(&steps, MS(400)), 4);
}

/* Two threads mark in turn, and are read one after the other. */
static void out_of_order(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 1; i <= 9; i += 2)
		add(i, MS(i));
	for (i = 2; i <= 10; i += 2)
		add(i, MS(i));
	assert_int_equal(steps.count, 10);
	for (i = 1; i <= 10; i++)
		assert_int_equal(gt_steps_find(&steps, i)->time_ns, MS(i));
	add(5, MS(5)); /* once more */
	add(0, MS(2)); /* behind its successor */
	assert_int_equal(steps.count, 10);
	add(12, MS(3)); /* the clock was set back */
	assert_int_equal(gt_steps_find(&steps, 12)->time_ns, MS(10));
	add(11, MS(11)); /* not between its neighbours */
	assert_int_equal(steps.count, 11);
}

static void sources(void **state)
{
	const struct gt_step_mark mark = { .step = 1, .time_ns = MS(50), .tid = 3 };

	(void)state;
	add(1, MS(10));
	add(2, MS(20));
	gt_steps_add(&steps, &mark, GT_STEP_NVTX); /* counts for itself, from 1 */
	assert_int_equal(steps.count, 1);
	assert_int_equal(gt_steps_find(&steps, 1)->time_ns, MS(50));
	add(3, MS(60));
	assert_int_equal(steps.count, 1);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(gt_step_source_name(GT_STEP_NONE), "none");
	assert_string_equal(gt_step_source_name(GT_STEP_OPTIMIZER), "optimizer");
	assert_string_equal(gt_step_source_name(GT_STEP_TRANSFORMERS), "transformers");
	assert_string_equal(gt_step_source_name(GT_STEP_API), "api");
	assert_string_equal(gt_step_source_name(GT_STEP_SOURCE_MAX), "none");
}

static void bounded(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 1; i <= 3 * GT_STEPS_KEPT; i++)
		add(i, MS(i));
	assert_true(steps.count <= GT_STEPS_KEPT);
	assert_null(gt_steps_find(&steps, 1));
	assert_int_equal(gt_steps_find(&steps, 3 * GT_STEPS_KEPT)->time_ns, MS(3 * GT_STEPS_KEPT));
	assert_non_null(gt_steps_find(&steps, 3 * GT_STEPS_KEPT - GT_STEPS_KEPT / 2 + 1));
	add(1, MS(1)); /* too old to be kept */
	assert_null(gt_steps_find(&steps, 1));
}

static void medians(void **state)
{
	static const uint64_t times[] = { 0, 10, 12, 16, 17, 27 };
	uint32_t i;

	(void)state;
	assert_true(isnan(gt_steps_median_ms(&steps, 0, 100, 16)));
	for (i = 1; i < ARRAY_SIZE(times); i++)
		add(i, MS(times[i]));
	/* steps 1 to 4 took 2, 4, 1, 10 ms; 5 has no end, 0 no beginning */
	assert_true(gt_steps_median_ms(&steps, 0, 100, 16) == 3.0);
	assert_true(gt_steps_median_ms(&steps, 2, 2, 16) == 4.0);
	assert_true(gt_steps_median_ms(&steps, 1, 3, 16) == 2.0);
	assert_true(gt_steps_median_ms(&steps, 0, 100, 1) == 10.0);
	assert_true(isnan(gt_steps_median_ms(&steps, 5, 9, 16)));
	assert_true(isnan(gt_steps_median_ms(&steps, 0, 0, 16)));
	add(8, MS(90)); /* steps 5 to 7 together: no one's duration */
	assert_true(isnan(gt_steps_median_ms(&steps, 5, 9, 16)));
}

static void texts(void **state)
{
	(void)state;
	assert_string_equal(gt_steps_text(0, 0).text, "step 0");
	assert_string_equal(gt_steps_text(3, 5).text, "steps 3 to 5");
	assert_string_equal(gt_steps_text(0, UINT64_MAX).text, "steps 0 to 18446744073709551615");
	assert_string_equal(gt_steps_text(UINT64_MAX - 1, UINT64_MAX).text,
			    "steps 18446744073709551614 to 18446744073709551615");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(find, setup),
		cmocka_unit_test_setup(out_of_order, setup),
		cmocka_unit_test_setup(sources, setup),
		cmocka_unit_test_setup(bounded, setup),
		cmocka_unit_test(names),
		cmocka_unit_test_setup(medians, setup),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests_name("step_marks", tests, NULL, NULL);
}
