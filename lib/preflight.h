/*
 * preflight.h - what is checked before the target starts, because it would fail without a word
 * inside of it: the CUDA driver passes over an injection library that it cannot load.
 */
#ifndef GT_PREFLIGHT_H
#define GT_PREFLIGHT_H

#include "base.h"
#include "err.h"

#include <limits.h>

struct gt_preflight {
	char injection[PATH_MAX];  /* libgtrace-inject.so, absolute */
	char python_dir[PATH_MAX]; /* of the start-up hook; empty: not there */
};

/*
 * Find the injection: as given (may be NULL), beside this program, or in ../lib/gtrace of it; the
 * Python hook is in the directory "python" beside it. 0 or -errno.
 */
int gt_preflight_find(struct gt_preflight *ret, const char *given, struct gt_err *err);

/*
 * PYTHONPATH for the target: the start-up hook's directory in front of what is given (may be NULL).
 * Allocated; NULL: the hook is not there (then as given), or no memory.
 */
char *gt_preflight_python_path(const struct gt_preflight *preflight, const char *given);

/*
 * Load the injection in a child and look its entry point up. 0, or -ELIBACC with the loader's
 * words. To be called before any thread is started.
 */
int gt_preflight_load(const char *injection, struct gt_err *err);

/*
 * Is there room for the descriptors of a traced run and for so many threads? Libuv aborts where
 * these cannot be had. 0 or -errno. To be called before any thread is started.
 */
int gt_preflight_room(unsigned int threads, struct gt_err *err);

#endif
