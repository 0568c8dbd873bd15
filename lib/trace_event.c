/*
 * trace_event.c - see trace_event.h. The fields are those of the Trace Event Format and of Kineto's
 * output_json.cpp.
 */
#include "base.h"
#include "trace_event.h"

#include <endian.h>

#define STREAM_PREFIX GT_STR("stream ")

/* ---- categories ------------------------------------------------------------------------------ */

static const struct {
	struct gt_str text;
	enum gt_trace_cat cat;
} categories[] = {
	/* the name of today first */
	{ GT_STR("cpu_op"), GT_CAT_CPU_OP },
	{ GT_STR("Operator"), GT_CAT_CPU_OP },
	{ GT_STR("kernel"), GT_CAT_KERNEL },
	{ GT_STR("Kernel"), GT_CAT_KERNEL },
	{ GT_STR("mtia_ccp_events"), GT_CAT_KERNEL },
	{ GT_STR("cuda_runtime"), GT_CAT_RUNTIME },
	{ GT_STR("Runtime"), GT_CAT_RUNTIME },
	{ GT_STR("mtia_runtime"), GT_CAT_RUNTIME },
	{ GT_STR("glow_runtime"), GT_CAT_RUNTIME },
	{ GT_STR("xpu_runtime"), GT_CAT_RUNTIME },
	{ GT_STR("privateuse1_runtime"), GT_CAT_RUNTIME },
	{ GT_STR("cuda_driver"), GT_CAT_DRIVER },
	{ GT_STR("xpu_driver"), GT_CAT_DRIVER },
	{ GT_STR("privateuse1_driver"), GT_CAT_DRIVER },
	{ GT_STR("ac2g"), GT_CAT_LAUNCH_FLOW },
	{ GT_STR("async"), GT_CAT_LAUNCH_FLOW },
	{ GT_STR("async_gpu"), GT_CAT_LAUNCH_FLOW },
	{ GT_STR("async_cpu_to_gpu"), GT_CAT_LAUNCH_FLOW },
	{ GT_STR("gpu_memcpy"), GT_CAT_MEMCPY },
	{ GT_STR("Memcpy"), GT_CAT_MEMCPY },
	{ GT_STR("gpu_memset"), GT_CAT_MEMSET },
	{ GT_STR("Memset"), GT_CAT_MEMSET },
	{ GT_STR("user_annotation"), GT_CAT_ANNOTATION },
	{ GT_STR("gpu_user_annotation"), GT_CAT_GPU_ANNOTATION },
	{ GT_STR("gpu_user_Annotation"), GT_CAT_GPU_ANNOTATION },
	{ GT_STR("python_function"), GT_CAT_PYTHON },
	{ GT_STR("overhead"), GT_CAT_OVERHEAD },
	{ GT_STR("cuda_sync"), GT_CAT_SYNC },
	{ GT_STR("xpu_sync"), GT_CAT_SYNC },
	{ GT_STR("Trace"), GT_CAT_TRACE },
};

enum gt_trace_cat gt_trace_cat_of(struct gt_str text)
{
	for (size_t i = 0; i < ARRAY_SIZE(categories); i++) {
		if (gt_str_equal(text, categories[i].text))
			return categories[i].cat;
	}
	return text.len ? GT_CAT_OTHER : GT_CAT_NONE;
}

