/*
 * op_report.h - the rows of ops.h as a table: grouped, chosen and ordered.
 */
#ifndef GT_OP_REPORT_H
#define GT_OP_REPORT_H

#include "base.h"
#include "gpu_peak.h"
#include "interner.h"
#include "ops.h"

#include <regex.h>

enum gt_op_sort {
	/* own time on the GPU, or on the host where there is none on a GPU; spans of ranges last */
	GT_OP_BY_DEFAULT,
	GT_OP_BY_NAME,
	GT_OP_BY_CALLS,
	GT_OP_BY_CPU_MEAN,
	GT_OP_BY_CPU,
	GT_OP_BY_SELF_CPU,
	GT_OP_BY_GPU_MEAN,
	GT_OP_BY_GPU,
	GT_OP_BY_SELF_GPU,
	GT_OP_BY_CPU_BYTES,
	GT_OP_BY_SELF_CPU_BYTES,
	GT_OP_BY_GPU_BYTES,
	GT_OP_BY_SELF_GPU_BYTES,
	GT_OP_BY_FLOPS
};

/*
 * The key by torch's name ("self_cuda_time_total", whose cuda may also be device, xpu, hip or
 * gpu), or a short one ("self_cuda"). False: there is none.
 */
bool gt_op_sort_of(const char *text, enum gt_op_sort *ret);

struct gt_op_line {
	struct gt_op_row sum;     /* of the rows of this line; of its numbers only kind counts */
	struct gt_str name;       /* as in the file: Kineto demangled what torch can */
	struct gt_str shapes;     /* "[[16, 3], []]"; empty: none, or not grouped by it */
	struct gt_str stack;      /* each frame ends in '\n'; empty: none, or not grouped by it */
	uint64_t flops;           /* by torch's rules, where the profile was taken with FLOPs */
	uint64_t estimated_flops; /* by the same rules where it was not, and what torch omits */
	/* of all of these */
	double flops_per_s;  /* 0: none, or in no time */
	double peak_share;   /* of what the GPU could do, 1: all; 0: not known */
	double least_ns;     /* in which the GPU could do those whose type has a peak */
	bool without_peak;   /* some have none */
	uint32_t peak_dtype; /* of peak_share; GT_DTYPE_MAX: several */
};

struct gt_op_grouping {
	bool by_shape;
	bool by_stack;
	bool with_flops; /* the profile was taken with FLOPs */
	bool on_gpu;     /* there is GPU work: FLOPs that are done in others' time have no rate */
	const struct gt_gpu_peak *peak; /* of the GPU; NULL: not known */
	const regex_t *filter;          /* only names in which it is found; NULL: all */
	enum gt_op_sort sort;
};

struct gt_op_report {
	struct gt_op_line *lines;
	size_t count;
	/* of all lines, those that the filter took away included */
	int64_t self_cpu_ns;
	int64_t self_gpu_ns; /* of GPU work, without the ranges of the GPU */
	bool has_flops;
	bool has_estimates;
	bool has_peak;            /* some line has a peak_share */
	struct gt_interner texts; /* of the lines */
};

/* *ret is the caller's, for gt_op_report_release(). It borrows from ops. 0 or -ENOMEM. */
int gt_op_report(const struct gt_ops *ops, const struct gt_op_grouping *grouping,
		 struct gt_op_report *ret);

void gt_op_report_release(struct gt_op_report *report);

/* Of one call; 0: there is none. */
static inline int64_t gt_op_mean_ns(int64_t total_ns, uint64_t calls)
{
	return calls ? total_ns / (int64_t)GT_MIN(calls, (uint64_t)INT64_MAX) : 0;
}

/* flops_per_s as a whole number, at most 10^18. */
uint64_t gt_op_flop_rate(const struct gt_op_line *line);
/* The type of peak_share: "bf16", "mixed". */
const char *gt_op_peak_name(const struct gt_op_line *line);

/* Whether the filter (may be NULL) takes the name. */
bool gt_op_filter_takes(const regex_t *filter, struct gt_str name);

#endif
