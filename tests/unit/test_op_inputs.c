/* The inputs of operators, as torch's profiler writes them. */
#include "base.h"
#include "op_inputs.h"
#include "wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>

static unsigned char bytes[GT_INPUTS_MAX];
static size_t len;

static void add(const void *data, size_t size)
{
	assert_true(size <= sizeof(bytes) - len);
	memcpy(bytes + len, data, size);
	len += size;
}

static void input(enum gt_input_tag tag, uint8_t item, uint8_t count, uint8_t flags)
{
	add(&(struct gt_input){ (uint8_t)tag, item, count, flags }, sizeof(struct gt_input));
}

static void narrow(uint32_t number)
{
	add(&number, sizeof(number));
}

static void wide(int64_t number)
{
	add(&number, sizeof(number));
}

static void number(double value)
{
	add(&value, sizeof(value));
}

/* The text is made in memory of just the size that is promised to do. */
static const char *text_of(const void *data, size_t size)
{
	static char text[GT_OP_INPUTS_TEXT_MAX(GT_INPUTS_MAX) + 1];
	char *copy = malloc(size), *room = malloc(GT_OP_INPUTS_TEXT_MAX(size));
	size_t used;

	assert_true(copy && room);
	memcpy(copy, data, size);
	used = (size_t)(gt_op_inputs_put(room, (struct gt_str){ copy, size }) - room);
	assert_true(used <= GT_OP_INPUTS_TEXT_MAX(size));
	memcpy(text, room, used);
	text[used] = 0;
	free(copy);
	free(room);
	return text;
}

static void assert_told(const char *dims, const char *strides, const char *types,
			const char *values)
{
	char want[4096];

	snprintf(want, sizeof(want),
		 ",\"Input Dims\":%s,\"Input Strides\":%s,\"Input type\":%s,"
		 "\"Concrete Inputs\":%s",
		 dims, strides, types, values);
	assert_string_equal(text_of(bytes, len), want);
	len = 0;
}

static void assert_nothing(void)
{
	assert_string_equal(text_of(bytes, len), "");
	len = 0;
}

static void tensors(void **state)
{
	(void)state;
	input(GT_INPUT_TENSOR, 6, 2, 0);
	narrow(4);
	narrow(8);
	input(GT_INPUT_TENSOR, 4, 0, 0);
	input(GT_INPUT_TENSOR, 15, 3, GT_INPUT_STRIDES);
	for (uint32_t i = 1; i <= 6; i++)
		narrow(i);
	input(GT_INPUT_TENSOR, 11, 2, GT_INPUT_NO_STRIDES);
	narrow(2);
	narrow(3);
	input(GT_INPUT_UNDEFINED, 0, 0, 0);
	assert_told("[[4, 8], [], [1, 2, 3], [2, 3], []]", "[[8, 1], [], [4, 5, 6], [], []]",
		    "[\"float\", \"long int\", \"c10::BFloat16\", \"bool\", \"\"]",
		    "[\"\", \"\", \"\", \"\", \"\"]");
	/* without elements; of sizes that are large or none; of a type that is not known */
	input(GT_INPUT_TENSOR, 255, 2, 0);
	narrow(5);
	narrow(0);
	input(GT_INPUT_TENSOR, 46, 2, GT_INPUT_WIDE);
	wide(INT64_C(1) << 33);
	wide(INT64_MAX);
	input(GT_INPUT_TENSOR, 47, 1, GT_INPUT_WIDE | GT_INPUT_STRIDES);
	wide(-1);
	wide(INT64_MIN);
	assert_told("[[5, 0], [8589934592, 9223372036854775807], [-1]]",
		    "[[1, 1], [9223372036854775807, 1], [-9223372036854775808]]",
		    "[\"\", \"c10::complex<c10::BFloat16>\", \"\"]", "[\"\", \"\", \"\"]");
}

static void lists_of_tensors(void **state)
{
	(void)state;
	input(GT_INPUT_TENSORS, 0, 2, 0);
	input(GT_INPUT_TENSOR, 6, 1, 0);
	narrow(3);
	input(GT_INPUT_TENSOR, 7, 0, 0);
	input(GT_INPUT_TENSORS, 0, 0, 0);
	input(GT_INPUT_TENSORS, 0, 0, GT_INPUT_LONG);
	input(GT_INPUT_TENSORS, 0, 2, 0);
	input(GT_INPUT_TENSOR, 6, 1, 0);
	narrow(3);
	input(GT_INPUT_UNDEFINED, 0, 0, 0);
	assert_told("[[[3], []], [], [], []]", "[[[1], []], [], [], []]",
		    "[\"TensorList\", \"TensorList\", \"TensorList\", \"\"]",
		    "[\"\", \"\", \"\", \"\"]");
}

