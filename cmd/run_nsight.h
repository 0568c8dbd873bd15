/*
 * run_nsight.h - gtrace run --nsight: Nsight Systems records, and gtrace tells it which steps.
 */
#ifndef CMD_RUN_NSIGHT_H
#define CMD_RUN_NSIGHT_H

#include "run_options.h"

/*
 * Under nsys become the command, with our hooks for Python and for gtrace.h; elsewhere become nsys,
 * for this very command line; without it become the command untraced. argv is that of gtrace run.
 */
void run_nsight(const struct run_options *options, char *const *argv) __attribute__((noreturn));

#endif
