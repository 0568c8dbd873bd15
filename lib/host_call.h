/*
 * host_call.h - what the name of a CUDA or HIP call says.
 */
#ifndef GT_HOST_CALL_H
#define GT_HOST_CALL_H

#include "base.h"
#include "str.h"

/*
 * Whether it makes the host wait: for the GPU, for a copy (those not Async; sets do not block), or
 * for memory of the device or pinned memory, whose mapping stops the device.
 */
bool gt_call_blocks_host(struct gt_str name);

/* Whether it puts work on the GPU; a graph may have none. */
bool gt_call_launches(struct gt_str name);
bool gt_call_launches_graph(struct gt_str name);

#endif
