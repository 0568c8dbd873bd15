/*
 * py_stacks.h - the Python stack that an event came from, as a number.
 */
#ifndef INJ_PY_STACKS_H
#define INJ_PY_STACKS_H

#include "base.h"

#include <stdatomic.h>

extern _Atomic bool inj_stacks_on;

/* The slow part of inj_stack(). */
uint32_t inj_stack_take(void);

/*
 * The frames of Python code that the calling thread is in, as the number of their GT_EV_FRAME,
 * which is written when it is new; 0: there are none, or they are not wanted. Not between
 * inj_reserve() and inj_commit().
 */
static inline uint32_t inj_stack(void)
{
	return GT_UNLIKELY(atomic_load_explicit(&inj_stacks_on, memory_order_relaxed))
		       ? inj_stack_take()
		       : 0;
}

/* From the control thread, once a turn: says, once, why there are no stacks. */
void inj_stacks_follow(void);

#endif
