/*
 * nccl.h - NCCL's calls of one traced process, and which of them a kernel is for: that in whose
 * range it was launched. Between ncclGroupStart() and ncclGroupEnd() calls only queue, and the
 * outermost ncclGroupEnd() launches kernels, each for one or more of them: NCCL does not tell for
 * which. Then a kernel gets what is true of all.
 */
#ifndef GT_NCCL_H
#define GT_NCCL_H

#include "base.h"
#include "names.h"
#include "str.h"
#include "wire.h"

struct gt_nccl_call { /* or all of a group */
	uint32_t id;
	uint32_t count;    /* calls */
	uint64_t hash;     /* of the communicator; 0: not known, or not the same */
	uint64_t bytes;    /* of all messages */
	uint32_t call;     /* enum gt_collective_call; 0: not the same */
	int32_t root;      /* -1: none, or not the same */
	int32_t reduction; /* likewise */
};

struct gt_nccl_thread {           /* where a thread is in NCCL; { 0 }: outside of it */
	struct gt_nccl_call call; /* of the innermost range that has one; count 0: none */
	struct gt_nccl_call group;
	uint32_t call_depth;  /* of that range */
	uint32_t end_depth;   /* of ncclGroupEnd()'s range; 0: not in one */
	uint32_t last_depth;  /* of the range pushed last; 0: something ended since */
	uint32_t groups_open; /* by ncclGroupStart() */
	bool launched;        /* a kernel, in that range */
};

struct gt_nccl {            /* { 0 } is empty */
	uint32_t domain_id; /* 0: not seen so far */
	struct gt_nccl_comm {
		uint64_t hash;
		uint32_t size;
		int32_t rank; /* -1: not known */
		int32_t device;
	} * comms;
	uint32_t comm_count;        /* ever made; the oldest are overwritten */
	struct gt_nccl_call *calls; /* that launched kernels, at id modulo their number */
	uint32_t last_id;
};

/* A communicator was made. */
void gt_nccl_comm(struct gt_nccl *nccl, const struct gt_ev_comm *ev);

/* Is this the id of NCCL's domain? */
bool gt_nccl_is_domain(struct gt_nccl *nccl, const struct gt_names *names, uint32_t domain_id);

/* Ranges of NCCL's domain; depths from 1. */
void gt_nccl_push(struct gt_nccl_thread *thread, uint32_t depth, struct gt_str name);
void gt_nccl_call(struct gt_nccl_thread *thread, const struct gt_ev_collective *ev);
void gt_nccl_pop(struct gt_nccl_thread *thread, uint32_t depth);

/* The thread launches a kernel. Returns the id of the call or group it is for; 0: none of NCCL. */
uint32_t gt_nccl_launch(struct gt_nccl *nccl, struct gt_nccl_thread *thread);

/*
 * The args of a kernel on this device, as JSON members with a comma before each. Returns the end of
 * what it wrote, at most GT_NCCL_ARGS_MAX bytes; p itself when the id is 0 or too old.
 * named: the names of the collective and its group's size are there already.
 */
#define GT_NCCL_ARGS_MAX 384
char *gt_nccl_put_args(const struct gt_nccl *nccl, uint32_t id, uint32_t device, bool named,
		       char *p);

void gt_nccl_release(struct gt_nccl *nccl);

#endif
