/*
 * test_base.c - the helpers that every file has.
 */
#include "base.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int calls;

static int next(void)
{
	return ++calls;
}

/* The control thread slept for ever when what it asked for its next turn was asked twice. */
static void arguments_once(void **state)
{
	(void)state;
	assert_int_equal(GT_MIN(5, next()), 1);
	assert_int_equal(GT_MAX(next(), 1), 2);
	assert_int_equal(GT_MIN(GT_MAX(next(), 1), 9), 3);
	assert_int_equal(calls, 3);
}

/* As with the operators themselves. */
static void types(void **state)
{
	uint64_t large = UINT64_MAX;
	uint32_t small = 7;

	(void)state;
	assert_true(GT_MIN(large, small) == 7);
	assert_true(GT_MAX(small, large) == UINT64_MAX);
	assert_true(GT_MIN(-1, small + INT64_C(0)) == -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_once),
		cmocka_unit_test(types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
