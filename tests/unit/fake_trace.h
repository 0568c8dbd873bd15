/*
 * fake_trace.h - a trace writer that keeps what it is given, in place of lib/trace_writer.c.
 * Include it in one file of a test program, whose functions then are linked instead of those.
 */
#ifndef FAKE_TRACE_H
#define FAKE_TRACE_H

#include "trace_writer.h"

#include <stdlib.h>

#define FAKE_TRACES 64
#define FAKE_NAME   64

struct fake_call {
	struct gt_trace_call call;
	char name[FAKE_NAME];
	char calls[8 * FAKE_NAME];
};

struct fake_gpu {
	struct gt_gpu_op op;
	char name[FAKE_NAME];
	bool has_launch;
	struct gt_trace_call launch;
	char args[512]; /* more than the op's own */
};

struct fake_range {
	struct gt_trace_range range;
	char name[FAKE_NAME];
	char domain[FAKE_NAME];
	char inputs[FAKE_NAME];
};

struct fake_op {
	struct gt_trace_op op;
	char name[FAKE_NAME];
	char inputs[FAKE_NAME];
	char args[512];
	char calls[8 * FAKE_NAME];
	char modules[FAKE_NAME];
};

struct fake_function {
	struct gt_trace_function function;
	char name[FAKE_NAME];
};

struct fake_link {
	struct gt_trace_link link;
};

struct fake_block {
	struct gt_trace_memory memory;
};

struct fake_span {
	struct gt_trace_gpu_range span;
	char name[FAKE_NAME];
};

struct gt_trace {
	char path[256];
	unsigned int flags;
	uint64_t base_ns;
	struct gt_trace_meta meta; /* its pointers are not valid any more */
	char step_source[16];
	struct fake_call *calls;
	size_t call_count;
	struct fake_gpu *gpus;
	size_t gpu_count;
	struct fake_range *ranges;
	size_t range_count;
	struct fake_span *spans;
	size_t span_count;
	struct fake_op *ops; /* the lane of each is its index */
	size_t op_count;
	struct fake_function *functions;
	size_t function_count;
	struct fake_link *links;
	size_t link_count;
	struct fake_block *blocks;
	size_t block_count;
	size_t mark_count;
	char mark[FAKE_NAME];
	size_t thread_names;
	size_t late_devices;
	size_t flushes;
	size_t pending_bytes;
	bool closed;
	bool held;
	struct gt_trace_health health;
	char reason[200];
	char warning[200]; /* the first */
};

static struct gt_trace fake_traces[FAKE_TRACES];
static size_t fake_count;
static int fake_write_rc;      /* what each write returns */
static const char *fake_taken; /* a path at which there is a file */
static bool fake_discard;      /* keep nothing: for many events */

static inline void fake_reset(void)
{
	size_t i;

	for (i = 0; i < fake_count; i++) {
		free(fake_traces[i].calls);
		free(fake_traces[i].gpus);
		free(fake_traces[i].ranges);
		free(fake_traces[i].spans);
		free(fake_traces[i].ops);
		free(fake_traces[i].functions);
		free(fake_traces[i].links);
		free(fake_traces[i].blocks);
	}
	memset(fake_traces, 0, sizeof(fake_traces));
	fake_count = 0;
	fake_write_rc = 0;
	fake_taken = NULL;
	fake_discard = false;
}

static inline void fake_text(char *dst, size_t size, struct gt_str text)
{
	snprintf(dst, size, "%.*s", (int)text.len, text.len ? text.ptr : "");
}

/* Room for one more: an array doubles whenever its count comes to a power of two. */
static inline void *fake_room(void *array, size_t count, size_t size)
{
	return count & (count - 1) ? array : realloc(array, GT_MAX(2 * count, 1) * size);
}

