/*
 * phases.h - what a program of PyTorch did in each step: it waited for data, ran the forward pass,
 * the backward pass, the optimizer, or something else, by the names that PyTorch gives to ranges
 * and operators.
 *
 * Wall time of the thread of the steps: at any time one phase. Of those that lie in each other it
 * is the backward pass (on any thread of the process), rather than data loading, rather than the
 * optimizer, rather than the forward pass, which is every other operator of this thread. Time
 * between two pieces of one phase belongs to it where no other phase is between. Forward is only
 * what the backward pass follows, before data are loaded or the optimizer runs, where the step has
 * a backward pass: operators elsewhere, such as those of a metric, are something else.
 */
#ifndef GT_PHASES_H
#define GT_PHASES_H

#include "base.h"
#include "intervals.h"
#include "str.h"

enum gt_torch_phase {
	GT_TORCH_OTHER,
	/* of what lies in each other, the one that stands later here counts */
	GT_TORCH_FORWARD,
	GT_TORCH_ZERO_GRAD, /* counts as optimizer, but many programs run it in the forward pass */
	GT_TORCH_OPTIMIZER,
	GT_TORCH_DATA,
	GT_TORCH_BACKWARD,
	GT_TORCH_MAX
};

/* What the name of a range or an operator says; GT_TORCH_FORWARD of none. */
enum gt_torch_phase gt_phase_of(struct gt_str name);

/* Steps of further processes than these have no phases. */
#define GT_PHASE_PROCESSES_MAX 64

struct gt_phase_process {
	int64_t pid;
	int64_t tid;     /* of the thread of the steps, for its lanes */
	uint32_t thread; /* its number */
	/* of this thread, but the backward pass of all; they still overlap */
	struct gt_intervals parts[GT_TORCH_MAX];
	size_t at[GT_TORCH_MAX]; /* in parts: what is before has ended */
	int64_t done_ns;         /* where the last step ended */
};

struct gt_phases { /* { 0 } is empty */
	struct gt_phase_process processes[GT_PHASE_PROCESSES_MAX];
	size_t count;
	bool has_lanes; /* threads have lanes, as gtrace writes them */
};

struct gt_phase_times {
	uint64_t ns[GT_TORCH_MAX]; /* together all of the step; zero_grad's are in optimizer's */
};

struct gt_ops;

/* Before the slices: a step is on this thread of ops. */
void gt_phases_add_step(struct gt_phases *phases, const struct gt_ops *ops, uint32_t thread);

/* The slices of a thread, sorted. As ops->sorted; context: struct gt_phases. 0 or -ENOMEM. */
int gt_phases_add_thread(void *context, const struct gt_ops *ops, uint32_t thread);

/* All threads are there. */
void gt_phases_finish(struct gt_phases *phases);

/*
 * Of a step on this thread, whose steps come in order. What loads data is added to data, piece by
 * piece. 0, -ENOMEM or -EINVAL: not known, as of a step that overlaps the one before or is on
 * another thread of the process than its first one.
 */
int gt_phases_of_step(struct gt_phases *phases, uint32_t thread, struct gt_interval step,
		      struct gt_phase_times *ret, struct gt_intervals *data);

void gt_phases_release(struct gt_phases *phases);

#endif
