/*
 * run_exec.h - gtrace run becomes a program.
 */
#ifndef CMD_RUN_EXEC_H
#define CMD_RUN_EXEC_H

#include "base.h"

/*
 * Become argv, found in PATH, with this environment (NULL: our own); signals are as they were
 * given. Where that cannot be, end with the status for it.
 */
void run_exec(char *const *argv, char *const *environment) __attribute__((noreturn));

/* The same untraced: as a warning, why. */
void run_untraced(char *const *argv, const char *fmt, ...) GT_PRINTF(2, 3)
	__attribute__((noreturn));

#endif
