/*
 * demangle.h - kernel names as the programmer wrote them.
 */
#ifndef GT_DEMANGLE_H
#define GT_DEMANGLE_H

#include "base.h"
#include "buf.h"
#include "str.h"

#define GT_DEMANGLE_MAX ((size_t)64 << 10) /* bytes of a name; longer ones stay as they are */

/*
 * Put the readable form of a name of the Itanium C++ ABI into plain, which is empty. False: show
 * the name as it is, because it is not mangled, not valid, too long or too large when expanded (a
 * few bytes can stand for a text without end), or because memory is out.
 */
bool gt_demangle(struct gt_str name, struct gt_buf *plain);

#endif
