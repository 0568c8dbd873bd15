/*
 * witness.h - tells whether a signal went to gtrace alone or to its whole process group.
 *
 * A signal sent to the group has reached the target already and must not be sent to it again; one
 * sent to gtrace alone must. The witness is a child in the same group that does nothing but
 * collect the signals it gets, and answers questions about them. It outlives gtrace's being killed,
 * and removes then what gtrace has to leave behind.
 */
#ifndef GT_WITNESS_H
#define GT_WITNESS_H

#include "base.h"
#include "err.h"
#include "sockdir.h"

#include <signal.h>
#include <sys/types.h>

struct gt_witness {
	pid_t pid;
	int fd; /* questions go out, answers come in; non-blocking, close-on-exec */
};

struct gt_witness_mark { /* what tells one signal from another */
	int32_t signo;
	int32_t code; /* si_code */
	int32_t pid;  /* si_pid */
};

struct gt_witness_answer {
	struct gt_witness_mark mark; /* as asked */
	bool seen;                   /* the witness got that signal, too (and now forgets it) */
};

/*
 * Fork the witness. All signals are to be blocked here already. sockdir: what it removes when
 * gtrace is killed; NULL: nothing. 0 or -errno.
 */
int gt_witness_start(struct gt_witness *ret, const struct gt_sockdir *sockdir, struct gt_err *err);

/* Ask; the answer is to be read from fd later. 0 or -errno (-EPIPE: the witness is gone). */
int gt_witness_ask(struct gt_witness *witness, const struct gt_witness_mark *mark);

/* 0, -EAGAIN when there is no answer yet, -EPIPE when the witness is gone. */
int gt_witness_read(struct gt_witness *witness, struct gt_witness_answer *ret);

/* Can it not answer, as it is stopped or has ended? */
bool gt_witness_is_mute(const struct gt_witness *witness);

/* End it and reap it. */
void gt_witness_stop(struct gt_witness *witness);

#endif
