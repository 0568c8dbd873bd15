/*
 * phases.c - see phases.h.
 */
#include "base.h"
#include "host_waits.h"
#include "ops_priv.h"
#include "phases.h"

/* Threads have lanes this far apart: GT_TRACE_THREAD_STRIDE, of what gtrace writes. */
#define LANE_STRIDE 10000000

/* ---- names ----------------------------------------------------------------------------------- */

/* Nodes of the graph are called MulBackward0, TBackward, CompiledFunctionBackward. */
static bool is_backward_node(struct gt_str name)
{
	static const struct gt_str suffix = GT_STR("Backward");

	while (name.len && gt_is_digit(name.ptr[name.len - 1]))
		name.len--;
	return name.len >= suffix.len &&
	       !memcmp(name.ptr + name.len - suffix.len, suffix.ptr, suffix.len);
}

static bool is_letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* A range "backward" or "## Backward ##" is also there while the pass waits for other ranks. */
static bool is_called_backward(struct gt_str name)
{
	static const struct gt_str word = GT_STR("backward");

	while (name.len && !is_letter(name.ptr[name.len - 1]))
		name.len--;
	for (; name.len && !is_letter(name.ptr[0]); name.len--)
		name.ptr++;
	return name.len == word.len && gt_str_has_nocase(name, word);
}

enum gt_torch_phase gt_phase_of(struct gt_str name)
{
	if (gt_str_starts(name, GT_STR("Optimizer.step#")))
		return GT_TORCH_OPTIMIZER;
	if (gt_str_starts(name, GT_STR("Optimizer.zero_grad#")))
		return GT_TORCH_ZERO_GRAD;
	/* The engine wraps its nodes since PyTorch 1.8. */
	if (gt_str_starts(name, GT_OPS_ENGINE_PREFIX) || gt_str_equal(name, GT_OPS_LEAF_NAME) ||
	    is_backward_node(name) || is_called_backward(name))
		return GT_TORCH_BACKWARD;
	return gt_host_wait_of_range(name) == GT_WAIT_DATA ? GT_TORCH_DATA : GT_TORCH_FORWARD;
}

/* ---- collecting ------------------------------------------------------------------------------ */

static struct gt_phase_process *find_process(struct gt_phases *phases, int64_t pid)
{
	for (size_t i = 0; i < phases->count; i++) {
		if (phases->processes[i].pid == pid)
			return &phases->processes[i];
	}
	return NULL;
}

void gt_phases_add_step(struct gt_phases *phases, const struct gt_ops *ops, uint32_t thread)
{
	const struct gt_op_thread *info = &ops->threads[thread];

	if (phases->count == GT_PHASE_PROCESSES_MAX || find_process(phases, info->pid))
		return;
	phases->processes[phases->count++] = (struct gt_phase_process){
		.pid = info->pid, .tid = info->tid, .thread = thread, .done_ns = INT64_MIN
	};
}

/* Whether it is the thread of the steps, or a lane of it. */
static bool has_steps(const struct gt_phases *phases, const struct gt_phase_process *process,
		      const struct gt_ops *ops, uint32_t thread)
{
	return thread == process->thread ||
	       (phases->has_lanes &&
		ops->threads[thread].tid % LANE_STRIDE == process->tid % LANE_STRIDE);
}

int gt_phases_add_thread(void *context, const struct gt_ops *ops, uint32_t thread)
{
	struct gt_phases *phases = context;
	struct gt_phase_process *process = find_process(phases, ops->threads[thread].pid);
	const struct gt_op_slices *slices = &ops->threads[thread].slices;
	int64_t covered_to_ns[GT_TORCH_MAX];
	bool is_main;

	if (!process)
		return 0;
	is_main = has_steps(phases, process, ops, thread);
	for (size_t i = 0; i < GT_TORCH_MAX; i++)
		covered_to_ns[i] = INT64_MIN;
	for (size_t i = 0; i < slices->count; i++) {
		const struct gt_op_slice *slice = &slices->items[i];
		const struct gt_op_row *row;
		enum gt_torch_phase phase;

		if (slice->kind != GT_SLICE_OP)
			continue;
		row = &ops->rows[slice->row];
		phase = (enum gt_torch_phase)ops->name_infos[row->name].phase;
		/* Of ranges only those that are known by name say anything. */
		if (ops->name_infos[row->name].is_step ||
		    (phase == GT_TORCH_FORWARD && row->kind == GT_OP_RANGE) ||
		    (phase != GT_TORCH_BACKWARD && !is_main) ||
		    slice->end_ns <= covered_to_ns[phase])
			continue;
		if (gt_intervals_add(&process->parts[phase], slice->start_ns, slice->end_ns) < 0)
			return -ENOMEM;
		covered_to_ns[phase] = slice->end_ns;
	}
	return 0;
}

/* An optimizer that was given a closure, as by Lightning, runs all of the step: only what follows
 * the backward pass in it is its own. */
static void cut_closures(struct gt_intervals *optimizer, const struct gt_intervals *backward)
{
	size_t at = 0;

	for (size_t i = 0; i < optimizer->count; i++) {
		struct gt_interval *step = &optimizer->items[i];
		int64_t start_ns = step->start_ns;

		for (; at < backward->count && backward->items[at].end_ns <= step->end_ns; at++) {
			if (backward->items[at].start_ns >= start_ns)
				step->start_ns = backward->items[at].end_ns;
		}
	}
}

