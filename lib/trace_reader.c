/*
 * trace_reader.c - see trace_reader.h.
 *
 * An event is parsed where it lies in the buffer. When the text ends in its middle, more is read
 * behind it and the event is parsed again from its beginning: events are short, this is rare, and
 * the parser needs no state. What is not JSON goes through gt_json_repair(); what makes no sense
 * even then is passed over up to the next thing that looks like an event.
 */
#include "base.h"
#include "json_repair.h"
#include "text_window.h"
#include "trace_reader.h"
#include "trace_sniff.h"

#define FIRST_CAP ((size_t)512 << 10)
/* How far a damaged event is followed. */
#define REPAIR_WINDOW ((size_t)64 << 10)
/* What must lie behind a '{' to tell whether an event begins there. */
#define LOOK_AHEAD 256
/* What tells other files from traces: a block of tar is the longest. */
#define SNIFF_BYTES 512
/*
 * So that time stays linear whatever the file holds: failed repairs may look at so many bytes and
 * half of those read, then there are no more; failed searches for the end of an event at so many
 * and 4 times those read, then the file is given up.
 */
#define REPAIRS_MAX  ((uint64_t)4 << 20)
#define SEARCHES_MAX ((uint64_t)32 << 20)

enum place { IN_OBJECT, IN_EVENTS, AT_END };

struct stream {
	struct gt_text_window in;
	const struct gt_trace_hooks *hooks;
	struct gt_trace_stats *stats;
	enum place place;
	const char *bad_events; /* what stands in place of the array of traceEvents */
	bool saw_events;   /* a key traceEvents, or a bare array with something that has a phase */
	uint64_t repairs;  /* bytes looked at in vain */
	uint64_t searches; /* the same */
	unsigned int commas; /* since the last value or the bracket that opened */
	bool has_value;      /* behind that bracket */
	uint64_t damages;    /* when commas were looked at */
	struct gt_buf repaired;
	struct gt_buf name;
	struct gt_buf cat;
};

static size_t left(const struct stream *s)
{
	return gt_text_window_left(&s->in);
}

/* More for another try at what did not end: twice as much, so that tries stay linear in all. */
static int need_more(struct stream *s)
{
	return gt_text_window_need(&s->in, GT_MIN(left(s) * 2 + 1, GT_TRACE_EVENT_MAX));
}

static bool ended_early(const struct stream *s)
{
	return s->in.text.stop >= s->in.text.end;
}

static int end_cut(struct stream *s)
{
	s->stats->cut = true;
	s->in.at = s->in.text.end;
	s->place = AT_END;
	return 0;
}

/* ---- finding the way again ------------------------------------------------------------------- */

/* Go on at the next thing that looks known. */
static int resync(struct stream *s)
{
	const char *at = s->in.at;
	int rc;

	for (;;) {
		const char *stop = s->in.text.end - (s->in.ended ? 0 : GT_MIN(left(s), LOOK_AHEAD));

		if (s->searches > SEARCHES_MAX + 4 * s->in.bytes)
			return end_cut(s);
		for (; at < stop; at++) {
			if (*at == '{' && gt_trace_event_begins(at, s->in.buf, s->in.text.end)) {
				s->in.at = at;
				s->place = IN_EVENTS;
				return 0;
			}
			if (*at == ']' && gt_trace_events_end(at, s->in.text.end, s->in.ended,
							      s->stats->is_array)) {
				s->in.at = at + 1;
				s->place = s->stats->is_array ? AT_END : IN_OBJECT;
				return 0;
			}
		}
		s->in.at = at;
		if (s->in.ended)
			return end_cut(s);
		rc = gt_text_window_fill(&s->in);
		if (rc)
			return rc;
		at = s->in.at;
	}
}

/* What stands at s->in.at cannot be read. */
static int skip_damage(struct stream *s)
{
	s->stats->skipped++;
	s->in.at += left(s) > 0;
	return resync(s);
}

