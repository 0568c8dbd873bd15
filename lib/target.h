/*
 * target.h - the target while it runs, on a libuv loop: signals that are meant for it are passed
 * on, its job-control stops are followed, its end is reported.
 */
#ifndef GT_TARGET_H
#define GT_TARGET_H

#include "base.h"
#include "err.h"
#include "signals.h"
#include "witness.h"

#include <sys/types.h>
#include <uv.h>

#define GT_TARGET_QUESTIONS 16

struct gt_target_question { /* a signal for which the witness is to be asked */
	struct gt_witness_mark mark;
	union sigval value; /* of sigqueue() */
	bool open;
	bool asked_again;   /* its next answer counts, also when it is no */
	bool answered;      /* no, so far */
	bool pass_on;       /* unless the witness got it, too */
	uint64_t signal_ms; /* when it came, uv_now() */
};

struct gt_target {
	/* set by the caller before gt_target_start() */
	pid_t pid;
	struct gt_signals *signals;
	struct gt_witness *witness;
	void (*ended)(struct gt_target *target, int wait_status);
	void (*interrupted)(struct gt_target *target, int sig); /* a signal after its end */
	/* One that is for gtrace alone: true. May be NULL. */
	bool (*taken)(struct gt_target *target, int sig);
	/* what happened */
	bool over;
	bool asked_to_end; /* SIGTERM or the like has come, for gtrace or for all */
	/* private */
	uv_poll_t signal_poll;
	uv_poll_t witness_poll;
	uv_timer_t timer;
	struct gt_target_question questions[GT_TARGET_QUESTIONS];
};

/* Start to follow the target. 0 or -errno. */
int gt_target_start(struct gt_target *target, uv_loop_t *loop, struct gt_err *err);

/* Close the handles; the loop has to run once more. */
void gt_target_close(struct gt_target *target);

#endif