void gt_phases_finish(struct gt_phases *phases)
{
	for (size_t i = 0; i < phases->count; i++) {
		struct gt_intervals *parts = phases->processes[i].parts;

		for (size_t k = 0; k < GT_TORCH_MAX; k++)
			gt_intervals_merge(&parts[k]);
		cut_closures(&parts[GT_TORCH_OPTIMIZER], &parts[GT_TORCH_BACKWARD]);
	}
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* From time_ns on, at most to end_ns: the next piece of one phase. False: there is none. */
static bool next_piece(struct gt_phase_process *process, int64_t time_ns, int64_t end_ns,
		       struct gt_interval *ret, enum gt_torch_phase *ret_phase)
{
	*ret = (struct gt_interval){ end_ns, end_ns };
	for (int phase = GT_TORCH_MAX - 1; phase > GT_TORCH_OTHER; phase--) {
		const struct gt_intervals *part = &process->parts[phase];
		size_t *at = &process->at[phase];
		int64_t start_ns;

		while (*at < part->count && part->items[*at].end_ns <= time_ns)
			++*at;
		if (*at == part->count)
			continue;
		start_ns = GT_MAX(part->items[*at].start_ns, time_ns);
		if (start_ns >= ret->start_ns)
			continue;
		/* What counts more than this phase was seen before, and ends it. */
		ret->end_ns = GT_MIN(part->items[*at].end_ns, ret->start_ns);
		ret->start_ns = start_ns;
		*ret_phase = (enum gt_torch_phase)phase;
	}
	return ret->start_ns < end_ns;
}

struct stretch {
	uint64_t ns;
	uint64_t pieces;
};

struct sum {
	struct gt_phase_times *times;
	struct gt_intervals *data;
	/* of operators since the last backward pass or step of the optimizer, until it is known
	 * which of these follows: since data were loaded, and the largest one before */
	struct stretch forward, largest;
	uint64_t no_forward_ns; /* what turned out to be something else if there is a backward pass
				 */
	bool has_backward;
};

/* Data are loaded between the operators of two steps, or in advance in the midst of a pass. */
static void end_stretch(struct sum *sum)
{
	struct stretch smaller = sum->forward;

	if (sum->forward.pieces >= sum->largest.pieces) {
		smaller = sum->largest;
		sum->largest = sum->forward;
	}
	sum->no_forward_ns += smaller.ns;
	sum->forward = (struct stretch){ 0 };
}

struct run {
	enum gt_torch_phase phase;
	struct gt_interval span;
	uint64_t pieces;
};

static int add_run(struct sum *sum, const struct run *run)
{
	uint64_t run_ns = (uint64_t)(run->span.end_ns - run->span.start_ns);

	switch (run->phase) {
	case GT_TORCH_OTHER:
	case GT_TORCH_MAX:
		return 0;
	case GT_TORCH_FORWARD:
		sum->forward.ns += run_ns;
		sum->forward.pieces += run->pieces;
		return 0;
	case GT_TORCH_ZERO_GRAD:
		sum->times->ns[GT_TORCH_OPTIMIZER] += run_ns;
		return 0;
	case GT_TORCH_DATA:
		end_stretch(sum);
		sum->times->ns[GT_TORCH_DATA] += run_ns;
		return gt_intervals_add(sum->data, run->span.start_ns, run->span.end_ns);
	case GT_TORCH_BACKWARD:
		end_stretch(sum);
		sum->has_backward = true;
		sum->times->ns[GT_TORCH_FORWARD] += sum->largest.ns;
		break;
	case GT_TORCH_OPTIMIZER:
		end_stretch(sum);
		sum->no_forward_ns += sum->largest.ns;
		break;
	}
	sum->largest = (struct stretch){ 0 };
	sum->times->ns[run->phase] += run_ns;
	return 0;
}

static struct gt_phase_process *process_of(struct gt_phases *phases, uint32_t thread)
{
	for (size_t i = 0; i < phases->count; i++) {
		if (phases->processes[i].thread == thread)
			return &phases->processes[i];
	}
	return NULL;
}

int gt_phases_of_step(struct gt_phases *phases, uint32_t thread, struct gt_interval step,
		      struct gt_phase_times *ret, struct gt_intervals *data)
{
	struct gt_phase_process *process = process_of(phases, thread);
	struct sum sum = { .times = ret, .data = data };
	struct gt_interval piece = { step.start_ns, step.start_ns };
	enum gt_torch_phase phase = GT_TORCH_OTHER;
	struct run run = { .span = piece };
	uint64_t known_ns = 0;
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	if (!process || step.start_ns < process->done_ns)
		return -EINVAL;
	process->done_ns = step.end_ns;
	while (!rc && next_piece(process, piece.end_ns, step.end_ns, &piece, &phase)) {
		if (phase != run.phase) {
			rc = add_run(&sum, &run);
			run = (struct run){ .phase = phase, .span = piece };
		}
		run.span.end_ns = piece.end_ns;
		run.pieces++;
	}
	if (!rc)
		rc = add_run(&sum, &run);
	if (!sum.has_backward)
		ret->ns[GT_TORCH_FORWARD] += sum.forward.ns + sum.largest.ns + sum.no_forward_ns;
	for (size_t i = GT_TORCH_OTHER + 1; i < GT_TORCH_MAX; i++)
		known_ns += ret->ns[i];
	ret->ns[GT_TORCH_OTHER] = (uint64_t)(step.end_ns - step.start_ns) - known_ns;
	return rc;
}

void gt_phases_release(struct gt_phases *phases)
{
	for (size_t i = 0; i < phases->count; i++) {
		for (size_t k = 0; k < GT_TORCH_MAX; k++)
			gt_intervals_release(&phases->processes[i].parts[k]);
	}
	phases->count = 0;
}
