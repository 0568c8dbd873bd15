/*
 * The trace as a file: created, flushed, closed.
 */
#include "trace_priv.h"

#include <stdlib.h>

static void trace_free(struct gt_trace *trace)
{
	gt_trace_tracks_release(trace);
	gt_pieces_free(trace->pieces);
	gt_buf_release(&trace->main.text);
	gt_buf_release(&trace->gpu.text);
	gt_buf_release(&trace->about);
	free(trace->main.hints);
	free(trace->gpu.hints);
	free(trace);
}

int gt_trace_device(struct gt_trace *trace, const struct gt_msg_device *device)
{
	if (device->id >= GT_TRACE_DEVICES_MAX)
		return -EINVAL;
	trace->devices[device->id] = *device;
	trace->devices_known |= UINT64_C(1) << device->id;
	/* What kernels' arguments are computed from changed. */
	gt_pieces_free(trace->pieces);
	trace->pieces = NULL;
	return trace->error;
}

int gt_trace_create(struct gt_trace **ret, const char *path, unsigned int flags, uint64_t base_ns,
		    const struct gt_trace_meta *meta, struct gt_err *err)
{
	static const struct gt_trace_health open = { .step_before_ms = -1,
						     .step_active_ms = -1,
						     .step_after_ms = -1 };
	struct gt_trace *trace = calloc(1, sizeof(*trace));
	size_t i;
	int code;

	if (!trace)
		return gt_err_sys(err, -ENOMEM, "cannot write '%s'", path);
	trace->base_ns = base_ns;
	trace->main.start = 1;
	trace->gpu.start = 1;
	trace->real_pid = meta->pid;
	trace->pid = meta->pid + (meta->pid < GT_TRACE_DEVICES_MAX ? GT_TRACE_PID_OFFSET : 0);
	snprintf(trace->comm, sizeof(trace->comm), "%s", meta->comm ? meta->comm : "");
	for (i = 0; i < meta->device_count; i++)
		gt_trace_device(trace, &meta->devices[i]);
	code = gt_gz_writer_create(&trace->gz, path,
				   flags & GT_TRACE_OVERWRITE ? GT_GZ_WRITER_OVERWRITE : 0, err);
	if (code) {
		trace_free(trace);
		return code;
	}
	code = gt_trace_put_head(trace, path, meta);
	if (code)
		gt_err_sys(err, code, "cannot write '%s'", path);
	else
		code = gt_trace_flush(trace, &open, err);
	if (code) {
		gt_gz_writer_close(trace->gz, NULL);
		trace_free(trace);
		return code;
	}
	*ret = trace;
	return 0;
}

int gt_trace_flush(struct gt_trace *trace, const struct gt_trace_health *health, struct gt_err *err)
{
	struct gt_buf tail = { 0 };
	int code;

	gt_trace_compress(trace); /* an error of this sticks and comes with the commit */
	code = gt_trace_put_tail(trace, health, &tail);
	if (code)
		gt_err_sys(err, code, "cannot write the trace");
	else
		code = gt_gz_writer_commit(trace->gz, gt_buf_str(&tail), err);
	gt_trace_forget_text(trace);
	if (!trace->error)
		trace->error = code;
	gt_buf_release(&tail);
	return code;
}

void gt_trace_hold(struct gt_trace *trace, bool hold)
{
	trace->held = hold;
}

size_t gt_trace_pending_bytes(const struct gt_trace *trace)
{
	return trace->unflushed + trace->main.text.len - trace->compressed + trace->gpu.text.len;
}

uint64_t gt_trace_event_count(const struct gt_trace *trace)
{
	return trace->events;
}

int gt_trace_close(struct gt_trace *trace, const struct gt_trace_health *health, struct gt_err *err)
{
	int code, closed;

	if (!trace)
		return 0;
	code = gt_trace_flush(trace, health, err);
	closed = gt_gz_writer_close(trace->gz, code ? NULL : err);
	trace_free(trace);
	return code ? code : closed;
}
