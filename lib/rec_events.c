/*
 * rec_events.c - what the threads of a process wrote: names, step marks, calls, ranges.
 */
#include "base.h"
#include "rec_state.h"
#include "comms_args.h"

static void put_name(struct gt_recorder *rec, struct gt_map *map, const struct gt_ev *ev)
{
	const struct gt_ev_name *name = (const void *)ev;

	if (!gt_map_put(map, name->ref, name->name_id))
		rec->names.refused++;
}

static void put_step(struct gt_steps *steps, uint32_t tid, const struct gt_ev_step *ev,
		     uint32_t step)
{
	const struct gt_step_mark mark = { .time_ns = ev->ev.time_ns, .step = step, .tid = tid };

	gt_steps_add(steps, &mark, ev->source);
}

/* Names and step marks are read before all other events, since those of any thread may use them. */
void gt_rec_name(struct gt_recorder *rec, uint32_t tid, const struct gt_ev *ev)
{
	switch (ev->type) {
	case GT_EV_STRING:
		gt_names_add(&rec->names, (const void *)ev);
		break;
	case GT_EV_THREAD_NAME:
		put_name(rec, &rec->thread_names, ev);
		break;
	case GT_EV_POINTER:
		put_name(rec, &rec->pointers, ev);
		break;
	case GT_EV_API_NAME:
		put_name(rec, &rec->api_names, ev);
		gt_map_put(&rec->api_classes, ((const struct gt_ev_name *)ev)->ref,
			   ((const struct gt_ev_name *)ev)->klass);
		/* The message that says so may be behind: none is read during a drain. */
		gt_rec_fall_back(rec, ev->time_ns);
		break;
	case GT_EV_COMM:
		gt_nccl_comm(&rec->nccl, (const void *)ev);
		break;
	case GT_EV_FRAME:
		gt_stacks_add(&rec->stacks, (const void *)ev);
		break;
	case GT_EV_STEP:
		put_step(&rec->steps, tid, (const void *)ev, ev->step);
		break;
	case GT_EV_OWN_STEP:
		put_step(&rec->own_steps, tid, (const void *)ev,
			 ((const struct gt_ev_step *)ev)->number);
		break;
	}
}

/* ---- threads and windows ---- */

/* Calls of the fall-back mode find their ranges later, by time. */
static void remember_ranges(struct gt_recorder *rec, const struct gt_thread *thread,
			    const struct gt_window *window)
{
	struct gt_range *stack[GT_RANGE_DEPTH_MAX];
	uint32_t count = 0;

	for (struct gt_range *range = thread->top; range; range = range->below)
		stack[count++] = range;
	while (count--)
		gt_range_history_add(&rec->history, stack[count],
				     GT_MAX(stack[count]->start_ns, window->start_ns));
}

void gt_rec_remember_ranges(struct gt_recorder *rec)
{
	for (uint32_t i = 0; i < rec->ranges.thread_count; i++) {
		const struct gt_thread *thread = &rec->ranges.threads[i];
		const struct gt_window *window = gt_windows_by_id(rec, thread->window);

		if (window)
			remember_ranges(rec, thread, window);
	}
}

/* Its open ranges end with the window that it was in. */
static void move_to(struct gt_recorder *rec, struct gt_thread *thread, uint32_t window,
		    uint64_t now_ns)
{
	struct gt_window *old = gt_windows_by_id(rec, thread->window);

	if (old)
		gt_windows_find_end(rec, old);
	gt_ranges_move(&rec->ranges, thread, window, old ? GT_MIN(old->end_ns, now_ns) : now_ns);
}

/* The thread's open ranges come into and go out of the windows on the way to this event. */
static void move_thread(struct gt_recorder *rec, struct gt_thread *thread,
			const struct gt_window *window, const struct gt_ev *ev)
{
	size_t i;

	if (ev->step < thread->last_step)
		return; /* a call that began before what it wrote last: no way back */
	for (i = 0; i < rec->window_count; i++) {
		const struct gt_window *passed = rec->windows[i];

		if (passed->id == GT_WHOLE_ID || thread->last_step >= passed->first_step ||
		    ev->step <= passed->last_step)
			continue;
		thread->last_step = (uint32_t)passed->last_step;
		if (!thread->top)
			continue;
		move_to(rec, thread, passed->id, ev->time_ns);
		move_to(rec, thread, GT_WINDOW_NONE, ev->time_ns);
	}
	/* Before the first warm-up another source of marks can take over, and count from 0. */
	if (window || rec->cached_phase == GT_PHASE_WARMUP)
		thread->last_step = ev->step;
	if (thread->window == (window ? window->id : GT_WINDOW_NONE))
		return;
	move_to(rec, thread, window ? window->id : GT_WINDOW_NONE, ev->time_ns);
	if (window && rec->fallback)
		remember_ranges(rec, thread, window);
}

