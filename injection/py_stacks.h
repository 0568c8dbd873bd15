/*
 * py_stacks.h - the Python stack that an event came from, as a number.
 */
#ifndef INJ_PY_STACKS_H
#define INJ_PY_STACKS_H

#include "base.h"

#include <stdatomic.h>

extern _Atomic bool inj_stacks_on;        /* of operators and ranges */
extern _Atomic uint64_t inj_long_call_ns; /* CUDA calls that last so long; UINT64_MAX: none */

/* The slow part of the functions below. */
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

/* The same for a CUDA call that is about to return and has lasted so long. */
static inline uint32_t inj_call_stack(uint64_t duration_ns)
{
	return GT_UNLIKELY(duration_ns >=
			   atomic_load_explicit(&inj_long_call_ns, memory_order_relaxed))
		       ? inj_stack_take()
		       : 0;
}

/* From the control thread, once a turn: says, once, why there are no stacks. */
void inj_stacks_follow(void);

#endif
