/*
 * kernel_stats.h - how the kernels of a trace were launched: by which operators, with which grid,
 * blocks and resources, at which occupancy. It costs time and memory that only one table is worth,
 * so it is collected beside the table of kernels, by the numbers of that table's rows.
 */
#ifndef GT_KERNEL_STATS_H
#define GT_KERNEL_STATS_H

#include "base.h"
#include "id_map.h"
#include "interner.h"
#include "ops.h"
#include "trace_event.h"

/* Of all kernels of a file together; what is read after that counts without its configuration. */
#define GT_KERNEL_CONFIGS_MAX 65536

#define GT_KERNEL_UNKNOWN     UINT32_MAX

struct gt_kernel_config { /* its bytes are a key, so it has no padding */
	uint32_t kernel;
	uint32_t grid[3]; /* all three are known, or none, and so with block */
	uint32_t block[3];
	uint32_t registers;    /* a thread */
	uint32_t shared_bytes; /* a block: static and dynamic */
};

struct gt_kernel_stat {
	uint64_t configs;  /* that are told apart */
	bool more_configs; /* than GT_KERNEL_CONFIGS_MAX had room for */
	uint32_t config;   /* of most time: its number + 1; 0: not known */
	/* in percent, by time; a kernel of 0 ns counts as one of 1 ns */
	double occupancy_sum;
	double occupancy_ns; /* 0: not known */
	/* at the end */
	uint64_t ops;
	uint32_t op; /* of most time: its number in the names of ops + 1; 0: not known */
};

struct gt_kernel_stats { /* { 0 } but for ops, whose slices name the operators */
	struct gt_ops *ops;
	struct gt_kernel_stat *rows; /* by kernel */
	size_t row_cap;
	struct gt_interner configs;
	uint64_t *config_ns; /* by number */
	size_t config_cap;
	/* while it is read: numbers of names + 1 */
	struct gt_id_map op_by_external;
	struct gt_id_map op_by_call; /* External ids of calls, and correlations, negated */
	struct gt_kernel_work *works;
	size_t work_count;
	size_t work_cap;
};

/* Take in a kernel, whose number in the table is 'kernel'. 0 or -ENOMEM. */
int gt_kernel_stats_add(struct gt_kernel_stats *stats, uint32_t kernel,
			const struct gt_trace_event *event, int64_t dur_ns, int64_t correlation);

/* Take in an operator or range. 0 or -ENOMEM. */
int gt_kernel_stats_add_op(struct gt_kernel_stats *stats, const struct gt_trace_event *event);

/* Take in a call, as ops->called. 0 or -ENOMEM. */
int gt_kernel_stats_add_call(void *stats, const struct gt_op_slice *call, int64_t op);

/*
 * All is there. The operator of a kernel is the operator or range with its External id; where there
 * is none, the innermost one around a call with that External id or, among the calls that have no
 * other id, around the one with its correlation. 0 or -ENOMEM.
 */
int gt_kernel_stats_finish(struct gt_kernel_stats *stats);

/* NULL: nothing was collected. */
const struct gt_kernel_stat *gt_kernel_stat_of(const struct gt_kernel_stats *stats,
					       uint32_t kernel);

/* The configuration of most time; what is not known is GT_KERNEL_UNKNOWN. */
struct gt_kernel_config gt_kernel_config_of(const struct gt_kernel_stats *stats,
					    const struct gt_kernel_stat *stat);

/* The name of the operator of most time; empty: not known. */
struct gt_str gt_kernel_op_of(const struct gt_kernel_stats *stats,
			      const struct gt_kernel_stat *stat);

void gt_kernel_stats_release(struct gt_kernel_stats *stats);

#endif