/* ---- calls ---- */

bool gt_rec_is_launch(uint32_t klass)
{
	return klass == GT_CALL_KERNEL || klass == GT_CALL_GRAPH || klass == GT_CALL_COPY ||
	       klass == GT_CALL_SET;
}

uint64_t gt_rec_enclosing_id(const struct gt_range *innermost, const struct gt_range *step,
			     uint32_t tid)
{
	const struct gt_range *op = innermost;

	/* One that began before the window is not in the trace. */
	while (op && !(op->op && op->window != GT_WINDOW_NONE))
		op = op->outer;
	if (op)
		return op->external_id;
	while (innermost && innermost->window == GT_WINDOW_NONE)
		innermost = innermost->outer;
	if (step && step->tid == tid && (!innermost || innermost->start_ns < step->start_ns))
		return step->external_id;
	return innermost ? innermost->external_id : 0;
}

/* Does it return when all is done that was launched before? */
static bool is_device_sync(const struct gt_recorder *rec, const struct gt_ev_call *ev)
{
	struct gt_str name;

	if (ev->klass != GT_CALL_SYNC || ev->flags & GT_CALL_FAILED)
		return false;
	name = gt_names_get(&rec->names, ev->name_id);
	return gt_str_equal(name, GT_STR("cudaDeviceSynchronize")) ||
	       gt_str_equal(name, GT_STR("cuCtxSynchronize"));
}

static void on_call(struct gt_recorder *rec, struct gt_window *window, struct gt_thread *thread,
		    uint32_t tid, const struct gt_ev_call *ev)
{
	bool waits = gt_rec_is_launch(ev->klass) &&
		     !(ev->flags & (GT_CALL_CAPTURED | GT_CALL_EMPTY | GT_CALL_FAILED));
	struct gt_launch launch = {
		.entry.correlation = ev->correlation,
		.start_ns = ev->ev.time_ns,
		.end_ns = ev->end_ns,
		.window = window ? window->id : GT_WINDOW_NONE,
		.step_number = ev->ev.step,
		.tid = tid,
		.cbid = ev->cbid,
		.name_id = ev->name_id,
		.stack_id = ev->stack_id,
		.stream = ev->klass == GT_CALL_GRAPH ? ev->stream : GT_STREAM_UNKNOWN,
		.context = ev->context,
		.graph = ev->klass == GT_CALL_GRAPH,
		.runtime = ev->domain == 2, /* CUPTI_CB_DOMAIN_RUNTIME_API */
	};

	if (thread && ev->klass == GT_CALL_KERNEL)
		launch.nccl = gt_nccl_launch(&rec->nccl, &thread->nccl);
	if (window) {
		if (thread && thread->window == window->id)
			launch.range = thread->top;
		launch.step = gt_window_step(rec, window, ev->ev.step, ev->ev.time_ns);
		launch.external_id = gt_rec_enclosing_id(launch.range, launch.step, tid);
		window->last_ns = GT_MAX(window->last_ns, ev->end_ns);
	}
	if (is_device_sync(rec, ev))
		rec->synced_ns = GT_MAX(rec->synced_ns, ev->ev.time_ns);
	gt_rec_heard(rec, ev->correlation);
	/* Of a recording without steps the file says that it ended. */
	rec->late_calls += !window && rec->cached_late && !rec->whole_mode;
	if (waits) {
		gt_rec_launch(rec, &launch);
	} else if (window) {
		bool captured = ev->flags & GT_CALL_CAPTURED;

		window->captured += captured;
		gt_window_call(rec, window, &launch, false, captured);
	}
}

/* ---- all events ---- */

static struct gt_str range_text(const struct gt_recorder *rec, const struct gt_ev_range *ev)
{
	if (ev->name_id)
		return gt_names_get(&rec->names, ev->name_id);
	return (struct gt_str){ ev->bytes, ev->len_bytes };
}

static void on_push(struct gt_recorder *rec, struct gt_thread *thread, const struct gt_ev_range *ev)
{
	struct gt_range *range = gt_ranges_push(&rec->ranges, thread, ev);

	if (range && range->window != GT_WINDOW_NONE && rec->fallback)
		gt_range_history_add(&rec->history, range, range->start_ns);
	if (gt_nccl_is_domain(&rec->nccl, &rec->names, ev->domain_id))
		gt_nccl_push(&thread->nccl, (uint32_t)ev->range_id, range_text(rec, ev));
}