/* Pass over an object or array of any size. */
static int skip_container(struct stream *s)
{
	struct gt_json_skip skip = { 0 };
	int rc;

	for (;;) {
		s->in.at = gt_json_skip_piece(&skip, s->in.at, s->in.text.end);
		if (!skip.depth)
			return 0;
		if (s->in.ended)
			return end_cut(s);
		rc = gt_text_window_fill(&s->in);
		if (rc)
			return rc;
	}
}

/* Before a value and a closing bracket: are the commas right? Not told behind what was damaged. */
static inline void check_commas(struct stream *s, unsigned int right)
{
	uint64_t damages = s->stats->skipped + s->stats->repaired;

	s->stats->bad_commas += s->commas != right && s->damages == damages;
	s->commas = 0;
	s->has_value = true;
	s->damages = damages;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int decode(struct stream *s, struct gt_buf *room, struct gt_str *text)
{
	char *plain;

	room->len = 0;
	plain = gt_buf_reserve(room, text->len);
	if (!plain)
		return gt_err_set(s->in.err, -ENOMEM, "out of memory");
	*text = (struct gt_str){ plain, gt_json_unescape(*text, plain) };
	return 0;
}

/* Apart, for the path of most events to stay short. */
GT_NOINLINE static int decode_texts(struct stream *s, struct gt_trace_event *event)
{
	int rc = event->name_escaped ? decode(s, &s->name, &event->name) : 0;

	if (rc || event->cat != GT_CAT_OTHER ||
	    !memchr(event->cat_text.ptr, '\\', event->cat_text.len))
		return rc;
	rc = decode(s, &s->cat, &event->cat_text);
	event->cat = gt_trace_cat_of(event->cat_text);
	return rc;
}

static int hand_on(struct stream *s, struct gt_trace_event *event)
{
	/* A category that is known as it stands has no escapes. */
	if (GT_UNLIKELY(event->name_escaped || event->cat == GT_CAT_OTHER)) {
		int rc = decode_texts(s, event);

		if (rc)
			return rc;
	}
	s->stats->events++;
	s->saw_events |= event->phase != 0;
	return s->hooks->event(s->hooks->context, event);
}

static int read_damaged_event(struct stream *s)
{
	struct gt_trace_event event;
	struct gt_json_text text;
	const char *next;
	int rc;

	if (s->repairs > REPAIRS_MAX + s->in.bytes / 2)
		return skip_damage(s);
	rc = gt_text_window_need(&s->in, REPAIR_WINDOW);
	if (rc)
		return rc;
	text.end = s->in.at + GT_MIN(left(s), REPAIR_WINDOW);
	s->repaired.len = 0;
	next = gt_json_repair(&text, s->in.at, &s->repaired);
	if (next) {
		struct gt_json_text repaired = { .end = s->repaired.data + s->repaired.len };

		gt_buf_fill(&s->repaired, '"', GT_JSON_PAD);
		if (s->repaired.failed)
			return gt_err_set(s->in.err, -ENOMEM, "out of memory");
		repaired.end = s->repaired.data + s->repaired.len - GT_JSON_PAD;
		if (gt_trace_event_parse(&repaired, s->repaired.data, &event)) {
			s->in.at = next;
			s->stats->repaired++;
			return hand_on(s, &event);
		}
		text.stop = next;
	}
	s->repairs += (uint64_t)(text.stop - s->in.at);
	return skip_damage(s);
}

/* The input ends in this event; or so it seems because of a quote or bracket that it lost. */
static int read_last_event(struct stream *s)
{
	uint64_t skipped = s->stats->skipped;
	int rc;

	s->searches += left(s);
	rc = skip_damage(s);
	if (rc || s->place == IN_EVENTS || *gt_json_skip_space(s->in.at) == ',')
		return rc;
	s->stats->skipped = skipped; /* it ends in brackets of its own */
	return end_cut(s);
}

static int read_event(struct stream *s)
{
	struct gt_trace_event event;

	for (;;) {
		const char *next = gt_trace_event_parse(&s->in.text, s->in.at, &event);
		int rc;

		if (GT_LIKELY(next != NULL)) {
			rc = hand_on(s, &event);
			s->in.at = next;
			return rc;
		}
		if (!ended_early(s))
			return read_damaged_event(s);
		if (s->in.ended)
			return read_last_event(s);
		if (left(s) >= GT_TRACE_EVENT_MAX) {
			s->stats->skipped++;
			return skip_container(s);
		}
		rc = need_more(s);
		if (rc)
			return rc;
	}
}

/* Something else in place of an event. */
static int skip_element(struct stream *s)
{
	int rc;

	s->stats->skipped++;
	if (*s->in.at == '[')
		return skip_container(s);
	for (;;) {
		const char *next = gt_json_value_end(&s->in.text, s->in.at);

		if (next && next < s->in.text.end) {
			s->in.at = next;
			return 0;
		}
		if ((!next && !ended_early(s)) || s->in.ended || left(s) >= GT_TRACE_EVENT_MAX) {
			s->in.at++;
			return resync(s);
		}
		rc = need_more(s);
		if (rc)
			return rc;
	}
}

static int read_events(struct stream *s)
{
	char c;
	int rc = gt_text_window_peek(&s->in, &c);

	if (rc)
		return rc;
	switch (c) {
	case '{':
		check_commas(s, s->has_value);
		return read_event(s);
	case ',':
		s->in.at++;
		s->commas++;
		return 0;
	case ']':
		check_commas(s, 0);
		s->in.at++;
		s->place = s->stats->is_array ? AT_END : IN_OBJECT;
		return 0;
	case '\0':
		if (left(s))
			return skip_damage(s);
		s->place = AT_END;
		*(s->stats->is_array ? &s->stats->unclosed : &s->stats->cut) = true;
		return 0;
	default:
		return skip_element(s);
	}
}

/* ---- the top level --------------------------------------------------------------------------- */

/* Have a key, its colon and the first byte of its value in the buffer. 0: *ret_value is NULL when
 * there is no such thing. */
static int read_key(struct stream *s, struct gt_str *ret_key, const char **ret_value)
{
	for (;;) {
		const char *at = s->in.at;
		int rc = gt_json_member(&s->in.text, &at, ret_key);

		*ret_value = at;
		if (rc > 0 && at < s->in.text.end)
			return 0;
		*ret_value = rc > 0 ? gt_json_fail(&s->in.text, at) : NULL;
		if (!ended_early(s) || s->in.ended || left(s) >= GT_TRACE_MEMBER_MAX)
			return 0;
		rc = need_more(s);
		if (rc)
			return rc;
	}
}

static int read_member(struct stream *s)
{
	char plain[GT_JSON_KEY_MAX];
	struct gt_str key;
	const char *value, *next;
	int rc;

	for (;;) {
		rc = read_key(s, &key, &value);
		if (rc)
			return rc;
		if (!value)
			return s->in.ended && ended_early(s) ? end_cut(s) : skip_damage(s);
		if (gt_str_equal(gt_json_key(key, plain), GT_STR("traceEvents"))) {
			s->stats->repeated |= s->saw_events;
			s->saw_events = true;
			if (*value == '[') {
				s->in.at = value + 1;
				s->place = IN_EVENTS;
				s->has_value = false;
				return 0;
			}
			s->bad_events = *value == '{' ? "an object" : "no array";
		}
		next = gt_json_value_end(&s->in.text, value);
		if (next && next < s->in.text.end)
			break;
		if ((!next && !ended_early(s)) || left(s) >= GT_TRACE_MEMBER_MAX) {
			s->stats->large_members += left(s) >= GT_TRACE_MEMBER_MAX;
			s->in.at = value;
			return *value == '{' || *value == '[' ? skip_container(s) : skip_damage(s);
		}
		if (s->in.ended)
			return end_cut(s);
		rc = need_more(s);
		if (rc)
			return rc;
	}
	s->in.at = next;
	if (!s->hooks->member)
		return 0;
	return s->hooks->member(s->hooks->context, key,
				(struct gt_str){ value, (size_t)(next - value) });
}

static int read_object(struct stream *s)
{
	char c;
	int rc = gt_text_window_peek(&s->in, &c);

	if (rc)
		return rc;
	switch (c) {
	case ',':
		s->in.at++;
		s->commas++;
		return 0;
	case '}':
		check_commas(s, 0);
		s->in.at++;
		s->place = AT_END;
		return 0;
	case '"':
		check_commas(s, s->has_value);
		return read_member(s);
	default:
		return left(s) ? skip_damage(s) : end_cut(s);
	}
}

/* What follows the document. Zeros are padding. */
static int read_trailing(struct stream *s)
{
	char c;
	int rc;

	do {
		rc = gt_text_window_peek(&s->in, &c);
		if (rc || !left(s))
			return rc;
		s->in.at += c == '\0';
	} while (!c);
	s->stats->trailing = true;
	s->stats->second_document = c == '{' || c == '[';
	return 0;
}

static int not_a_trace(struct stream *s, const char *what)
{
	return gt_err_set(s->in.err, -EBADMSG, "not a trace: %s", what);
}

static int begin(struct stream *s)
{
	const char *what;
	char c;
	int rc = gt_text_window_need(&s->in, SNIFF_BYTES);

	if (rc)
		return rc;
	what = gt_trace_looks_like((struct gt_str){ s->in.at, left(s) });
	if (left(s) >= 3 && !memcmp(s->in.at, "\xef\xbb\xbf", 3)) {
		s->stats->has_bom = true;
		s->in.at += 3;
	}
	if (!what)
		rc = gt_text_window_peek(&s->in, &c);
	if (rc)
		return rc;
	if (!what && !left(s))
		what = gt_gz_status(s->in.gz)->cut ? "a gzip file cut in its beginning"
						   : "an empty file";
	if (what)
		return gt_err_set(s->in.err, -EBADMSG, "not a trace: this is %s", what);
	s->stats->is_array = c == '[';
	s->place = c == '[' ? IN_EVENTS : IN_OBJECT;
	s->in.at++;
	return 0;
}

static int read_document(struct stream *s)
{
	int rc = begin(s);

	while (!rc && s->place != AT_END)
		rc = s->place == IN_EVENTS ? read_events(s) : read_object(s);
	if (rc)
		return rc;
	if (!s->saw_events && s->stats->is_array)
		return not_a_trace(s, "a JSON array without events");
	if (!s->saw_events && s->stats->cut)
		return not_a_trace(s, "JSON that ends before any traceEvents");
	if (!s->saw_events)
		return not_a_trace(s, "JSON without traceEvents");
	if (s->bad_events && !s->stats->events)
		return gt_err_set(s->in.err, -EBADMSG, "not a trace: its traceEvents is %s",
				  s->bad_events);
	return s->stats->cut ? 0 : read_trailing(s);
}

int gt_trace_read(struct gt_gz_reader *gz, const struct gt_trace_hooks *hooks,
		  struct gt_trace_stats *ret_stats, struct gt_err *err)
{
	struct stream s = { .hooks = hooks, .stats = ret_stats };
	int rc;

	memset(ret_stats, 0, sizeof(*ret_stats));
	rc = gt_text_window_init(&s.in, gz, FIRST_CAP, err);
	if (rc)
		return rc;
	rc = read_document(&s);
	ret_stats->bytes = s.in.bytes;
	gt_text_window_release(&s.in);
	gt_buf_release(&s.repaired);
	gt_buf_release(&s.name);
	gt_buf_release(&s.cat);
	return rc;
}
