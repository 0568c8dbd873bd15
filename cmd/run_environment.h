/*
 * run_environment.h - gtrace run and the environment: what the command gets to find its way back to
 * gtrace, and what there is that a trace has to mention.
 */
#ifndef CMD_RUN_ENVIRONMENT_H
#define CMD_RUN_ENVIRONMENT_H

#include "preflight.h"
#include "run_options.h"

/*
 * Ours with what the command needs to be traced by the collector at this socket. NULL without
 * memory; for gt_environment_free().
 */
char **run_environment(const struct run_options *options, const struct gt_preflight *preflight,
		       const char *socket);

#define RUN_ENVIRONMENT_NOTES 9 /* eight, and the NULL behind them */

/*
 * The option of Python in this command, one of I, E and S, that keeps the start-up hook out until
 * the program uses CUDA. 0: none, or another program.
 */
char run_environment_python_option(char *const *command);

/* "NAME=value" of each setting that makes a program's times other than they usually are. */
void run_environment_notes(const char *ret[RUN_ENVIRONMENT_NOTES]);

#endif
