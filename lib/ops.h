/*
 * ops.h - what each operator cost, as torch's key_averages() tells it, from the events of a trace:
 * operators, ranges and calls into CUDA nest by their times on a thread; GPU work belongs to the
 * operator that launched it.
 */
#ifndef GT_OPS_H
#define GT_OPS_H

#include "base.h"
#include "buf.h"
#include "id_map.h"
#include "interner.h"
#include "op_memory.h"
#include "op_slices.h"
#include "op_stacks.h"
#include "thread_ids.h"
#include "trace_event.h"

enum gt_op_kind {
	GT_OP_HOST,      /* an operator, or a call into CUDA or HIP */
	GT_OP_RANGE,     /* user_annotation */
	GT_OP_GPU,       /* a kernel, a copy, a set */
	GT_OP_GPU_RANGE, /* gpu_user_annotation */
	GT_OP_KIND_MAX
};

/*
 * Calls of one name and kind with the same inputs and stack. Total is with what ran inside, self
 * without. What does not fit a field saturates.
 */
struct gt_op_row {
	uint32_t name; /* in names */
	uint32_t kind;
	uint32_t dims;        /* in texts: raw "Input Dims" */
	uint32_t values;      /* in texts: raw "Concrete Inputs", where the FLOPs depend on them */
	uint32_t stack;       /* in texts: innermost first, each frame ends in '\n' */
	uint32_t dtype;       /* enum gt_dtype: what its FLOPs are done in, by its inputs */
	uint32_t is_backward; /* by line: of the backward pass */
	/* as some calls had an operator of the same name inside, which has cast the inputs: its
	 * type, and their number */
	uint32_t inner_dtype;
	uint64_t inner_calls;
	bool has_tf32; /* kernels whose names tell of TF32 ran in it */
	uint64_t calls;
	uint64_t line_calls; /* by line: of these, those that the line made itself */
	int64_t self_cpu_ns; /* below 0 where slices inside overlap */
	int64_t cpu_ns;
	int64_t self_gpu_ns;
	int64_t gpu_ns;
	int64_t self_cpu_bytes;
	int64_t cpu_bytes;
	int64_t self_gpu_bytes;
	int64_t gpu_bytes;
};

struct gt_op_name {
	bool known;
	bool is_left_out; /* by its name torch does not show it */
	bool is_step;
	bool has_values;     /* its FLOPs depend on the values of its inputs */
	bool is_tf32;        /* a kernel that multiplies so */
	int8_t typed_input;  /* gt_flops_input() */
	uint8_t phase;       /* enum gt_torch_phase */
	uint8_t source;      /* by line: enum gt_source_kind, of a frame */
	uint32_t recent_row; /* plus 1: often the next one's, too */
};

struct gt_op_thread {
	struct gt_op_slices slices;
	int64_t pid;
	int64_t tid;
	bool is_first; /* of its process: the thread with its number */
	bool has_steps;
	bool has_ops;     /* operators or ranges */
	int64_t first_ns; /* of these: the beginning of the first */
};

struct gt_ops {
	struct gt_interner names;
	struct gt_op_name *name_infos; /* by number */
	size_t name_cap;
	struct gt_interner texts; /* number 0 is the empty one */
	struct gt_interner keys;  /* of the rows */
	struct gt_op_row *rows;
	size_t row_cap;
	struct gt_thread_ids thread_ids;
	struct gt_op_thread *threads;
	size_t thread_cap;
	/* ns on the GPU by what links them to the host; 0 is no id */
	struct gt_id_map by_external;
	struct gt_id_map by_correlation;
	/* By line: the calls with a line of their own, and the GPU work that is of its External id
	 * but where it is of such a call. */
	struct gt_id_map line_calls;
	struct gt_buf claimed; /* struct gt_op_claim */
	struct gt_id_map tf32; /* of these ids those of TF32 kernels; correlations are negated */
	struct gt_op_memory memory;
	size_t stack_depth; /* frames of a stack; 0: stacks are not read */
	/* Instead of its stack a row has the line of the program that its calls belong to, which is
	 * a frame as in source_line.h, and calls that no operator made, or that have a stack of
	 * their own, have their GPU work. */
	bool by_line;
	bool has_functions; /* some lines are of python_function: the first of a function */
	struct gt_op_stacks stacks;
	bool has_operators;
	bool has_ns; /* times are finer than a microsecond */
	bool has_memory;
	bool has_gpu_bytes;
	/* Gets each call into CUDA or HIP with the number of the name of the operator or range
	 * around it on its thread, -1: none. 0 or an error, which gt_ops_finish() returns. May be
	 * NULL. */
	int (*called)(void *context, const struct gt_op_slice *call, int64_t op);
	void *called_context;
	/* Gets each thread when its slices are sorted. The same otherwise. */
	int (*sorted)(void *context, const struct gt_ops *ops, uint32_t thread);
	void *sorted_context;
	bool in_doubt;               /* nothing names its operator: to be near has to do */
	struct gt_op_slices *strays; /* where calls go that name no operator; NULL: they stay */
};

/* stack_depth: as above. 0 or -ENOMEM; free it with gt_ops_release() in any case. */
int gt_ops_init(struct gt_ops *ops, size_t stack_depth);

/*
 * Take in an event of phase X; event->ts_ns and dur_ns have been made sane. correlation: args has
 * it, of a call or GPU work; 0: none. 0 or -ENOMEM.
 */
int gt_ops_add(struct gt_ops *ops, const struct gt_trace_event *event, int64_t dur_ns,
	       int64_t correlation);

/* The same for an instant event, of which only [memory] and [OutOfMemory] count. */
int gt_ops_add_instant(struct gt_ops *ops, const struct gt_trace_event *event);

/*
 * All is there: fill in the rows. from_torch: ranges of the GPU begin a tick before their work and
 * end one after it, as Kineto writes them, and calls that name no operator are taken for calls of
 * the main thread, as torch's tables do. 0 or -ENOMEM.
 */
int gt_ops_finish(struct gt_ops *ops, bool from_torch);

static inline uint32_t gt_ops_row_count(const struct gt_ops *ops)
{
	return ops->keys.count;
}

void gt_ops_release(struct gt_ops *ops);

#endif
