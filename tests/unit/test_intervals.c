/*
 * test_intervals.c - unions against a line of cells, one a ns.
 */
#include "base.h"
#include "intervals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define LINE 64

static void add(struct gt_intervals *set, bool *line, int start, int end)
{
	assert_int_equal(gt_intervals_add(set, start, end), 0);
	for (int i = start; i < end; i++)
		line[i] = true;
}

static uint64_t count_cells(bool lines[][LINE], size_t count)
{
	uint64_t cells = 0;

	for (size_t i = 0; i < LINE; i++) {
		bool covered = false;

		for (size_t k = 0; k < count; k++)
			covered |= lines[k][i];
		cells += covered;
	}
	return cells;
}

static void test_unions_like_cells(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct gt_intervals sets[3] = { 0 };
		const struct gt_intervals *all[] = { &sets[0], &sets[1], &sets[2] };
		bool lines[3][LINE] = { 0 };

		for (int i = 0; i < round % 12; i++) {
			int start, end;

			random = random * 1664525 + 1013904223;
			start = (int)(random >> 8) % LINE;
			end = start + (int)(random >> 16) % (LINE - start);
			add(&sets[i % 3], lines[i % 3], start, end);
		}
		for (size_t i = 0; i < 3; i++) {
			gt_intervals_merge(&sets[i]);
			for (size_t k = 1; k < sets[i].count; k++)
				assert_true(sets[i].items[k].start_ns >
					    sets[i].items[k - 1].end_ns);
		}
		for (size_t count = 0; count <= 3; count++)
			assert_int_equal(gt_intervals_union_ns(all, count),
					 count_cells(lines, count));
		for (size_t i = 0; i < 3; i++)
			gt_intervals_release(&sets[i]);
	}
}

static uint64_t cells_before(bool lines[][LINE], size_t count, int time)
{
	bool cut[3][LINE] = { 0 };

	for (size_t i = 0; i < count; i++)
		memcpy(cut[i], lines[i], (size_t)time);
	return count_cells(cut, count);
}

static void test_before_like_cells(void **state)
{
	uint32_t random = 7;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct gt_intervals sets[3] = { 0 };
		const struct gt_intervals *all[] = { &sets[0], &sets[1], &sets[2] };
		bool lines[3][LINE] = { 0 };
		int64_t times[LINE + 1];
		uint64_t before[LINE + 1];

		for (int i = 0; i < round % 12; i++) {
			int start, end;

			random = random * 1664525 + 1013904223;
			start = (int)(random >> 8) % LINE;
			end = start + (int)(random >> 16) % (LINE - start);
			add(&sets[i % 3], lines[i % 3], start, end);
		}
		for (size_t i = 0; i < 3; i++)
			gt_intervals_merge(&sets[i]);
		for (int i = 0; i <= LINE; i++)
			times[i] = i;
		gt_intervals_before(all, 3, times, LINE + 1, before);
		for (int i = 0; i <= LINE; i++)
			assert_int_equal(before[i], cells_before(lines, 3, i));
		/* some of them, and some twice */
		for (int i = 0; i <= LINE / 4; i++)
			times[i] = i / 2 * 8;
		gt_intervals_before(all, 3, times, LINE / 4 + 1, before);
		for (int i = 0; i <= LINE / 4; i++)
			assert_int_equal(before[i], cells_before(lines, 3, (int)times[i]));
		for (size_t i = 0; i < 3; i++)
			gt_intervals_release(&sets[i]);
	}
}

static void test_extremes(void **state)
{
	struct gt_intervals set = { 0 };
	const struct gt_intervals *sets[] = { &set };

	(void)state;
	gt_intervals_merge(&set);
	assert_int_equal(gt_intervals_union_ns(sets, 1), 0);
	assert_int_equal(gt_intervals_add(&set, INT64_MIN / 2, INT64_MAX / 2), 0);
	assert_int_equal(gt_intervals_add(&set, 0, 0), 0);
	gt_intervals_merge(&set);
	assert_int_equal(set.count, 1);
	assert_int_equal(gt_intervals_union_ns(sets, 1), (uint64_t)INT64_MAX);
	gt_intervals_release(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unions_like_cells),
		cmocka_unit_test(test_before_like_cells),
		cmocka_unit_test(test_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
