/*
 * ranges.h - the ranges of one traced process: replays PUSH and POP per thread, START and END per
 * number, and follows which GPU work was launched inside of each range. A range belongs to the
 * window it is open in; one that is open across two windows is cut into two.
 */
#ifndef GT_RANGES_H
#define GT_RANGES_H

#include "base.h"
#include "gpu_op.h"
#include "names.h"
#include "nccl.h"
#include "str.h"
#include "wire.h"

#define GT_WINDOW_NONE      UINT32_MAX /* not in a window */

#define GT_RANGES_MAX_BYTES (UINT64_C(32) << 20) /* of all ranges that are open or wait */
#define GT_THREADS_MAX      (UINT32_C(1) << 14)
#define GT_RANGE_DEPTH_MAX  512 /* open ranges of one thread */
#define GT_RANGE_LANES_MAX  64  /* device and stream pairs of one range */

enum gt_range_kind {
	GT_RANGE_PUSHED,  /* of one thread, nests */
	GT_RANGE_PROCESS, /* from START to END */
	GT_RANGE_STEP,
	GT_RANGE_OP, /* of torch, by its observer */
};

struct gt_range_span { /* GPU work of a range on one stream */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t device;
	uint32_t stream;
};

/* One that is an operator belongs to the window it begins in, any other to those it is open in. */
struct gt_range {
	struct gt_range *outer; /* PUSH: the one it was pushed in, a reference */
	struct gt_range *below; /* PUSH: next open one of its thread; START: next of the process */
	uint64_t start_ns;
	uint64_t end_ns; /* UINT64_MAX while open */
	uint64_t external_id;
	uint64_t number; /* as struct gt_ev_range has it */
	uint32_t refs;   /* one while open, one for each launch and inner range */
	uint32_t tid;
	uint32_t window; /* GT_WINDOW_NONE: in no window so far */
	uint32_t step;   /* steps: the number */
	uint32_t domain_id;
	uint32_t name_id;
	uint32_t stack_id;   /* PUSH and operators; as struct gt_ev_op has it */
	uint8_t kind;        /* enum gt_range_kind */
	bool op;             /* an operator of torch, also one that was pushed: see torch_nvtx.h */
	bool op_inner;       /* an operator was called in it */
	bool cut;            /* of a step: its window ends before it does */
	int64_t op_sequence; /* operators; as struct gt_ev_op has them */
	uint32_t op_thread;
	uint32_t op_fwd_thread;
	uint16_t span_count;
	uint16_t span_cap;
	struct gt_range_span *spans;
	char *args; /* more args of it: JSON members, a comma before each; NULL: none */
	uint32_t args_bytes;
	uint32_t gpu_args_bytes; /* the first of them, which its GPU work has, too */
	uint32_t len_bytes;      /* of text */
	uint32_t inputs_bytes;
	char text[]; /* and behind it the inputs */
};

/* Where ranges go that are complete. Only ranges with a window are passed. */
struct gt_range_sink {
	void (*range)(void *ctx, const struct gt_range *range);
	void (*spans)(void *ctx, const struct gt_range *range); /* once, when no work can follow */
	void *ctx;
};

struct gt_call { /* a Python function */
	uint64_t id;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t stack_id;
	uint32_t early_ns; /* so much before start_ns its slice begins */
};

struct gt_calls {             /* of one thread, the outermost first; see rec_stacks.c */
	struct gt_call *open; /* GT_STACK_DEPTH_MAX; NULL: none so far */
	uint32_t depth;
	uint32_t window; /* they belong to, and this step of it */
	uint32_t step;
};

struct gt_thread {
	struct gt_range *top; /* innermost open range */
	uint32_t tid;
	uint32_t depth;
	uint32_t window;    /* its open ranges belong to */
	uint32_t last_step; /* the latest of its events */
	uint64_t last_ns;   /* of its PUSH, POP and operators */
	struct gt_nccl_thread nccl;
	struct gt_calls calls;
};

