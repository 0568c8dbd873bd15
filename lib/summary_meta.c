/*
 * summary_meta.c - what stands in a trace beside its events: producer, devices, rank, and the
 * "gtrace" object of our own traces.
 */
#include "base.h"
#include "summary.h"
#include "summary_priv.h"

/* Walk an object; fn gets each member. A value that cannot be read ends the walk. */
static int walk(struct gt_str raw, void *context,
		int (*fn)(void *context, struct gt_str key, struct gt_str raw))
{
	struct gt_json_text text = { .end = raw.ptr + raw.len };
	const char *at = raw.ptr + 1;
	struct gt_str key;
	int rc = 0;

	if (gt_json_kind(raw) != GT_JSON_OBJECT)
		return 0;
	while (!rc && gt_json_member(&text, &at, &key) > 0) {
		const char *value = at;

		at = gt_json_value_end(&text, at);
		if (!at)
			break;
		rc = fn(context, key, (struct gt_str){ value, (size_t)(at - value) });
	}
	return rc;
}

/* The same for the elements of an array. */
static int walk_array(struct gt_str raw, void *context, int (*fn)(void *context, struct gt_str raw))
{
	struct gt_json_text text = { .end = raw.ptr + raw.len };
	const char *at = raw.ptr + 1;
	int rc = 0;

	if (gt_json_kind(raw) != GT_JSON_ARRAY)
		return 0;
	while (!rc && gt_json_element(&text, &at) > 0) {
		const char *value = at;

		at = gt_json_value_end(&text, at);
		if (!at)
			break;
		rc = fn(context, (struct gt_str){ value, (size_t)(at - value) });
	}
	return rc;
}

/* ---- devices --------------------------------------------------------------------------------- */

static int on_device_member(void *context, struct gt_str key, struct gt_str raw)
{
	struct gt_summary *summary = context;
	struct gt_str name = gt_json_unquote(raw);
	struct gt_buf *devices = &summary->devices;

	if (!gt_str_equal(key, GT_STR("name")) || gt_json_kind(raw) != GT_JSON_STRING || !name.len)
		return 0;
	if (devices->len && memmem(devices->data, devices->len, name.ptr, name.len))
		return 0;
	if (devices->len)
		gt_buf_append(devices, ", ", 2);
	return gt_json_put_text(devices, raw);
}

static int on_device(void *context, struct gt_str raw)
{
	return walk(raw, context, on_device_member);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static int on_distributed(void *context, struct gt_str key, struct gt_str raw)
{
	struct gt_summary *summary = context;
	int64_t value;

	if (!gt_json_int(raw, &value) || value < 0)
		return 0;
	if (gt_str_equal(key, GT_STR("rank")))
		summary->rank = value;
	else if (gt_str_equal(key, GT_STR("world_size")))
		summary->world_size = value;
	return 0;
}

/* ---- our own object -------------------------------------------------------------------------- */

static int on_dropped(void *context, struct gt_str key, struct gt_str raw)
{
	struct gt_summary_own *own = context;
	int64_t value;

	(void)key;
	if (gt_json_int(raw, &value) && value > 0)
		own->dropped += (uint64_t)value;
	return 0;
}

static int on_warning(void *context, struct gt_str raw)
{
	struct gt_summary_own *own = context;

	if (gt_json_kind(raw) != GT_JSON_STRING)
		return 0;
	if (gt_json_put_text(&own->warnings, raw))
		return -ENOMEM;
	gt_buf_byte(&own->warnings, '\n');
	return 0;
}

static int on_own(void *context, struct gt_str key, struct gt_str raw)
{
	struct gt_summary *summary = context;
	struct gt_summary_own *own = &summary->own;
	const struct {
		struct gt_str key;
		uint64_t *value;
	} counts[] = {
		{ GT_STR("bad_records"), &own->bad_records },
		{ GT_STR("launches_without_gpu"), &own->launches_without_gpu },
		{ GT_STR("gpu_without_launch"), &own->gpu_without_launch },
		{ GT_STR("captured_launches"), &own->captured_launches },
	};
	int64_t value;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		if (gt_str_equal(key, counts[i].key) && gt_json_int(raw, &value) && value >= 0)
			*counts[i].value = (uint64_t)value;
	}
	if (gt_str_equal(key, GT_STR("complete")))
		own->complete = gt_json_kind(raw) == GT_JSON_TRUE;
	else if (gt_str_equal(key, GT_STR("dropped")))
		return walk(raw, own, on_dropped);
	else if (gt_str_equal(key, GT_STR("warnings")))
		return walk_array(raw, own, on_warning);
	else if (gt_json_kind(raw) != GT_JSON_STRING)
		return 0;
	else if (gt_str_equal(key, GT_STR("version")))
		return gt_json_put_text(&own->version, raw);
	else if (gt_str_equal(key, GT_STR("step_source")))
		return gt_json_put_text(&own->step_source, raw);
	else if (gt_str_equal(key, GT_STR("reason")))
		return gt_json_put_text(&own->reason, raw);
	return 0;
}

/* ---- the top level --------------------------------------------------------------------------- */

/* 12040 is CUDA 12.4; HIP counts differently and is left as it is. */
static int note_version(struct gt_summary *summary, struct gt_str raw, const char *api, bool cuda)
{
	int64_t version;

	if (summary->runtime.len)
		return 0;
	gt_buf_text(&summary->runtime, api);
	if (!cuda || !gt_json_int(raw, &version))
		return gt_json_put_text(&summary->runtime, raw);
	gt_buf_printf(&summary->runtime, "%lld.%lld", (long long)version / 1000,
		      (long long)version % 1000 / 10);
	return 0;
}

int gt_summary_member(struct gt_summary *summary, struct gt_str key, struct gt_str raw)
{
	if (gt_str_equal(key, GT_STR("gtrace"))) {
		summary->own.present = gt_json_kind(raw) == GT_JSON_OBJECT;
		return walk(raw, summary, on_own);
	}
	if (gt_str_equal(key, GT_STR("deviceProperties"))) {
		summary->is_kineto = true;
		return walk_array(raw, summary, on_device);
	}
	if (gt_str_equal(key, GT_STR("distributedInfo")))
		return walk(raw, summary, on_distributed);
	if (gt_str_equal(key, GT_STR("baseTimeNanoseconds")))
		summary->has_base = gt_json_int(raw, &summary->base_ns);
	else if (gt_str_equal(key, GT_STR("cuda_runtime_version")))
		return note_version(summary, raw, "CUDA ", true);
	else if (gt_str_equal(key, GT_STR("hip_runtime_version")))
		return note_version(summary, raw, "HIP ", false);
	else if (gt_str_equal(key, GT_STR("with_flops")))
		summary->with_flops = gt_json_kind(raw) == GT_JSON_TRUE ||
				      gt_str_equal(raw, GT_STR("1"));
	else if (gt_str_equal(key, GT_STR("schemaVersion")))
		summary->is_kineto = true;
	return 0;
}

void gt_summary_name_producer(struct gt_summary *summary)
{
	struct gt_buf *out = &summary->producer;

	if (summary->own.present) {
		gt_buf_text(out, "gtrace");
		if (summary->own.version.len)
			gt_buf_byte(out, ' ');
		gt_buf_append(out, summary->own.version.data, summary->own.version.len);
	} else {
		gt_buf_text(out, summary->is_kineto ? "Kineto (PyTorch)" : "Trace Event Format");
	}
	if (summary->runtime.len) {
		gt_buf_text(out, ", ");
		gt_buf_append(out, summary->runtime.data, summary->runtime.len);
	}
}
