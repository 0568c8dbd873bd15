/*
 * kernel_name.h - the parts of a kernel's name that people and tools go by.
 */
#ifndef GT_KERNEL_NAME_H
#define GT_KERNEL_NAME_H

#include "base.h"
#include "buf.h"
#include "str.h"

/*
 * The base name of a kernel, which is what ncu --kernel-name compares: without return type,
 * namespaces, template arguments and parameters. A part of name.
 */
struct gt_str gt_kernel_base_name(struct gt_str name);

/*
 * Append a short name: the base name of the name as the programmer wrote it. Where that says
 * nothing there is more: of the kernels of CUTLASS, which are all called Kernel, it is the first
 * template argument, of a kernel called "kernel" it is with its namespace, and of a lambda it is
 * the function that has it.
 */
void gt_kernel_put_short_name(struct gt_buf *out, struct gt_str name);

#endif
