/*
 * signals.h - the signals of gtrace itself. It takes them from a descriptor, so that it knows who
 * sent them, and keeps aside what it was given, so that its target starts with exactly that.
 */
#ifndef GT_SIGNALS_H
#define GT_SIGNALS_H

#include "base.h"
#include "err.h"

#include <signal.h>

struct gt_signals {
	int fd; /* signalfd, non-blocking, close-on-exec */
	sigset_t given_mask;
	struct sigaction given_chld;
	struct sigaction given_pipe;
};

/*
 * Block every signal that can wait and open the descriptor for them; ignore SIGPIPE; take care that
 * children can be waited for. To be called before any thread is started. 0 or -errno.
 */
int gt_signals_init(struct gt_signals *ret, struct gt_err *err);

/* Does sig ask a program to end? SIGHUP, SIGINT, SIGQUIT, SIGTERM. */
bool gt_signals_is_end(int sig);

/*
 * Which signal asked this process to end since gt_signals_init()? 0: none. For the time before
 * there is a target; what else came is forgotten.
 */
int gt_signals_take_end(struct gt_signals *signals);

/* In a fork, before its exec: the dispositions and the mask that gtrace was given. Async-safe. */
void gt_signals_restore(const struct gt_signals *signals);

/* Close the descriptor and take the given dispositions and mask back. */
void gt_signals_release(struct gt_signals *signals);

/* Stop this process the way sig (SIGTSTP, SIGTTIN, SIGTTOU) does; returns when it is continued. */
void gt_signals_stop_self(int sig);

/* Die of sig without a core file. Returns only when this process is immune (init of a container).
 */
void gt_signals_die_of(int sig);

#endif
