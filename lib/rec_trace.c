/*
 * rec_trace.c - the trace file of one window, and what goes in.
 */
#include "base.h"
#include "rank.h"
#include "rec_state.h"
#include "buf.h"

#include <inttypes.h>
#include <stdlib.h>

#define CLOSED_MAX  1024       /* files and failures of one drain */
#define FLUSH_BYTES (2U << 20) /* of JSON that waits */
/* Stacks and Python functions of one file: more than a viewer can take, and programs make. */
#define STACKS_MAX_BYTES (UINT64_C(4) << 30)

struct gt_window *gt_window_new(struct gt_recorder *rec, uint32_t id)
{
	struct gt_window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	window->rec = rec;
	window->id = id;
	window->number = id == GT_WHOLE_ID ? 1 : (uint64_t)id + 1;
	window->end_ns = UINT64_MAX;
	if (id != GT_WHOLE_ID) { /* that one holds all since the start */
		window->began_bad = rec->bad_records;
		window->began_refused = rec->ranges.refused;
	}
	window->began_clock_ns = gt_clock_offset_ns();
	return window;
}

void gt_window_free(struct gt_window *window)
{
	if (!window)
		return;
	gt_trace_close(window->trace, &(struct gt_trace_health){ 0 }, NULL);
	gt_fwdbwd_release(&window->links);
	free(window->steps);
	free(window);
}

/* ---- the file ---- */

/* One more for the report of this drain; NULL: out of memory, or far too many. */
static struct gt_recorder_closed *add_closed(struct gt_recorder *rec)
{
	if (rec->closed_count == CLOSED_MAX)
		return NULL;
	if (rec->closed_count == rec->closed_cap) {
		size_t cap = rec->closed_cap ? rec->closed_cap * 2 : 4;
		struct gt_recorder_closed *closed = realloc(rec->closed, cap * sizeof(*closed));

		if (!closed)
			return NULL;
		rec->closed = closed;
		rec->closed_cap = cap;
	}
	return &rec->closed[rec->closed_count++];
}

void gt_window_report_failure(struct gt_recorder *rec, const struct gt_err *err)
{
	struct gt_recorder_closed *closed = add_closed(rec);

	if (closed)
		*closed = (struct gt_recorder_closed){ .err = *err };
}

static void fail(struct gt_recorder *rec, struct gt_window *window, const struct gt_err *err)
{
	window->failed = true;
	gt_window_report_failure(rec, err);
}

/* The writer's own words come with the next flush or close; until then this. */
void gt_window_check_write(struct gt_recorder *rec, struct gt_window *window, int rc)
{
	struct gt_err err;

	if (rc < 0 && !window->failed) {
		gt_err_sys(&err, rc, "cannot write '%s'", window->path);
		fail(rec, window, &err);
	}
}

/* The file of the whole run is the first window's as well: that one replaces it. */
static int choose_path(struct gt_recorder *rec, struct gt_window *window, bool *overwrite,
		       struct gt_err *err)
{
	if (rec->whole_path && window->number == 1) {
		snprintf(window->path, sizeof(window->path), "%s", rec->whole_path);
		*overwrite = true;
		return 0;
	}
	return rec->config.path_for(rec->config.ctx, &rec->hello, window->number, window->path,
				    sizeof(window->path), overwrite, err);
}

static void make_file(struct gt_recorder *rec, struct gt_window *window)
{
	struct gt_trace_meta meta = {
		.pid = rec->hello.pid,
		.rank = rec->hello.rank,
		.world_size = rec->hello.world_size,
		.cycle = window->number,
		.whole_run = window->id == GT_WHOLE_ID,
		.with_shapes = rec->config.with_shapes,
		.with_flops = rec->config.with_flops,
		.rank_source = gt_rank_source_name(rec->hello.rank_source),
		/* The marks that were read may be newer than the state. */
		.step_source = gt_step_source_name(rec->steps.source ? rec->steps.source
								     : rec->state.step_source),
		.comm = rec->hello.comm,
		.command = rec->config.command,
		.torch = rec->hello.torch[0] ? rec->hello.torch : NULL,
		.python = rec->hello.python[0] ? rec->hello.python : NULL,
		.host = rec->config.host,
		.cupti_version = rec->hello.cupti_version,
		.driver_version = rec->hello.driver_version,
		.runtime_version = rec->hello.runtime_version,
		.devices = rec->devices,
		.device_count = rec->device_count,
		.environment = rec->config.environment,
		.with_stack = rec->config.with_stack,
		.with_modules = rec->config.with_modules,
		.with_memory = rec->config.with_memory,
	};
	/* Another thread's first events may be stamped a little before the step began. */
	uint64_t base_ns = gt_sub(window->start_ns, GT_NSEC_PER_MSEC);
	char tried[sizeof(window->path)];
	struct gt_err err = { 0 };
	bool overwrite = false;
	int rc;

	/* Another gtrace of the job may be faster: then there is another name. */
	do {
		memcpy(tried, window->path, sizeof(tried));
		rc = choose_path(rec, window, &overwrite, &err);
		if (!rc)
			rc = gt_trace_create(&window->trace, window->path,
					     overwrite ? GT_TRACE_OVERWRITE : 0, base_ns, &meta,
					     &err);
	} while (rc == -EEXIST && strcmp(tried, window->path));
	if (rc < 0)
		fail(rec, window, &err);
	else
		gt_trace_hold(window->trace, window->held);
}

