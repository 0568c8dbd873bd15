/*
 * gpu_time.h - the exact split of the time of a GPU, from its first piece of work to the end of its
 * last. Exposed: while nothing before it in the order computation, communication, copies runs.
 */
#ifndef GT_GPU_TIME_H
#define GT_GPU_TIME_H

#include "base.h"
#include "intervals.h"

/* compute + exposed_comm + exposed_memcpy = busy, busy + idle = span. */
struct gt_gpu_time {
	uint64_t span_ns;
	uint64_t busy_ns;
	uint64_t compute_ns;
	uint64_t comm_ns;
	uint64_t exposed_comm_ns;
	uint64_t memcpy_ns;
	uint64_t exposed_memcpy_ns;
	uint64_t idle_ns;
};

/* Of merged sets that all lie in the span. */
struct gt_gpu_time gt_gpu_time_of(uint64_t span_ns, const struct gt_intervals *compute,
				  const struct gt_intervals *comm,
				  const struct gt_intervals *memcpy);

/* The times of several GPUs together. What does not fit saturates. */
void gt_gpu_time_add(struct gt_gpu_time *sum, const struct gt_gpu_time *more);

#endif
