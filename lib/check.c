/*
 * check.c - reads a trace for its check, and judges the file as such; see check.h.
 */
#include "base.h"
#include "check_priv.h"
#include "json_clean.h"
#include "safe_text.h"
#include "summary_priv.h"

#include <stdarg.h>
#include <stdlib.h>

#define NAME_SHOWN 48

static const struct {
	bool is_error;
	bool pytorch;
} rules[] = {
#define RULE(name, code, is_error, pytorch, text) { is_error, pytorch },
	GT_CHECK_RULES(RULE)
#undef RULE
};

/* ---- findings -------------------------------------------------------------------------------- */

static void put_first(struct gt_check_finding *finding, struct gt_buf *text)
{
	size_t len = GT_MIN(text->len, sizeof(finding->first) - 1);

	while (len && len < text->len && ((unsigned char)text->data[len] & 0xc0) == 0x80)
		len--;
	if (len)
		memcpy(finding->first, text->data, len);
	finding->first[len] = '\0';
	gt_buf_release(text);
}

static void put_detail(struct gt_buf *out, const char *fmt, va_list args)
{
	char detail[192];
	int len = fmt ? vsnprintf(detail, sizeof(detail), fmt, args) : 0;

	if (len <= 0)
		return;
	gt_buf_text(out, out->len ? ": " : "");
	gt_safe_put(out, (struct gt_str){ detail, GT_MIN((size_t)len, sizeof(detail) - 1) });
}

void gt_check_add(struct gt_checker *checker, enum gt_check_rule rule,
		  const struct gt_check_event *e, const char *fmt, ...)
{
	struct gt_check_finding *finding = &checker->check->findings[rule];
	struct gt_buf text = { 0 };
	va_list args;

	if (finding->count++)
		return;
	if (e) {
		const struct gt_trace_event *event = e->event;
		char phase = event->phase ? event->phase : '?';

		gt_buf_printf(&text, "event %llu ", (unsigned long long)e->number);
		gt_safe_put(&text, (struct gt_str){ &phase, 1 });
		gt_buf_text(&text, event->cat_text.len ? " " : "");
		gt_safe_put(&text, (struct gt_str){ event->cat_text.ptr,
						    GT_MIN(event->cat_text.len, (size_t)24) });
		gt_buf_text(&text, " \"");
		gt_safe_put(&text, (struct gt_str){ event->name.ptr,
						    GT_MIN(event->name.len, (size_t)NAME_SHOWN) });
		gt_buf_byte(&text, '"');
	}
	va_start(args, fmt);
	put_detail(&text, fmt, args);
	va_end(args);
	put_first(finding, &text);
}

void gt_check_add_at(struct gt_checker *checker, enum gt_check_rule rule, uint64_t event,
		     uint64_t count, const char *fmt, ...)
{
	struct gt_check_finding *finding = &checker->check->findings[rule];
	struct gt_buf text = { 0 };
	va_list args;

	finding->count += count;
	if (finding->count > count || !count)
		return;
	if (event != UINT64_MAX)
		gt_buf_printf(&text, "event %llu", (unsigned long long)event);
	va_start(args, fmt);
	put_detail(&text, fmt, args);
	va_end(args);
	put_first(finding, &text);
}

bool gt_check_is_sound(const struct gt_check *check)
{
	for (int i = 0; i < GT_CHECK_RULE_COUNT; i++) {
		if (check->findings[i].count && rules[i].is_error)
			return false;
	}
	return true;
}

/* ---- members of the top level ---------------------------------------------------------------- */

/* Remember the ids of the GPUs. */
static void note_device(struct gt_checker *checker, struct gt_str raw)
{
	static const struct gt_str keys[] = { GT_STR("id"), GT_STR("name") };
	struct gt_trace_event device = { .args = raw };
	struct gt_str values[ARRAY_SIZE(keys)];
	int64_t id;

	if (gt_json_kind(raw) == GT_JSON_OBJECT)
		gt_trace_event_args(&device, keys, values, ARRAY_SIZE(keys));
	if (gt_json_kind(raw) != GT_JSON_OBJECT || gt_json_kind(values[0]) != GT_JSON_NUMBER ||
	    gt_json_kind(values[1]) != GT_JSON_STRING || !gt_json_int(values[0], &id) || id < 0) {
		gt_check_add(checker, GT_CHECK_T_DEVICE, NULL, "an entry without id and name");
		return;
	}
	if (id > 63)
		return;
	if (checker->devices_listed >> id & 1)
		gt_check_add(checker, GT_CHECK_T_DEVICE, NULL, "GPU %lld twice", (long long)id);
	checker->devices_listed |= UINT64_C(1) << id;
}

