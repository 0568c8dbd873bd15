/*
 * op_stacks.h - the Python stacks of operators. Those of the backward pass run where no Python is,
 * or under the call of backward(): as in torch's tables, theirs is the stack of the operator of the
 * forward pass that they belong to, by its sequence number and thread.
 */
#ifndef GT_OP_STACKS_H
#define GT_OP_STACKS_H

#include "base.h"
#include "id_map.h"
#include "op_slices.h"

#define GT_OP_STACK_THREADS_MAX 64

struct gt_op_stacks {
	/* by External id: sequence number plus 1, and the thread of the forward pass as torch
	 * numbers them, which is 0 in the forward pass itself */
	struct gt_id_map sequences;
	struct gt_id_map forward; /* by thread and sequence number: the number of the stack */
	bool has_backward;
	/* threads with a forward pass, and which of torch's threads is which of these */
	uint32_t threads[GT_OP_STACK_THREADS_MAX];
	size_t thread_count;
	uint32_t torch_threads[GT_OP_STACK_THREADS_MAX];
	size_t torch_thread_count;
	uint32_t hits[GT_OP_STACK_THREADS_MAX][GT_OP_STACK_THREADS_MAX];
};

struct gt_op_frames { /* of Python that are open; { 0 }: none */
	struct gt_op_frame {
		int64_t end_ns;
		uint32_t name;
		/* by line: the names, plus 1, of the innermost frames of the program and of a
		 * library */
		uint32_t program_line;
		uint32_t library_line;
	} * items;
	size_t depth;
	size_t cap;
};

struct gt_ops;
struct gt_trace_event;

/* Another slice of a thread: a frame is opened, others end. 0 or -ENOMEM. */
int gt_op_frames_pass(struct gt_op_frames *frames, const struct gt_ops *ops,
		      const struct gt_op_slice *slice);

/* The number of the stack, or line, in ops->texts, of a row whose slice begins now;
 * GT_INTERN_FAILED: out of memory. The file may name one of the row's own. */
uint32_t gt_op_frames_stack(const struct gt_op_frames *frames, struct gt_ops *ops, uint32_t row);

/* Note what an operator belongs to. 0 or -ENOMEM. */
int gt_op_stacks_add(struct gt_ops *ops, const struct gt_trace_event *event, int64_t external_id);

/* All slices are there and sorted: find the stacks of the forward pass. 0 or -ENOMEM. */
int gt_op_stacks_finish(struct gt_ops *ops);

/* Whether the operator with this External id begins a backward pass; *ret is the stack then. */
bool gt_op_stacks_backward(struct gt_ops *ops, int64_t external_id, uint32_t *ret);

void gt_op_stacks_release(struct gt_op_stacks *stacks);

#endif
