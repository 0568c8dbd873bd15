/*
 * torch_ops.h - torch's operators as events, by an observer inside of libtorch_cpu.
 */
#ifndef INJ_TORCH_OPS_H
#define INJ_TORCH_OPS_H

#include "base.h"

/* Has an observer been registered in this process, so that there can be operators, or memory? */
bool inj_ops_observed(void);

/*
 * From the control thread, once a turn: has torch call us, or not. Also says, once, why operators
 * cannot be observed.
 */
void inj_ops_follow(bool wanted);

/*
 * An optimizer's step() has ended, but for its record_function(), in which the calling thread still
 * is: then the mark is made when that ends, so that all of it is in the step. false: it is not.
 */
bool inj_ops_defer_step(uint64_t key);

#endif
