/*
 * What stands around the events of a trace: head, names, the devices, the gtrace object.
 */
#include "trace_priv.h"

#include <math.h>

#define STEP_TIME_TOLERANCE 0.2 /* active steps may differ by so much from those around them */

/* ,"key":"text" */
static char *put_pair(char *p, const char *key, const char *text)
{
	p = GT_JSON_PUT(p, ",");
	p = gt_json_put_str(p, key, strlen(key));
	p = GT_JSON_PUT(p, ":");
	return gt_json_put_str(p, text, strlen(text));
}

/* ,"key":value */
static char *put_number(char *p, const char *key, uint64_t value)
{
	p = GT_JSON_PUT(p, ",");
	p = gt_json_put_str(p, key, strlen(key));
	p = GT_JSON_PUT(p, ":");
	return gt_json_put_u64(p, value);
}

#define PAIR_MAX(key_len, len) \
	(GT_JSON_STR_MAX(key_len) + GT_JSON_STR_MAX(len) + GT_JSON_INT_MAX + 2)

/* Both add to an object that has a member already; nothing for NULL. -ENOMEM. */
static int add_pair(struct gt_json *json, const char *key, const char *text)
{
	char *p;

	if (!text)
		return 0;
	p = gt_json_reserve(json, PAIR_MAX(strlen(key), strlen(text)));
	if (!p)
		return -ENOMEM;
	gt_json_commit(json, put_pair(p, key, text));
	return 0;
}

static int add_number(struct gt_json *json, const char *key, uint64_t value)
{
	char *p = gt_json_reserve(json, PAIR_MAX(strlen(key), 0));

	if (!p)
		return -ENOMEM;
	gt_json_commit(json, put_number(p, key, value));
	return 0;
}

static int add_text(struct gt_json *json, const char *text)
{
	size_t len = strlen(text);
	char *p = gt_json_reserve(json, len);

	if (!p)
		return -ENOMEM;
	gt_json_commit(json, (char *)memcpy(p, text, len) + len);
	return 0;
}

/* ,"key":["…",…]; nothing for NULL or an empty list */
static int add_list(struct gt_json *json, const char *key, const char *const *list,
		    const char *more)
{
	bool first = true;
	int code;

	if (!more && (!list || !*list))
		return 0;
	code = add_text(json, ",");
	code = code ? code : add_text(json, "\"");
	code = code ? code : add_text(json, key);
	code = code ? code : add_text(json, "\":[");
	while (!code && ((list && *list) || more)) {
		const char *text = list && *list ? *list : more;
		char *p = gt_json_reserve(json, GT_JSON_STR_MAX(strlen(text)) + 1);

		if (!p)
			return -ENOMEM;
		if (!first)
			*p++ = ',';
		gt_json_commit(json, gt_json_put_str(p, text, strlen(text)));
		first = false;
		if (list && *list)
			list++;
		else
			more = NULL;
	}
	return code ? code : add_text(json, "]");
}

/* ---- metadata events ---- */

int gt_trace_meta_thread(struct gt_trace *trace, uint32_t pid, uint32_t tid, const char *name,
			 size_t len, int64_t sort_index)
{
	char *p = gt_trace_reserve(trace, GT_JSON_STR_MAX(len) + 128);

	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":0,\"pid\":");
	p = gt_json_put_u64(p, pid);
	p = GT_JSON_PUT(p, ",\"tid\":");
	p = gt_json_put_u64(p, tid);
	p = GT_JSON_PUT(p, ",\"args\":{\"name\":");
	p = gt_json_put_str(p, name, len);
	p = GT_JSON_PUT(p, "}}");
	gt_trace_end_event(trace, p);

	p = gt_trace_reserve(trace, 160);
	if (!p)
		return trace->error;
	p = GT_JSON_PUT(p, "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"ts\":0,\"pid\":");
	p = gt_json_put_u64(p, pid);
	p = GT_JSON_PUT(p, ",\"tid\":");
	p = gt_json_put_u64(p, tid);
	p = GT_JSON_PUT(p, ",\"args\":{\"sort_index\":");
	p = gt_json_put_i64(p, sort_index);
	p = GT_JSON_PUT(p, "}}");
	return gt_trace_end_event(trace, p);
}

static char *put_process(char *p, uint32_t pid, const char *what, const char *arg)
{
	p = GT_JSON_PUT(p, "{\"ph\":\"M\",\"name\":\"process_");
	p = gt_json_put_chars(p, what, strlen(what));
	p = GT_JSON_PUT(p, "\",\"ts\":0,\"pid\":");
	p = gt_json_put_u64(p, pid);
	p = GT_JSON_PUT(p, ",\"tid\":0,\"args\":{\"");
	p = gt_json_put_chars(p, arg, strlen(arg));
	return GT_JSON_PUT(p, "\":");
}

