/*
 * ncu.h - the command with which NVIDIA Nsight Compute profiles a kernel of a trace.
 */
#ifndef GT_NCU_H
#define GT_NCU_H

#include "base.h"
#include "buf.h"
#include "str.h"
#include "summary.h"

/*
 * Append the command for the kernel of this name, or of those in whose names it is for the one that
 * took longest. It profiles the launches of the first step of the trace, where all steps have as
 * many, otherwise one launch; all kernels with the same base name count as one. The line is for a
 * POSIX shell, whatever bytes the name has. 0, -ENOENT: there is no such kernel, or -ENOMEM.
 */
int gt_ncu_put(const struct gt_summary *summary, struct gt_str kernel, struct gt_buf *out);

#endif
