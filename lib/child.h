/*
 * child.h - something that may hang or crash (a driver, an interpreter) is done in a child, with a
 * time limit.
 */
#ifndef GT_CHILD_H
#define GT_CHILD_H

#include "base.h"
#include "buf.h"
#include "err.h"
#include "signals.h"

struct gt_child {
	struct gt_buf output; /* what it wrote to stdout and stderr, at most GT_CHILD_OUTPUT_MAX */
	int status;           /* as by waitpid(); -1: it is stuck in the kernel */
	bool timed_out;       /* it was killed for that */
};

#define GT_CHILD_OUTPUT_MAX 65536

/*
 * Fork and call body(ctx), whose return value is the exit status of the child unless it executes
 * something; standard input is empty. Whatever it starts is killed with it, at the latest after
 * timeout_ms. 0; -EINTR when this process was asked to end meanwhile, with the signal left in
 * *ret_signal; or -errno. In all cases gt_child_release() is for the caller.
 */
int gt_child_run(struct gt_child *ret, int (*body)(void *ctx), void *ctx,
		 struct gt_signals *signals, int timeout_ms, int *ret_signal, struct gt_err *err);

void gt_child_release(struct gt_child *child);

/* Did it exit with 0, in time? */
bool gt_child_succeeded(const struct gt_child *child);

#endif
