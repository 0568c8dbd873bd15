/*
 * rec_ops.c - torch's operators in the file of a window, the arrows from forward to backward, and
 * blocks of memory.
 */
#include "base.h"
#include "rec_state.h"

static void put_link(void *ctx, const struct gt_fwdbwd_end *forward,
		     const struct gt_fwdbwd_end *backward)
{
	struct gt_window *window = ctx;
	struct gt_trace_link link = {
		.id = ++window->link_count,
		.from_lane = forward->lane,
		.to_lane = backward->lane,
		.from_ns = forward->start_ns,
		.to_ns = backward->start_ns,
	};

	if (gt_window_open_file(window->rec, window))
		gt_window_check_write(window->rec, window, gt_trace_link(window->trace, &link));
}

void gt_window_op(struct gt_recorder *rec, struct gt_window *window, const struct gt_range *range)
{
	struct gt_trace_op op = {
		.tid = range->tid,
		.sequence = range->op_sequence,
		.fwd_thread = range->op_fwd_thread,
		.start_ns = GT_MAX(range->start_ns, window->start_ns),
		.end_ns = GT_MIN(range->end_ns, window->end_ns),
		.name = gt_range_name(range, &rec->names),
		.inputs = gt_range_inputs(range),
		.args = { range->args, range->args_bytes },
		.external_id = range->external_id,
	};
	struct gt_fwdbwd_end end;

	if (!gt_window_open_file(rec, window))
		return;
	if ((rec->config.with_stack && !gt_rec_calls(rec, range->stack_id, &op.calls)) ||
	    (rec->config.with_modules && !gt_rec_modules(rec, range->stack_id, &op.modules))) {
		gt_window_check_write(rec, window, -ENOMEM);
		return;
	}
	if (!gt_window_takes_stack(window, op.calls.len + op.modules.len))
		op.calls.len = op.modules.len = 0;
	op.end_ns = GT_MAX(op.end_ns, op.start_ns);
	end = (struct gt_fwdbwd_end){ .start_ns = op.start_ns, .end_ns = op.end_ns };
	gt_window_check_write(rec, window, gt_trace_op(window->trace, &op, &end.lane));
	if (op.sequence < 0 || !range->op_thread || window->failed)
		return;
	window->links.sink = put_link;
	window->links.ctx = window;
	gt_fwdbwd_add(&window->links, op.fwd_thread ? op.fwd_thread : range->op_thread,
		      (uint64_t)op.sequence, op.fwd_thread, &end);
}

void gt_window_memory(struct gt_recorder *rec, struct gt_window *window, uint32_t tid,
		      const struct gt_ev_memory *ev)
{
	struct gt_trace_memory memory = {
		.tid = tid,
		.device_type = ev->device_type,
		.device = ev->device,
		.failed = ev->failed,
		.time_ns = ev->ev.time_ns,
		.address = ev->address,
		.bytes = ev->bytes,
		.allocated = ev->allocated,
		.reserved = ev->reserved,
	};

	/* As torch's profiler, which does not know the size of a block from before it was on. */
	if (window->id != GT_WHOLE_ID &&
	    (ev->since_step < window->first_step || ev->since_step > window->last_step))
		return;
	if (!gt_window_open_file(rec, window))
		return;
	memory.index = rec->ranges.last_external_id++; /* what an operator here would have */
	gt_window_check_write(rec, window, gt_trace_memory(window->trace, &memory));
}
