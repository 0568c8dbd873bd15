/*
 * json_reader.h - finds its way through JSON text that lies in memory: where strings, numbers,
 * objects and arrays end, and what they say. No tree, no recursion, no allocation; nesting only
 * costs a counter.
 *
 * The text is followed by GT_JSON_PAD bytes of '"' that belong to the caller's buffer: every scan
 * ends there at the latest, none needs to test for the end. A function that fails returns NULL
 * and leaves the place in text->stop; a place at or behind text->end means that the text ended
 * too early, one before it that the text is not JSON.
 */
#ifndef GT_JSON_READER_H
#define GT_JSON_READER_H

#include "base.h"
#include "buf.h"
#include "str.h"

#define GT_JSON_PAD 64

struct gt_json_text {
	const char *end; /* where the padding begins */
	const char *stop;
};

/* The kinds of a raw value, from its first byte. */
enum gt_json_kind {
	GT_JSON_NONE, /* no value: an empty string of bytes */
	GT_JSON_STRING,
	GT_JSON_NUMBER,
	GT_JSON_OBJECT,
	GT_JSON_ARRAY,
	GT_JSON_TRUE,
	GT_JSON_FALSE,
	GT_JSON_NULL,
	GT_JSON_WORD /* NaN, Infinity, N/A …: not JSON, but written by profilers */
};

enum gt_json_kind gt_json_kind(struct gt_str raw);

static inline const char *gt_json_fail(struct gt_json_text *text, const char *at)
{
	text->stop = at;
	return NULL;
}

const char *gt_json_skip_long_space(const char *at);

/* The first byte from at on that is not white space. */
static inline const char *gt_json_skip_space(const char *at)
{
	if (GT_LIKELY((unsigned char)*at > ' '))
		return at;
	if (*at == ' ' && (unsigned char)at[1] > ' ')
		return at + 1;
	/* Kineto's lines */
	if (!memcmp(at, "\n    ", 5) && (unsigned char)at[5] > ' ')
		return at + 5;
	return gt_json_skip_long_space(at);
}

/*
 * at stands behind the opening quote; returns the closing one. *ret_escaped (may be NULL) is set
 * when there is a backslash. A raw control character inside is an error: it is what a lost quote
 * looks like.
 */
const char *gt_json_string_end(struct gt_json_text *text, const char *at, bool *ret_escaped);

/* at stands on '{' or '['; returns the byte behind its counterpart. Only brackets of its own kind
 * are looked at. */
const char *gt_json_container_end(struct gt_json_text *text, const char *at);

/* at stands on the first byte of any value; returns the byte behind it. */
const char *gt_json_value_end(struct gt_json_text *text, const char *at);

/*
 * Walk an object: *at stands behind its '{' or behind a value at first; afterwards *at stands on
 * the value of the member whose raw key (without quotes) is returned in *ret_key. 1: a member; 0:
 * the object ends, *at stands behind '}'; -1: failed. Commas too many are passed over.
 */
int gt_json_member(struct gt_json_text *text, const char **at, struct gt_str *ret_key);

/* The same for an array: *at stands on the next element, or behind ']'. */
int gt_json_element(struct gt_json_text *text, const char **at);

/*
 * The value of the last member of an object, or of one inside it, whose key is this text, which
 * includes the quotes. A search, not a walk: it is fast for members near the end. Empty: none. A
 * string cannot be taken for a key: in it, the second quote would stand behind a backslash.
 */
struct gt_str gt_json_find_last(struct gt_str object, struct gt_str quoted_key);

/*
 * A raw number, which may stand in quotes (tools write them so), times 10^decimals, rounded to
 * nearest. Exact up to 19 digits; out of range saturates. False when it is anything else.
 * "-1.-23" is read as -1.023, "0.-234" as -0.234: so did Kineto print negative times (before
 * 2024-04).
 */
bool gt_json_scaled(struct gt_str raw, int decimals, int64_t *ret);

static inline bool gt_json_int(struct gt_str raw, int64_t *ret)
{
	return gt_json_scaled(raw, 0, ret);
}

/*
 * The bytes a string stands for. raw: what is between its quotes. out has room for raw.len bytes;
 * returns how many were written. Escapes that are not JSON stay as they are, a lone surrogate
 * becomes U+FFFD.
 */
size_t gt_json_unescape(struct gt_str raw, char *out);

/* Longer than every key that we look for, were each of its bytes an escape. */
#define GT_JSON_KEY_MAX 128

/*
 * A raw key, to compare: decoded into plain when it has escapes, which are rare; the raw one when
 * it has none, or is longer than plain.
 */
struct gt_str gt_json_key(struct gt_str raw, char plain[GT_JSON_KEY_MAX]);

/* Append the bytes of a raw string, or the text of any other value. 0 or -ENOMEM. */
int gt_json_put_text(struct gt_buf *out, struct gt_str raw);

/* What is between the quotes of a raw string value; the value itself for any other kind. */
struct gt_str gt_json_unquote(struct gt_str raw);

/* ---- containers in pieces --------------------------------------------------------------------
 * For what may be larger than memory allows: pass over a container piece by piece. */

struct gt_json_skip { /* { 0 } at first */
	uint64_t depth;
	uint64_t in_string; /* all ones inside a string */
	uint64_t escaped;   /* 1: the first byte of the next piece is escaped */
	char open;          /* the first byte */
	bool strict;        /* stop at a control character in a string */
};

/*
 * Pass over the piece between at and end; the first one begins with '{' or '['. Returns the byte
 * behind the container; end when it goes on in the next piece; NULL when strict found a control
 * character. GT_JSON_PAD bytes behind end must be readable.
 */
const char *gt_json_skip_piece(struct gt_json_skip *skip, const char *at, const char *end);

/* ---- choice of the vector code ----------------------------------------------------------------
 * Set before main() to the best that the processor has; tests set it to each in turn. */

enum gt_json_simd { GT_JSON_PORTABLE, GT_JSON_SSE2, GT_JSON_AVX2 };

/* Returns what is in use afterwards: what was asked for, or the best below it. */
enum gt_json_simd gt_json_use(enum gt_json_simd wanted);

#endif
