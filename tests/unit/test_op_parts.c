/*
 * test_op_parts.c - what the nesting of operators stands on: slices in order, memory over
 * time.
 */
#include "base.h"
#include "op_memory.h"
#include "op_slices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* ---- slices ---- */

/* The order that is asked for, and then that of the rows, which the tests number. */
static int in_order(const void *a, const void *b)
{
	const struct gt_op_slice *left = a, *right = b;

	if (left->start_ns != right->start_ns)
		return left->start_ns < right->start_ns ? -1 : 1;
	if (left->end_ns != right->end_ns)
		return left->end_ns > right->end_ns ? -1 : 1;
	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return left->row < right->row ? -1 : 1;
}

static void check_sort(struct gt_op_slices *slices)
{
	size_t bytes = slices->count * sizeof(*slices->items);
	struct gt_op_slice *expected = malloc(bytes + 1);

	assert_non_null(expected);
	for (size_t i = 0; i < slices->count; i++)
		slices->items[i].row = (uint32_t)i;
	if (slices->count) {
		memcpy(expected, slices->items, bytes);
		qsort(expected, slices->count, sizeof(*expected), in_order);
	}
	assert_int_equal(gt_op_slices_sort(slices), 0);
	for (size_t i = 0; i < slices->count; i++)
		assert_int_equal(slices->items[i].row, expected[i].row);
	free(expected);
	gt_op_slices_release(slices);
}

static void add(struct gt_op_slices *slices, int64_t start_ns, int64_t end_ns, uint8_t kind)
{
	struct gt_op_slice slice = { .start_ns = start_ns, .end_ns = end_ns, .kind = kind };

	assert_int_equal(gt_op_slices_add(slices, &slice), 0);
}

static void test_sort_runs(void **state)
{
	struct gt_op_slices slices = { 0 };

	(void)state;
	check_sort(&slices);
	add(&slices, 1, 2, GT_SLICE_OP);
	check_sort(&slices);
	for (int i = 0; i < 1000; i++)
		add(&slices, i, i + 1, GT_SLICE_OP);
	for (int i = 0; i < 10; i++) /* a shorter run behind a longer one */
		add(&slices, i * 50, i * 50 + 1, GT_SLICE_CALL);
	check_sort(&slices);
	for (int i = 0; i < 10; i++) /* and before it */
		add(&slices, i * 50, i * 50 + 1, GT_SLICE_CALL);
	for (int i = 0; i < 1000; i++)
		add(&slices, i, i + 1, GT_SLICE_OP);
	check_sort(&slices);
	for (int i = 1000; i; i--)
		add(&slices, i, i + 1, GT_SLICE_OP);
	check_sort(&slices);
}

static void test_sort_any(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (size_t count = 0; count < 200; count++) {
		struct gt_op_slices slices = { 0 };

		for (size_t i = 0; i < count; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			add(&slices, (int64_t)(seed >> 60), (int64_t)(seed >> 56 & 15) + 16,
			    seed >> 50 & 1 ? GT_SLICE_OP : GT_SLICE_CALL);
		}
		check_sort(&slices);
	}
}

/* ---- memory ---- */

static void check_claim(struct gt_op_memory *memory, int64_t start_ns, int64_t end_ns, int64_t cpu,
			int64_t gpu)
{
	struct gt_op_bytes bytes = gt_op_memory_claim(memory, start_ns, end_ns);

	assert_int_equal(bytes.cpu, cpu);
	assert_int_equal(bytes.gpu, gpu);
}

static void test_memory(void **state)
{
	struct gt_op_memory memory = { 0 };
	struct gt_op_bytes rest;
	uint64_t count;

	(void)state;
	assert_int_equal(gt_op_memory_add(&memory, 30, 100, true), 0);
	assert_int_equal(gt_op_memory_add(&memory, 10, 1, false), 0);
	assert_int_equal(gt_op_memory_add(&memory, 20, -4, false), 0);
	assert_int_equal(gt_op_memory_add(&memory, 20, 16, true), 0);
	assert_int_equal(gt_op_memory_add(&memory, 90, 64, false), 0);
	assert_int_equal(gt_op_memory_sort(&memory), 0);
	check_claim(&memory, 10, 20, -3, 16); /* both ends belong to it */
	check_claim(&memory, 11, 19, 0, 0);
	check_claim(&memory, 20, 20, -4, 16);
	rest = gt_op_memory_unclaimed(&memory, &count);
	assert_int_equal(count, 2);
	assert_int_equal(rest.cpu, 64);
	assert_int_equal(rest.gpu, 100);
	check_claim(&memory, 0, 1000, 61, 116);
	gt_op_memory_unclaimed(&memory, &count);
	assert_int_equal(count, 0);
	gt_op_memory_release(&memory);
}

static void test_no_memory(void **state)
{
	struct gt_op_memory memory = { 0 };
	uint64_t count;

	(void)state;
	assert_int_equal(gt_op_memory_sort(&memory), 0);
	check_claim(&memory, 0, 1000, 0, 0);
	gt_op_memory_unclaimed(&memory, &count);
	assert_int_equal(count, 0);
	gt_op_memory_release(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort_runs),
		cmocka_unit_test(test_sort_any),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