static void on_pop(struct gt_recorder *rec, struct gt_thread *thread, const struct gt_ev_end *ev)
{
	gt_ranges_pop(&rec->ranges, thread, ev);
	if (gt_nccl_is_domain(&rec->nccl, &rec->names, ev->domain_id))
		gt_nccl_pop(&thread->nccl, (uint32_t)ev->range_id);
}

/*
 * The first window after a step outside of all: another thread's events have opened it already, but
 * a range of the process that begins now is open when it begins.
 */
static struct gt_window *next_window(const struct gt_recorder *rec, uint32_t step)
{
	size_t i;

	for (i = 0; i < rec->window_count; i++)
		if (rec->windows[i]->first_step > step)
			return rec->windows[i];
	return NULL;
}

static void on_comms(struct gt_recorder *rec, struct gt_thread *thread,
		     const struct gt_ev_comms *ev)
{
	struct gt_buf args = { 0 };
	size_t gpu_bytes = gt_comms_put_args(&args, ev);

	if (!args.failed)
		gt_ranges_op_args(&rec->ranges, thread, ev->depth, gt_buf_str(&args), gpu_bytes);
	gt_buf_release(&args);
}

static bool is_name(const struct gt_ev *ev)
{
	return ev->type == GT_EV_STRING || ev->type == GT_EV_THREAD_NAME ||
	       ev->type == GT_EV_POINTER || ev->type == GT_EV_API_NAME || ev->type == GT_EV_COMM ||
	       ev->type == GT_EV_FRAME;
}

/* What changes where its thread is: in ranges, in operators, in NCCL. */
static void on_thread_event(struct gt_recorder *rec, struct gt_window *window,
			    struct gt_thread *thread, const struct gt_ev *ev)
{
	switch (ev->type) {
	case GT_EV_PUSH:
		on_push(rec, thread, (const void *)ev);
		gt_rec_stack(rec, window, thread, ((const struct gt_ev_range *)ev)->stack_id, ev);
		break;
	case GT_EV_POP:
		on_pop(rec, thread, (const void *)ev);
		gt_rec_stack(rec, window, thread, ((const struct gt_ev_end *)ev)->stack_id, ev);
		break;
	case GT_EV_COLLECTIVE:
		gt_nccl_call(&thread->nccl, (const void *)ev);
		break;
	case GT_EV_OP:
		gt_ranges_op(&rec->ranges, thread, (const void *)ev);
		gt_rec_stack(rec, window, thread, ((const struct gt_ev_op *)ev)->stack_id, ev);
		break;
	case GT_EV_COMMS:
		on_comms(rec, thread, (const void *)ev);
		break;
	case GT_EV_OP_END:
		gt_ranges_op_end(&rec->ranges, thread, (const void *)ev);
		break;
	}
}

void gt_rec_event(struct gt_recorder *rec, uint32_t tid, const struct gt_ev *ev)
{
	struct gt_window *window;
	struct gt_thread *thread;

	if (is_name(ev))
		return;

	window = gt_windows_of_step(rec, ev->step, ev->time_ns);
	if (window && ev->time_ns >= window->end_ns &&
	    gt_windows_yield(rec, window->id, window->id))
		window = NULL; /* the program's profiler is done, but so is this window */
	thread = gt_ranges_thread(&rec->ranges, tid);
	if (thread)
		move_thread(rec, thread, window, ev);
	if (window)
		window->last_ns = GT_MAX(window->last_ns, ev->time_ns);

	if (thread)
		on_thread_event(rec, window, thread, ev);
	else if (ev->type == GT_EV_PUSH || ev->type == GT_EV_OP)
		rec->ranges.refused++;

	switch (ev->type) {
	case GT_EV_CALL:
		on_call(rec, window, thread, tid, (const void *)ev);
		break;
	case GT_EV_MEMORY:
		if (window)
			gt_window_memory(rec, window, tid, (const void *)ev);
		break;
	case GT_EV_RANGE_START:
		if (!window)
			window = next_window(rec, ev->step);
		gt_ranges_start(&rec->ranges, tid, window ? window->id : GT_WINDOW_NONE,
				(const void *)ev);
		break;
	case GT_EV_RANGE_END:
		gt_ranges_end(&rec->ranges, (const void *)ev);
		break;
	case GT_EV_MARK:
		if (window)
			gt_window_mark(rec, window, tid, ev->time_ns,
				       range_text(rec, (const void *)ev));
		break;
	}
}