int gt_trace_meta_process(struct gt_trace *trace, uint32_t pid, const char *labels,
			  int64_t sort_index)
{
	char *p = gt_trace_reserve(trace, GT_JSON_STR_MAX(strlen(trace->comm)) + 160);

	if (!p)
		return trace->error;
	p = put_process(p, pid, "name", "name");
	p = gt_json_put_str(p, trace->comm, strlen(trace->comm));
	p = GT_JSON_PUT(p, "}}");
	gt_trace_end_event(trace, p);

	p = gt_trace_reserve(trace, GT_JSON_STR_MAX(strlen(labels)) + 160);
	if (!p)
		return trace->error;
	p = put_process(p, pid, "labels", "labels");
	p = gt_json_put_str(p, labels, strlen(labels));
	p = GT_JSON_PUT(p, "}}");
	gt_trace_end_event(trace, p);

	p = gt_trace_reserve(trace, 160);
	if (!p)
		return trace->error;
	p = put_process(p, pid, "sort_index", "sort_index");
	p = gt_json_put_i64(p, sort_index);
	p = GT_JSON_PUT(p, "}}");
	return gt_trace_end_event(trace, p);
}

void gt_trace_use_device(struct gt_trace *trace, uint32_t device)
{
	char label[16];

	if (trace->devices_used & UINT64_C(1) << device)
		return;
	trace->devices_used |= UINT64_C(1) << device;
	snprintf(label, sizeof(label), "GPU %u", device);
	/* Kineto's index, behind every process that a viewer may show beside them */
	gt_trace_meta_process(trace, device, label, 5000000 + (int64_t)device);
}

/* ---- head ---- */

static int add_about(struct gt_json *json, const struct gt_trace_meta *meta)
{
	int code = add_text(json, "\"version\":\"" GT_VERSION "\"");

	code = code ? code : add_pair(json, "step_source", meta->step_source);
	code = code ? code : add_pair(json, "rank_source", meta->rank_source);
	code = code ? code : add_number(json, "cycle", meta->cycle);
	if (meta->whole_run)
		code = code ? code : add_text(json, ",\"whole_run\":true");
	if (meta->fallback)
		code = code ? code : add_text(json, ",\"fallback\":true");
	code = code ? code : add_number(json, "pid", meta->pid);
	code = code ? code : add_pair(json, "comm", meta->comm);
	code = code ? code : add_pair(json, "command", meta->command);
	code = code ? code : add_pair(json, "python", meta->python);
	code = code ? code : add_pair(json, "torch", meta->torch);
	return code ? code : add_list(json, "environment", meta->environment, NULL);
}

int gt_trace_put_head(struct gt_trace *trace, const char *path, const struct gt_trace_meta *meta)
{
	struct gt_json *json = &trace->json;
	int code = add_text(json, "{\"schemaVersion\":1,\n\"distributedInfo\":{\"rank\": ");
	char *p;

	p = code ? NULL : gt_json_reserve(json, 2 * GT_JSON_INT_MAX + 64);
	if (!p)
		return -ENOMEM;
	p = gt_json_put_u64(p, meta->rank);
	if (meta->world_size > meta->rank)
		p = put_number(p, "world_size", meta->world_size);
	p = GT_JSON_PUT(p, "}");
	gt_json_commit(json, p);
	if (meta->runtime_version)
		code = code ? code
			    : add_number(json, "cuda_runtime_version", meta->runtime_version);
	if (meta->driver_version)
		code = code ? code : add_number(json, "cuda_driver_version", meta->driver_version);
	if (meta->cupti_version)
		code = code ? code : add_number(json, "cupti_version", meta->cupti_version);
	code = code ? code : add_pair(json, "host_name", meta->host);
	code = code ? code : add_pair(json, "traceName", path);
	code = code ? code : add_text(json, ",\"displayTimeUnit\":\"ms\"");
	code = code ? code : add_number(json, "baseTimeNanoseconds", trace->base_ns);
	code = code ? code : add_text(json, ",\n\"traceEvents\":[");
	code = code ? code : add_about(&trace->about, meta);
	if (code)
		return code;
	return gt_trace_meta_process(trace, trace->pid, "CPU", meta->pid);
}

/* ---- tail ---- */