const char *gt_trace_cat_name(enum gt_trace_cat cat)
{
	for (size_t i = 0; i < ARRAY_SIZE(categories); i++) {
		if (categories[i].cat == cat)
			return categories[i].text.ptr;
	}
	return NULL;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static inline uint32_t load32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

enum field {
	FIELD_OTHER,
	FIELD_PHASE,
	FIELD_CAT,
	FIELD_NAME,
	FIELD_PID,
	FIELD_TID,
	FIELD_TS,
	FIELD_DUR,
	FIELD_ARGS
};

/* at stands behind the opening quote of a key; *ret_len is its length when it is known. */
static inline enum field known_field(const char *at, size_t *ret_len)
{
	uint32_t four = load32(at);

	*ret_len = 3;
	if (four == load32("cat\""))
		return FIELD_CAT;
	if (four == load32("pid\""))
		return FIELD_PID;
	if (four == load32("tid\""))
		return FIELD_TID;
	if (four == load32("dur\""))
		return FIELD_DUR;
	*ret_len = 4;
	if (four == load32("name") && at[4] == '"')
		return FIELD_NAME;
	if (four == load32("args") && at[4] == '"')
		return FIELD_ARGS;
	*ret_len = 2;
	if (at[0] == 't' && at[1] == 's' && at[2] == '"')
		return FIELD_TS;
	if (at[0] == 'p' && at[1] == 'h' && at[2] == '"')
		return FIELD_PHASE;
	return FIELD_OTHER;
}

struct key {
	const char *quote; /* the closing one; NULL: failed */
	enum field field;
};

/* Any other key; by what it stands for when it has escapes. Apart: the loop is faster so. */
GT_NOINLINE static struct key other_key(struct gt_json_text *text, const char *at)
{
	char plain[GT_JSON_KEY_MAX + 4]; /* four bytes can be read at the end of any key */
	struct key ret = { .field = FIELD_OTHER };
	struct gt_str key;
	bool escaped;
	size_t len;

	ret.quote = gt_json_string_end(text, at, &escaped);
	if (GT_LIKELY(!ret.quote || !escaped))
		return ret;
	memset(plain, 0, sizeof(plain));
	key = gt_json_key((struct gt_str){ at, (size_t)(ret.quote - at) }, plain);
	if (key.ptr != plain)
		return ret;
	plain[key.len] = '"';
	ret.field = known_field(plain, &len);
	if (len != key.len)
		ret.field = FIELD_OTHER;
	return ret;
}

static const uint64_t powers_of_10[] = { 1,      10,      100,      1000,     10000,
					 100000, 1000000, 10000000, 100000000 };

/*
 * The number that the digits at 'at' make, up to eight of them; *ret_count says how many. All at
 * once: what follows them is shifted out, so that zeros stand before them, and then neighbours are
 * joined to pairs, fours and eight.
 */
static inline uint64_t up_to_eight_digits(const char *at, unsigned int *ret_count)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t value, others;

	memcpy(&value, at, sizeof(value));
	value = le64toh(value) - ones * '0';
	others = (value | (value + ones * (0x80 - 10))) & ones * 0x80;
	*ret_count = others ? (unsigned int)__builtin_ctzll(others) / 8 : 8;
	if (!*ret_count)
		return 0;
	value <<= 64 - 8 * *ret_count;
	value = value * 10 + (value >> 8);
	return ((value & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
		(value >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
	       32;
}

/* An unsigned integer of at most 15 digits; *at is moved behind it. False: none, or longer. */
static inline bool short_int(const char **at, int64_t *ret)
{
	unsigned int count, more;
	uint64_t value = up_to_eight_digits(*at, &count);

	if (count == 8) {
		uint64_t tail = up_to_eight_digits(*at + 8, &more);

		value = value * powers_of_10[more] + tail;
		count += more;
	}
	*at += count;
	*ret = (int64_t)value;
	return count > 0 && count < 16;
}

/* Whether a number that ended here is a plain one. */
static inline bool number_ends(char c)
{
	return c == ',' || c == '}' || c == '\n' || c == ' ' || c == '\r';
}

/* Microseconds to ns. The usual forms, 123 and 123.456, are read here, all others slowly. */
static const char *read_time(struct gt_json_text *text, const char *at, int64_t *ret_ns, bool *ret)
{
	const char *next = at;
	const char *dot;
	int64_t whole, fraction;

	if (short_int(&next, &whole)) {
		dot = next;
		if (*dot == '.' && ++next && short_int(&next, &fraction) && next - dot == 4) {
			whole = whole * 1000 + fraction;
		} else if (next == dot) {
			whole *= 1000;
		} else {
			next = at;
		}
		if (next != at && number_ends(*next)) {
			*ret_ns = whole;
			*ret = true;
			return next;
		}
	}
	next = gt_json_value_end(text, at);
	if (next)
		*ret = gt_json_scaled((struct gt_str){ at, (size_t)(next - at) }, 3, ret_ns);
	return next;
}

static const char *read_id(struct gt_json_text *text, const char *at, struct gt_trace_id *ret)
{
	const char *next = at;
	struct gt_str raw;

	ret->text = (struct gt_str){ NULL, 0 };
	if (short_int(&next, &ret->number) && number_ends(*next))
		return next;
	next = gt_json_value_end(text, at);
	if (!next)
		return NULL;
	raw = (struct gt_str){ at, (size_t)(next - at) };
	if (gt_json_kind(raw) == GT_JSON_STRING)
		ret->text = gt_json_unquote(raw);
	else if (!gt_json_int(raw, &ret->number))
		ret->number = 0;
	return next;
}

static const char *read_string(struct gt_json_text *text, const char *at, struct gt_str *ret,
			       bool *ret_escaped)
{
	const char *quote;

	if (*at != '"') {
		*ret = (struct gt_str){ NULL, 0 };
		return gt_json_value_end(text, at);
	}
	quote = gt_json_string_end(text, ++at, ret_escaped);
	if (!quote)
		return NULL;
	*ret = (struct gt_str){ at, (size_t)(quote - at) };
	return quote + 1;
}

static const char *read_args(struct gt_json_text *text, const char *at, struct gt_str *ret)
{
	const char *next = gt_json_value_end(text, at);

	if (next)
		*ret = *at == '{' ? (struct gt_str){ at, (size_t)(next - at) }
				  : (struct gt_str){ NULL, 0 };
	return next;
}

GT_NOINLINE static char phase_of(struct gt_str raw)
{
	char plain[GT_JSON_KEY_MAX];
	struct gt_str phase = gt_json_key(raw, plain);

	return phase.len == 1 ? phase.ptr[0] : 0;
}

static const char *read_field(struct gt_json_text *text, const char *at, enum field field,
			      struct gt_trace_event *ret)
{
	struct gt_str phase;

	switch (field) {
	case FIELD_PHASE:
		at = read_string(text, at, &phase, NULL);
		if (at)
			ret->phase = phase.len == 1 ? phase.ptr[0] : phase_of(phase);
		return at;
	case FIELD_CAT:
		return read_string(text, at, &ret->cat_text, NULL);
	case FIELD_NAME:
		return read_string(text, at, &ret->name, &ret->name_escaped);
	case FIELD_PID:
		return read_id(text, at, &ret->pid);
	case FIELD_TID:
		return read_id(text, at, &ret->tid);
	case FIELD_TS:
		return read_time(text, at, &ret->ts_ns, &ret->has_ts);
	case FIELD_DUR:
		return read_time(text, at, &ret->dur_ns, &ret->has_dur);
	case FIELD_ARGS:
		return read_args(text, at, &ret->args);
	case FIELD_OTHER:
		break;
	}
	return gt_json_value_end(text, at);
}

/* Field by field: for one memset() of this size compilers choose an instruction that takes longer
 * than the rest of a short event. */
static inline void clear(struct gt_trace_event *event)
{
	const struct gt_trace_id no_id = { 0 };
	const struct gt_str none = { NULL, 0 };

	event->phase = 0;
	event->has_ts = false;
	event->has_dur = false;
	event->ts_ns = 0;
	event->dur_ns = 0;
	event->pid = no_id;
	event->tid = no_id;
	event->name = none;
	event->cat_text = none;
	event->args = none;
	event->name_escaped = false;
}

const char *gt_trace_event_parse(struct gt_json_text *text, const char *at,
				 struct gt_trace_event *ret)
{
	const char *start = at;

	clear(ret);
	at = gt_json_skip_space(at + 1);
	while (*at != '}') {
		enum field field;
		size_t len;

		if (*at != '"')
			return gt_json_fail(text, at);
		field = known_field(++at, &len);
		if (field == FIELD_OTHER) {
			struct key key = other_key(text, at);

			at = key.quote;
			if (!at)
				return NULL;
			field = key.field;
		} else {
			at += len;
		}
		at = gt_json_skip_space(at + 1);
		if (*at != ':')
			return gt_json_fail(text, at);
		at = read_field(text, gt_json_skip_space(at + 1), field, ret);
		if (!at)
			return NULL;
		at = gt_json_skip_space(at);
		while (*at == ',')
			at = gt_json_skip_space(at + 1);
	}
	if (at >= text->end)
		return gt_json_fail(text, text->end);
	ret->text = (struct gt_str){ start, (size_t)(at + 1 - start) };
	ret->cat = gt_trace_cat_of(ret->cat_text);
	return at + 1;
}

void gt_trace_event_args(const struct gt_trace_event *event, const struct gt_str *keys,
			 struct gt_str *values, size_t count)
{
	char plain[GT_JSON_KEY_MAX];
	struct gt_json_text text;
	struct gt_str key;
	const char *at;

	memset(values, 0, count * sizeof(*values));
	if (!event->args.len)
		return;
	at = event->args.ptr + 1;
	text.end = event->args.ptr + event->args.len;
	while (gt_json_member(&text, &at, &key) > 0) {
		const char *value = at;

		at = gt_json_value_end(&text, at);
		if (!at)
			break;
		key = gt_json_key(key, plain);
		for (size_t i = 0; i < count; i++) {
			if (gt_str_equal(key, keys[i]))
				values[i] = (struct gt_str){ value, (size_t)(at - value) };
		}
	}
}

/* A key with escapes is not found by a search. Apart: few traces have any. */
GT_NOINLINE static struct gt_str escaped_arg(struct gt_str args, struct gt_str quoted_key)
{
	const struct gt_trace_event event = { .args = args };
	const struct gt_str key = { quoted_key.ptr + 1, quoted_key.len - 2 };
	struct gt_str value;

	gt_trace_event_args(&event, &key, &value, 1);
	return value;
}

static struct gt_str find_arg(struct gt_str args, struct gt_str quoted_key)
{
	struct gt_str value = gt_json_find_last(args, quoted_key);

	if (GT_LIKELY(value.len || !args.len || !memchr(args.ptr, '\\', args.len)))
		return value;
	return escaped_arg(args, quoted_key);
}

struct gt_str gt_trace_event_arg(const struct gt_trace_event *event, struct gt_str quoted_key)
{
	return find_arg(event->args, quoted_key);
}

int64_t gt_trace_event_id(const struct gt_trace_event *event, struct gt_str quoted_key)
{
	struct gt_str args = event->args, raw;
	const char *at = args.len ? gt_json_skip_space(args.ptr + 1) : NULL;
	int64_t value;

	/* Kineto writes ids first, other tools that wrote the file again may not. */
	if (at && args.len > quoted_key.len && !memcmp(at, quoted_key.ptr, quoted_key.len) &&
	    at[quoted_key.len] == ':') {
		at = gt_json_skip_space(at + quoted_key.len + 1);
		if (short_int(&at, &value) && number_ends(*at))
			return value;
	}
	raw = find_arg(args, quoted_key);
	at = raw.ptr;
	if (at && short_int(&at, &value) && number_ends(*at))
		return value;
	return gt_json_int(raw, &value) ? value : 0;
}

int64_t gt_trace_event_stream(const struct gt_trace_event *event)
{
	struct gt_str row = event->tid.text;
	int64_t stream;

	if (gt_json_int(gt_trace_event_arg(event, GT_STR("\"stream\"")), &stream))
		return stream;
	if (gt_str_starts(row, STREAM_PREFIX)) {
		row.ptr += STREAM_PREFIX.len;
		row.len -= STREAM_PREFIX.len;
	}
	if (gt_json_int(row, &stream))
		return stream;
	return event->tid.text.ptr ? -1 : event->tid.number;
}

int64_t gt_trace_event_device(const struct gt_trace_event *event)
{
	int64_t device;

	return gt_json_int(gt_trace_event_arg(event, GT_STR("\"device\"")), &device) ||
			       gt_json_int(event->pid.text, &device)
		       ? device
		       : event->pid.number;
}
