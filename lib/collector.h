/*
 * collector.h - accepts the traced processes of one run, on a libuv loop, and keeps their
 * recorders going.
 */
#ifndef GT_COLLECTOR_H
#define GT_COLLECTOR_H

#include "base.h"
#include "client.h"
#include "err.h"

#include <uv.h>

struct gt_collector {
	/* set by the caller before gt_collector_start() */
	int listen_fd; /* borrowed */
	const struct gt_client_ops *ops;
	void *ctx; /* of ops */
	struct gt_recorder_config recorder;
	void (*idle)(void *ctx); /* the last client is gone; may be NULL */
	/* A client answered to a plan, or is gone; not to decide from here. May be NULL. */
	void (*answered)(void *ctx, const struct gt_client_info *client);
	/* private */
	struct gt_client_config client_config;
	struct gt_client **clients;
	size_t client_count;
	uint64_t accepted;
	bool paused;            /* no descriptors to accept with */
	bool accept_failed;     /* that has been told */
	const char *stopped_by; /* NULL: it was not */
	int killed_by;          /* signal, 0: none */
	uv_poll_t listen_poll;
	uv_timer_t timer;
};

/* Listen. 0 or -errno. */
int gt_collector_start(struct gt_collector *collector, uv_loop_t *loop, struct gt_err *err);

/* Take in every process that has connected by now. */
void gt_collector_accept(struct gt_collector *collector);

/*
 * Tell every client to stop, whether its process lives on or not, and those that still come; idle
 * follows. by: for "stopped by ..." in files, a literal.
 */
void gt_collector_stop(struct gt_collector *collector, const char *by);

/* Send every client's process a signal, and those that still come. */
void gt_collector_kill(struct gt_collector *collector, int sig);

/* The client with the lowest rank among those that do GPU work or steps, NULL: none. Borrowed. */
const struct gt_client_info *gt_collector_leader(const struct gt_collector *collector);

/* Every window of every client that does steps is complete, and there was one. */
bool gt_collector_is_complete(const struct gt_collector *collector);

/* Close the handles once no client is left; the loop has to run once more. */
void gt_collector_close(struct gt_collector *collector);

#endif