static void note_devices(struct gt_checker *checker, struct gt_str raw)
{
	struct gt_json_text text = { .end = raw.ptr + raw.len };
	const char *at = raw.ptr + 1;

	checker->saw_devices = gt_json_kind(raw) == GT_JSON_ARRAY;
	while (checker->saw_devices && gt_json_element(&text, &at) > 0) {
		const char *value = at;

		at = gt_json_value_end(&text, at);
		if (!at)
			return;
		note_device(checker, (struct gt_str){ value, (size_t)(at - value) });
	}
}

/* A file without a rank is of one process, but one that tells it must tell a number. */
static void check_rank(struct gt_checker *checker, struct gt_str raw)
{
	static const struct gt_str keys[] = { GT_STR("rank"), GT_STR("world_size") };
	struct gt_trace_event info = { .args = raw };
	struct gt_str values[ARRAY_SIZE(keys)];
	int64_t number;

	if (gt_json_kind(raw) != GT_JSON_OBJECT) {
		gt_check_add(checker, GT_CHECK_T_DIST, NULL, "distributedInfo is no object");
		return;
	}
	gt_trace_event_args(&info, keys, values, ARRAY_SIZE(keys));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (values[i].len && (gt_json_kind(values[i]) != GT_JSON_NUMBER ||
				      !gt_json_int(values[i], &number) || number < 0))
			gt_check_add(checker, GT_CHECK_T_DIST, NULL, "%s is no such number",
				     keys[i].ptr);
	}
}

/* HTA looks for "rank":<blank>N in the text. */
static void check_rank_text(struct gt_checker *checker, struct gt_str raw)
{
	static const struct gt_str key = GT_STR("\"rank\":");
	const char *at = memmem(raw.ptr, raw.len, key.ptr, key.len);

	if (checker->events)
		gt_check_add(checker, GT_CHECK_T_RANK, NULL, "it stands behind traceEvents");
	else if (at && (unsigned char)at[key.len] > ' ')
		gt_check_add(checker, GT_CHECK_T_RANK, NULL, "without a blank");
}

static void check_member(struct gt_checker *checker, struct gt_str key, struct gt_str raw)
{
	char plain[GT_JSON_KEY_MAX], plain_unit[GT_JSON_KEY_MAX];
	struct gt_str unit;

	key = gt_json_key(key, plain);
	if (gt_str_equal(key, GT_STR("displayTimeUnit"))) {
		unit = gt_json_key(gt_json_unquote(raw), plain_unit);
		if (!gt_str_equal(unit, GT_STR("ms")) && !gt_str_equal(unit, GT_STR("ns")))
			gt_check_add(checker, GT_CHECK_T_UNIT, NULL, NULL);
	} else if (gt_str_equal(key, GT_STR("deviceProperties"))) {
		note_devices(checker, raw);
	} else if (gt_str_equal(key, GT_STR("distributedInfo"))) {
		check_rank_text(checker, raw);
		check_rank(checker, raw);
	} else if (gt_str_equal(key, GT_STR("gtrace"))) {
		if (gt_json_kind(raw) != GT_JSON_OBJECT)
			gt_check_add(checker, GT_CHECK_T_GTRACE, NULL, NULL);
	}
}

static int on_member(void *context, struct gt_str key, struct gt_str raw)
{
	struct gt_checker *checker = context;
	unsigned int flaws = 0;
	int rc = 0;

	check_member(checker, key, raw);
	if (checker->copy) {
		uint64_t lost = gt_trace_copy_lost(checker->copy);

		rc = gt_trace_copy_member(checker->copy, key, raw, &flaws);
		flaws |= gt_trace_copy_lost(checker->copy) > lost ? GT_JSON_FLAW_SYNTAX : 0;
	} else {
		checker->clean.len = 0;
		if (!gt_json_clean_member(key, raw, &checker->clean, &flaws))
			flaws |= GT_JSON_FLAW_SYNTAX;
	}
	if (flaws)
		gt_check_flaws(checker, NULL, flaws);
	return rc ? rc : gt_summary_member(checker->check->about, key, raw);
}

