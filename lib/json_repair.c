/*
 * json_repair.c - see json_repair.h. A quote ends a string only where what follows it could follow
 * a string: ':' after a key; after a value '}' or ']', or a comma with a key (in an object) or a
 * value (in an array) behind it.
 */
#include "base.h"
#include "json_repair.h"

#define MAX_DEPTH 64
/* The longest key that is believed to be one. */
#define MAX_KEY 64

static bool is_object(uint64_t nesting)
{
	return nesting & 1;
}

/* "key": or, having lost its first quote, key": */
static bool key_follows(const char *at, const char *end)
{
	const char *start;

	at += *at == '"';
	for (start = at; at < end && *at != '"'; at++) {
		if (at - start >= MAX_KEY || (unsigned char)*at < 0x20 || *at == ',' || *at == ':')
			return false;
	}
	return at > start && at < end && *gt_json_skip_space(at + 1) == ':';
}

static bool value_follows(const char *at)
{
	return strchr("\"{[-0123456789tfnNI", *at) != NULL && *at;
}

enum string_place { KEY_PLACE, MEMBER_PLACE, ELEMENT_PLACE };

static bool string_ends(const char *quote, const char *end, enum string_place place)
{
	const char *next = gt_json_skip_space(quote + 1);

	if (next >= end)
		return false;
	switch (place) {
	case KEY_PLACE:
		return *next == ':';
	case MEMBER_PLACE:
		return *next == '}' ||
		       (*next == ',' && key_follows(gt_json_skip_space(next + 1), end));
	case ELEMENT_PLACE:
		return *next == ']' ||
		       (*next == ',' && value_follows(gt_json_skip_space(next + 1)));
	}
	return false;
}

static bool is_plain(char c)
{
	return c != '"' && c != '\\' && (unsigned char)c >= 0x20;
}

/* at stands behind the opening quote; what is between the quotes goes to out, escaped. */
static const char *repair_string(struct gt_json_text *text, const char *at, enum string_place place,
				 struct gt_buf *out)
{
	gt_buf_byte(out, '"');
	for (;;) {
		const char *plain = at;

		while (at < text->end && is_plain(*at))
			at++;
		gt_buf_append(out, plain, (size_t)(at - plain));
		if (at >= text->end || !*at)
			return gt_json_fail(text, at);
		if (*at == '"' && string_ends(at, text->end, place)) {
			gt_buf_byte(out, '"');
			return at + 1;
		}
		if (*at == '\\' && (unsigned char)at[1] >= 0x20)
			gt_buf_append(out, at++, 2);
		else if (*at == '\\' || *at == '"')
			gt_buf_printf(out, "\\%c", *at);
		else
			gt_buf_printf(out, "\\u%04x", (unsigned int)*at);
		at++;
	}
}

/* at stands on a key; out gets it with its colon. */
static const char *repair_key(struct gt_json_text *text, const char *at, struct gt_buf *out)
{
	if (*at != '"' && !key_follows(at, text->end))
		return gt_json_fail(text, at);
	at = repair_string(text, at + (*at == '"'), KEY_PLACE, out);
	if (!at)
		return NULL;
	gt_buf_byte(out, ':');
	return gt_json_skip_space(gt_json_skip_space(at) + 1);
}

static const char *repair_scalar(struct gt_json_text *text, const char *at, bool in_object,
				 struct gt_buf *out)
{
	const char *end;

	if (*at == '"')
		return repair_string(text, at + 1, in_object ? MEMBER_PLACE : ELEMENT_PLACE, out);
	end = gt_json_value_end(text, at);
	if (end)
		gt_buf_append(out, at, (size_t)(end - at));
	return end;
}

const char *gt_json_repair(struct gt_json_text *text, const char *at, struct gt_buf *out)
{
	uint64_t nesting = 0; /* a bit a level, the innermost lowest: 1 for an object */
	int depth = 0;
	bool first = true;

	do {
		at = gt_json_skip_space(at);
		if (at >= text->end)
			return gt_json_fail(text, text->end);
		if (depth && *at == (is_object(nesting) ? '}' : ']')) {
			gt_buf_byte(out, *at++);
			nesting >>= 1;
			depth--;
			first = false;
			continue;
		}
		if (*at == ',') {
			at++;
			continue;
		}
		if (depth && !first)
			gt_buf_byte(out, ',');
		if (depth && is_object(nesting)) {
			at = repair_key(text, at, out);
			if (!at)
				return NULL;
		}
		first = *at == '{' || *at == '[';
		if (!first) {
			at = repair_scalar(text, at, is_object(nesting), out);
			if (!at)
				return NULL;
			continue;
		}
		if (++depth > MAX_DEPTH)
			return gt_json_fail(text, at);
		nesting = nesting << 1 | (*at == '{');
		gt_buf_byte(out, *at++);
	} while (depth);
	return out->failed ? gt_json_fail(text, at) : at;
}