/* Is there a file to write to? Makes it at the first call. */
bool gt_window_open_file(struct gt_recorder *rec, struct gt_window *window)
{
	if (!window->trace && !window->failed && !window->left_out)
		make_file(rec, window);
	return window->trace && !window->failed;
}

bool gt_window_takes_stack(struct gt_window *window, size_t bytes)
{
	if (bytes > STACKS_MAX_BYTES - window->stack_bytes) {
		window->stacks_left_out++;
		return false;
	}
	window->stack_bytes += bytes;
	return true;
}

static struct gt_trace_call as_call(const struct gt_recorder *rec, const struct gt_launch *launch,
				    char *buf, size_t len)
{
	struct gt_trace_call call = {
		.tid = launch->tid,
		.start_ns = launch->start_ns,
		.end_ns = launch->end_ns,
		.correlation = launch->entry.correlation,
		.cbid = launch->cbid,
		.runtime = launch->runtime,
		.name = gt_names_get(&rec->names, launch->name_id),
		.external_id = launch->external_id,
	};

	if (!call.name.len) {
		snprintf(buf, len, "%s %u", launch->runtime ? "cuda" : "cu", launch->cbid);
		call.name = gt_str_of(buf);
	}
	return call;
}

void gt_window_call(struct gt_recorder *rec, struct gt_window *window,
		    const struct gt_launch *launch, bool launches, bool captured)
{
	struct gt_trace_call call;
	char buf[32];

	if (!gt_window_open_file(rec, window))
		return;
	call = as_call(rec, launch, buf, sizeof(buf));
	if (!gt_rec_calls(rec, launch->stack_id, &call.calls)) {
		gt_window_check_write(rec, window, -ENOMEM);
		return;
	}
	if (!gt_window_takes_stack(window, call.calls.len))
		call.calls.len = 0;
	call.launches = launches;
	call.captured = captured;
	gt_window_check_write(rec, window, gt_trace_call(window->trace, &call));
}

static struct gt_str kernel_name(const struct gt_recorder *rec, uint64_t ref, char *buf, size_t len)
{
	uint32_t id = ref < GT_NAME_PTR_MIN ? (uint32_t)ref : gt_map_get(&rec->pointers, ref);
	struct gt_str name = gt_names_get(&rec->names, id);

	if (name.len)
		return name;
	snprintf(buf, len, "kernel 0x%" PRIx64, ref);
	return gt_str_of(buf);
}

/* What torch and NCCL tell of the collective that launched a kernel. */
static void add_collective(const struct gt_recorder *rec, const struct gt_gpu_op *op,
			   const struct gt_launch *launch, struct gt_buf *args)
{
	const struct gt_range *innermost = launch->range;
	char *p;

	if (op->kind != GT_GPU_KERNEL)
		return;
	while (innermost && innermost->kind != GT_RANGE_OP)
		innermost = innermost->outer;
	if (innermost && innermost->gpu_args_bytes)
		gt_buf_append(args, innermost->args, innermost->gpu_args_bytes);
	if (!launch->nccl)
		return;
	p = gt_buf_reserve(args, GT_NCCL_ARGS_MAX);
	if (p)
		args->len += (size_t)(gt_nccl_put_args(&rec->nccl, launch->nccl, op->device,
						       args->len, p) -
				      p);
}

void gt_window_gpu(struct gt_recorder *rec, struct gt_window *window, const struct gt_gpu_op *op,
		   const struct gt_launch *launch)
{
	struct gt_trace_call call;
	struct gt_str name = { 0 };
	struct gt_buf args = { 0 };
	char name_buf[32], call_buf[32];

	if (!gt_window_open_file(rec, window))
		return;
	if (op->kind == GT_GPU_KERNEL)
		name = kernel_name(rec, op->name_ref, name_buf, sizeof(name_buf));
	window->unnamed += name.ptr == name_buf;
	if (launch) {
		call = as_call(rec, launch, call_buf, sizeof(call_buf));
		call.launches = true;
		add_collective(rec, op, launch, &args);
		call.gpu_args = gt_buf_str(&args);
	}
	gt_window_check_write(rec, window,
			      gt_trace_gpu(window->trace, op, name, launch ? &call : NULL));
	gt_buf_release(&args);
}

