/*
 * container_command.h - command lines that start a program in a container, which gtrace outside of
 * it does not reach: what is to be called instead.
 */
#ifndef GT_CONTAINER_COMMAND_H
#define GT_CONTAINER_COMMAND_H

#include "base.h"
#include "buf.h"

/* The runtime that argv calls, also through launchers (mpirun, srun, sudo): "docker"; NULL: none.
 */
const char *gt_container_runtime(char *const *argv);

struct gt_container_setup { /* of the gtrace outside; absolute paths */
	const char *program;
	const char *injection;
	const char *output_dir;
	const char *rendezvous; /* NULL: none */
	char *const *options;   /* of gtrace run, but for these directories */
	size_t option_count;
	char *(*lookup)(const char *name); /* getenv() or a stand-in */
};

/*
 * Append the command line that has gtrace run inside of the container of argv, of which
 * gt_container_runtime() knows the runtime: with gtrace and its directories mounted, and the
 * variables that tell the rank passed on. A program that argv has for an entry point is run by
 * gtrace, too. Where argv gives no command to run in the container,
 * COMMAND stands for it. To missing what a container that runs already must have been started
 * with. *ret_limited: argv limits its memory. 0 or -ENOMEM.
 */
int gt_container_command(char *const *argv, const struct gt_container_setup *setup,
			 struct gt_buf *out, struct gt_buf *missing, bool *ret_limited);

#endif
