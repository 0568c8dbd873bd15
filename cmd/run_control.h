/*
 * run_control.h - gtrace run as others reach it while it runs: what gtrace ps, gtrace trigger and
 * gtrace stop ask, SIGUSR2, and the other sessions of a rendezvous.
 */
#ifndef CMD_RUN_CONTROL_H
#define CMD_RUN_CONTROL_H

#include "base.h"
#include "control_socket.h"
#include "rendezvous.h"
#include "run_options.h"
#include "session.h"
#include "trigger.h"

#include <sys/types.h>

struct run_control {
	/* set by the caller before run_control_start() */
	const struct run_options *options;
	const struct gt_session *session;
	struct gt_collector *collector;
	const char *command; /* as one line */
	const char *host;
	const pid_t *pid; /* of the command */
	/* A window will open: what was said of the one before may be said again. */
	void (*triggered)(void *ctx, const struct gt_plan *plan);
	void *ctx;
	/* private */
	struct gt_control control;
	struct gt_trigger trigger;
	struct gt_rendezvous rendezvous;
	struct gt_control_peer *asking; /* for the trigger; NULL: nobody on this machine */
	struct gt_fields answer;        /* to it, in the making */
	bool from_rendezvous;
	unsigned int prepared; /* ranks that take part in what was prepared for it */
	bool stopped;          /* by gtrace stop */
	uint64_t stopped_step; /* in which, and what marked it */
	enum gt_step_source stopped_source;
	bool open; /* the control socket */
	bool started;
};

void run_control_start(struct run_control *control, uv_loop_t *loop);

/* SIGUSR2 came. */
void run_control_trigger(struct run_control *control);

/* Answer who waits, and close all handles; the loop has to run once more. */
void run_control_close(struct run_control *control);

#endif