void gt_window_range(struct gt_recorder *rec, struct gt_window *window,
		     const struct gt_range *range)
{
	struct gt_trace_range out = {
		.tid = range->tid,
		.process_range = range->kind == GT_RANGE_PROCESS,
		.is_step = range->kind == GT_RANGE_STEP,
		.cut = range->cut,
		.start_ns = GT_MAX(range->start_ns, window->start_ns),
		.end_ns = GT_MIN(range->end_ns, window->end_ns),
		.name = gt_range_name(range, &rec->names),
		.domain = gt_names_get(&rec->names, range->domain_id),
		.inputs = gt_range_inputs(range),
		.external_id = range->external_id,
	};

	if (!gt_window_open_file(rec, window))
		return;
	out.end_ns = GT_MAX(out.end_ns, out.start_ns);
	gt_window_check_write(rec, window, gt_trace_range(window->trace, &out));
}

void gt_window_spans(struct gt_recorder *rec, struct gt_window *window,
		     const struct gt_range *range)
{
	struct gt_trace_gpu_range out = {
		.tid = range->tid,
		.is_step = range->kind == GT_RANGE_STEP,
		.name = gt_range_name(range, &rec->names),
		.external_id = range->external_id,
	};
	size_t i;

	if (!gt_window_open_file(rec, window))
		return;
	for (i = 0; i < range->span_count; i++) {
		out.device = range->spans[i].device;
		out.stream = range->spans[i].stream;
		out.start_ns = range->spans[i].start_ns;
		out.end_ns = range->spans[i].end_ns;
		gt_window_check_write(rec, window, gt_trace_gpu_range(window->trace, &out));
	}
}

void gt_window_mark(struct gt_recorder *rec, struct gt_window *window, uint32_t tid,
		    uint64_t time_ns, struct gt_str name)
{
	if (gt_window_open_file(rec, window))
		gt_window_check_write(rec, window,
				      gt_trace_mark(window->trace, tid, time_ns, name));
}

/* ---- its end ---- */

static void report_closed(struct gt_recorder *rec, const struct gt_window *window,
			  const struct gt_trace_health *health, uint64_t events)
{
	struct gt_recorder_closed *closed = add_closed(rec);
	const char *cut = window->yielded ? NULL : window->cut; /* then it is the reason */

	if (!closed)
		return;
	*closed = (struct gt_recorder_closed){
		.cycle = window->number,
		.captured = window->own_steps,
		.complete = health->complete,
		.whole_run = window->id == GT_WHOLE_ID,
		.bounded = window->id == GT_WHOLE_ID && rec->state.keep_full,
		.events = events,
		.losses = gt_health_losses(health),
	};
	gt_window_numbers(window, &closed->first_step, &closed->last_step);
	memcpy(closed->path, window->path, sizeof(closed->path));
	snprintf(closed->why, sizeof(closed->why), "%s%s%s", health->reason ? health->reason : "",
		 health->reason && cut ? "; " : "", cut ? cut : "");
}

void gt_window_device(struct gt_recorder *rec, struct gt_window *window,
		      const struct gt_msg_device *device)
{
	if (window->trace)
		gt_window_check_write(rec, window, gt_trace_device(window->trace, device));
}

void gt_window_flush(struct gt_recorder *rec, struct gt_window *window, bool due)
{
	struct gt_trace_health health;
	const char *warnings[GT_WINDOW_WARNINGS];
	struct gt_err err = { 0 };
	int rc;

	if (!window->trace || window->failed || window->held)
		return;
	if (!due && gt_trace_pending_bytes(window->trace) < FLUSH_BYTES)
		return;
	gt_window_health(rec, window, &health, warnings);
	rc = gt_trace_flush(window->trace, &health, &err);
	if (rc < 0)
		fail(rec, window, &err);
}

void gt_window_finish_file(struct gt_recorder *rec, struct gt_window *window, const char *why)
{
	struct gt_trace_health health;
	const char *warnings[GT_WINDOW_WARNINGS];
	struct gt_err err = { 0 };
	uint64_t events;
	uint32_t i;
	int rc;

	/* A window that saw nothing is still one, with its steps; a run that did nothing is not. */
	if (!window->trace && (window->id == GT_WHOLE_ID || !gt_window_open_file(rec, window)))
		return;
	for (i = 0; i < rec->thread_names.cap && !window->failed; i++) {
		const struct gt_map_slot *slot = &rec->thread_names.slots[i];

		if (slot->value)
			gt_window_check_write(
				rec, window,
				gt_trace_thread_name(window->trace, (uint32_t)slot->key,
						     gt_names_get(&rec->names, slot->value)));
	}
	gt_rec_stacks_finish(rec, window);
	gt_fwdbwd_flush(&window->links);
	gt_window_health(rec, window, &health, warnings);
	health.reason = why ? why : gt_window_reason(rec, window, &health);
	health.complete = !health.reason;
	events = gt_trace_event_count(window->trace);
	rc = gt_trace_close(window->trace, &health, &err);
	window->trace = NULL;
	if (rc < 0 && !window->failed)
		fail(rec, window, &err);
	if (!window->failed)
		report_closed(rec, window, &health, events);
}