struct gt_ranges {
	struct gt_range_sink sink;
	struct gt_map by_tid; /* tid -> index + 1 into threads */
	struct gt_thread *threads;
	uint32_t thread_count;
	uint32_t thread_cap;
	struct gt_range *shared; /* open START ranges, and closed ones that wait for GPU work */
	uint32_t shared_count;
	uint64_t last_external_id;
	uint64_t bytes;
	uint64_t refused; /* ranges, or args of them, that did not fit the bounds */
};

/* The state of a thread, made at first sight. NULL: too many. Valid until the next call. */
struct gt_thread *gt_ranges_thread(struct gt_ranges *ranges, uint32_t tid);

/* The name, from the string table or inline. */
struct gt_str gt_range_name(const struct gt_range *range, const struct gt_names *names);

/* Of a torch operator or range, as in its event. */
struct gt_str gt_range_inputs(const struct gt_range *range);

/* ---- PUSH and POP ---- */

/* Returns the range, borrowed; NULL when it did not fit. */
struct gt_range *gt_ranges_push(struct gt_ranges *ranges, struct gt_thread *thread,
				const struct gt_ev_range *ev);
void gt_ranges_pop(struct gt_ranges *ranges, struct gt_thread *thread, const struct gt_ev_end *ev);

/* ---- operators: on the same stack, as PUSH and POP ---- */

void gt_ranges_op(struct gt_ranges *ranges, struct gt_thread *thread, const struct gt_ev_op *ev);
void gt_ranges_op_end(struct gt_ranges *ranges, struct gt_thread *thread,
		      const struct gt_ev_op_end *ev);

/* More args of the thread's innermost range, if that is the operator at depth; see its fields. */
void gt_ranges_op_args(struct gt_ranges *ranges, struct gt_thread *thread, uint32_t depth,
		       struct gt_str args, size_t gpu_bytes);

/*
 * The thread comes into a window: its open ranges are part of it. It leaves one (GT_WINDOW_NONE, or
 * the next window): they are cut at end_ns and go on outside of it, and what began later than that
 * was never in it.
 */
void gt_ranges_move(struct gt_ranges *ranges, struct gt_thread *thread, uint32_t window,
		    uint64_t end_ns);

/* ---- START and END, of the whole process ---- */

void gt_ranges_start(struct gt_ranges *ranges, uint32_t tid, uint32_t window,
		     const struct gt_ev_range *ev);
void gt_ranges_end(struct gt_ranges *ranges, const struct gt_ev_end *ev);

/*
 * Those of the window from that are open are cut at end_ns and go on in window. Those in no window
 * (from is GT_WINDOW_NONE) come into it whole.
 */
void gt_ranges_move_shared(struct gt_ranges *ranges, uint32_t from, uint32_t window,
			   uint64_t end_ns);

/*
 * No launch before waiting_ns waits for its work any more, nor any of this window: what ended
 * before, or in it, is complete.
 */
void gt_ranges_settle(struct gt_ranges *ranges, uint32_t window, uint64_t waiting_ns);

/* ---- steps ---- */

/* A range named ProfilerStep#step, open; the caller's reference. NULL: no memory. */
struct gt_range *gt_ranges_step(struct gt_ranges *ranges, uint32_t tid, uint32_t window,
				uint32_t step, uint64_t start_ns);

/* ---- any range ---- */

/* It ends: goes to the sink, and its reference of being open goes away. */
void gt_ranges_close(struct gt_ranges *ranges, struct gt_range *range, uint64_t end_ns);

struct gt_range *gt_range_hold(struct gt_range *range); /* NULL stays NULL */
void gt_ranges_unhold(struct gt_ranges *ranges, struct gt_range *range);

/* This GPU op was launched at launch_ns inside range (and inside what that is in). */
void gt_ranges_work(struct gt_ranges *ranges, struct gt_range *range, uint64_t launch_ns,
		    const struct gt_gpu_op *op);
/* The same for the process's ranges that were open then. */
void gt_ranges_shared_work(struct gt_ranges *ranges, uint32_t window, uint64_t launch_ns,
			   const struct gt_gpu_op *op);

void gt_ranges_release(struct gt_ranges *ranges);

#endif
