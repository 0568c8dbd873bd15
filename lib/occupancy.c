#include "occupancy.h"

#include "wire.h"

/* What the device properties do not say, by compute capability. */
struct sm_limits {
	uint32_t blocks;          /* resident at a time */
	uint32_t shared_unit;     /* bytes */
	uint32_t shared_reserved; /* bytes of each block that the driver takes */
	uint32_t partitions;      /* that warps and their registers are spread over */
};

#define WARP_REGISTER_UNIT 256

/* Source: CUDA C Programming Guide, "Technical Specifications per Compute Capability", and the
 * occupancy calculator's header, cuda_occupancy.h of CUDA 13.0. */
static bool sm_limits_for(uint32_t major, uint32_t minor, struct sm_limits *ret)
{
	struct sm_limits limits = { 32, 256, 0, 4 };

	switch (major) {
	case 5:
		break;
	case 6:
		limits.partitions = minor == 0 ? 2 : 4;
		break;
	case 7:
		limits.blocks = minor == 5 ? 16 : 32;
		break;
	case 8:
		limits.blocks = minor == 0 ? 32 : minor == 9 ? 24 : 16;
		break;
	case 9:
		break;
	case 10:
		limits.blocks = minor == 1 ? 24 : 32;
		break;
	case 11:
		limits.blocks = minor == 0 ? 24 : 32;
		break;
	case 12:
		limits.blocks = 24;
		break;
	default:
		return false;
	}
	if (major >= 8) {
		limits.shared_unit = 128;
		limits.shared_reserved = 1024;
	}
	*ret = limits;
	return true;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* How many blocks of this kernel a multiprocessor can hold. */
static uint64_t resident_blocks(const struct gt_msg_device *device, const struct gt_gpu_op *kernel,
				const struct sm_limits *limits, uint64_t threads)
{
	uint64_t warps = round_up(threads, device->warp_size) / device->warp_size;
	uint64_t blocks = GT_MIN((uint64_t)limits->blocks, device->max_threads_per_multiprocessor /
								   device->warp_size / warps);
	uint64_t shared = (uint64_t)kernel->static_shared_bytes + kernel->dynamic_shared_bytes +
			  limits->shared_reserved;
	uint64_t warp_registers = round_up(
		(uint64_t)kernel->registers_per_thread * device->warp_size, WARP_REGISTER_UNIT);

	if (warp_registers) {
		uint64_t file = device->regs_per_multiprocessor / limits->partitions;

		blocks = GT_MIN(blocks, file / warp_registers * limits->partitions / warps);
	}
	shared = round_up(shared, limits->shared_unit);
	if (shared)
		blocks = GT_MIN(blocks, device->shared_mem_per_multiprocessor / shared);
	return blocks;
}

int gt_occupancy_percent(const struct gt_msg_device *device, const struct gt_gpu_op *kernel)
{
	struct sm_limits limits;
	double grid = (double)kernel->grid[0] * kernel->grid[1] * kernel->grid[2];
	double threads = (double)kernel->block[0] * kernel->block[1] * kernel->block[2];
	double blocks, percent;

	if (!sm_limits_for(device->compute_major, device->compute_minor, &limits) ||
	    !device->num_sms || !device->warp_size || !device->regs_per_multiprocessor ||
	    !device->shared_mem_per_multiprocessor || threads < 1 ||
	    threads > device->max_threads_per_multiprocessor)
		return -1;
	blocks = (double)resident_blocks(device, kernel, &limits, (uint64_t)threads);
	blocks = GT_MIN(blocks, grid / device->num_sms);
	percent = 100 * blocks * threads / device->max_threads_per_multiprocessor;
	return (int)(GT_MIN(percent, 100.0) + 0.5);
}
