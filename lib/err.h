/*
 * err.h - how the library says why: every failing function returns -errno and fills one of these.
 */
#ifndef GT_ERR_H
#define GT_ERR_H

#include "base.h"

struct gt_err {
	int code;      /* -errno, 0 while nothing failed */
	char msg[512]; /* one line, no capital, no full stop, no newline; UTF-8 */
};

/*
 * Fill err (may be NULL) with a formatted message and return code, so that a failing function ends
 * with 'return gt_err_set(err, -EIO, "cannot read '%s'", path)'. code is a negative errno.
 */
int gt_err_set(struct gt_err *err, int code, const char *fmt, ...) GT_PRINTF(3, 4);

/* The same with ": " and the text of the errno at the end. */
int gt_err_sys(struct gt_err *err, int code, const char *fmt, ...) GT_PRINTF(3, 4);

#endif
