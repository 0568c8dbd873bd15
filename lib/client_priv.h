/*
 * client_priv.h - what the parts of a client share: client.c (its life and its drains),
 * client_messages.c (what its process says) and client_plans.c (plans of windows).
 */
#ifndef GT_CLIENT_PRIV_H
#define GT_CLIENT_PRIV_H

#include "client.h"

struct gt_client {
	struct gt_client_info info;
	const struct gt_client_config *config;
	pid_t pid;
	int fd;    /* -1: closed */
	int pidfd; /* -1: the kernel gives none */
	uv_poll_t socket_poll;
	uv_poll_t pid_poll;
	unsigned int handles; /* open ones */
	uv_work_t work;
	uv_loop_t *loop;
	struct gt_recorder *recorder; /* NULL before HELLO */
	struct gt_recorder_config recorder_config;
	uint64_t connected_ms;
	uint64_t stopped_ms;
	uint64_t stopped_ns; /* likewise, by CLOCK_REALTIME */
	uint64_t flushed_ms;
	uint64_t drained_cycles; /* so many have every record */
	uint64_t drained_told;   /* so many the process knows of */
	struct gt_plan plan;     /* that was proposed last */
	uint32_t plan_id;        /* its own */
	struct gt_plan plan_was; /* that recorder and process know of */
	bool plan_new;           /* they are to hear of it, */
	bool plan_decided;       /* and of what became of the one they know of: */
	bool plan_commit;
	unsigned int log_lines;
	bool busy;     /* a worker thread has the recorder */
	bool kicked;   /* drain again when it is back */
	bool paused;   /* the socket waits until it is back */
	bool gone;     /* the process has ended, or counts as if it had */
	bool orderly;  /* it said BYE */
	bool replaced; /* its process has another connection, or runs another program */
	bool stopping; /* it was told to stop */
	bool released; /* no longer the owner's; free when the handles are closed */
	/* the drain in a worker thread */
	bool finishing; /* it is the last one */
	bool flush_due;
	char told_failure[sizeof(((struct gt_err *)0)->msg)];
	struct gt_recorder_report report;
};

/* ---- client.c ---- */

/* Do what is due, unless a worker thread has the recorder: then this is called when it is back. */
void gt_client_advance(struct gt_client *client);
void gt_client_close_socket(struct gt_client *client);

/* ---- client_messages.c ---- */

/*
 * Take what has come: false when nothing has. A process that breaks the protocol is said, and no
 * longer traced.
 */
bool gt_client_read(struct gt_client *client);

/* ---- client_plans.c ---- */

/* PLAN_TAKEN or PLAN_LATE has come. */
void gt_client_take_answer(struct gt_client *client, const struct gt_msg_phase *phase);
/* Between drains: tell of plans and decisions. */
void gt_client_follow_plans(struct gt_client *client);
/* It cannot take part any more. */
void gt_client_drop_plan(struct gt_client *client);

#endif
