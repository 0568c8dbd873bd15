/*
 * op_slices.h - what one thread of the host did, slice by slice, in an order in which an outer
 * slice comes before those in it.
 */
#ifndef GT_OP_SLICES_H
#define GT_OP_SLICES_H

#include "base.h"

/* Of slices with the same times, the lower one is the outer one. */
enum gt_op_slice_kind {
	GT_SLICE_FRAME, /* of Python: only names the stack */
	GT_SLICE_OP,
	GT_SLICE_CALL,   /* into CUDA or HIP */
	GT_SLICE_FAILURE /* [OutOfMemory]: no time */
};

/* What the id of a slice is. */
enum gt_op_id {
	GT_ID_NONE,
	GT_ID_EXTERNAL,
	GT_ID_CORRELATION, /* of a call without an External id */
	GT_ID_EITHER,      /* of a call: its External id is its correlation */
	GT_ID_LINE         /* of a call with a line of its own: its correlation */
};

struct gt_op_slice {
	int64_t start_ns;
	int64_t end_ns;
	int64_t id;
	uint32_t row;
	uint8_t kind;
	uint8_t id_kind;
	bool told; /* a call: to gt_ops.called */
};

/* Files hold millions of them. */
_Static_assert(sizeof(struct gt_op_slice) == 32, "a slice takes 32 bytes");

struct gt_op_slices { /* { 0 } is empty */
	struct gt_op_slice *items;
	size_t count;
	size_t cap;
};

/* 0 or -ENOMEM. */
int gt_op_slices_add(struct gt_op_slices *slices, const struct gt_op_slice *slice);

/*
 * By start, the longer first, then by kind, then as they were added. Producers write each kind
 * nearly in order: a few runs are merged, which takes time for each run, and memory for half of the
 * slices at most. 0 or -ENOMEM.
 */
int gt_op_slices_sort(struct gt_op_slices *slices);

void gt_op_slices_release(struct gt_op_slices *slices);

#endif
