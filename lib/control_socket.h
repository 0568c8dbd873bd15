/*
 * control_socket.h - how one gtrace speaks with another of the same user on this machine: each
 * session listens in a private directory; a question is one datagram of fields, and so is its
 * answer. Its peer is not trusted, though it is of the same user.
 */
#ifndef GT_CONTROL_SOCKET_H
#define GT_CONTROL_SOCKET_H

#include "base.h"
#include "err.h"
#include "fields.h"

#include <sys/un.h>
#include <uv.h>

#define GT_CONTROL_PATH_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/* ---- a session ---- */

struct gt_control_peer; /* who asked, and waits for the answer */

struct gt_control {
	/* set by the caller before gt_control_open() */
	/* A question that has been checked; to be answered once, at any time before the end. */
	void (*asked)(void *ctx, struct gt_control_peer *peer, const struct gt_fields *question);
	void *ctx;
	/* private */
	uv_poll_t listen_poll;
	int listen_fd; /* -1: not open */
	char path[GT_CONTROL_PATH_MAX];
	struct gt_control_peer *peers; /* those that have not asked so far, from the oldest on */
	unsigned int peer_count;       /* all of them */
};

/*
 * Listen in the directory of sessions, which is made. lookup is getenv() or a stand-in for it.
 * 0 or -errno.
 */
int gt_control_open(struct gt_control *control, uv_loop_t *loop, char *(*lookup)(const char *name),
		    struct gt_err *err);

void gt_control_answer(struct gt_control_peer *peer, const struct gt_fields *answer);

/* Remove the socket, and close all handles; the loop has to run once more. */
void gt_control_close(struct gt_control *control);

/* ---- one that asks ---- */

/*
 * Ask the session at path and wait for its answer. 0; -ECONNREFUSED when nobody listens there any
 * more; -ETIMEDOUT; or another -errno.
 */
int gt_control_ask(const char *path, const struct gt_fields *question, uint64_t timeout_ms,
		   struct gt_fields *ret, struct gt_err *err);

/*
 * Call found for the socket of each session of this user, those left by dead ones included, until
 * it returns not 0, which is returned.
 */
int gt_control_each(char *(*lookup)(const char *name), int (*found)(void *ctx, const char *path),
		    void *ctx);

#endif
