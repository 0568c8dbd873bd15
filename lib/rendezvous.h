/*
 * rendezvous.h - sessions that agree on a window through files of a directory that all of them see,
 * such as one of a cluster's shared file system: nothing of it needs locks or notifications.
 *
 * Each session has a file of its own, and who triggers writes one request. A file is written beside
 * and renamed, so that whoever reads sees a whole one. The requester asks all ("look") for the
 * steps they are in, proposes a first step ("prepare"), which each session takes or is late for,
 * and decides ("commit" or "cancel"), or proposes another one. Whoever does not answer is left out.
 */
#ifndef GT_RENDEZVOUS_H
#define GT_RENDEZVOUS_H

#include "base.h"
#include "err.h"
#include "fields.h"
#include "trigger.h"

#include <uv.h>

#define GT_RENDEZVOUS_POLL_MS 200

/* ---- files ---- */

/* Write a file of dir as a whole. 0 or -errno. */
int gt_rendezvous_write(const char *dir, const char *name, const struct gt_fields *fields,
			struct gt_err *err);

/* Can files be written there? 0 or -errno. */
int gt_rendezvous_try(const char *dir, struct gt_err *err);

/* Read one of this user's. 0 or -errno; -EBADMSG: it is none of gtrace's. */
int gt_rendezvous_read(const char *dir, const char *name, struct gt_fields *ret);

/*
 * Where a pid is that of one process: in this start of this machine, and in this container of it.
 * Host names tell neither. "" when it cannot be read.
 */
#define GT_RENDEZVOUS_SPACE_MAX 80
void gt_rendezvous_pid_space(char *buf, size_t len);

#define GT_RENDEZVOUS_REQUEST "gtrace-request"
#define GT_RENDEZVOUS_SESSION "gtrace-session-" /* and what is unique to it */

/* ---- a session ---- */

struct gt_rendezvous_state {
	uint64_t step; /* of the foremost process */
	unsigned int ranks;
	uint64_t next_cycle;
	uint64_t active; /* by default */
	uint64_t warmup;
};

struct gt_rendezvous {
	/* set by the caller before gt_rendezvous_start() */
	const char *dir;
	const char *host;
	const char *command;
	/* Begin; gt_rendezvous_answer() is to follow. -errno with a message: it cannot be. */
	int (*prepare)(void *ctx, const struct gt_trigger_request *request, struct gt_err *err);
	/* What was prepared, or is being so. false: there is nothing (any more). */
	bool (*decide)(void *ctx, bool commit);
	void (*state)(void *ctx, struct gt_rendezvous_state *state);
	void *ctx; /* of these */
	/* private */
	uv_timer_t timer;
	unsigned int part; /* ranks that take part in what was prepared */
	char space[GT_RENDEZVOUS_SPACE_MAX];
	bool running;
	char name[128]; /* of its file */
	char id[64];    /* of the request that is followed */
	uint64_t attempt;
	char phase[16]; /* of it, as last seen */
	bool preparing; /* and not decided on */
	char answer[16];
	struct gt_err why;  /* of answer "failed" */
	bool changed;       /* the file is not up to date */
	uint64_t told_ms;   /* last */
	uint64_t rate;      /* steps in 1000 s, since */
	uint64_t rate_ms;   /* then, */
	uint64_t rate_step; /* when this was the step */
};

/* 0, or -errno: this session takes no part. */
int gt_rendezvous_start(struct gt_rendezvous *rendezvous, uv_loop_t *loop, struct gt_err *err);

/* What became of what was prepared. */
void gt_rendezvous_answer(struct gt_rendezvous *rendezvous, const struct gt_trigger_result *result);

/* Take no part any more: remove its file. */
void gt_rendezvous_leave(struct gt_rendezvous *rendezvous);

/* Leave, and close the handle; the loop has to run once more. */
void gt_rendezvous_close(struct gt_rendezvous *rendezvous);

#endif