static void numbers(void **state)
{
	static const double values[] = {
		0., -0., 1., -2.5, .1, 1e10, 1e300, INFINITY, NAN, 9.2e18
	};

	(void)state;
	input(GT_INPUT_BOOL, 1, 0, 0);
	input(GT_INPUT_BOOL, 0, 0, 0);
	input(GT_INPUT_INT, 0, 0, 0);
	wide(INT64_MIN);
	input(GT_INPUT_OTHER, 0, 0, 0);
	input(GT_INPUT_COMPLEX, 0, 0, 0);
	number(1.5);
	number(-2);
	assert_told("[[], [], [], [], []]", "[[], [], [], [], []]",
		    "[\"Scalar\", \"Scalar\", \"Scalar\", \"\", \"Scalar\"]",
		    "[\"True\", \"False\", \"-9223372036854775808\", \"\", \"1.5-2.j\"]");
	input(GT_INPUT_LIST, 0, 0, 0);
	input(GT_INPUT_LIST, 0, ARRAY_SIZE(values), 0);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		input(GT_INPUT_DOUBLE, 0, 0, 0);
		number(values[i]);
	}
	input(GT_INPUT_LIST, 0, 2, 0);
	input(GT_INPUT_BOOL, 1, 0, 0);
	input(GT_INPUT_INT, 0, 0, 0);
	wide(3);
	assert_told("[[], [], []]", "[[], [], []]",
		    "[\"ScalarList\", \"ScalarList\", \"ScalarList\"]",
		    "[\"[]\", \"[0., 0., 1., -2.5, 0.10000000000000001, 10000000000., "
		    "1.0000000000000001e+300, inf, nan, 9200000000000000000.]\", "
		    "\"[True, 3]\"]");
}

/* All or nothing: what is not whole is not shown. */
static void not_whole(void **state)
{
	(void)state;
	assert_nothing();
	input(GT_INPUT_BOOL, 1, 0, 0);
	input(GT_INPUT_CUT, 0, 0, 0);
	assert_nothing();
	input(GT_INPUT_CUT + 1, 0, 0, 0);
	assert_nothing();
	input(GT_INPUT_TENSOR, 6, GT_INPUT_DIMS_MAX + 1, 0);
	for (int i = 0; i <= GT_INPUT_DIMS_MAX; i++)
		narrow(1);
	assert_nothing();
	input(GT_INPUT_LIST, 0, 1, 0); /* a list in a list */
	input(GT_INPUT_LIST, 0, 0, 0);
	assert_nothing();
	input(GT_INPUT_LIST, 0, 1, 0);
	input(GT_INPUT_OTHER, 0, 0, 0);
	assert_nothing();
	input(GT_INPUT_TENSORS, 0, 1, 0);
	input(GT_INPUT_BOOL, 0, 0, 0);
	assert_nothing();
}

static void cut_anywhere(void **state)
{
	(void)state;
	input(GT_INPUT_LIST, 0, 1, 0);
	input(GT_INPUT_COMPLEX, 0, 0, 0);
	number(1);
	number(1);
	input(GT_INPUT_TENSORS, 0, 1, 0);
	input(GT_INPUT_TENSOR, 6, 1, GT_INPUT_WIDE | GT_INPUT_STRIDES);
	wide(1);
	wide(1);
	assert_string_not_equal(text_of(bytes, len), "");
	for (size_t size = 1; size < len; size++) {
		if (size != 24) /* all of the first input */
			assert_string_equal(text_of(bytes, size), "");
	}
	len = 0;
}

/* The longest text for its bytes. */
static void room(void **state)
{
	(void)state;
	while (len + 12 <= sizeof(bytes)) {
		input(GT_INPUT_TENSOR, 8, 2, 0);
		narrow(UINT32_MAX);
		narrow(UINT32_MAX);
	}
	assert_string_not_equal(text_of(bytes, len), "");
	for (len = 0; len + 260 <= sizeof(bytes);) {
		input(GT_INPUT_TENSOR, 8, GT_INPUT_DIMS_MAX, 0);
		for (int i = 0; i < GT_INPUT_DIMS_MAX; i++)
			narrow(UINT32_MAX);
	}
	assert_string_not_equal(text_of(bytes, len), "");
	for (len = 0; len + 4 <= sizeof(bytes);)
		input(GT_INPUT_TENSOR, 46, 0, 0);
	assert_string_not_equal(text_of(bytes, len), "");
	len = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tensors),      cmocka_unit_test(lists_of_tensors),
		cmocka_unit_test(numbers),      cmocka_unit_test(not_whole),
		cmocka_unit_test(cut_anywhere), cmocka_unit_test(room),
	};

	return cmocka_run_group_tests_name("op_inputs", tests, NULL, NULL);
}
