/*
 * input_dims.h - the "Input Dims" of an operator: the sizes of its inputs, as PyTorch writes them
 * into args. [[16, 3], [], [[4], [4]]] is a matrix, something that is no tensor (or a scalar), and
 * a list of tensors. Text of another form gives something, but never fails.
 */
#ifndef GT_INPUT_DIMS_H
#define GT_INPUT_DIMS_H

#include "base.h"
#include "buf.h"
#include "str.h"

#define GT_DIMS_MAX 64 /* of one tensor, as in PyTorch; more are left out */

struct gt_dims {
	int64_t sizes[GT_DIMS_MAX];
	size_t count; /* 0 also for what is no tensor, and for a list of tensors */
};

/* The integers of the list at *at ("[1, 2]"), which is moved behind it. False: there is none. */
bool gt_dims_next(const char **at, const char *end, struct gt_dims *ret);

/* The input at index of raw "Input Dims"; false: there are not so many. */
bool gt_dims_at(struct gt_str raw, size_t index, struct gt_dims *ret);

/* Append raw "Input Dims" as torch's tables print them: "[[16, 3], [], []]"; nothing where there
 * are none. */
void gt_dims_put(struct gt_buf *out, struct gt_str raw);

#endif