static int on_event(void *context, const struct gt_trace_event *event)
{
	return gt_check_event(context, event);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void add_if(struct gt_checker *checker, enum gt_check_rule rule, uint64_t count)
{
	checker->check->findings[rule].count += count;
}

static void check_container(struct gt_checker *checker, const char *path)
{
	const struct gt_gz_status *gz = &checker->check->gz;
	const struct gt_trace_stats *read = &checker->check->read;

	add_if(checker, GT_CHECK_C_TRUNC, gz->cut || read->cut);
	add_if(checker, GT_CHECK_C_GZIP, gz->damages);
	add_if(checker, GT_CHECK_C_CRC, gz->bad_checksum);
	add_if(checker, GT_CHECK_C_TAIL, gz->trailing_junk);
	add_if(checker, GT_CHECK_C_MEMBER, gz->members > 1 ? gz->members : 0);
	add_if(checker, GT_CHECK_C_BOM, read->has_bom);
	add_if(checker, GT_CHECK_J_SYNTAX, read->skipped + read->repaired + read->bad_commas);
	add_if(checker, GT_CHECK_J_OPEN, read->unclosed);
	add_if(checker, GT_CHECK_J_TAIL, read->trailing);
	add_if(checker, GT_CHECK_T_OBJECT, read->is_array);
	add_if(checker, GT_CHECK_T_EVENTS, !read->events);
	add_if(checker, GT_CHECK_T_TWICE, read->repeated);
	if (!strcmp(path, "-"))
		return;
	add_if(checker, GT_CHECK_C_NAME, !gt_text_ends(path, gz->members ? ".gz" : ".json"));
	add_if(checker, GT_CHECK_C_PTNAME,
	       !gt_text_ends(path, ".pt.trace.json") && !gt_text_ends(path, ".pt.trace.json.gz"));
}

static void check_about(struct gt_checker *checker)
{
	const struct gt_summary *about = checker->check->about;
	const struct gt_summary_own *own = &about->own;
	uint64_t missing = checker->devices_used & ~checker->devices_listed;

	if (about->world_size > 0 && about->rank >= about->world_size)
		gt_check_add(checker, GT_CHECK_T_DIST, NULL, "rank %lld of %lld",
			     (long long)about->rank, (long long)about->world_size);
	for (; checker->saw_devices && missing; missing &= missing - 1)
		gt_check_add(checker, GT_CHECK_T_DEVICE, NULL, "GPU %d", __builtin_ctzll(missing));
	for (uint64_t both = checker->gpu_pids & checker->host_pids; both; both &= both - 1)
		gt_check_add(checker, GT_CHECK_G_PIDMIX, NULL, "pid %d", __builtin_ctzll(both));
	if (!own->present)
		return;
	if (!own->complete)
		gt_check_add(checker, GT_CHECK_T_LOST, NULL, "%.*s",
			     (int)GT_MIN(own->reason.len, 180u),
			     own->reason.len ? own->reason.data : "");
	add_if(checker, GT_CHECK_T_DROP, gt_summary_add_sat(own->dropped, own->bad_records));
	if (own->warnings.len) {
		const char *end = memchr(own->warnings.data, '\n', own->warnings.len);

		gt_check_add(checker, GT_CHECK_T_DOUBT, NULL, "%.*s",
			     (int)(end ? end - own->warnings.data : 0), own->warnings.data);
	}
}

static void forget_pytorch_rules(struct gt_check *check)
{
	for (int i = 0; i < GT_CHECK_RULE_COUNT; i++) {
		if (rules[i].pytorch)
			check->findings[i] = (struct gt_check_finding){ 0 };
	}
}

static int new_check(struct gt_check **ret, const char *path)
{
	struct gt_check *check = calloc(1, sizeof(*check));

	*ret = check;
	if (!check)
		return -ENOMEM;
	check->about = calloc(1, sizeof(*check->about));
	if (!check->about)
		return -ENOMEM;
	check->about->rank = -1;
	check->about->path = strdup(path);
	return check->about->path ? 0 : -ENOMEM;
}

void gt_check_free(struct gt_check *check)
{
	if (!check)
		return;
	gt_summary_free(check->about);
	free(check);
}

static int finish(struct gt_checker *checker, struct gt_gz_reader *gz, const char *path)
{
	struct gt_check *check = checker->check;
	int rc;

	check->gz = *gt_gz_status(gz);
	check->is_pytorch |= check->about->is_kineto || check->about->own.present;
	check->about->is_kineto = check->is_pytorch;
	gt_summary_name_producer(check->about);
	gt_check_links_finish(checker);
	gt_check_flows_finish(checker);
	rc = gt_check_tracks_finish(checker);
	check_container(checker, path);
	check_about(checker);
	if (!check->is_pytorch)
		forget_pytorch_rules(check);
	return rc;
}

int gt_check_read(struct gt_check **ret, struct gt_gz_reader *gz, const char *path,
		  struct gt_trace_copy *copy, struct gt_err *err)
{
	struct gt_checker checker = {
		.copy = copy,
		.links = { .first_launch_ns = INT64_MAX, .last_gpu_ns = INT64_MIN },
		.tracks = { .first_ns = INT64_MAX, .last_ns = INT64_MIN },
	};
	struct gt_trace_hooks hooks = { &checker, on_event, on_member };
	int rc = new_check(&checker.check, path);

	err->code = 0;
	if (!rc)
		rc = gt_trace_read(gz, &hooks, &checker.check->read, err);
	if (!rc)
		rc = finish(&checker, gz, path);
	gt_check_links_release(&checker.links);
	gt_check_tracks_release(&checker.tracks);
	gt_buf_release(&checker.clean);
	if (rc) {
		gt_check_free(checker.check);
		if (rc == -ENOMEM)
			return gt_err_set(err, rc, "out of memory");
		return err->code ? rc : gt_err_sys(err, rc, "cannot write the copy");
	}
	*ret = checker.check;
	return 0;
}
