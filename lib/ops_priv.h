/*
 * ops_priv.h - between the files of ops.h.
 */
#ifndef GT_OPS_PRIV_H
#define GT_OPS_PRIV_H

#include "ops.h"

#define GT_OPS_MEMORY  GT_STR("[memory]")
#define GT_OPS_FAILURE GT_STR("[OutOfMemory]")
/* What torch's engine puts around each operator of the backward pass: no part of it itself. */
#define GT_OPS_ENGINE_PREFIX GT_STR("autograd::engine::evaluate_function: ")
/* Of the backward pass, but of no operator of the forward pass. */
#define GT_OPS_LEAF_NAME GT_STR("torch::autograd::AccumulateGrad")

/* GPU work, and what may have launched it. */
struct gt_op_claim {
	int64_t external;
	int64_t correlation;
	int64_t dur_ns;
};

/* What tells rows apart; its bytes are the key, so it has no padding. */
struct gt_op_key {
	uint32_t name;
	uint32_t kind;
	uint32_t dims;
	uint32_t values;
	uint32_t stack;
	uint32_t dtype;
	uint32_t is_backward;
};

/* The number of the row, made at first sight; GT_INTERN_FAILED: out of memory. */
uint32_t gt_ops_row(struct gt_ops *ops, const struct gt_op_key *key);

/* The number of a name, and what is known by it; NULL: out of memory. */
struct gt_op_name *gt_ops_name(struct gt_ops *ops, struct gt_str name, uint32_t *ret_number);

/* The row of an event, whose key has its name and kind; GT_INTERN_FAILED: out of memory. */
uint32_t gt_ops_event_row(struct gt_ops *ops, const struct gt_trace_event *event,
			  struct gt_op_name *info, struct gt_op_key *key);

/* Up to 2021 categories began with a capital letter, and some members of args did not. */
static inline bool gt_ops_is_old(const struct gt_trace_event *event)
{
	return event->cat_text.len && event->cat_text.ptr[0] >= 'A' &&
	       event->cat_text.ptr[0] <= 'Z';
}

/* Whether torch leaves the frame out of stacks. */
bool gt_ops_is_hidden_frame(struct gt_str name);

/* 0: there is none. */
static inline int64_t gt_ops_external_id(const struct gt_trace_event *event)
{
	int64_t id = gt_trace_event_id(event, GT_STR("\"External id\""));

	return id || !gt_ops_is_old(event) ? id
					   : gt_trace_event_id(event, GT_STR("\"external id\""));
}

/* Of a call by its correlation, where External ids stand as they are. */
static inline int64_t gt_ops_call_id(int64_t correlation)
{
	return (int64_t) - (uint64_t)correlation;
}

/* Saturates. */
static inline void gt_ops_sum(int64_t *sum, int64_t add)
{
	if (__builtin_add_overflow(*sum, add, sum))
		*sum = add < 0 ? INT64_MIN : INT64_MAX;
}

/* Nest the slices of a thread, sorted, and add them to the rows. 0 or -ENOMEM. */
int gt_ops_nest(struct gt_ops *ops, const struct gt_op_slices *slices);

#endif
