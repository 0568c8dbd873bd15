/*
 * cgroup.h - the memory that the control groups of this process leave it: of a container, a pod, a
 * job.
 */
#ifndef GT_CGROUP_H
#define GT_CGROUP_H

#include "base.h"

/*
 * Bytes that may yet be taken, and in *ret_limit those that may be taken in all, by the tightest of
 * the groups around this process; UINT64_MAX both where there is no limit. root: where /proc and
 * /sys are, "" unless in a test.
 */
uint64_t gt_cgroup_memory(const char *root, uint64_t *ret_limit);

#endif
