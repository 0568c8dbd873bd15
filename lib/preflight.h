/*
 * preflight.h - what is checked before the target starts, because it would fail without a word
 * inside of it: the CUDA driver passes over an injection library that it cannot load.
 */
#ifndef GT_PREFLIGHT_H
#define GT_PREFLIGHT_H

#include "base.h"
#include "err.h"

#define GT_PREFLIGHT_PATH_MAX 4096

struct gt_preflight {
	char injection[GT_PREFLIGHT_PATH_MAX];  /* libgtrace-inject.so, absolute */
	char python_dir[GT_PREFLIGHT_PATH_MAX]; /* of the start-up hook; empty: not there */
};

/*
 * Find the injection: as given (may be NULL), beside this program, or in ../lib/gtrace of it; the
 * Python hook is in the directory "python" beside it. 0 or -errno.
 */
int gt_preflight_find(struct gt_preflight *ret, const char *given, struct gt_err *err);

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

/*
 * Does another tool own the CUDA injection of this command, which takes only one? -EBUSY with a
 * message that names it, or 0. lookup is getenv() or a stand-in; injection is ours.
 */
int gt_preflight_conflict(char *const *argv, char *(*lookup)(const char *name),
			  const char *injection, struct gt_err *err);

/* The same for a tool that this process runs under; by the names in /proc. */
int gt_preflight_ancestors(struct gt_err *err);

#endif
