/*
 * What stands around the events of a trace: head, names, devices, the gtrace object.
 */
#include "trace_priv.h"

#include <math.h>

#define STEP_TIME_TOLERANCE 0.2 /* active steps may differ by so much from those around them */

/* ---- members of an object: each adds ,"key":value ---- */

static char *put_key(char *p, const char *key)
{
	*p++ = ',';
	p = gt_json_put_str(p, gt_str_of(key));
	*p++ = ':';
	return p;
}

static char *reserve_member(struct gt_buf *buf, const char *key, size_t value_bytes)
{
	return gt_buf_reserve(buf, GT_JSON_STR_MAX(strlen(key)) + 2 + value_bytes);
}

static void add_number(struct gt_buf *buf, const char *key, uint64_t value)
{
	char *p = reserve_member(buf, key, GT_JSON_INT_MAX);

	if (p)
		buf->len = (size_t)(gt_json_put_u64(put_key(p, key), value) - buf->data);
}

static void add_string(struct gt_buf *buf, struct gt_str str)
{
	char *p = gt_buf_reserve(buf, GT_JSON_STR_MAX(str.len));

	if (p)
		buf->len = (size_t)(gt_json_put_str(p, str) - buf->data);
}

/* Nothing for NULL. */
static void add_text(struct gt_buf *buf, const char *key, const char *text)
{
	char *p = text ? reserve_member(buf, key, 0) : NULL;

	if (!p)
		return;
	buf->len = (size_t)(put_key(p, key) - buf->data);
	add_string(buf, gt_str_of(text));
}

/* The texts of list, then more; both may be NULL. Nothing for none. */
static void add_list(struct gt_buf *buf, const char *key, const char *const *list, const char *more)
{
	const char *comma = "";
	char *p;

	if (!more && (!list || !*list))
		return;
	p = reserve_member(buf, key, 0);
	if (!p)
		return;
	buf->len = (size_t)(put_key(p, key) - buf->data);
	gt_buf_byte(buf, '[');
	for (; list && *list; list++) {
		gt_buf_text(buf, comma);
		add_string(buf, gt_str_of(*list));
		comma = ",";
	}
	if (more) {
		gt_buf_text(buf, comma);
		add_string(buf, gt_str_of(more));
	}
	gt_buf_byte(buf, ']');
}

/* ---- metadata events ---- */

/* {"ph":"M",…,"args":{"arg": */
static char *put_meta(char *p, const char *name, uint32_t pid, uint32_t tid, const char *arg)
{
	p = gt_json_put_str(GT_JSON_PUT(p, "{\"ph\":\"M\",\"name\":"), gt_str_of(name));
	p = gt_json_put_u64(GT_JSON_PUT(p, ",\"ts\":0,\"pid\":"), pid);
	p = GT_TRACE_PUT_NUMBER(p, "tid", tid);
	p = gt_json_put_str(GT_JSON_PUT(p, ",\"args\":{"), gt_str_of(arg));
	return GT_JSON_PUT(p, ":");
}

#define META_MAX 256

static void meta_text(struct gt_trace *trace, const char *name, uint32_t pid, uint32_t tid,
		      const char *arg, struct gt_str text)
{
	char *p = gt_trace_begin(trace, &trace->main, META_MAX + GT_JSON_STR_MAX(text.len), NULL);

	if (!p)
		return;
	p = gt_json_put_str(put_meta(p, name, pid, tid, arg), text);
	gt_trace_end(trace, &trace->main, GT_JSON_PUT(p, "}"));
}

static void meta_number(struct gt_trace *trace, const char *name, uint32_t pid, uint32_t tid,
			int64_t number)
{
	char *p = gt_trace_begin(trace, &trace->main, META_MAX, NULL);

	if (!p)
		return;
	p = gt_json_put_i64(put_meta(p, name, pid, tid, "sort_index"), number);
	gt_trace_end(trace, &trace->main, GT_JSON_PUT(p, "}"));
}

void gt_trace_name_thread(struct gt_trace *trace, uint32_t pid, uint32_t tid, struct gt_str name,
			  int64_t sort_index)
{
	meta_text(trace, "thread_name", pid, tid, "name", name);
	meta_number(trace, "thread_sort_index", pid, tid, sort_index);
}

