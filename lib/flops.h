/*
 * flops.h - the floating point operations of one call of an operator, from its inputs. A trace
 * does not hold them.
 */
#ifndef GT_FLOPS_H
#define GT_FLOPS_H

#include "base.h"
#include "str.h"

/*
 * What the FLOPs of an operator depend on: nothing (there is no rule for it), the sizes of its
 * inputs, or also their values.
 */
enum gt_flops_from { GT_FLOPS_NONE, GT_FLOPS_FROM_DIMS, GT_FLOPS_FROM_VALUES };

enum gt_flops_from gt_flops_from(struct gt_str op);

/* The input whose type is that of the operations; -1: the operator has no FLOPs. */
int gt_flops_input(struct gt_str op);

/*
 * By the rules of torch's with_flops, its wrap-around at 2^64 included. dims, values: the raw JSON
 * of "Input Dims" and "Concrete Inputs"; empty: not recorded. 0: unknown.
 */
uint64_t gt_flops(struct gt_str op, struct gt_str dims, struct gt_str values);

/*
 * The operations of what torch has no rule for: attention, two matrix products forward, five
 * backward, without what a mask or causality saves; and matrix products of fp8 and int8. 0 for any
 * other operator.
 */
uint64_t gt_flops_estimated(struct gt_str op, struct gt_str dims);

#endif
