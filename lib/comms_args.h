/*
 * comms_args.h - what torch.distributed tells of a collective, as args with PyTorch's names.
 */
#ifndef GT_COMMS_ARGS_H
#define GT_COMMS_ARGS_H

#include "buf.h"
#include "wire.h"

/*
 * Add the args to args, as JSON members with a comma before each: first those that PyTorch's
 * profiler writes to kernels as well, whose bytes are returned, then those of the operator alone.
 */
size_t gt_comms_put_args(struct gt_buf *args, const struct gt_ev_comms *ev);

#endif
