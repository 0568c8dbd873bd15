/*
 * sort_u64.h - numbers in ascending order, in linear time whatever they are.
 */
#ifndef GT_SORT_U64_H
#define GT_SORT_U64_H

#include "base.h"

/* spare: room for as many. */
void gt_sort_u64(uint64_t *values, uint64_t *spare, size_t count);

#endif
