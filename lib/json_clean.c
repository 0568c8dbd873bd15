/*
 * json_clean.c - see json_clean.h.
 */
#include "base.h"
#include "json_clean.h"
#include "json_reader.h"
#include "utf8.h"

#include <math.h>
#include <stdlib.h>

/* A longer number is none that anything measured; Python refuses integers of 4,300 digits. */
#define NUMBER_MAX 400

struct cleaner {
	const char *at;
	const char *end;
	struct gt_buf *out;
	unsigned int flaws;
	uint64_t objects[GT_JSON_CLEAN_DEPTH / 64]; /* bit i: level i is an object, not an array */
	int depth;
};

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Control characters between tokens are passed over, too. */
static void skip_space(struct cleaner *c)
{
	for (; c->at < c->end && (unsigned char)*c->at <= ' '; c->at++) {
		if (!*c->at || !strchr(" \n\t\r", *c->at))
			c->flaws |= GT_JSON_FLAW_SYNTAX;
	}
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool is_hex4(const char *at)
{
	for (int i = 0; i < 4; i++) {
		char c = at[i] | 0x20;

		if (!gt_is_digit(c) && !(c >= 'a' && c <= 'f'))
			return false;
	}
	return true;
}

/* c->at stands on a \u escape of a surrogate. */
static void clean_surrogate(struct cleaner *c)
{
	struct gt_str pair = { c->at, 12 };
	char utf8[12];

	c->flaws |= GT_JSON_FLAW_SURROGATE;
	if (c->end - c->at >= 12 && gt_json_unescape(pair, utf8) == 4 &&
	    ((unsigned char)utf8[0] & 0xf8) == 0xf0) {
		gt_buf_append(c->out, utf8, 4);
		c->at += 12;
	} else {
		gt_buf_text(c->out, "\xef\xbf\xbd");
		c->at += 6;
	}
}

static void clean_escape(struct cleaner *c)
{
	size_t left = (size_t)(c->end - c->at);

	if (left >= 2 && c->at[1] && strchr("\"\\/bfnrt", c->at[1])) {
		gt_buf_append(c->out, c->at, 2);
		c->at += 2;
	} else if (left >= 6 && c->at[1] == 'u' && is_hex4(c->at + 2)) {
		if ((c->at[2] | 0x20) == 'd' && c->at[3] >= '8') {
			clean_surrogate(c);
			return;
		}
		gt_buf_append(c->out, c->at, 6);
		c->at += 6;
	} else {
		c->flaws |= GT_JSON_FLAW_SYNTAX;
		gt_buf_text(c->out, "\\\\");
		c->at++;
	}
}

static void clean_utf8(struct cleaner *c)
{
	size_t len;
	uint32_t code = gt_utf8_decode(c->at, (size_t)(c->end - c->at), &len);

	if (code == GT_UTF8_REPLACEMENT && len == 1) {
		c->flaws |= GT_JSON_FLAW_UTF8;
		gt_buf_text(c->out, "\xef\xbf\xbd");
	} else {
		gt_buf_append(c->out, c->at, len);
	}
	c->at += len;
}

/* c->at stands on the opening quote. */
static bool clean_string(struct cleaner *c)
{
	gt_buf_byte(c->out, '"');
	c->at++;
	for (;;) {
		const char *plain = c->at;

		while (c->at < c->end && is_plain((unsigned char)*c->at))
			c->at++;
		gt_buf_append(c->out, plain, (size_t)(c->at - plain));
		if (c->at >= c->end)
			return false;
		if (*c->at == '"') {
			gt_buf_byte(c->out, '"');
			c->at++;
			return true;
		}
		if (*c->at == '\\') {
			clean_escape(c);
		} else if ((unsigned char)*c->at >= 0x80) {
			clean_utf8(c);
		} else {
			c->flaws |= GT_JSON_FLAW_CONTROL;
			gt_buf_printf(c->out, "\\u%04x", (unsigned int)*c->at++);
		}
	}
}

/* ---- numbers and words ----------------------------------------------------------------------- */

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && gt_is_digit(*at))
		at++;
	return at;
}

/* Behind the digits that must stand at 'at'; NULL when there are none, or at is. */
static const char *want_digits(const char *at, const char *end)
{
	const char *next = at ? skip_digits(at, end) : NULL;

	return next == at ? NULL : next;
}

static bool is_strict_number(struct gt_str raw)
{
	const char *at = raw.ptr, *end = raw.ptr + raw.len;

	at += *at == '-';
	at = at < end && *at == '0' ? at + 1 : want_digits(at, end);
	if (at && at < end && *at == '.')
		at = want_digits(at + 1, end);
	if (at && at < end && (*at == 'e' || *at == 'E')) {
		at++;
		at += at < end && (*at == '+' || *at == '-');
		at = want_digits(at, end);
	}
	return at == end;
}

static bool is_huge(struct gt_str raw)
{
	char text[NUMBER_MAX + 1];

	if (raw.len <= 300 && !memchr(raw.ptr, 'e', raw.len) && !memchr(raw.ptr, 'E', raw.len))
		return false;
	if (raw.len > NUMBER_MAX)
		return true;
	memcpy(text, raw.ptr, raw.len);
	text[raw.len] = '\0';
	return isinf(strtod(text, NULL));
}

