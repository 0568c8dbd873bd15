/*
 * test_flops.c - the dims of inputs, and the FLOPs that follow from them.
 */
#include "base.h"
#include "flops.h"
#include "input_dims.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void check_shapes(const char *raw, const char *printed)
{
	struct gt_buf out = { 0 };

	gt_dims_put(&out, gt_str_of(raw));
	gt_buf_byte(&out, '\0');
	assert_string_equal(out.data, printed);
	gt_buf_release(&out);
}

static void test_shapes(void **state)
{
	(void)state;
	check_shapes("[[16,3,64], [ ],[-1]]", "[[16, 3, 64], [], [-1]]");
	check_shapes("[[[2, 3], [4, 5]], [7]]", "[[], [7]]");
	check_shapes("[]", "");
	check_shapes("", "");
	check_shapes("\"text\"", "");
	check_shapes("[[1, 2", "[[1, 2]]");
	check_shapes("[[99999999999999999999]]", "[[9223372036854775807]]");
	check_shapes("[[1], 5, [2]]", "[[1], [2]]");
}

static uint64_t flops(const char *op, const char *dims)
{
	return gt_flops(gt_str_of(op), gt_str_of(dims), gt_str_of(""));
}

static void test_products(void **state)
{
	(void)state;
	assert_int_equal(flops("aten::mm", "[[3, 4], [4, 5]]"), 120);
	assert_int_equal(flops("aten::mm", "[[0, 4], [4, 5]]"), 0);
	assert_int_equal(flops("aten::mm", "[[4, 0], [0, 5]]"), 0);
	assert_int_equal(flops("aten::mm", "[[], [4, 5]]"), 0);
	assert_int_equal(flops("aten::mm", "[[3, 4]]"), 0);
	assert_int_equal(flops("aten::addmm", "[[5], [3, 4], [4, 5], [], []]"), 120);
	assert_int_equal(flops("aten::bmm", "[[7, 3, 4], [7, 4, 5]]"), 840);
	assert_int_equal(flops("aten::baddbmm", "[[7, 3, 5], [7, 3, 4], [7, 4, 5]]"), 840);
	assert_int_equal(flops("aten::mul", "[[7, 3], []]"), 21);
	assert_int_equal(flops("aten::add", "[[], []]"), 1);
	assert_int_equal(flops("aten::add", "[[5, 0], []]"), 0);
	assert_int_equal(flops("aten::add", ""), 0);
	assert_int_equal(flops("aten::linear", "[[3, 4], [5, 4]]"), 0);
	/* torch's numbers wrap around, too */
	assert_int_equal(flops("aten::mul", "[[4294967296, 4294967296, 3], []]"), 0);
	assert_int_equal(flops("aten::mul", "[[4294967296, 2147483649, 2], []]"),
			 UINT64_C(8589934592));
}

static void check_conv(const char *values, uint64_t expected)
{
	assert_int_equal(gt_flops(gt_str_of("aten::conv2d"),
				  gt_str_of("[[16, 4, 64, 32], [8, 2, 3, 5], [8], [], [], [], []]"),
				  gt_str_of(values)),
			 expected);
}

static void test_conv2d(void **state)
{
	(void)state;
	check_conv("[\"\", \"\", \"\", \"[1, 1]\", \"[0, 0]\", \"[1, 1]\", \"1\"]",
		   UINT64_C(2) * 16 * 62 * 28 * 3 * 5 * 4 * 8);
	check_conv("[\"\", \"\", \"\", \"[2, 3]\", \"[1, 2]\", \"[1, 2]\", \"2\"]",
		   UINT64_C(2) * 16 * 32 * 10 * 3 * 5 * 4 * 8 / 2);
	check_conv("[\"\", \"\", \"\", \"[1, 1]\", \"same\", \"[1, 1]\", \"1\"]", 0);
	check_conv("[\"\", \"\", \"\", \"[0, 1]\", \"[0, 0]\", \"[1, 1]\", \"1\"]", 0);
	check_conv("[\"\", \"\", \"\", \"[1]\", \"[0, 0]\", \"[1, 1]\", \"1\"]", 0);
	check_conv("[\"\", \"\", \"\", \"[1, 1]\", \"[0, 0]\", \"[1, 1]\", \"0\"]", 0);
	check_conv("[\"\", \"\", \"\", \"[1, 1]\", \"[0, 0]\"", 0);
	check_conv("", 0);
}

static void test_inputs(void **state)
{
	(void)state;
	assert_int_equal(gt_flops_input(GT_STR("aten::mm")), 0);
	assert_int_equal(gt_flops_input(GT_STR("aten::addmm")), 1);
	assert_int_equal(
		gt_flops_input(GT_STR("aten::_scaled_dot_product_flash_attention_backward")), 1);
	assert_int_equal(gt_flops_input(GT_STR("aten::_scaled_mm")), 0);
	assert_int_equal(gt_flops_input(GT_STR("aten::linear")), -1);
	assert_int_equal(gt_flops_from(GT_STR("aten::linear")), GT_FLOPS_NONE);
	assert_int_equal(gt_flops_from(GT_STR("aten::_int_mm")), GT_FLOPS_FROM_DIMS);
	assert_int_equal(gt_flops_from(GT_STR("aten::conv2d")), GT_FLOPS_FROM_VALUES);
}

static void test_attention(void **state)
{
	const char *const dims = "[[2, 8, 100, 64], [2, 8, 50, 64], [2, 8, 50, 32], [], [], []]";
	const uint64_t pairs = 2 * 8 * 100 * 50;

	(void)state;
	assert_int_equal(gt_flops_estimated(GT_STR("aten::_scaled_dot_product_flash_attention"),
					    gt_str_of(dims)),
			 2 * pairs * (64 + 32));
	assert_int_equal(
		gt_flops_estimated(GT_STR("aten::_scaled_dot_product_flash_attention_backward"),
				   gt_str_of("[[2, 8, 100, 32], [2, 8, 100, 64], [2, 8, 50, 64], "
					     "[2, 8, 50, 32]]")),
		2 * pairs * (3 * 64 + 2 * 32));
	assert_int_equal(gt_flops_estimated(GT_STR("aten::mm"), gt_str_of(dims)), 0);
	assert_int_equal(
		gt_flops_estimated(GT_STR("aten::_scaled_mm"), gt_str_of("[[3, 4], [4, 5]]")), 120);
	assert_int_equal(gt_flops_estimated(GT_STR("aten::_int_mm"), gt_str_of("[[3, 4], [4, 5]]")),
			 120);
	assert_int_equal(gt_flops(GT_STR("aten::_scaled_dot_product_flash_attention"),
				  gt_str_of(dims), gt_str_of("")),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),    cmocka_unit_test(test_products),
		cmocka_unit_test(test_conv2d),    cmocka_unit_test(test_inputs),
		cmocka_unit_test(test_attention),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
