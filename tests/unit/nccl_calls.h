/*
 * nccl_calls.h - NCCL's calls as the injection reports them, for tests on a recorder: they are made
 * in the window's step 2, the kernels that they launch have correlations from 1 up.
 */
#ifndef NCCL_CALLS_H
#define NCCL_CALLS_H

#include "recorder_rig.h"

#define NCCL       20 /* name id of the domain */
#define COMM       UINT64_C(0xfedcba9876543210)
#define OTHER_COMM UINT64_C(0x11)
#define THREAD     77

static double now_ms; /* of the next event */

static inline uint64_t tick(void)
{
	now_ms += .01;
	return AB_MS(now_ms);
}

static inline void begin(void)
{
	start();
	ab_string(&ab, MAIN, NCCL, "NCCL");
	steps_to(2);
	now_ms = 21;
}

static inline void comm(uint64_t hash, uint32_t size, int32_t rank, int32_t device)
{
	struct gt_ev_comm ev = {
		.ev = ab_ev(GT_EV_COMM, sizeof(ev), 0, 0),
		.hash = hash,
		.size = size,
		.rank = rank,
		.device = device,
	};

	ab_put(&ab, MAIN, &ev, sizeof(ev));
}

static inline void push(uint32_t tid, uint32_t depth, const char *function)
{
	ab_range(&ab, GT_EV_PUSH, tid, 2, tick(), NCCL, depth, function);
}

static inline void pop(uint32_t tid, uint32_t depth)
{
	ab_end(&ab, GT_EV_POP, tid, 2, tick(), NCCL, depth);
}

struct message {
	uint64_t hash, bytes;
	int32_t root, reduction;
};

static inline void told(uint32_t tid, uint32_t depth, uint32_t call, struct message message)
{
	struct gt_ev_collective ev = {
		.ev = ab_ev(GT_EV_COLLECTIVE, sizeof(ev), 2, tick()),
		.hash = message.hash,
		.bytes = message.bytes,
		.depth = depth,
		.call = call,
		.root = message.root,
		.reduction = message.reduction,
	};

	ab_put(&ab, tid, &ev, sizeof(ev));
}

/* A call of NCCL; correlation: of the kernel it launches, 0: none. */
static inline void call(uint32_t tid, uint32_t number, struct message message, uint32_t correlation)
{
	push(tid, 1, "ncclCall");
	told(tid, 1, number, message);
	if (correlation)
		ab_launch(&ab, tid, 2, correlation, tick());
	pop(tid, 1);
}

static inline void all_reduce(uint64_t hash, uint64_t bytes, uint32_t correlation)
{
	call(MAIN, GT_COLLECTIVE_ALL_REDUCE, (struct message){ hash, bytes, -1, 0 }, correlation);
}

static inline void group_start(void)
{
	push(MAIN, 1, "ncclGroupStart");
	pop(MAIN, 1);
}

static inline void group_end(uint32_t first, uint32_t last)
{
	push(MAIN, 1, "ncclGroupEnd");
	for (; first && first <= last; first++)
		ab_launch(&ab, MAIN, 2, first, tick());
	pop(MAIN, 1);
}

/* The window is over; kernels: correlations 1 to count. */
static inline void end(uint32_t count)
{
	for (uint32_t id = 1; id <= count; id++)
		ab_kernel(&ab, id, tick());
	ab_flush(&ab);
	steps_to(4);
	drain(45);
	close_cycle(50);
	finish(false, 70);
}

static inline void assert_args(uint32_t correlation, const char *args)
{
	assert_non_null(gpu_of(only_trace(), correlation));
	assert_string_equal(gpu_of(only_trace(), correlation)->args, args);
}

#endif
