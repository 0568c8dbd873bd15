/*
 * check_event.c - what is wrong with an event, taken by itself.
 */
#include "base.h"
#include "check_priv.h"
#include "json_clean.h"
#include "json_reader.h"

#define MAX_KEYS    128
#define TS_LIMIT_NS ((INT64_C(1) << 43) * 1000)

bool gt_check_is_gpu_work(const struct gt_trace_event *event)
{
	/* Meta's accelerator has neither streams nor correlations. */
	if (gt_str_equal(event->cat_text, GT_STR("mtia_ccp_events")))
		return false;
	return event->cat == GT_CAT_KERNEL || event->cat == GT_CAT_MEMCPY ||
	       event->cat == GT_CAT_MEMSET;
}

static bool is_string(struct gt_str raw)
{
	return gt_json_kind(raw) == GT_JSON_STRING;
}

static bool is_number(struct gt_str raw)
{
	return gt_json_kind(raw) == GT_JSON_NUMBER;
}

/* The keys of an object so far; those beyond MAX_KEYS are not compared. */
struct keys {
	uint64_t seen; /* bits by a hash: few keys need a comparison */
	size_t count;
	struct gt_str names[MAX_KEYS];
};

static bool has_key(struct keys *keys, struct gt_str key)
{
	uint64_t bit = key.len ? (unsigned char)key.ptr[0] * 7u +
					 (unsigned char)key.ptr[key.len - 1] + key.len * 13
			       : 0;

	bit = UINT64_C(1) << bit % 64;
	for (size_t i = 0; keys->seen & bit && i < keys->count; i++) {
		if (gt_str_equal(keys->names[i], key))
			return true;
	}
	keys->seen |= bit;
	if (keys->count < MAX_KEYS)
		keys->names[keys->count++] = key;
	return false;
}

static void check_key(struct gt_checker *checker, const struct gt_check_event *e, struct keys *keys,
		      struct gt_str key)
{
	if (has_key(keys, key))
		gt_check_add(checker, GT_CHECK_J_DUP, e, "%.*s", (int)GT_MIN(key.len, 100u),
			     key.ptr);
}

static bool note_field(struct gt_check_event *e, struct gt_str key, struct gt_str raw)
{
	static const struct gt_str names[GT_FIELD_COUNT] = {
		GT_STR("ph"), GT_STR("cat"), GT_STR("name"), GT_STR("pid"), GT_STR("tid"),
		GT_STR("ts"), GT_STR("dur"), GT_STR("args"), GT_STR("id"),  GT_STR("bp"),
	};

	for (int i = 0; i < GT_FIELD_COUNT; i++) {
		if (gt_str_equal(key, names[i])) {
			e->raw[i] = raw;
			return true;
		}
	}
	return false;
}

static void split_fields(struct gt_checker *checker, struct gt_check_event *e)
{
	struct gt_str whole = e->event->text;
	struct gt_json_text text = { .end = whole.ptr + whole.len };
	const char *at = whole.ptr + 1;
	char plain[GT_JSON_KEY_MAX];
	struct gt_str key, raw;
	struct keys keys;

	keys.seen = keys.count = 0;
	while (gt_json_member(&text, &at, &key) > 0) {
		const char *value = at;

		at = gt_json_value_end(&text, at);
		if (!at)
			return;
		check_key(checker, e, &keys, key);
		raw = (struct gt_str){ value, (size_t)(at - value) };
		if (!note_field(e, key, raw))
			note_field(e, gt_json_key(key, plain), raw);
	}
}

static void check_arg_keys(struct gt_checker *checker, const struct gt_check_event *e)
{
	struct gt_json_text text = { .end = e->event->args.ptr + e->event->args.len };
	const char *at = e->event->args.ptr + 1;
	struct keys keys;
	struct gt_str key;

	keys.seen = keys.count = 0;
	while (gt_json_member(&text, &at, &key) > 0) {
		at = gt_json_value_end(&text, at);
		if (!at)
			return;
		check_key(checker, e, &keys, key);
	}
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void check_name(struct gt_checker *checker, const struct gt_check_event *e)
{
	struct gt_str name = e->event->name;

	for (size_t i = 0; i < name.len; i++) {
		if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f) {
			gt_check_add(checker, GT_CHECK_E_ESC, e, NULL);
			return;
		}
	}
}