#define FAKE_ADD(trace, what)                                                                   \
	((trace)->what##s =                                                                     \
		 fake_room((trace)->what##s, (trace)->what##_count, sizeof(*(trace)->what##s)), \
	 &(trace)->what##s[(trace)->what##_count++])

int gt_trace_create(struct gt_trace **ret, const char *path, unsigned int flags, uint64_t base_ns,
		    const struct gt_trace_meta *meta, struct gt_err *err)
{
	struct gt_trace *trace = &fake_traces[fake_count];

	if (fake_taken && !strcmp(path, fake_taken))
		return gt_err_set(err, -EEXIST, "cannot create");
	if (fake_count == FAKE_TRACES)
		return gt_err_set(err, -EMFILE, "too many");
	fake_count++;
	snprintf(trace->path, sizeof(trace->path), "%s", path);
	trace->flags = flags;
	trace->base_ns = base_ns;
	trace->meta = *meta;
	snprintf(trace->step_source, sizeof(trace->step_source), "%s", meta->step_source);
	*ret = trace;
	return 0;
}

int gt_trace_call(struct gt_trace *trace, const struct gt_trace_call *call)
{
	struct fake_call *kept;

	if (fake_write_rc || fake_discard)
		return fake_write_rc;
	kept = FAKE_ADD(trace, call);
	kept->call = *call;
	fake_text(kept->name, sizeof(kept->name), call->name);
	fake_text(kept->calls, sizeof(kept->calls), call->calls);
	return 0;
}

int gt_trace_gpu(struct gt_trace *trace, const struct gt_gpu_op *op, struct gt_str name,
		 const struct gt_trace_call *launch)
{
	struct fake_gpu *kept;

	if (fake_write_rc || fake_discard)
		return fake_write_rc;
	kept = FAKE_ADD(trace, gpu);
	memset(kept, 0, sizeof(*kept));
	kept->op = *op;
	fake_text(kept->name, sizeof(kept->name), name);
	kept->has_launch = launch != NULL;
	if (launch) {
		kept->launch = *launch;
		fake_text(kept->args, sizeof(kept->args), launch->gpu_args);
	}
	return 0;
}

int gt_trace_range(struct gt_trace *trace, const struct gt_trace_range *range)
{
	struct fake_range *kept;

	if (fake_write_rc || fake_discard)
		return fake_write_rc;
	kept = FAKE_ADD(trace, range);
	kept->range = *range;
	fake_text(kept->name, sizeof(kept->name), range->name);
	fake_text(kept->domain, sizeof(kept->domain), range->domain);
	fake_text(kept->inputs, sizeof(kept->inputs), range->inputs);
	return 0;
}

int gt_trace_op(struct gt_trace *trace, const struct gt_trace_op *op, uint32_t *ret_lane)
{
	struct fake_op *kept;

	*ret_lane = (uint32_t)trace->op_count;
	if (fake_write_rc || fake_discard)
		return fake_write_rc;
	kept = FAKE_ADD(trace, op);
	kept->op = *op;
	fake_text(kept->name, sizeof(kept->name), op->name);
	fake_text(kept->inputs, sizeof(kept->inputs), op->inputs);
	fake_text(kept->args, sizeof(kept->args), op->args);
	fake_text(kept->calls, sizeof(kept->calls), op->calls);
	fake_text(kept->modules, sizeof(kept->modules), op->modules);
	return 0;
}

int gt_trace_function(struct gt_trace *trace, const struct gt_trace_function *function)
{
	struct fake_function *kept;

	if (fake_write_rc || fake_discard)
		return fake_write_rc;
	kept = FAKE_ADD(trace, function);
	kept->function = *function;
	fake_text(kept->name, sizeof(kept->name), function->name);
	return 0;
}

int gt_trace_link(struct gt_trace *trace, const struct gt_trace_link *link)
{
	if (fake_write_rc || fake_discard)
		return fake_write_rc;
	FAKE_ADD(trace, link)->link = *link;
	return 0;
}

int gt_trace_memory(struct gt_trace *trace, const struct gt_trace_memory *memory)
{
	if (fake_write_rc || fake_discard)
		return fake_write_rc;
	FAKE_ADD(trace, block)->memory = *memory;
	return 0;
}

int gt_trace_gpu_range(struct gt_trace *trace, const struct gt_trace_gpu_range *range)
{
	struct fake_span *kept;

	if (fake_write_rc || fake_discard)
		return fake_write_rc;
	kept = FAKE_ADD(trace, span);
	kept->span = *range;
	fake_text(kept->name, sizeof(kept->name), range->name);
	return 0;
}

int gt_trace_mark(struct gt_trace *trace, uint32_t tid, uint64_t time_ns, struct gt_str name)
{
	(void)tid;
	(void)time_ns;
	trace->mark_count++;
	fake_text(trace->mark, sizeof(trace->mark), name);
	return fake_write_rc;
}

int gt_trace_thread_name(struct gt_trace *trace, uint32_t tid, struct gt_str name)
{
	(void)tid;
	(void)name;
	trace->thread_names++;
	return fake_write_rc;
}

int gt_trace_device(struct gt_trace *trace, const struct gt_msg_device *device)
{
	(void)device;
	trace->late_devices++;
	return fake_write_rc;
}

int gt_trace_flush(struct gt_trace *trace, const struct gt_trace_health *health, struct gt_err *err)
{
	trace->flushes++;
	trace->health = *health;
	return fake_write_rc ? gt_err_set(err, fake_write_rc, "cannot flush") : 0;
}

void gt_trace_hold(struct gt_trace *trace, bool hold)
{
	trace->held = hold;
}

size_t gt_trace_pending_bytes(const struct gt_trace *trace)
{
	return trace->pending_bytes;
}

uint64_t gt_trace_event_count(const struct gt_trace *trace)
{
	return trace->call_count + trace->gpu_count + trace->range_count + trace->span_count;
}

int gt_trace_close(struct gt_trace *trace, const struct gt_trace_health *health, struct gt_err *err)
{
	if (!trace)
		return 0;
	trace->closed = true;
	trace->health = *health;
	snprintf(trace->reason, sizeof(trace->reason), "%s", health->reason ? health->reason : "");
	if (health->warnings)
		snprintf(trace->warning, sizeof(trace->warning), "%s", health->warnings[0]);
	return fake_write_rc ? gt_err_set(err, fake_write_rc, "cannot close") : 0;
}

#endif
