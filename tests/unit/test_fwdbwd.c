/* Forward operators and their backward ones find each other in any order. */
#include "base.h"
#include "fwdbwd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct pair {
	uint32_t from;
	uint32_t to;
} pairs[16];
static size_t pair_count;
static struct gt_fwdbwd links;

static void sink(void *ctx, const struct gt_fwdbwd_end *forward,
		 const struct gt_fwdbwd_end *backward)
{
	assert_ptr_equal(ctx, &links);
	assert_true(pair_count < ARRAY_SIZE(pairs));
	pairs[pair_count++] = (struct pair){ forward->lane, backward->lane };
}

static int setup(void **state)
{
	(void)state;
	pair_count = 0;
	links = (struct gt_fwdbwd){ .sink = sink, .ctx = &links };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gt_fwdbwd_release(&links);
	return 0;
}

/* The lane tells which it is. */
static void add(uint32_t thread, uint64_t sequence, bool backward, uint64_t start_ns,
		uint64_t end_ns, uint32_t lane)
{
	gt_fwdbwd_add(
		&links, thread, sequence, backward,
		&(struct gt_fwdbwd_end){ .start_ns = start_ns, .end_ns = end_ns, .lane = lane });
}

static void assert_only(uint32_t from, uint32_t to)
{
	gt_fwdbwd_flush(&links);
	assert_int_equal(pair_count, 1);
	assert_int_equal(pairs[0].from, from);
	assert_int_equal(pairs[0].to, to);
	pair_count = 0;
}

static void in_any_order(void **state)
{
	/* linear(1) around t(2), the one that made the node; evaluate_function(4) around it (3) */
	static const struct {
		bool backward;
		uint64_t start_ns, end_ns;
	} ops[] = { { false, 10, 50 }, { false, 20, 30 }, { true, 110, 120 }, { true, 100, 130 } };
	int order[4];

	(void)state;
	for (order[0] = 0; order[0] < 4; order[0]++)
		for (order[1] = 0; order[1] < 4; order[1]++)
			for (order[2] = 0; order[2] < 4; order[2]++) {
				order[3] = 6 - order[0] - order[1] - order[2];
				if (order[0] == order[1] || order[0] == order[2] ||
				    order[1] == order[2])
					continue;
				for (int i = 0; i < 4; i++)
					add(1, 7, ops[order[i]].backward, ops[order[i]].start_ns,
					    ops[order[i]].end_ns, (uint32_t)order[i] + 1);
				assert_only(2, 3);
			}
}

static void halves_are_no_pair(void **state)
{
	(void)state;
	add(1, 1, false, 10, 20, 1);
	add(1, 2, true, 30, 40, 2);
	add(2, 1, true, 30, 40, 3); /* of another thread */
	add(0, 1, true, 30, 40, 4); /* of none */
	gt_fwdbwd_flush(&links);
	gt_fwdbwd_flush(&links); /* nothing is left */
	assert_int_equal(pair_count, 0);
	add(1, 1, false, 10, 20, 1);
	gt_fwdbwd_flush(&links);
	add(1, 1, true, 30, 40, 2); /* forgotten */
	gt_fwdbwd_flush(&links);
	assert_int_equal(pair_count, 0);
}

static void not_back_in_time(void **state)
{
	(void)state;
	add(1, 1, false, 50, 60, 1);
	add(1, 1, true, 10, 20, 2);
	gt_fwdbwd_flush(&links);
	assert_int_equal(pair_count, 0);
}

static void bounded(void **state)
{
	(void)state;
	add(1, 5, false, 10, 20, 1);
	add(1, 5, true, 30, 40, 2);
	add(1, 6, false, 10, 20, 3);
	add(1, 5 + GT_FWDBWD_SLOTS, false, 50, 60, 4); /* takes the place of a pair: passed on */
	assert_int_equal(pair_count, 1);
	add(1, 6 + GT_FWDBWD_SLOTS, false, 50, 60, 5); /* and of a half: lost */
	add(1, 6, true, 70, 80, 6);
	gt_fwdbwd_flush(&links);
	assert_int_equal(pair_count, 1);
}

static void released_without_a_word(void **state)
{
	(void)state;
	add(1, 5, false, 10, 20, 1);
	add(1, 5, true, 30, 40, 2);
	gt_fwdbwd_release(&links);
	gt_fwdbwd_flush(&links);
	assert_int_equal(pair_count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(in_any_order), TEST(halves_are_no_pair),      TEST(not_back_in_time),
		TEST(bounded),      TEST(released_without_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
