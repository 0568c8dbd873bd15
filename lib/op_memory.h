/*
 * op_memory.h - allocations and frees ("[memory]") over time: how much memory was taken between two
 * points of it.
 */
#ifndef GT_OP_MEMORY_H
#define GT_OP_MEMORY_H

#include "base.h"

struct gt_op_bytes { /* more was freed than allocated: negative */
	int64_t cpu;
	int64_t gpu;
};

struct gt_op_memory { /* { 0 } is empty */
	struct gt_op_memory_record {
		int64_t time_ns;
		int64_t bytes;
		int32_t claims; /* sorted: as a difference to the record before */
		bool on_gpu;
	} * records;
	struct gt_op_bytes
		*sums; /* sorted: of the records before this one; one more than records */
	size_t count;
	size_t cap;
};

/* 0 or -ENOMEM. */
int gt_op_memory_add(struct gt_op_memory *memory, int64_t time_ns, int64_t bytes, bool on_gpu);

/* Before the first claim. 0 or -ENOMEM. */
int gt_op_memory_sort(struct gt_op_memory *memory);

/* What was taken from start_ns to end_ns, both included, by any thread; those records now belong to
 * somebody. */
struct gt_op_bytes gt_op_memory_claim(struct gt_op_memory *memory, int64_t start_ns,
				      int64_t end_ns);

/* After the last claim: what belongs to nobody, and the number of its records. */
struct gt_op_bytes gt_op_memory_unclaimed(const struct gt_op_memory *memory, uint64_t *ret_count);

void gt_op_memory_release(struct gt_op_memory *memory);

#endif
