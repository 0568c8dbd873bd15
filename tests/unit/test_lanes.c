/*
 * test_lanes.c - rows against a naive model that forgets nothing and looks at every pair.
 */
#include "base.h"
#include "lanes.h"
#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct slice {
	uint64_t start;
	uint64_t end;
	uint32_t row;
};

static bool clash(enum gt_lane_rule rule, const struct slice *a, const struct slice *b)
{
	if (a->start >= a->end || b->start >= b->end || a->end <= b->start || b->end <= a->start)
		return false;
	if (rule == GT_LANE_DISJOINT)
		return true;
	return !(a->start <= b->start && b->end <= a->end) &&
	       !(b->start <= a->start && a->end <= b->end);
}

static uint32_t model_place(enum gt_lane_rule rule, const struct slice *slices, size_t count,
			    const struct slice *slice, uint32_t first)
{
	uint32_t row = first;
	size_t i = 0;

	while (row < GT_LANE_ROWS_MAX - 1 && i < count) {
		if (slices[i].row == row && clash(rule, &slices[i], slice)) {
			row++;
			i = 0;
		} else {
			i++;
		}
	}
	return row;
}

/* While nothing is forgotten the row is the very one that the model chooses. */
static void compare_with_model(enum gt_lane_rule rule, size_t count, uint64_t span, uint64_t length)
{
	struct slice *slices = calloc(count, sizeof(*slices));
	struct gt_track track = { .rule = rule };
	struct gt_lane_pool pool = { 0 };

	assert_non_null(slices);
	for (size_t i = 0; i < count; i++) {
		struct slice *slice = &slices[i];
		uint32_t first = random_below(8) ? 0 : 1;

		slice->start = random_below(span);
		slice->end = slice->start + random_below(length);
		slice->row = model_place(rule, slices, i, slice, first);
		assert_int_equal(gt_track_place(&track, &pool, first, slice->start, slice->end),
				 slice->row);
	}
	gt_track_release(&track, &pool);
	assert_int_equal(pool.chunks, 0);
	free(slices);
}

static void test_random(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		compare_with_model(GT_LANE_DISJOINT, 100, 50, 10);
		compare_with_model(GT_LANE_NESTED, 100, 30, 20);
		compare_with_model(GT_LANE_NESTED, 60, 1000, 1000);
	}
	compare_with_model(GT_LANE_DISJOINT, 1500, 20000, 40);
	compare_with_model(GT_LANE_NESTED, 1500, 5000, 300);
}

/* Buffers arrive whole but out of order: what they hold fits between what is there. */
static void test_gaps_are_found(void **state)
{
	struct gt_track track = { .rule = GT_LANE_DISJOINT };
	struct gt_lane_pool pool = { 0 };

	(void)state;
	for (uint64_t buffer = 4; buffer-- > 0;) {
		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t start = (buffer * 1000 + i) * 10;

			assert_int_equal(gt_track_place(&track, &pool, 0, start, start + 7), 0);
		}
	}
	for (uint64_t i = 0; i < 4000; i++) /* the gaps, and then no more */
		assert_int_equal(gt_track_place(&track, &pool, 0, i * 10 + 7, i * 10 + 10), 0);
	assert_int_equal(gt_track_place(&track, &pool, 0, 20005, 20006), 1);
	assert_int_equal(track.row_count, 2);
	gt_track_release(&track, &pool);
}

/* A parent comes after its children, and a child after its parent. */
static void test_order_is_free(void **state)
{
	struct gt_track track = { .rule = GT_LANE_NESTED };
	struct gt_lane_pool pool = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(gt_track_place(&track, &pool, 0, i * 10, i * 10 + 5), 0);
	assert_int_equal(gt_track_place(&track, &pool, 0, 0, 50000), 0);
	assert_int_equal(gt_track_place(&track, &pool, 0, 100, 200), 0);
	assert_int_equal(gt_track_place(&track, &pool, 0, 100, 203), 1); /* cuts 200..205 */
	assert_int_equal(gt_track_place(&track, &pool, 0, 101, 104), 0);
	assert_int_equal(gt_track_place(&track, &pool, 0, 60000, 60001), 0);
	assert_int_equal(gt_track_place(&track, &pool, 0, 49999, 60000), 1);
	gt_track_release(&track, &pool);
}

/*
 * Many more slices than a row remembers: what is placed still never clashes with anything of its
 * row, and memory stays bounded.
 */
static void soundness(enum gt_lane_rule rule, uint64_t jitter)
{
	enum { COUNT = 400000, WINDOW = 120 };
	struct slice *slices = calloc(COUNT, sizeof(*slices));
	struct gt_track track = { .rule = rule };
	struct gt_lane_pool pool = { 0 };
	size_t others = 0;

	assert_non_null(slices);
	for (size_t i = 0; i < COUNT; i++) {
		struct slice *slice = &slices[i];

		slice->start = i * 20 + random_below(jitter);
		slice->end = slice->start + 1 + random_below(15);
		if (rule == GT_LANE_NESTED && i % 100 == 99)
			slice->start = i * 20 - 1980; /* a parent of the last hundred */
		slice->row = gt_track_place(&track, &pool, 0, slice->start, slice->end);
		others += slice->row > 0;
		assert_true(pool.chunks <= 4096 * track.row_count);
	}
	for (size_t i = 0; i < COUNT; i++) {
		for (size_t j = i + 1; j < GT_MIN(i + WINDOW, (size_t)COUNT); j++)
			assert_false(slices[i].row == slices[j].row &&
				     clash(rule, &slices[i], &slices[j]));
	}
	if (jitter == 1)
		assert_int_equal(others, 0);
	gt_track_release(&track, &pool);
	free(slices);
}

static void test_long_tracks(void **state)
{
	(void)state;
	soundness(GT_LANE_DISJOINT, 1);
	soundness(GT_LANE_DISJOINT, 100);
	soundness(GT_LANE_NESTED, 1);
	soundness(GT_LANE_NESTED, 100);
}

/* A range that is open all the time is still known as the parent when most was forgotten. */
static void test_old_parent(void **state)
{
	struct gt_track track = { .rule = GT_LANE_NESTED };
	struct gt_lane_pool pool = { 0 };

	(void)state;
	assert_int_equal(gt_track_place(&track, &pool, 0, 10, 10000000), 0);
	for (uint64_t i = 0; i < 600000; i++)
		assert_int_equal(gt_track_place(&track, &pool, 0, 20 + i * 10, 25 + i * 10), 0);
	assert_int_equal(gt_track_place(&track, &pool, 0, 9999999, 10000001), 1);
	assert_int_equal(gt_track_place(&track, &pool, 0, 0, 10000001), 0); /* around everything */
	assert_int_equal(gt_track_place(&track, &pool, 0, 30, 32), 1);      /* long forgotten */
	gt_track_release(&track, &pool);
}

static void test_without_end(void **state)
{
	struct gt_track track = { .rule = GT_LANE_DISJOINT };
	struct gt_lane_pool pool = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(gt_track_place(&track, &pool, 0, 5, 10 + i),
				 GT_MIN(i, GT_LANE_ROWS_MAX - 1u));
	assert_int_equal(gt_track_place(&track, &pool, 0, 7, 7), 0); /* no duration: anywhere */
	assert_int_equal(gt_track_place(&track, &pool, 0, 9, 3), 0);
	gt_track_release(&track, &pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),        cmocka_unit_test(test_gaps_are_found),
		cmocka_unit_test(test_order_is_free), cmocka_unit_test(test_long_tracks),
		cmocka_unit_test(test_old_parent),    cmocka_unit_test(test_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
