/*
 * occupancy.h - how full a kernel launch makes a GPU, estimated as Kineto does it.
 */
#ifndef GT_OCCUPANCY_H
#define GT_OCCUPANCY_H

#include "base.h"
#include "gpu_op.h"

struct gt_msg_device;

/*
 * Percent of the threads the multiprocessors can hold at a time, 0 to 100, rounded: the blocks a
 * multiprocessor gets at most, or those the launch has for it if they are fewer. -1 when the
 * device's compute capability or the properties needed are not known.
 */
int gt_occupancy_percent(const struct gt_msg_device *device, const struct gt_gpu_op *kernel);

#endif
