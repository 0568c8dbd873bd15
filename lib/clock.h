/*
 * clock.h - the time of one of the kernel's clocks.
 */
#ifndef GT_CLOCK_H
#define GT_CLOCK_H

#include "base.h"

#include <time.h>

/* CLOCK_REALTIME: since 1970; CLOCK_MONOTONIC: of use only in differences. */
static inline uint64_t gt_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * GT_NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

static inline uint64_t gt_clock_ms(clockid_t clock)
{
	return gt_clock_ns(clock) / GT_NSEC_PER_MSEC;
}

#endif
