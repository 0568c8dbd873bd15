/*
 * op_inputs.h - the inputs of a torch operator, from an event (struct gt_input in wire_events.h) to
 * the arguments that torch's own profiler writes, in its words.
 */
#ifndef GT_OP_INPUTS_H
#define GT_OP_INPUTS_H

#include "base.h"
#include "str.h"

/* The most bytes of text that so many bytes of inputs become. */
#define GT_OP_INPUTS_TEXT_MAX(len) (24 * (len) + 128)

/*
 * Append ,"Input Dims":…,"Input Strides":…,"Input type":…,"Concrete Inputs":… Nothing when there
 * are no inputs, or not all of them, or these bytes are not inputs. Returns the end.
 */
char *gt_op_inputs_put(char *p, struct gt_str inputs);

#endif
