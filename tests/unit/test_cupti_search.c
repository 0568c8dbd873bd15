/* The places where a libcupti is looked for. */
#include "base.h"
#include "cupti_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct gt_cupti_search search;
static char path[256];

static void expect(const char *expected)
{
	assert_true(gt_cupti_next(&search, path, sizeof(path)));
	assert_string_equal(path, expected);
}

static size_t rest(void)
{
	size_t count = 0;

	while (gt_cupti_next(&search, path, sizeof(path)))
		count++;
	return count;
}

static void of_a_program_with_cuda(void **state)
{
	(void)state;
	search = (struct gt_cupti_search){ .near = "/v/nvidia/cublas/lib/libcublas.so.12",
					   .dirs = { "", "/cuda" } };
	expect("/v/nvidia/cublas/lib/./libcupti.so.13");
	expect("/v/nvidia/cublas/lib/./libcupti.so.12");
	expect("/v/nvidia/cublas/lib/./libcupti.so.11.8");
	expect("/v/nvidia/cublas/lib/../../cuda_cupti/lib/libcupti.so.13");
	for (int i = 0; i < 11; i++)
		assert_true(gt_cupti_next(&search, path, sizeof(path)));
	expect("/cuda/extras/CUPTI/lib64/libcupti.so.13");
	for (int i = 0; i < 14; i++)
		assert_true(gt_cupti_next(&search, path, sizeof(path)));
	expect("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13");
}

static void without_anything(void **state)
{
	(void)state;
	search = (struct gt_cupti_search){ .near = NULL };
	expect("/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13");
	for (int i = 0; i < 14; i++)
		assert_true(gt_cupti_next(&search, path, sizeof(path)));
	expect("libcupti.so.13");
	expect("libcupti.so.12");
	expect("libcupti.so.11.8");
	assert_false(gt_cupti_next(&search, path, sizeof(path)));
	assert_false(gt_cupti_next(&search, path, sizeof(path)));
}

static void what_is_too_long_is_left_out(void **state)
{
	char dir[sizeof(path)];

	(void)state;
	memset(dir, 'x', sizeof(dir) - 1);
	dir[0] = '/';
	dir[sizeof(dir) - 1] = '\0';
	search = (struct gt_cupti_search){ .near = dir, .dirs = { dir, dir, dir } };
	assert_int_equal(rest(), 15 + 15 + 3); /* "/./…" fits: a library in the root */
	search = (struct gt_cupti_search){ .near = "libcudart.so.13" };
	assert_int_equal(rest(), 15 + 3);
}

static void the_driver(void **state)
{
	(void)state;
	assert_true(gt_cupti_fits("/a/libcupti.so.12", 13000));
	assert_true(gt_cupti_fits("/a/libcupti.so.13", 13000));
	assert_false(gt_cupti_fits("/a/libcupti.so.13", 12080));
	assert_true(gt_cupti_fits("/a/libcupti.so.11.8", 12080));
	assert_true(gt_cupti_fits("/a/libcupti.so.2025.3.1", 0));
	assert_true(gt_cupti_fits("/a/libcupti.so", 11080));
	assert_true(gt_cupti_fits("/a/libcupti.so.13", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_a_program_with_cuda),
		cmocka_unit_test(without_anything),
		cmocka_unit_test(what_is_too_long_is_left_out),
		cmocka_unit_test(the_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
