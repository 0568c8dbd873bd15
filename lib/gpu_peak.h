/*
 * gpu_peak.h - how many operations a second GPUs can do at most, by the type of their operands.
 */
#ifndef GT_GPU_PEAK_H
#define GT_GPU_PEAK_H

#include "base.h"
#include "str.h"

enum gt_dtype {
	GT_DTYPE_NONE, /* not known, or none that has a peak */
	GT_DTYPE_FP64,
	GT_DTYPE_FP32,
	GT_DTYPE_TF32, /* of no tensor: how tensor cores multiply fp32 */
	GT_DTYPE_FP16,
	GT_DTYPE_BF16,
	GT_DTYPE_FP8,
	GT_DTYPE_INT8,
	GT_DTYPE_NO_TENSOR, /* the input is a number, or nothing */
	GT_DTYPE_MAX
};

/* "bf16"; of what is not known: "". */
const char *gt_dtype_name(enum gt_dtype dtype);

/* The type of the input at index of raw "Input type", where PyTorch writes c10::BFloat16. */
enum gt_dtype gt_dtype_at(struct gt_str types, size_t index);

/* 10^12 operations a second by type; 0: the GPU has no units for it, or its maker names no rate. */
struct gt_gpu_peak {
	double tera_ops[GT_DTYPE_MAX];
};

/*
 * Of a GPU by its name in deviceProperties. NULL: not known, as is a part of a GPU (MIG, vGPU) and
 * a name under which its maker sells several.
 */
const struct gt_gpu_peak *gt_gpu_peak_of(struct gt_str name);

#endif
