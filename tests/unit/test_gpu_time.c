#include "base.h"
#include "gpu_time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Each part has a length of its own: computation 0-10, communication 8-15, copies 14-17, idle. */
static struct gt_gpu_time split(void)
{
	struct gt_interval compute = { 0, 10 }, comm = { 8, 15 }, memcpy = { 14, 17 };

	return gt_gpu_time_of(50, &(struct gt_intervals){ &compute, 1, 1 },
			      &(struct gt_intervals){ &comm, 1, 1 },
			      &(struct gt_intervals){ &memcpy, 1, 1 });
}

static void test_split(void **state)
{
	struct gt_gpu_time time = split();

	(void)state;
	assert_int_equal(time.span_ns, 50);
	assert_int_equal(time.busy_ns, 17);
	assert_int_equal(time.compute_ns, 10);
	assert_int_equal(time.comm_ns, 7);
	assert_int_equal(time.exposed_comm_ns, 5);
	assert_int_equal(time.memcpy_ns, 3);
	assert_int_equal(time.exposed_memcpy_ns, 2);
	assert_int_equal(time.idle_ns, 33);
}

static void test_sum(void **state)
{
	struct gt_gpu_time time = split(), sum = { .idle_ns = UINT64_MAX - 32 };

	(void)state;
	gt_gpu_time_add(&sum, &time);
	gt_gpu_time_add(&sum, &time);
	assert_int_equal(sum.span_ns, 100);
	assert_int_equal(sum.busy_ns, 34);
	assert_int_equal(sum.compute_ns, 20);
	assert_int_equal(sum.comm_ns, 14);
	assert_int_equal(sum.exposed_comm_ns, 10);
	assert_int_equal(sum.memcpy_ns, 6);
	assert_int_equal(sum.exposed_memcpy_ns, 4);
	assert_true(sum.idle_ns == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
