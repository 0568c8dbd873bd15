/*
 * nsight.h - a program that Nsight Systems records (gtrace run --nsight). There is no arena, no
 * collector, no thread and no CUPTI of ours: at the step marks nsys is told when to record, by
 * cudaProfilerStart() and -Stop(), and steps, operators and ranges are NVTX ranges for it.
 */
#ifndef INJ_NSIGHT_H
#define INJ_NSIGHT_H

#include "session.h"

static inline bool inj_nsight(void)
{
	return GT_UNLIKELY(inj_config.nsight);
}

/* In place of arena and collector, before the session is alive. */
void inj_nsight_init(void);

/* The session is alive, in step 0. */
void inj_nsight_begin(void);

/* The program is in this step now. On the thread that marked it. */
void inj_nsight_step(uint32_t step);

/* A range of the calling thread, in the NVTX domain "gtrace". */
void inj_nsight_push(const char *name);
void inj_nsight_pop(void);

#endif
