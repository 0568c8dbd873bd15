/*
 * stacks.h - the Python stacks of one traced process. A stack is a number: of its innermost frame,
 * which knows the one that called it. Memory is bounded, whatever the peer sends.
 */
#ifndef GT_STACKS_H
#define GT_STACKS_H

#include "base.h"
#include "buf.h"
#include "names.h"
#include "wire.h"

#define GT_STACKS_MAX      (UINT32_C(1) << 18)
#define GT_STACK_DEPTH_MAX 160 /* frames that are looked at */

struct gt_frame {          /* as struct gt_ev_frame has it */
	uint32_t outer_id; /* lower than its own */
	uint32_t file_id;
	uint32_t function_id; /* 0: outer frames that were left out */
	uint32_t line;
	uint32_t first_line;
	uint32_t class_id;
	uint32_t instance;
	bool known;
};

struct gt_stacks { /* { 0 } is an empty one */
	struct gt_frame *frames;
	uint32_t cap;
	uint64_t refused; /* frames that did not fit the bounds or memory, or are impossible */
};

void gt_stacks_add(struct gt_stacks *stacks, const struct gt_ev_frame *ev);

/* NULL: not known. Valid until the next add. */
const struct gt_frame *gt_stacks_get(const struct gt_stacks *stacks, uint32_t id);

/*
 * The numbers of a stack's frames, its outermost one first; of a deeper one than
 * GT_STACK_DEPTH_MAX the inner ones. Returns how many.
 */
uint32_t gt_stacks_frames(const struct gt_stacks *stacks, uint32_t id,
			  uint32_t ret[GT_STACK_DEPTH_MAX]);

/* Do they run the same function, for the same nn.Module? */
bool gt_frame_same_function(const struct gt_frame *a, const struct gt_frame *b);

/* Is it the call of an nn.Module? */
static inline bool gt_frame_is_module(const struct gt_frame *frame)
{
	return frame->class_id != 0;
}

/*
 * "file(line): function" at the end of buf, with the line that the frame is at or its first one. Of
 * longer names the first 4 KiB.
 */
void gt_frame_put(const struct gt_frame *frame, const struct gt_names *names, uint32_t line,
		  struct gt_buf *buf);

/* "Linear_1" */
void gt_frame_put_module(const struct gt_frame *frame, const struct gt_names *names,
			 struct gt_buf *buf);

/*
 * As the "Call stack" of an operator: "file(line): function;…", the innermost frame first. Beyond
 * 64 KiB of text the outer frames are left out, which the text says.
 */
void gt_stacks_put_calls(const struct gt_stacks *stacks, const struct gt_names *names, uint32_t id,
			 struct gt_buf *buf);

/* The modules: "M_0.Linear_1", the outermost first; nothing where there is none. Bounded alike. */
void gt_stacks_put_modules(const struct gt_stacks *stacks, const struct gt_names *names,
			   uint32_t id, struct gt_buf *buf);

void gt_stacks_release(struct gt_stacks *stacks);

#endif
