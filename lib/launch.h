/*
 * launch.h - starts the target: the program that gtrace traces.
 */
#ifndef GT_LAUNCH_H
#define GT_LAUNCH_H

#include "base.h"
#include "err.h"
#include "signals.h"

#include <sys/types.h>

struct gt_envvar {
	const char *name;
	const char *value; /* NULL: not there */
};

/*
 * A copy of base (as environ) in which vars take the place of what had their names. NULL when out
 * of memory. Free it with gt_environment_free().
 */
char **gt_environment_new(char *const *base, const struct gt_envvar *vars, size_t count);
void gt_environment_free(char **environment);

struct gt_launch {
	pid_t pid;
	bool exec_failed; /* set on failure: the command could not be executed (not gtrace's fault)
			   */
};

/*
 * Fork and execute argv, found in PATH, with this environment, and with the signals, the process
 * group, the terminal, the directory and the standard streams that gtrace was given. When this
 * returns 0 the program has been executed. Otherwise -errno, there is no child, and exec_failed
 * says whose failure it was.
 */
int gt_launch(struct gt_launch *ret, char *const *argv, char *const *environment,
	      const struct gt_signals *signals, struct gt_err *err);

#endif