static void clean_number(struct cleaner *c, struct gt_str raw)
{
	int64_t micro;

	if (is_strict_number(raw)) {
		if (is_huge(raw)) {
			c->flaws |= GT_JSON_FLAW_HUGE;
			gt_buf_text(c->out, "null");
		} else {
			gt_buf_append(c->out, raw.ptr, raw.len);
		}
		return;
	}
	c->flaws |= GT_JSON_FLAW_SYNTAX;
	if (gt_json_scaled(raw, 6, &micro) && micro > -INT64_MAX && micro < INT64_MAX) {
		uint64_t size = micro < 0 ? (uint64_t)-micro : (uint64_t)micro;

		gt_buf_printf(c->out, "%s%llu.%06llu", micro < 0 ? "-" : "",
			      (unsigned long long)(size / 1000000),
			      (unsigned long long)(size % 1000000));
	} else {
		gt_buf_text(c->out, "null");
	}
}

static bool clean_word(struct cleaner *c)
{
	struct gt_json_text text = { .end = c->end };
	const char *next = gt_json_value_end(&text, c->at);
	struct gt_str raw;

	if (!next || next > c->end)
		return false;
	raw = (struct gt_str){ c->at, (size_t)(next - c->at) };
	c->at = next;
	switch (gt_json_kind(raw)) {
	case GT_JSON_TRUE:
	case GT_JSON_FALSE:
	case GT_JSON_NULL:
		gt_buf_append(c->out, raw.ptr, raw.len);
		break;
	case GT_JSON_NUMBER:
		if (raw.len < 2 || raw.ptr[1] == '.' || gt_is_digit(raw.ptr[1]) ||
		    (raw.ptr[1] | 0x20) == 'e') {
			clean_number(c, raw);
			break;
		}
		/* -Infinity */
		/* fallthrough */
	default:
		c->flaws |= GT_JSON_FLAW_CONSTANT;
		gt_buf_text(c->out, "null");
	}
	return true;
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool in_object(const struct cleaner *c)
{
	int level = c->depth - 1;

	return c->depth && c->objects[level / 64] >> (level % 64) & 1;
}

static bool open_container(struct cleaner *c)
{
	int level = c->depth;
	uint64_t bit = UINT64_C(1) << (level % 64);

	if (level == GT_JSON_CLEAN_DEPTH) {
		struct gt_json_text text = { .end = c->end };

		c->flaws |= GT_JSON_FLAW_DEPTH;
		gt_buf_text(c->out, "null");
		c->at = gt_json_container_end(&text, c->at);
		return c->at != NULL;
	}
	if (*c->at == '{')
		c->objects[level / 64] |= bit;
	else
		c->objects[level / 64] &= ~bit;
	c->depth++;
	gt_buf_byte(c->out, *c->at++);
	return true;
}

/* A key with its colon. HTA wants the blank behind that of "rank" kept. */
static bool clean_key(struct cleaner *c)
{
	const char *colon;

	if (*c->at != '"' || !clean_string(c))
		return false;
	skip_space(c);
	if (c->at >= c->end || *c->at != ':')
		return false;
	colon = c->at++;
	skip_space(c);
	gt_buf_append(c->out, ": ", c->at > colon + 1 ? 2 : 1);
	return c->at < c->end;
}

/* The next value, or the opening bracket of one; *ret_opened says so. */
static bool clean_value(struct cleaner *c, bool *ret_opened)
{
	int depth = c->depth;
	bool good;

	if (in_object(c) && !clean_key(c))
		return false;
	if (*c->at == '"')
		good = clean_string(c);
	else if (*c->at == '{' || *c->at == '[')
		good = open_container(c);
	else
		good = clean_word(c);
	*ret_opened = c->depth > depth;
	return good;
}

static bool clean(struct cleaner *c)
{
	bool first = true; /* no value stands before in this container */
	bool comma = false;

	do {
		bool opened = false;

		skip_space(c);
		if (c->at >= c->end)
			return false;
		if (*c->at == ',' && c->depth) {
			if (comma || first)
				c->flaws |= GT_JSON_FLAW_SYNTAX;
			comma = true;
			c->at++;
			continue;
		}
		if (c->depth && *c->at == (in_object(c) ? '}' : ']')) {
			if (comma)
				c->flaws |= GT_JSON_FLAW_SYNTAX;
			gt_buf_byte(c->out, *c->at++);
			c->depth--;
		} else {
			if (!first) {
				if (!comma)
					c->flaws |= GT_JSON_FLAW_SYNTAX;
				gt_buf_byte(c->out, ',');
			}
			if (!clean_value(c, &opened))
				return false;
		}
		first = opened;
		comma = false;
	} while (c->depth);
	return c->at == c->end;
}

bool gt_json_clean(struct gt_str raw, struct gt_buf *out, unsigned int *flaws)
{
	struct cleaner c = { .at = raw.ptr, .end = raw.ptr + raw.len, .out = out };
	size_t start = out->len;

	if (raw.len > GT_JSON_CLEAN_MAX || !clean(&c) || out->failed) {
		out->len = start;
		return false;
	}
	*flaws |= c.flaws;
	return true;
}

bool gt_json_clean_member(struct gt_str key, struct gt_str raw, struct gt_buf *out,
			  unsigned int *flaws)
{
	struct gt_str quoted = { key.ptr - 1, key.len + 2 };
	size_t start = out->len;

	if (gt_json_clean(quoted, out, flaws)) {
		gt_buf_text(out, ": ");
		if (gt_json_clean(raw, out, flaws))
			return true;
	}
	out->len = start;
	return false;
}
