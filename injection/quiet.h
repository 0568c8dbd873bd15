/*
 * quiet.h - no launch while CUPTI is switched off.
 *
 * A thread that is within a launch when CUPTI 13.0's kinds are disabled can lose the records of all
 * its later kernels: on an H200 whose processors were all busy, in 14 of 176 processes, mostly
 * those of the thread of the backward pass; with none within a launch, in 0 of 72.
 */
#ifndef INJ_QUIET_H
#define INJ_QUIET_H

#include "events.h"

extern _Atomic bool inj_quiet_wanted;

/* Wait while it is, at most QUIET_WAIT_NS. */
void inj_quiet_wait(struct inj_thread *self, uint32_t generation);

/* This thread is about to launch, by a call that the subscription of this generation hears of. */
static inline void inj_launch_begins(struct inj_thread *self, uint32_t generation)
{
	atomic_store_explicit(&self->launching, generation, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* inj_quiet_begin() has the other one */
	if (GT_UNLIKELY(atomic_load_explicit(&inj_quiet_wanted, memory_order_relaxed)))
		inj_quiet_wait(self, generation);
}

static inline void inj_launch_ends(struct inj_thread *self)
{
	atomic_store_explicit(&self->launching, 0, memory_order_release);
}

void inj_quiet_init(void);

/*
 * From the control thread: no thread is within a launch, and none begins one until
 * inj_quiet_end(), which is to follow soon. false: there always was one; they go on. Needs the
 * callbacks of calls: without them it does nothing.
 */
bool inj_quiet_begin(void);
void inj_quiet_end(void);

#endif
