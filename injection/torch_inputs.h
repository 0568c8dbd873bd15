/*
 * torch_inputs.h - the inputs of torch's operators, as struct gt_input: read where they are, with
 * nothing allocated and nothing called.
 */
#ifndef INJ_TORCH_INPUTS_H
#define INJ_TORCH_INPUTS_H

#include "wire.h"

/*
 * Make sure of the layout of what is read. The operators that show_inputs() of gtrace_torch.py
 * calls are passed, in order and with the ones inside of them; undefined: torch's tensor that is
 * none.
 */
void torch_inputs_begin_test(const void *undefined);
void torch_inputs_test(const char *name, const char *inputs, uint64_t count);
/* Were they all read as what they are? */
bool torch_inputs_passed(void);

/*
 * At to, which has room for GT_INPUTS_MAX bytes: as many inputs as fit. Returns the bytes; 0
 * before the test was passed.
 */
uint32_t torch_inputs_put(char *to, const char *inputs, uint64_t count);

#endif
