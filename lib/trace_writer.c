#include "trace_priv.h"

#include <stdlib.h>
#include <unistd.h>

#define COMPRESS_BYTES ((size_t)256 << 10) /* of JSON at a time: fits the second-level cache */

/* ---- events ---- */

char *gt_trace_reserve(struct gt_trace *trace, size_t bytes)
{
	char *p = trace->error ? NULL : gt_json_reserve(&trace->json, bytes + 2);

	if (!p) {
		trace->error = trace->error ? trace->error : -ENOMEM;
		return NULL;
	}
	if (trace->events)
		*p++ = ',';
	*p++ = '\n';
	return p;
}

int gt_trace_end_event(struct gt_trace *trace, const char *end)
{
	size_t before = trace->json.len;

	gt_json_commit(&trace->json, end);
	trace->pending_bytes += trace->json.len - before;
	trace->events++;
	if (trace->json.len < COMPRESS_BYTES)
		return 0;
	trace->error = gt_gz_writer_append(trace->gz, trace->json.text, trace->json.len);
	trace->json.len = 0;
	return trace->error;
}

bool gt_trace_times(struct gt_trace *trace, uint64_t start_ns, uint64_t end_ns, uint64_t *ret_start,
		    uint64_t *ret_end)
{
	uint64_t start = GT_MAX(start_ns, trace->base_ns) - trace->base_ns;
	uint64_t end = GT_MAX(end_ns, trace->base_ns) - trace->base_ns;

	if (start > GT_TRACE_TIME_MAX_NS || end > GT_TRACE_TIME_MAX_NS) {
		trace->refused++;
		return false;
	}
	*ret_start = start;
	*ret_end = GT_MAX(start, end);
	return true;
}

char *gt_trace_put_name(char *p, struct gt_str name, bool is_step)
{
	static const char reserved[] = "ProfilerStep";

	*p++ = '"';
	if (!is_step && name.len >= sizeof(reserved) - 1 &&
	    memcmp(name.ptr, reserved, sizeof(reserved) - 1) == 0)
		*p++ = ' ';
	p = gt_json_put_chars(p, name.ptr, name.len);
	*p++ = '"';
	return p;
}

char *gt_trace_put_slice_end(char *p, uint64_t start_ns, uint64_t end_ns)
{
	p = GT_JSON_PUT(p, ",\"ts\":");
	p = gt_json_put_us(p, start_ns);
	p = GT_JSON_PUT(p, ",\"dur\":");
	p = gt_json_put_us(p, end_ns - start_ns);
	return GT_JSON_PUT(p, "}");
}

/* ,"pid":…,"tid":… */
static char *put_thread(char *p, const struct gt_trace *trace, uint32_t tid)
{
	p = GT_JSON_PUT(p, ",\"pid\":");
	p = gt_json_put_u64(p, trace->pid);
	p = GT_JSON_PUT(p, ",\"tid\":");
	return gt_json_put_u64(p, tid);
}

int gt_trace_call(struct gt_trace *trace, const struct gt_trace_call *call)
{
	uint64_t start, end;
	uint32_t tid;
	char *p;

	if (!gt_trace_times(trace, call->start_ns, call->end_ns, &start, &end))
		return trace->error;
	tid = gt_trace_lane(trace, GT_TRACK_THREAD, 0, call->tid, 0, start, end);
	p = gt_trace_reserve(trace, GT_TRACE_NAME_MAX(call->name.len) + 512);
	if (!p)
		return trace->error;
	if (call->runtime)
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":");
	else
		p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"cuda_driver\",\"name\":");
	p = gt_trace_put_name(p, call->name, false);
	p = GT_JSON_PUT(p, ",\"args\":{\"cbid\":");
	p = gt_json_put_u64(p, call->cbid);
	if (call->captured)
		p = GT_JSON_PUT(p, ",\"captured\":true");
	if (call->external_id) {
		p = GT_JSON_PUT(p, ",\"External id\":");
		p = gt_json_put_u64(p, call->external_id);
	}
	if (call->correlation) {
		p = GT_JSON_PUT(p, ",\"correlation\":");
		p = gt_json_put_u64(p, call->correlation);
	}
	p = GT_JSON_PUT(p, "}");
	p = put_thread(p, trace, tid);
	p = gt_trace_put_slice_end(p, start, end);
	gt_trace_end_event(trace, p);
	if (!call->launches || !call->correlation)
		return trace->error;

	p = gt_trace_reserve(trace, 256);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
	p = gt_json_put_u64(p, call->correlation);
	p = put_thread(p, trace, tid);
	p = GT_JSON_PUT(p, ",\"ts\":");
	p = gt_json_put_us(p, start);
	p = GT_JSON_PUT(p, "}");
	return gt_trace_end_event(trace, p);
}