static void check_time(struct gt_checker *checker, const struct gt_check_event *e)
{
	const struct gt_trace_event *event = e->event;

	if (!event->has_ts)
		gt_check_add(checker, GT_CHECK_E_TS, e, NULL);
	if (is_string(e->raw[GT_FIELD_TS]) || is_string(e->raw[GT_FIELD_DUR]))
		gt_check_add(checker, GT_CHECK_E_STR, e, NULL);
	if (event->phase == 'X' && (!event->has_dur || event->dur_ns < 0))
		gt_check_add(checker, GT_CHECK_E_DUR, e, event->has_dur ? "below 0" : NULL);
	if (event->phase == 'X' && event->has_ts &&
	    (event->ts_ns < 0 || event->ts_ns >= TS_LIMIT_NS - GT_MAX(event->dur_ns, 0)))
		gt_check_add(checker, GT_CHECK_E_RANGE, e, NULL);
}

static bool is_id(struct gt_str raw, const struct gt_trace_id *id)
{
	return is_string(raw) || (is_number(raw) && id->number >= 0);
}

static bool is_old_category(struct gt_str cat)
{
	static const struct gt_str words[] = { GT_STR("Operator"), GT_STR("Runtime"),
					       GT_STR("Kernel"),   GT_STR("Memcpy"),
					       GT_STR("Memset"),   GT_STR("gpu_user_Annotation") };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (gt_str_equal(cat, words[i]))
			return true;
	}
	return false;
}

static void check_args(struct gt_checker *checker, const struct gt_check_event *e)
{
	enum gt_json_kind kind = gt_json_kind(e->raw[GT_FIELD_ARGS]);

	if (e->event->args.len)
		check_arg_keys(checker, e);
	if (kind == GT_JSON_NONE && e->event->phase == 'X')
		gt_check_add(checker, GT_CHECK_E_NOARGS, e, NULL);
	else if (kind != GT_JSON_NONE && kind != GT_JSON_OBJECT)
		gt_check_add(checker, GT_CHECK_E_ARGS, e, NULL);
}

static void check_step_name(struct gt_checker *checker, const struct gt_check_event *e)
{
	static const struct gt_str prefix = GT_STR("ProfilerStep");
	struct gt_str name = e->event->name;
	int64_t number;

	if (!gt_str_starts(name, prefix))
		return;
	name.ptr += prefix.len + 1;
	name.len -= GT_MIN(name.len, prefix.len + 1);
	if (!name.len || name.ptr[-1] != '#' || name.ptr[0] < '0' || name.ptr[0] > '9' ||
	    !gt_json_int(name, &number))
		gt_check_add(checker, GT_CHECK_P_NAME, e, NULL);
	else if (e->event->cat != GT_CAT_ANNOTATION && e->event->cat != GT_CAT_GPU_ANNOTATION)
		gt_check_add(checker, GT_CHECK_P_CAT, e, NULL);
}

bool gt_check_is_on_gpu(const struct gt_trace_event *event)
{
	return gt_check_is_gpu_work(event) || event->cat == GT_CAT_GPU_ANNOTATION ||
	       event->cat == GT_CAT_SYNC || gt_str_equal(event->cat_text, GT_STR("cuda_event")) ||
	       gt_str_equal(event->cat_text, GT_STR("cuda_profiler_range"));
}

/* Which of the pids that may be GPUs are on which side. */
static void note_pid(struct gt_checker *checker, const struct gt_check_event *e)
{
	int64_t pid = e->event->pid.number;

	if (!is_number(e->raw[GT_FIELD_PID]) || pid < 0 || pid > 63)
		return;
	if (gt_check_is_gpu_work(e->event))
		checker->gpu_pids |= UINT64_C(1) << pid;
	else if (!gt_check_is_on_gpu(e->event) && e->event->cat != GT_CAT_NONE)
		checker->host_pids |= UINT64_C(1) << pid;
}

