#include "base.h"
#include "corr_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

struct item {
	struct gt_ring_entry entry;
	uint32_t number; /* order of arrival */
};

#define MAX 4096

static struct gt_ring ring;

static int setup(void **state)
{
	(void)state;
	ring = (struct gt_ring)GT_RING(struct item, MAX);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gt_ring_release(&ring);
	return 0;
}

static struct item *push(uint32_t correlation, uint32_t number)
{
	struct item *item = gt_ring_push(&ring, correlation);

	if (!item && !gt_ring_grow(&ring))
		item = gt_ring_push(&ring, correlation);
	if (item)
		item->number = number;
	return item;
}

static uint32_t number_of(uint32_t correlation)
{
	struct item *item = gt_ring_find(&ring, correlation);

	return item ? item->number : 0;
}

static void empty(void **state)
{
	(void)state;
	assert_null(gt_ring_find(&ring, 0));
	assert_null(gt_ring_push(&ring, 0));
}

static void newest_wins(void **state)
{
	struct item *item;

	(void)state;
	push(7, 1);
	push(8, 2);
	push(7, 3);
	assert_int_equal(number_of(7), 3);
	assert_int_equal(number_of(8), 2);
	assert_int_equal(number_of(9), 0);
	item = gt_ring_find(&ring, 7);
	gt_ring_unlink(&ring, item);
	gt_ring_unlink(&ring, item); /* once more changes nothing */
	assert_int_equal(number_of(7), 1);
	gt_ring_drop(&ring);
	assert_int_equal(number_of(7), 0);
	assert_int_equal(number_of(8), 2);
}

static void bounded(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 1; i <= MAX; i++)
		assert_non_null(push(i, i));
	assert_null(push(i, i));
	assert_int_equal(gt_ring_grow(&ring), -ENOSPC);
	gt_ring_drop(&ring);
	assert_non_null(push(i, i));
	assert_int_equal(number_of(1), 0);
	assert_int_equal(number_of(2), 2);
	assert_int_equal(number_of(MAX + 1), MAX + 1);
}

/* Against a plain array: ids that wrap and collide, growth, unlinking and dropping at random. */
static void random_work(void **state)
{
	struct {
		uint32_t correlation;
		bool linked;
	} *model = calloc(200000, sizeof(*model));
	uint32_t seed = 1, count = 0, tail = 0, i, j;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint32_t correlation;

		seed = seed * 1664525 + 1013904223;
		/* few ids, close to the end of the range */
		correlation = UINT32_MAX - 200 + (seed >> 8) % 400;
		switch (seed >> 28) {
		case 0:
		case 1:
			if (tail < count) {
				gt_ring_drop(&ring);
				tail++;
			}
			break;
		case 2: {
			struct item *item = gt_ring_find(&ring, correlation);

			if (item) {
				model[item->number].linked = false;
				gt_ring_unlink(&ring, item);
			}
			break;
		}
		default:
			if (!push(correlation, count)) {
				gt_ring_drop(&ring);
				tail++;
				assert_non_null(push(correlation, count));
			}
			model[count].correlation = correlation;
			model[count++].linked = true;
		}
		for (j = count; j-- > tail;)
			if (model[j].linked && model[j].correlation == correlation)
				break;
		if (j == tail - 1 || count == tail)
			assert_null(gt_ring_find(&ring, correlation));
		else
			assert_int_equal(number_of(correlation), j);
	}
	assert_int_equal(ring.head, count);
	assert_int_equal(ring.tail, tail);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(empty, setup, teardown),
		cmocka_unit_test_setup_teardown(newest_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(random_work, setup, teardown),
	};

	return cmocka_run_group_tests_name("corr_ring", tests, NULL, NULL);
}
