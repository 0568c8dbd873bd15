#include "base.h"
#include "names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static struct gt_names names;
static struct gt_map map;

static int teardown(void **state)
{
	(void)state;
	gt_names_release(&names);
	gt_map_release(&map);
	return 0;
}

static void put(uint32_t id, uint32_t total, uint32_t offset, const char *bytes)
{
	uint64_t buf[16] = { 0 };
	struct gt_ev_string *piece = (void *)buf;

	piece->id = id;
	piece->total_bytes = total;
	piece->offset_bytes = offset;
	piece->len_bytes = (uint32_t)strlen(bytes);
	memcpy(piece->bytes, bytes, strlen(bytes));
	gt_names_add(&names, piece);
}

#define assert_name(id, text) assert_true(gt_str_equal(gt_names_get(&names, id), GT_STR(text)))

static void whole(void **state)
{
	(void)state;
	put(1, 5, 0, "alpha");
	put(300, 4, 0, "beta");
	assert_name(1, "alpha");
	assert_name(300, "beta");
	assert_null(gt_names_get(&names, 2).ptr);
	assert_null(gt_names_get(&names, 0).ptr);
	assert_null(gt_names_get(&names, UINT32_MAX).ptr);
	put(7, 0, 0, "");
	assert_non_null(gt_names_get(&names, 7).ptr);
	assert_int_equal(gt_names_get(&names, 7).len, 0);
}

static void pieces(void **state)
{
	(void)state;
	put(1, 9, 0, "abc");
	put(2, 2, 0, "xy");
	assert_name(1, "abc");
	put(1, 9, 6, "ghi"); /* a piece is missing: better cut than wrong */
	assert_name(1, "abc");
	put(1, 9, 3, "def");
	put(1, 9, 6, "ghi");
	assert_name(1, "abcdefghi");
	put(1, 9, 0, "ABC"); /* announced again */
	put(1, 100, 9, "jkl");
	assert_name(1, "abcdefghi");
	assert_name(2, "xy");
	assert_int_equal(names.refused, 0);
}

static void bounds(void **state)
{
	uint32_t id;

	(void)state;
	put(GT_NAMES_MAX_COUNT, 1, 0, "a");
	put(UINT32_MAX, 1, 0, "a");
	assert_int_equal(names.refused, 2);
	put(GT_NAMES_MAX_COUNT - 1, 1, 0, "a");
	assert_name(GT_NAMES_MAX_COUNT - 1, "a");
	/* names that only claim to be long */
	for (id = 1; id <= GT_NAMES_MAX_BYTES / GT_STRING_MAX; id++)
		put(id, GT_STRING_MAX, 0, "b");
	assert_int_equal(names.refused, 3);
	assert_true(names.bytes <= GT_NAMES_MAX_BYTES);
	assert_null(gt_names_get(&names, id - 1).ptr);
}

static void maps(void **state)
{
	uint64_t key;

	(void)state;
	assert_int_equal(gt_map_get(&map, 5), 0);
	assert_true(gt_map_put(&map, 5, 0)); /* says nothing */
	assert_int_equal(gt_map_get(&map, 5), 0);
	assert_true(gt_map_put(&map, 5, 6));
	assert_true(gt_map_put(&map, 0, 7));
	assert_true(gt_map_put(&map, UINT64_MAX, 8));
	assert_true(gt_map_put(&map, 5, 9));
	assert_int_equal(gt_map_get(&map, 5), 9);
	assert_int_equal(gt_map_get(&map, 0), 7);
	assert_int_equal(gt_map_get(&map, UINT64_MAX), 8);
	for (key = 1000; map.count < GT_MAP_MAX; key += 4096)
		assert_true(gt_map_put(&map, key, 1));
	assert_false(gt_map_put(&map, 1, 1));
	assert_true(gt_map_put(&map, 5, 10)); /* a known key always goes */
	assert_int_equal(gt_map_get(&map, 5), 10);
	assert_int_equal(gt_map_get(&map, 1000 + 4096 * 77), 1);
	assert_int_equal(gt_map_get(&map, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(whole, teardown),
		cmocka_unit_test_teardown(pieces, teardown),
		cmocka_unit_test_teardown(bounds, teardown),
		cmocka_unit_test_teardown(maps, teardown),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