/* A counter without a value is a line that is not there. */
static void check_counter(struct gt_checker *checker, const struct gt_check_event *e)
{
	struct gt_json_text text = { .end = e->event->args.ptr + e->event->args.len };
	const char *at = e->event->args.ptr + 1;
	struct gt_str key;

	if (!e->event->args.len || gt_json_member(&text, &at, &key) <= 0)
		gt_check_add(checker, GT_CHECK_E_INST, e, NULL);
}

static void check_slice(struct gt_checker *checker, const struct gt_check_event *e)
{
	const struct gt_trace_event *event = e->event;

	if (!is_string(e->raw[GT_FIELD_NAME]))
		gt_check_add(checker, GT_CHECK_E_NAME, e, NULL);
	if (event->cat == GT_CAT_NONE)
		gt_check_add(checker, GT_CHECK_E_CAT, e, NULL);
	if (is_old_category(event->cat_text))
		gt_check_add(checker, GT_CHECK_E_CATOLD, e, NULL);
	if (!is_id(e->raw[GT_FIELD_PID], &event->pid))
		gt_check_add(checker, GT_CHECK_E_PID, e, NULL);
	if (!is_id(e->raw[GT_FIELD_TID], &event->tid))
		gt_check_add(checker, GT_CHECK_E_TID, e, NULL);
	note_pid(checker, e);
	check_step_name(checker, e);
}

static void check_metadata(struct gt_checker *checker, const struct gt_check_event *e)
{
	static const struct {
		struct gt_str name;
		struct gt_str key;
		enum gt_json_kind kind;
	} known[] = {
		{ GT_STR("process_name"), GT_STR("name"), GT_JSON_STRING },
		{ GT_STR("process_labels"), GT_STR("labels"), GT_JSON_STRING },
		{ GT_STR("process_sort_index"), GT_STR("sort_index"), GT_JSON_NUMBER },
		{ GT_STR("thread_name"), GT_STR("name"), GT_JSON_STRING },
		{ GT_STR("thread_sort_index"), GT_STR("sort_index"), GT_JSON_NUMBER },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct gt_str value;

		if (!gt_str_equal(e->event->name, known[i].name))
			continue;
		gt_trace_event_args(e->event, &known[i].key, &value, 1);
		if (gt_json_kind(value) != known[i].kind || !e->raw[GT_FIELD_PID].len ||
		    (gt_str_starts(known[i].name, GT_STR("thread")) && !e->raw[GT_FIELD_TID].len))
			gt_check_add(checker, GT_CHECK_M_ARGS, e, NULL);
		return;
	}
	gt_check_add(checker, GT_CHECK_M_NAME, e, NULL);
}

/* ---- GPU work -------------------------------------------------------------------------------- */

static void check_gpu_work(struct gt_checker *checker, const struct gt_check_event *e)
{
	static const struct gt_str keys[] = {
		GT_STR("device"),
		GT_STR("stream"),
		GT_STR("correlation"),
		GT_STR("queued"),
		GT_STR("blocks per SM"),
		GT_STR("warps per SM"),
		GT_STR("est. achieved occupancy %"),
		GT_STR("memory bandwidth (GB/s)"),
	};
	struct gt_str values[ARRAY_SIZE(keys)];
	int64_t device = -1, stream, correlation;

	gt_trace_event_args(e->event, keys, values, ARRAY_SIZE(keys));
	if (!is_number(values[0]) || !gt_json_int(values[0], &device) ||
	    !is_number(e->raw[GT_FIELD_PID]) || e->event->pid.number != device || device < 0 ||
	    device > 63)
		gt_check_add(checker, GT_CHECK_G_PID, e, NULL);
	else
		checker->devices_used |= UINT64_C(1) << device;
	if (!is_number(values[1]) || !gt_json_int(values[1], &stream) || stream < 0)
		gt_check_add(checker, GT_CHECK_G_TID, e, NULL);
	if (!gt_json_int(values[2], &correlation) || correlation <= 0)
		gt_check_add(checker, GT_CHECK_G_CORR, e, NULL);
	for (size_t i = 3; i < ARRAY_SIZE(keys); i++) {
		if (values[i].len && !is_number(values[i]) &&
		    gt_json_kind(values[i]) != GT_JSON_WORD)
			gt_check_add(checker, GT_CHECK_G_NUM, e, "%s", keys[i].ptr);
	}
}

