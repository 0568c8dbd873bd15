/* Which blocks of memory are handed out. */
#include "blocks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define THREADS 3
#define ROUNDS  2000

static bool put(uintptr_t address, uint64_t bytes, uint32_t step)
{
	return inj_blocks_put(address, &(struct inj_block){ .bytes = bytes, .step = step });
}

static int reset(void **state)
{
	(void)state;
	inj_blocks_clear();
	return 0;
}

static void put_and_taken(void **state)
{
	struct inj_block block;

	(void)state;
	assert_true(put(64, 100, 3) && put(128, 200, 4));
	assert_int_equal(inj_blocks_bytes(), 300);
	assert_true(inj_blocks_take(64, &block));
	assert_int_equal(block.bytes, 100);
	assert_int_equal(block.step, 3);
	assert_false(inj_blocks_take(64, &block));
	assert_false(inj_blocks_take(192, &block));
	assert_int_equal(inj_blocks_bytes(), 200);
	inj_blocks_clear();
	assert_false(inj_blocks_take(128, &block));
	assert_int_equal(inj_blocks_bytes(), 0);
}

static void handed_out_again(void **state)
{
	struct inj_block block;

	(void)state;
	assert_true(put(64, 100, 3) && put(64, 30, 4)); /* not told of the end of the first */
	assert_int_equal(inj_blocks_bytes(), 30);
	assert_true(inj_blocks_take(64, &block));
	assert_int_equal(block.bytes, 30);
	assert_int_equal(block.step, 4);
	assert_false(inj_blocks_take(64, &block));
}

static void full(void **state)
{
	uintptr_t address = 4096, last;
	struct inj_block block;
	uint64_t known = 0;

	(void)state;
	while (put(address, 1, 1)) {
		known++;
		address += 64;
	}
	assert_in_range(known, 16384, 65536);
	assert_int_equal(inj_blocks_bytes(), known);
	last = address;
	assert_false(inj_blocks_take(last, &block));
	for (address = 4096; address < last; address += 64)
		assert_true(inj_blocks_take(address, &block));
	assert_int_equal(inj_blocks_bytes(), 0);
	assert_true(put(last, 1, 1));
}

/* Each has blocks of its own, in the same buckets. */
static void *use(void *arg)
{
	uintptr_t own = (uintptr_t)arg * 64;
	struct inj_block block;
	bool right = true;

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		for (uintptr_t k = 1; k <= 16; k++)
			right &= put(k * THREADS * 64 + own, i + k, (uint32_t)i);
		for (uintptr_t k = 16; k; k--)
			right &= inj_blocks_take(k * THREADS * 64 + own, &block) &&
				 block.bytes == i + k && block.step == i;
	}
	return (void *)right;
}

static void threads(void **state)
{
	pthread_t running[THREADS];
	void *right;

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&running[i], NULL, use, (void *)i), 0);
	for (uintptr_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(running[i], &right), 0);
		assert_non_null(right);
	}
	assert_int_equal(inj_blocks_bytes(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(put_and_taken, reset),
		cmocka_unit_test_setup(handed_out_again, reset),
		cmocka_unit_test_setup(full, reset),
		cmocka_unit_test_setup(threads, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