void gt_trace_use_device(struct gt_trace *trace, uint32_t device)
{
	char label[16];

	if (trace->devices_used & UINT64_C(1) << device)
		return;
	trace->devices_used |= UINT64_C(1) << device;
	snprintf(label, sizeof(label), "GPU %u", device);
	meta_text(trace, "process_name", device, 0, "name", gt_str_of(trace->comm));
	meta_text(trace, "process_labels", device, 0, "labels", gt_str_of(label));
	/* Kineto's index: behind every process that a viewer may show beside them */
	meta_number(trace, "process_sort_index", device, 0, 5000000 + (int64_t)device);
}

/* ---- head ---- */

static void add_about(struct gt_buf *buf, const struct gt_trace_meta *meta)
{
	gt_buf_text(buf, "\"version\":\"" GT_VERSION "\"");
	add_text(buf, "step_source", meta->step_source);
	add_text(buf, "rank_source", meta->rank_source);
	add_number(buf, "cycle", meta->cycle);
	if (meta->whole_run)
		gt_buf_text(buf, ",\"whole_run\":true");
	add_number(buf, "pid", meta->pid);
	add_text(buf, "comm", meta->comm);
	add_text(buf, "command", meta->command);
	add_text(buf, "python", meta->python);
	add_text(buf, "torch", meta->torch);
	add_list(buf, "environment", meta->environment, NULL);
}

int gt_trace_put_head(struct gt_trace *trace, const char *path, const struct gt_trace_meta *meta)
{
	struct gt_buf *text = &trace->main.text;
	char *p;

	add_about(&trace->about, meta);
	/* HTA takes the rank from the first match of "rank":<blank>N in the text. */
	gt_buf_printf(text, "{\"schemaVersion\":1,\n\"distributedInfo\":{\"rank\": %u", meta->rank);
	if (meta->world_size > meta->rank)
		add_number(text, "world_size", meta->world_size);
	gt_buf_text(text, "}");
	if (meta->runtime_version)
		add_number(text, "cuda_runtime_version", meta->runtime_version);
	if (meta->driver_version)
		add_number(text, "cuda_driver_version", meta->driver_version);
	if (meta->cupti_version)
		add_number(text, "cupti_version", meta->cupti_version);
	if (meta->with_shapes)
		add_number(text, "record_shapes", 1);
	if (meta->with_flops)
		add_number(text, "with_flops", 1);
	if (meta->with_stack)
		add_number(text, "with_stack", 1);
	if (meta->with_modules)
		add_number(text, "with_modules", 1);
	if (meta->with_memory)
		add_number(text, "profile_memory", 1);
	add_text(text, "host_name", meta->host);
	add_text(text, "traceName", path);
	gt_buf_text(text, ",\"displayTimeUnit\":\"ms\"");
	add_number(text, "baseTimeNanoseconds", trace->base_ns);
	gt_buf_text(text, ",\n\"traceEvents\":[\n");
	/* The first event, without its last brace as gt_trace_begin() wants it. */
	p = gt_buf_reserve(text, META_MAX);
	if (!p || trace->about.failed)
		return -ENOMEM;
	p = gt_json_put_i64(put_meta(p, "process_sort_index", trace->pid, 0, "sort_index"),
			    meta->pid);
	gt_trace_end(trace, &trace->main, GT_JSON_PUT(p, "}"));
	meta_text(trace, "process_name", trace->pid, 0, "name", gt_str_of(trace->comm));
	meta_text(trace, "process_labels", trace->pid, 0, "labels", GT_STR("CPU"));
	return trace->error;
}

/* ---- tail ---- */

static void add_device(struct gt_buf *buf, const struct gt_msg_device *device)
{
	gt_buf_printf(buf, "{\"id\":%u,\"name\":", device->id);
	add_string(buf,
		   (struct gt_str){ device->name, strnlen(device->name, sizeof(device->name)) });
	add_number(buf, "totalGlobalMem", device->total_global_mem);
	add_number(buf, "computeMajor", device->compute_major);
	add_number(buf, "computeMinor", device->compute_minor);
	add_number(buf, "maxThreadsPerBlock", device->max_threads_per_block);
	add_number(buf, "maxThreadsPerMultiprocessor", device->max_threads_per_multiprocessor);
	add_number(buf, "regsPerBlock", device->regs_per_block);
	add_number(buf, "warpSize", device->warp_size);
	add_number(buf, "sharedMemPerBlock", device->shared_mem_per_block);
	add_number(buf, "numSms", device->num_sms);
	add_number(buf, "regsPerMultiprocessor", device->regs_per_multiprocessor);
	add_number(buf, "sharedMemPerBlockOptin", device->shared_mem_per_block_optin);
	add_number(buf, "sharedMemPerMultiprocessor", device->shared_mem_per_multiprocessor);
	gt_buf_text(buf, "}");
}