int gt_trace_range(struct gt_trace *trace, const struct gt_trace_range *range)
{
	uint64_t start, end;
	uint32_t tid;
	char *p;

	if (!gt_trace_times(trace, range->start_ns, range->end_ns, &start, &end))
		return trace->error;
	tid = gt_trace_lane(trace, GT_TRACK_THREAD, 0, range->tid, range->process_range, start,
			    end);
	p = gt_trace_reserve(trace, GT_TRACE_NAME_MAX(range->name.len) +
					    GT_JSON_STR_MAX(range->domain.len) + 512);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":");
	p = gt_trace_put_name(p, range->name, range->is_step);
	p = GT_JSON_PUT(p, ",\"args\":{\"External id\":");
	p = gt_json_put_u64(p, range->external_id);
	if (range->domain.len) {
		p = GT_JSON_PUT(p, ",\"domain\":");
		p = gt_json_put_str(p, range->domain.ptr, range->domain.len);
	}
	p = GT_JSON_PUT(p, "}");
	p = put_thread(p, trace, tid);
	return gt_trace_end_event(trace, gt_trace_put_slice_end(p, start, end));
}

int gt_trace_mark(struct gt_trace *trace, uint32_t tid, uint64_t time_ns, struct gt_str name)
{
	uint64_t start, end;
	char *p;

	if (!gt_trace_times(trace, time_ns, time_ns, &start, &end))
		return trace->error;
	gt_trace_lane(trace, GT_TRACK_THREAD, 0, tid, 0, start, start);
	p = gt_trace_reserve(trace, GT_TRACE_NAME_MAX(name.len) + 256);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"user_annotation\",\"name\":");
	p = gt_trace_put_name(p, name, false);
	p = GT_JSON_PUT(p, ",\"args\":{}");
	p = put_thread(p, trace, tid);
	p = GT_JSON_PUT(p, ",\"ts\":");
	p = gt_json_put_us(p, start);
	p = GT_JSON_PUT(p, "}");
	return gt_trace_end_event(trace, p);
}

int gt_trace_thread_name(struct gt_trace *trace, uint32_t tid, struct gt_str name)
{
	char text[256];
	int len;

	gt_trace_lane(trace, GT_TRACK_THREAD, 0, tid, 0, 0, 0);
	len = snprintf(text, sizeof(text), "thread %u (%.*s)", tid,
		       (int)GT_MIN(name.len, (size_t)200), name.len ? name.ptr : "");
	return gt_trace_meta_thread(trace, trace->pid, tid, text, (size_t)len, tid);
}

int gt_trace_device(struct gt_trace *trace, const struct gt_msg_device *device)
{
	if (device->id >= GT_TRACE_DEVICES_MAX)
		return -EINVAL;
	trace->devices[device->id] = *device;
	trace->devices_known |= UINT64_C(1) << device->id;
	return 0;
}

/* ---- the file ---- */

static void trace_free(struct gt_trace *trace)
{
	gt_trace_tracks_release(trace);
	gt_kernel_cache_free(trace->kernels);
	gt_json_release(&trace->json);
	gt_json_release(&trace->about);
	free(trace);
}

int gt_trace_create(struct gt_trace **ret, const char *path, unsigned int flags, uint64_t base_ns,
		    const struct gt_trace_meta *meta, struct gt_err *err)
{
	static const struct gt_trace_health open = { .step_before_ms = __builtin_nan(""),
						     .step_active_ms = __builtin_nan(""),
						     .step_after_ms = __builtin_nan("") };
	struct gt_trace *trace = calloc(1, sizeof(*trace));
	size_t i;
	int code;

	if (!trace)
		return gt_err_sys(err, -ENOMEM, "cannot write '%s'", path);
	trace->base_ns = base_ns;
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
		unlink(path); /* nothing of use is in it */
		gt_gz_writer_close(trace->gz, NULL);
		trace_free(trace);
		return code;
	}
	*ret = trace;
	return 0;
}

int gt_trace_flush(struct gt_trace *trace, const struct gt_trace_health *health, struct gt_err *err)
{
	struct gt_json tail = { 0 };
	int code = gt_trace_put_tail(trace, health, &tail);

	/* An error that stuck is reported by the commit. */
	if (!code)
		gt_gz_writer_append(trace->gz, trace->json.text, trace->json.len);
	if (code)
		gt_err_sys(err, code, "cannot write the trace");
	else
		code = gt_gz_writer_commit(trace->gz, tail.text, tail.len, err);
	trace->json.len = 0;
	trace->pending_bytes = 0;
	trace->error = code;
	gt_json_release(&tail);
	return code;
}

size_t gt_trace_pending_bytes(const struct gt_trace *trace)
{
	return trace->pending_bytes;
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
