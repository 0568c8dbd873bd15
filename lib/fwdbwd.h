/*
 * fwdbwd.h - which forward operator of torch a backward one belongs to: the thread of the forward
 * one and autograd's sequence number say so. The operators come in any order.
 */
#ifndef GT_FWDBWD_H
#define GT_FWDBWD_H

#include "base.h"

/* Of so many sequence numbers the forward operators are remembered. */
#define GT_FWDBWD_SLOTS (UINT32_C(1) << 16)

struct gt_fwdbwd_end {     /* where an arrow begins or ends in the trace */
	uint64_t start_ns; /* of the operator */
	uint64_t end_ns;
	uint32_t lane; /* tid in the trace */
};

struct gt_fwdbwd_slot;

struct gt_fwdbwd { /* { 0 } is an empty one, but for sink */
	struct gt_fwdbwd_slot *slots;
	/* A pair, once nothing better can come for it, or its place is needed. */
	void (*sink)(void *ctx, const struct gt_fwdbwd_end *forward,
		     const struct gt_fwdbwd_end *backward);
	void *ctx;
};

/*
 * An operator with a sequence number has ended. thread: torch's number of the one that ran the
 * forward operator. Of several forward ones with a number, the last to begin made the backward
 * node; of several backward ones, the first to end is that node.
 */
void gt_fwdbwd_add(struct gt_fwdbwd *links, uint32_t thread, uint64_t sequence, bool backward,
		   const struct gt_fwdbwd_end *end);

/* Pass on all pairs, and forget all. */
void gt_fwdbwd_flush(struct gt_fwdbwd *links);
void gt_fwdbwd_release(struct gt_fwdbwd *links);

#endif