static void add_devices(struct gt_buf *buf, const struct gt_trace *trace)
{
	uint64_t todo = trace->devices_used | trace->devices_known;

	for (; todo; todo &= todo - 1) {
		uint32_t id = (uint32_t)__builtin_ctzll(todo);

		if (trace->devices_known & UINT64_C(1) << id)
			add_device(buf, &trace->devices[id]);
		else /* readers look up every GPU that has events */
			gt_buf_printf(buf, "{\"id\":%u,\"name\":\"GPU %u\"}", id, id);
		if (todo & (todo - 1))
			gt_buf_text(buf, ",");
	}
}

static void add_step_ms(struct gt_buf *buf, const char *key, double ms)
{
	gt_buf_printf(buf, "\"%s\":", key);
	if (ms >= 0 && ms < 1e12) /* not NaN */
		gt_buf_printf(buf, "%.3f", ms);
	else
		gt_buf_text(buf, "null");
}

/* The warning about active steps that are unlike those around them, or NULL. */
static const char *step_warning(const struct gt_trace_health *health, char *buf, size_t len)
{
	char sides[80];
	double around = 0;
	int seen = 0;

	if (health->step_before_ms > 0) {
		around += health->step_before_ms;
		seen++;
	}
	if (health->step_after_ms > 0) {
		around += health->step_after_ms;
		seen++;
	}
	if (!seen || !(health->step_active_ms > 0))
		return NULL;
	around /= seen;
	if (fabs(health->step_active_ms / around - 1) <= STEP_TIME_TOLERANCE)
		return NULL;
	if (seen == 2)
		snprintf(sides, sizeof(sides), "those before %.3f ms, those after %.3f ms",
			 health->step_before_ms, health->step_after_ms);
	else
		snprintf(sides, sizeof(sides), "those %s %.3f ms",
			 health->step_before_ms > 0 ? "before" : "after", around);
	snprintf(buf, len,
		 "active steps took %.3f ms, %s: the times in this trace may not be those of the "
		 "program alone",
		 health->step_active_ms, sides);
	return buf;
}

static void add_health(struct gt_buf *buf, const struct gt_trace *trace,
		       const struct gt_trace_health *health)
{
	char warning[192], refused[64];
	const char *reason = health->reason;

	if (health->complete && trace->refused) {
		snprintf(refused, sizeof(refused), "%llu record%s could not be used",
			 (unsigned long long)trace->refused, trace->refused == 1 ? "" : "s");
		reason = refused;
	}
	if (health->fallback)
		gt_buf_text(buf, ",\"fallback\":true");
	gt_buf_printf(buf, ",\"complete\":%s,\"dropped\":{",
		      health->complete && !trace->refused ? "true" : "false");
	gt_buf_printf(buf, "\"cupti\":%llu", (unsigned long long)health->dropped_cupti);
	add_number(buf, "arena", health->dropped_arena);
	add_number(buf, "ring", health->dropped_ring);
	add_number(buf, "names", health->dropped_names);
	gt_buf_text(buf, "}");
	add_number(buf, "bad_records", health->bad_records + trace->refused);
	add_number(buf, "launches_without_gpu", health->launches_without_gpu);
	add_number(buf, "gpu_without_launch", health->gpu_without_launch);
	add_number(buf, "captured_launches", health->captured_launches);
	gt_buf_text(buf, ",\"step_ms\":{");
	add_step_ms(buf, "before", health->step_before_ms);
	gt_buf_text(buf, ",");
	add_step_ms(buf, "active", health->step_active_ms);
	gt_buf_text(buf, ",");
	add_step_ms(buf, "after", health->step_after_ms);
	gt_buf_printf(buf, "},\"clock_residue_ns\":%lld", (long long)health->clock_residue_ns);
	add_number(buf, "events", trace->events);
	add_text(buf, "reason", reason);
	add_list(buf, "warnings", health->warnings, step_warning(health, warning, sizeof(warning)));
}

int gt_trace_put_tail(const struct gt_trace *trace, const struct gt_trace_health *health,
		      struct gt_buf *buf)
{
	gt_buf_text(buf, "}\n],\"deviceProperties\":[");
	add_devices(buf, trace);
	gt_buf_text(buf, "],\n\"gtrace\":{");
	gt_buf_append(buf, trace->about.data, trace->about.len);
	add_health(buf, trace, health);
	gt_buf_text(buf, "}}\n");
	return buf->failed ? -ENOMEM : 0;
}
