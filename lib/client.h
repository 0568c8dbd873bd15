/*
 * client.h - one traced process as the collector sees it: its connection, its life, its recorder.
 * Everything happens on the loop's thread, but for the recorder's drains, which run in libuv's
 * worker threads, one at a time for a client. Its peer is not trusted: what it does wrong costs
 * only its own connection.
 */
#ifndef GT_CLIENT_H
#define GT_CLIENT_H

#include "base.h"
#include "err.h"
#include "recorder.h"
#include "wire.h"

#include <sys/socket.h>
#include <uv.h>

struct gt_client;

enum gt_plan_state {
	GT_PLAN_NONE = 0,  /* none was proposed, or the last one is decided on */
	GT_PLAN_ASKED = 1, /* no answer has come so far */
	GT_PLAN_TAKEN = 2,
	GT_PLAN_LATE = 3,
};

/* How it went. */
enum gt_client_end {
	GT_CLIENT_LIVES = 0,
	GT_CLIENT_ENDED,    /* it said so */
	GT_CLIENT_KILLED,   /* it did not */
	GT_CLIENT_REPLACED, /* by an exec */
	GT_CLIENT_STOPPED,  /* it was told to stop, and may live on */
	GT_CLIENT_REFUSED,  /* it broke the protocol, likewise */
};

struct gt_client_info {            /* what is known of a process */
	uint64_t id;               /* from 1, in the order of connecting */
	struct gt_msg_hello hello; /* its pid is the one the kernel gave */
	bool has_hello;
	struct gt_msg_device device; /* the first GPU */
	uint32_t device_count;
	/* as of the last drain */
	uint32_t step;
	uint64_t step_ms; /* since when it is in that step, by the loop's clock */
	enum gt_phase phase;
	enum gt_step_source step_source;
	uint64_t gpu_ops;
	uint64_t late_calls;   /* of windows whose files were complete by then */
	uint64_t late_records; /* GPU work, likewise */
	uint64_t open_cycle;   /* from 1; 0: no window is open */
	bool closing;          /* a window's last records are to be read soon */
	uint64_t files;        /* completed */
	bool bounded; /* a recording without steps reached its bound; its file is complete */
	/* of its plans */
	struct gt_plans plans;
	enum gt_plan_state plan_state; /* of the one that was proposed last */
	uint32_t plan_step;            /* LATE: the step it was in */
	struct gt_plan awaited; /* that was committed, until its file is closed; active 0: none */
	enum gt_client_end end; /* for gone() */
};

/* Told to the owner, on the loop's thread. Pointers are borrowed for the call. */
struct gt_client_ops {
	void (*phase)(void *ctx, const struct gt_client_info *client,
		      const struct gt_msg_phase *phase);
	/* Its arena was read: what client says may have changed. */
	void (*drained)(void *ctx, const struct gt_client_info *client);
	void (*closed)(void *ctx, const struct gt_client_info *client,
		       const struct gt_recorder_closed *closed);
	/* text has any bytes */
	void (*log)(void *ctx, const struct gt_client_info *client, enum gt_log_level level,
		    const char *text, size_t len);
	/* Something of it is lost: a bad message, a trace that could not be written. client may
	 * lack its hello. */
	void (*failed)(void *ctx, const struct gt_client_info *client, const struct gt_err *err);
	void (*gone)(void *ctx, const struct gt_client_info *client);
	/* See gt_recorder_config; any thread. */
	int (*path_for)(void *ctx, const struct gt_client_info *client, uint64_t cycle, char *buf,
			size_t len, bool *overwrite, struct gt_err *err);
};

struct gt_client_config {
	const struct gt_client_ops *ops;
	void *ctx; /* of ops */
	/* Everything of it is written; it is freed after this call. For the list of clients. */
	void (*released)(void *owner, struct gt_client *client);
	/* A window was seen to open, or to have ended: it is to be ticked more often from now on.
	 */
	void (*hurry)(void *owner);
	/* It answered to a plan, or is gone. */
	void (*answered)(void *owner, struct gt_client *client);
	void *owner;                        /* of these two */
	uid_t uid;                          /* the only user whose processes are listened to */
	struct gt_recorder_config recorder; /* path_for and ctx are set by the client */
};

/*
 * Take over fd (non-blocking SOCK_SEQPACKET; closed in the end). cred is SO_PEERCRED's. config is
 * borrowed for the client's life. 0 or -errno (fd is closed then).
 */
int gt_client_new(struct gt_client **ret, uint64_t id, uv_loop_t *loop, int fd,
		  const struct ucred *cred, const struct gt_client_config *config,
		  struct gt_err *err);

const struct gt_client_info *gt_client_info(const struct gt_client *client);
pid_t gt_client_pid(const struct gt_client *client); /* known before its hello */

/* To be called regularly: reads what is new in the arena, and looks after time-outs. */
void gt_client_tick(struct gt_client *client);

/*
 * Tell the process to stop tracing, and complete its files when it has, or soon after. by: as of
 * gt_collector_stop().
 */
void gt_client_stop(struct gt_client *client, const char *by);

/* Has it said hello, and neither ended nor been told to stop? */
bool gt_client_is_traced(const struct gt_client *client);

/* Is the process there to be asked? It may be traced without: it may close its descriptors. */
bool gt_client_can_plan(const struct gt_client *client);

/*
 * Propose a plan, when none is undecided: it is answered by info's plan_state. What happens in its
 * steps is not read until gt_client_decide(), which makes it a window, or takes it back. false: the
 * process is not there to be asked.
 */
bool gt_client_propose(struct gt_client *client, const struct gt_plan *plan);
void gt_client_decide(struct gt_client *client, bool commit);

/* The step its process is in at this moment; 0 before its hello. */
uint32_t gt_client_step(const struct gt_client *client);

/* Send its process a signal, as kill(). */
void gt_client_kill(struct gt_client *client, int sig);

/* Its process connected anew. When this connection is closed, it was replaced by an exec: complete
 * what was before. */
void gt_client_replaced(struct gt_client *client);

#endif
