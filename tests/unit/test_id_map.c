/*
 * test_id_map.c - numbers of all kinds keep their values while the table grows.
 */
#include "base.h"
#include "hash.h"
#include "id_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t id_of(uint32_t i)
{
	static const int64_t odd[] = { 0, -1, INT64_MIN, INT64_MAX };

	return i < ARRAY_SIZE(odd) ? odd[i] : (int64_t)i << (i % 40);
}

static void test_values(void **state)
{
	struct gt_id_map map = { 0 };
	const uint32_t count = 10000;
	uint32_t distinct = 0;

	(void)state;
	assert_null(gt_id_map_find(&map, 0));
	for (uint32_t i = 0; i < count; i++) {
		bool known = gt_id_map_find(&map, id_of(i)) != NULL;
		int64_t *value = gt_id_map_put(&map, id_of(i));

		assert_non_null(value);
		if (!known) {
			assert_int_equal(*value, 0);
			*value = ++distinct;
		}
		assert_ptr_equal(gt_id_map_put(&map, id_of(i)), value);
		assert_ptr_equal(gt_id_map_find(&map, id_of(i)), value);
		assert_int_equal(map.count, distinct);
	}
	assert_int_equal(*gt_id_map_find(&map, INT64_MIN), 3);
	assert_int_equal(*gt_id_map_find(&map, id_of(41)), 42);
	assert_null(gt_id_map_find(&map, -2));
	gt_id_map_release(&map);
	assert_null(gt_id_map_find(&map, 0));
}

/* Ids that all go to one place where they are only multiplied, or whose low bits are all alike. */
static void test_spread(void **state)
{
	static uint8_t used[2][65536];
	uint64_t inverse = GT_HASH_FACTOR;
	uint32_t places[2] = { 0 };

	(void)state;
	for (int i = 0; i < 5; i++) /* each round doubles the bits that are right */
		inverse *= 2 - GT_HASH_FACTOR * inverse;
	assert_int_equal(inverse * GT_HASH_FACTOR, 1);
	memset(used, 0, sizeof(used));
	for (uint64_t i = 0; i < 65536; i++) {
		const uint64_t ids[2] = { i * inverse, i << 40 };

		for (int k = 0; k < 2; k++) {
			uint8_t *place = &used[k][gt_hash_id((int64_t)ids[k]) & 0xffff];

			places[k] += !*place;
			*place = 1;
		}
	}
	/* Chance gives 63 %. */
	assert_true(places[0] > 39000 && places[1] > 39000);
}

static void test_sums(void **state)
{
	struct gt_id_map map = { 0 };

	(void)state;
	assert_int_equal(gt_id_map_add(&map, -3, 1), 0);
	assert_int_equal(gt_id_map_add(&map, -3, 2), 0);
	assert_int_equal(*gt_id_map_find(&map, -3), 3);
	assert_int_equal(gt_id_map_add(&map, -3, INT64_MAX), 0);
	assert_int_equal(*gt_id_map_find(&map, -3), INT64_MAX);
	assert_int_equal(gt_id_map_add(&map, 0, INT64_MIN), 0);
	assert_int_equal(gt_id_map_add(&map, 0, -1), 0);
	assert_int_equal(*gt_id_map_find(&map, 0), INT64_MIN);
	gt_id_map_release(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
