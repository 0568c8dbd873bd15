/*
 * launch_stats.h - how far ahead of a GPU the host is, and whether its kernels are worth their
 * launches.
 */
#ifndef GT_LAUNCH_STATS_H
#define GT_LAUNCH_STATS_H

#include "base.h"
#include "launches.h"

#define GT_SHORT_KERNEL_NS (10 * GT_NSEC_PER_USEC)

struct gt_launch_stats {
	uint64_t linked; /* pieces of work whose call is known */
	uint64_t kernels;
	uint64_t short_kernels; /* shorter than GT_SHORT_KERNEL_NS */
	/* Calls that launched a kernel. All else is 0 without any. */
	uint64_t launches;
	/* From the end of the call to the beginning of its first kernel, 0 if that is earlier. */
	uint64_t delay_median_ns;
	uint64_t delay_p99_ns; /* 99 % of the launches have no longer one */
	uint64_t delay_max_ns;
	/* Kernels that are all that their call launched, and those of them that are shorter than
	 * it. */
	uint64_t alone;
	uint64_t shorter_than_call;
	/* Kernels, copies and sets that were launched and have not ended, while the GPU had work.
	 */
	double queue_mean; /* over the time from the first piece of work to the end of the last */
	uint64_t queue_max;
};

/* Of linked work, from its first beginning to its last end. 0 or -ENOMEM. */
int gt_launch_stats_of(struct gt_launches *launches, const struct gt_launched_works *works,
		       struct gt_launch_stats *ret);

#endif
