/*
 * test_occupancy.c - against what NVIDIA's occupancy calculator (cuda_occupancy.h of CUDA 13.0) and
 * Kineto say.
 */
#include "base.h"
#include "occupancy.h"
#include "wire.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct gt_msg_device make_device(uint32_t major, uint32_t minor, uint32_t threads,
					uint32_t shared)
{
	return (struct gt_msg_device){
		.compute_major = major,
		.compute_minor = minor,
		.max_threads_per_multiprocessor = threads,
		.regs_per_multiprocessor = 65536,
		.warp_size = 32,
		.num_sms = 132,
		.shared_mem_per_multiprocessor = shared,
	};
}

static int percent(const struct gt_msg_device *device, uint32_t blocks, uint32_t threads,
		   uint32_t registers, uint32_t shared)
{
	const struct gt_gpu_op op = {
		.grid = { blocks, 1, 1 },
		.block = { threads, 1, 1 },
		.registers_per_thread = registers,
		.static_shared_bytes = shared / 2,
		.dynamic_shared_bytes = shared - shared / 2,
	};

	return gt_occupancy_percent(device, &op);
}

static void test_limits(void **state)
{
	const struct gt_msg_device h100 = make_device(9, 0, 2048, 233472);
	const struct gt_msg_device rtx = make_device(8, 9, 1536, 102400);
	const struct gt_msg_device turing = make_device(7, 5, 1024, 65536);

	(void)state;
	assert_int_equal(percent(&h100, 100000, 128, 32, 0), 100);
	assert_int_equal(percent(&h100, 100000, 1024, 32, 0), 100);
	assert_int_equal(percent(&h100, 100000, 384, 168, 0), 19);        /* registers */
	assert_int_equal(percent(&h100, 100000, 384, 168, 197076), 19);   /* one block */
	assert_int_equal(percent(&h100, 100000, 128, 32, 48 * 1024), 25); /* shared: 4 blocks */
	assert_int_equal(percent(&h100, 100000, 32, 16, 0), 50);          /* 32 blocks */
	assert_int_equal(percent(&rtx, 100000, 32, 16, 0), 50);           /* 24 blocks */
	assert_int_equal(percent(&turing, 100000, 32, 16, 0), 50);        /* 16 blocks */
	assert_int_equal(percent(&h100, 100000, 33, 255, 0), 6);
	/* fewer blocks than would fit: as Kineto has it for 128 blocks of 128 on 132 processors */
	assert_int_equal(percent(&h100, 128, 128, 34, 0), 6);
	assert_int_equal(percent(&h100, 1, 1, 16, 0), 0);
}

static void test_unknown(void **state)
{
	struct gt_msg_device device = make_device(3, 5, 2048, 49152);

	(void)state;
	assert_int_equal(percent(&device, 1, 32, 16, 0), -1);
	device = make_device(13, 0, 2048, 49152);
	assert_int_equal(percent(&device, 1, 32, 16, 0), -1);
	device = make_device(9, 0, 2048, 233472);
	assert_int_equal(percent(&device, 1, 0, 16, 0), -1);
	assert_int_equal(percent(&device, 1, 4096, 16, 0), -1);
	device.warp_size = 0;
	assert_int_equal(percent(&device, 1, 32, 16, 0), -1);
	device = make_device(9, 0, 16, 233472);
	assert_int_equal(percent(&device, 1, 16, 16, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