/* ---- text ------------------------------------------------------------------------------------ */

void gt_check_flaws(struct gt_checker *checker, const struct gt_check_event *e, unsigned int flaws)
{
	static const struct {
		enum gt_json_flaw flaw;
		enum gt_check_rule rule;
	} rules[] = {
		{ GT_JSON_FLAW_SYNTAX, GT_CHECK_J_SYNTAX },
		{ GT_JSON_FLAW_CONTROL, GT_CHECK_J_CTRL },
		{ GT_JSON_FLAW_UTF8, GT_CHECK_C_UTF8 },
		{ GT_JSON_FLAW_SURROGATE, GT_CHECK_J_SURR },
		{ GT_JSON_FLAW_CONSTANT, GT_CHECK_J_CONST },
		{ GT_JSON_FLAW_HUGE, GT_CHECK_J_HUGE },
		{ GT_JSON_FLAW_DEPTH, GT_CHECK_J_DEPTH },
	};

	for (size_t i = 0; flaws && i < ARRAY_SIZE(rules); i++) {
		if (flaws & rules[i].flaw)
			gt_check_add(checker, rules[i].rule, e, NULL);
	}
}

/* Copy the event, or go through the motions. */
static int check_text(struct gt_checker *checker, const struct gt_check_event *e)
{
	struct gt_str text = e->event->text;
	unsigned int flaws = 0;
	int rc = 0;

	if (checker->copy) {
		uint64_t lost = gt_trace_copy_lost(checker->copy);

		rc = gt_trace_copy_event(checker->copy, text, &flaws);
		flaws |= gt_trace_copy_lost(checker->copy) > lost ? GT_JSON_FLAW_SYNTAX : 0;
	} else {
		checker->clean.len = 0;
		if (!gt_json_clean(text, &checker->clean, &flaws))
			flaws |= GT_JSON_FLAW_SYNTAX;
		rc = checker->clean.failed ? -ENOMEM : 0;
	}
	gt_check_flaws(checker, e, flaws);
	return rc;
}

int gt_check_event(struct gt_checker *checker, const struct gt_trace_event *event)
{
	struct gt_check_event e = { .event = event,
				    .number = checker->events++,
				    .slice = GT_CHECK_NOWHERE };
	int rc;

	split_fields(checker, &e);
	if (!e.raw[GT_FIELD_PH].len && !e.raw[GT_FIELD_NAME].len && !e.raw[GT_FIELD_TS].len) {
		gt_check_add(checker, GT_CHECK_E_OBJECT, &e, NULL);
		return 0;
	}
	rc = check_text(checker, &e);
	if (rc)
		return rc;
	if (event->cat != GT_CAT_OTHER && event->cat != GT_CAT_NONE)
		checker->check->is_pytorch = true;
	check_name(checker, &e);
	check_args(checker, &e);
	if (event->phase == 'M') {
		check_metadata(checker, &e);
		return 0;
	}
	check_time(checker, &e);
	if (!event->phase || !strchr("XsfiC", event->phase))
		gt_check_add(checker, GT_CHECK_E_PH, &e, NULL);
	if (event->phase == 'X')
		check_slice(checker, &e);
	if (event->phase == 'X' && gt_check_is_gpu_work(event))
		check_gpu_work(checker, &e);
	if (event->phase == 'C')
		check_counter(checker, &e);
	rc = gt_check_track_event(checker, &e);
	if (rc || event->phase == 'X')
		return rc ? rc : gt_check_link_event(checker, &e);
	return event->phase == 's' || event->phase == 'f' ? gt_check_flow_event(checker, &e) : 0;
}
