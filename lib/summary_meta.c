/*
 * summary_meta.c - what stands in a trace beside its events: producer, devices, rank, and the
 * "gtrace" object of our own traces.
 */
#include "base.h"
#include "safe_text.h"
#include "summary.h"
#include "summary_priv.h"

/* Walk an object; fn gets each member. A value that cannot be read ends the walk. */
static int walk(struct gt_str raw, void *context,
		int (*fn)(void *context, struct gt_str key, struct gt_str raw))
{
	struct gt_json_text text = { .end = raw.ptr + raw.len };
	const char *at = raw.ptr + 1;
	char plain[GT_JSON_KEY_MAX];
	struct gt_str key;
	int rc = 0;

	if (gt_json_kind(raw) != GT_JSON_OBJECT)
		return 0;
	while (!rc && gt_json_member(&text, &at, &key) > 0) {
		const char *value = at;

		at = gt_json_value_end(&text, at);
		if (!at)
			break;
		rc = fn(context, gt_json_key(key, plain),
			(struct gt_str){ value, (size_t)(at - value) });
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
		own->dropped = gt_summary_add_sat(own->dropped, (uint64_t)value);
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

/* It gives a reason when it ends the file. */
static void explain_open(struct gt_summary_own *own)
{
	if (own->present && !own->complete && !own->reason.len)
		gt_buf_text(
			&own->reason,
			"gtrace has not ended it: it is at work, was killed or could not write");
}

/* ---- of a copy ------------------------------------------------------------------------------- */

#define ERRORS_SHOWN 8
#define TEXT_SHOWN   100 /* columns */
#define COPIES_SHOWN 4   /* of one another */
#define COPIES_MAX   64  /* nobody has made more */

struct span {
	int64_t ends[2];
	int count;
};

struct copy {
	struct gt_str what;
	int64_t events; /* numbers are -1 where there is none */
	int64_t of_events;
	int64_t left_out;
	int64_t device;
	struct span steps;
	struct span time_ns;
	struct gt_str categories;
	struct gt_str errors;
	struct gt_str of; /* what it was made of, when that is a copy itself */
	struct gt_buf *out;
	uint64_t errors_put;
};

static int on_end(void *context, struct gt_str raw)
{
	struct span *span = context;

	if (span->count == 2 || !gt_json_int(raw, &span->ends[span->count]))
		return -EINVAL;
	span->count++;
	return 0;
}

static int on_copy(void *context, struct gt_str key, struct gt_str raw)
{
	struct copy *copy = context;
	const struct {
		struct gt_str key;
		int64_t *value;
	} numbers[] = {
		{ GT_STR("events"), &copy->events },
		{ GT_STR("of_events"), &copy->of_events },
		{ GT_STR("left_out"), &copy->left_out },
		{ GT_STR("device"), &copy->device },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (gt_str_equal(key, numbers[i].key) && !gt_json_int(raw, numbers[i].value))
			*numbers[i].value = -1;
	}
	if (gt_str_equal(key, GT_STR("steps")))
		walk_array(raw, &copy->steps, on_end);
	else if (gt_str_equal(key, GT_STR("time_ns")))
		walk_array(raw, &copy->time_ns, on_end);
	else if (gt_str_equal(key, GT_STR("errors")))
		copy->errors = raw;
	else if (gt_str_equal(key, GT_STR("of")))
		copy->of = raw;
	else if (gt_json_kind(raw) != GT_JSON_STRING)
		return 0;
	else if (gt_str_equal(key, GT_STR("what")))
		copy->what = gt_json_unquote(raw);
	else if (gt_str_equal(key, GT_STR("categories")))
		copy->categories = raw;
	return 0;
}

static void put_short(struct gt_buf *out, struct gt_str raw)
{
	struct gt_buf text = { 0 }, safe = { 0 };

	out->failed |= gt_json_put_text(&text, raw) != 0;
	gt_safe_put(&safe, gt_buf_str(&text));
	gt_safe_put_cut(out, gt_buf_str(&safe), TEXT_SHOWN);
	out->failed |= safe.failed;
	gt_buf_release(&text);
	gt_buf_release(&safe);
}

static void put_cut(const struct copy *copy, struct gt_buf *out)
{
	const int64_t *steps = copy->steps.ends, *time_ns = copy->time_ns.ends;
	const char *comma = ": ";

	gt_buf_text(out, "part of another trace");
	if (copy->events >= 0 && copy->of_events >= 0) {
		gt_buf_printf(out, ": %lld of its %lld event%s", (long long)copy->events,
			      (long long)copy->of_events, copy->of_events == 1 ? "" : "s");
		comma = ", ";
	}
	if (copy->steps.count == 2) {
		gt_buf_text(out, comma);
		if (steps[0] == steps[1])
			gt_buf_printf(out, "step %lld", (long long)steps[0]);
		else if (steps[1] == INT64_MAX)
			gt_buf_printf(out, "from step %lld on", (long long)steps[0]);
		else
			gt_buf_printf(out, "steps %lld to %lld", (long long)steps[0],
				      (long long)steps[1]);
		comma = ", ";
	}
	if (copy->time_ns.count == 2) {
		gt_buf_printf(out, "%sfrom %s", comma, gt_time_text(time_ns[0]).text);
		if (time_ns[1] == INT64_MAX)
			gt_buf_text(out, " on");
		else
			gt_buf_printf(out, " to %s", gt_time_text(time_ns[1]).text);
		comma = ", ";
	}
	if (copy->device >= 0) {
		gt_buf_printf(out, "%sGPU %lld", comma, (long long)copy->device);
		comma = ", ";
	}
	if (copy->categories.len) {
		gt_buf_printf(out, "%scategories ", comma);
		put_short(out, copy->categories);
	}
}

static int on_error(void *context, struct gt_str raw)
{
	struct copy *copy = context;

	if (gt_json_kind(raw) != GT_JSON_STRING || copy->errors_put++ >= ERRORS_SHOWN)
		return 0;
	gt_buf_text(copy->out, copy->errors_put == 1 ? " with errors: " : "; ");
	put_short(copy->out, raw);
	return 0;
}

static void put_repair(struct copy *copy, struct gt_buf *out)
{
	gt_buf_text(out, "repaired copy of a trace");
	copy->out = out;
	walk_array(copy->errors, copy, on_error);
	if (!copy->errors_put)
		gt_buf_text(out, " without errors");
	if (copy->errors_put > ERRORS_SHOWN)
		gt_buf_printf(out, "; and %llu more",
			      (unsigned long long)copy->errors_put - ERRORS_SHOWN);
	if (copy->left_out > 0)
		gt_buf_printf(out, "; %lld %s left out", (long long)copy->left_out,
			      copy->left_out == 1 ? "event or member was"
						  : "events or members were");
}

/* One of the copies; false: it is nothing known. */
static bool note_one(struct gt_summary_copy *ret, struct copy *copy, struct gt_buf *about)
{
	if (gt_str_equal(copy->what, GT_STR("cut"))) {
		ret->kind = GT_COPY_CUT; /* whatever was done to it since then */
		ret->by_kind |= copy->device >= 0 || copy->categories.len;
		put_cut(copy, about);
		return true;
	}
	if (gt_str_equal(copy->what, GT_STR("repair"))) {
		if (!ret->kind)
			ret->kind = GT_COPY_REPAIR;
		put_repair(copy, about);
		return true;
	}
	return false;
}

static int note_copy(struct gt_summary_copy *ret, struct gt_str raw)
{
	struct gt_buf about = { 0 };
	size_t len;
	int rc;

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; raw.len && i < COPIES_MAX; i++) {
		struct copy copy = { .events = -1, .of_events = -1, .left_out = -1, .device = -1 };

		len = about.len;
		if (i)
			gt_buf_text(&about, "; that one: ");
		walk(raw, &copy, on_copy);
		if (!note_one(ret, &copy, &about)) {
			about.len = len;
			break;
		}
		if (i >= COPIES_SHOWN)
			about.len = len;
		if (i == COPIES_SHOWN)
			gt_buf_text(&about, "; that one: a copy, too");
		raw = copy.of;
	}
	len = GT_MIN(about.len, sizeof(ret->about) - 1); /* ERRORS_SHOWN texts each have room */
	if (len)
		memcpy(ret->about, about.data, len);
	rc = about.failed ? -ENOMEM : 0;
	gt_buf_release(&about);
	return rc;
}

void gt_summary_put_copy_json(const struct gt_summary *summary, struct gt_buf *out)
{
	const struct gt_summary_copy *copy = &summary->copy;

	if (!copy->kind)
		return;
	gt_buf_printf(out, ",\"copy\":{\"what\":\"%s\",\"about\":",
		      copy->kind == GT_COPY_CUT ? "cut" : "repair");
	gt_safe_put_json(out, gt_str_of(copy->about));
	gt_buf_byte(out, '}');
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
	char plain[GT_JSON_KEY_MAX];
	int rc;

	key = gt_json_key(key, plain);
	if (gt_str_equal(key, GT_STR("gtrace"))) {
		summary->own.present = gt_json_kind(raw) == GT_JSON_OBJECT;
		rc = walk(raw, summary, on_own);
		explain_open(&summary->own);
		return rc;
	}
	if (gt_str_equal(key, GT_STR("gtrace_copy")))
		return note_copy(&summary->copy, raw);
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
