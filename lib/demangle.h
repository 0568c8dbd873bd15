/*
 * demangle.h - kernel names as the programmer wrote them.
 */
#ifndef GT_DEMANGLE_H
#define GT_DEMANGLE_H

#include "base.h"

/*
 * The readable form of a name of the Itanium C++ ABI (malloc'd, NUL-terminated; the caller frees
 * it), or NULL: then the name is to be shown as it is, because it is not mangled, not valid, too
 * long or too deep. name need not be NUL-terminated.
 */
char *gt_demangle(const char *name, size_t len, size_t *ret_len);

#endif