static int add_device(struct gt_json *json, const struct gt_msg_device *device)
{
	size_t name_len = strnlen(device->name, sizeof(device->name));
	char *p = gt_json_reserve(json, GT_JSON_STR_MAX(name_len) + 1024);

	if (!p)
		return -ENOMEM;
	p = GT_JSON_PUT(p, "{\"id\":");
	p = gt_json_put_u64(p, device->id);
	p = GT_JSON_PUT(p, ",\"name\":");
	p = gt_json_put_str(p, device->name, name_len);
	p = put_number(p, "totalGlobalMem", device->total_global_mem);
	p = put_number(p, "computeMajor", device->compute_major);
	p = put_number(p, "computeMinor", device->compute_minor);
	p = put_number(p, "maxThreadsPerBlock", device->max_threads_per_block);
	p = put_number(p, "maxThreadsPerMultiprocessor", device->max_threads_per_multiprocessor);
	p = put_number(p, "regsPerBlock", device->regs_per_block);
	p = put_number(p, "warpSize", device->warp_size);
	p = put_number(p, "sharedMemPerBlock", device->shared_mem_per_block);
	p = put_number(p, "numSms", device->num_sms);
	p = put_number(p, "regsPerMultiprocessor", device->regs_per_multiprocessor);
	p = put_number(p, "sharedMemPerBlockOptin", device->shared_mem_per_block_optin);
	p = put_number(p, "sharedMemPerMultiprocessor", device->shared_mem_per_multiprocessor);
	p = GT_JSON_PUT(p, "}");
	gt_json_commit(json, p);
	return 0;
}

static int add_devices(struct gt_json *json, const struct gt_trace *trace)
{
	uint64_t todo = trace->devices_used | trace->devices_known;
	int code = add_text(json, "\"deviceProperties\":[");

	while (todo && !code) {
		uint32_t id = (uint32_t)__builtin_ctzll(todo);

		todo &= todo - 1;
		if (trace->devices_known & UINT64_C(1) << id) {
			code = add_device(json, &trace->devices[id]);
		} else { /* readers look up every GPU that has events */
			char text[64];

			snprintf(text, sizeof(text), "{\"id\":%u,\"name\":\"GPU %u\"}", id, id);
			code = add_text(json, text);
		}
		if (todo)
			code = code ? code : add_text(json, ",");
	}
	return code ? code : add_text(json, "]");
}

static char *put_step_ms(char *p, const char *key, double ms)
{
	p = gt_json_put_str(p, key, strlen(key));
	if (!(ms >= 0 && ms < 1e12))
		return GT_JSON_PUT(p, ":null");
	p = GT_JSON_PUT(p, ":");
	return gt_json_put_us(p, (uint64_t)llround(ms * 1000)); /* three decimals, here of ms */
}

/* The warning about active steps that are unlike those around them, or NULL. */
static const char *step_warning(const struct gt_trace_health *health, char *buf, size_t len)
{
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
	snprintf(
		buf, len,
		"active steps took %.3f ms, those around them %.3f ms: the times of this trace may "
		"not be those of the program alone",
		health->step_active_ms, around);
	return buf;
}

static int add_health(struct gt_json *json, const struct gt_trace *trace,
		      const struct gt_trace_health *health)
{
	char warning[192];
	char *p = gt_json_reserve(json, 1024);
	int code;

	if (!p)
		return -ENOMEM;
	if (health->complete && !trace->refused)
		p = GT_JSON_PUT(p, ",\"complete\":true");
	else
		p = GT_JSON_PUT(p, ",\"complete\":false");
	p = GT_JSON_PUT(p, ",\"dropped\":{\"cupti\":");
	p = gt_json_put_u64(p, health->dropped_cupti);
	p = put_number(p, "arena", health->dropped_arena);
	p = put_number(p, "ring", health->dropped_ring);
	p = put_number(p, "names", health->dropped_names);
	p = GT_JSON_PUT(p, "}");
	p = put_number(p, "bad_records", health->bad_records + trace->refused);
	p = put_number(p, "launches_without_gpu", health->launches_without_gpu);
	p = put_number(p, "gpu_without_launch", health->gpu_without_launch);
	p = put_number(p, "captured_launches", health->captured_launches);
	p = GT_JSON_PUT(p, ",\"step_ms\":{");
	p = put_step_ms(p, "before", health->step_before_ms);
	p = GT_JSON_PUT(p, ",");
	p = put_step_ms(p, "active", health->step_active_ms);
	p = GT_JSON_PUT(p, ",");
	p = put_step_ms(p, "after", health->step_after_ms);
	p = GT_JSON_PUT(p, "},\"clock_residue_ns\":");
	p = gt_json_put_i64(p, health->clock_residue_ns);
	p = put_number(p, "events", trace->events);
	gt_json_commit(json, p);
	code = add_pair(json, "reason", health->reason);
	return code ? code
		    : add_list(json, "warnings", health->warnings,
			       step_warning(health, warning, sizeof(warning)));
}

int gt_trace_put_tail(const struct gt_trace *trace, const struct gt_trace_health *health,
		      struct gt_json *json)
{
	char *p;
	int code = add_text(json, "\n],");

	code = code ? code : add_devices(json, trace);
	code = code ? code : add_text(json, ",\n\"gtrace\":{");
	p = code ? NULL : gt_json_reserve(json, trace->about.len);
	if (!p)
		return -ENOMEM;
	gt_json_commit(json,
		       (char *)memcpy(p, trace->about.text, trace->about.len) + trace->about.len);
	code = add_health(json, trace, health);
	return code ? code : add_text(json, "}}\n");
}
