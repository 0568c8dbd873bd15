/*
 * json_clean.h - a strict copy (RFC 8259) of a JSON value as profilers write them, and what about
 * it was not strict. Python's json, JSON.parse and Perfetto load what comes out.
 */
#ifndef GT_JSON_CLEAN_H
#define GT_JSON_CLEAN_H

#include "base.h"
#include "buf.h"
#include "str.h"

enum gt_json_flaw {
	GT_JSON_FLAW_SYNTAX =
		1 << 0, /* commas too many or missing, numbers and escapes of others */
	GT_JSON_FLAW_CONTROL = 1 << 1,   /* a raw control character in a string: escaped */
	GT_JSON_FLAW_UTF8 = 1 << 2,      /* bytes that are not UTF-8: U+FFFD */
	GT_JSON_FLAW_SURROGATE = 1 << 3, /* escaped: a pair becomes UTF-8, a lone one U+FFFD */
	GT_JSON_FLAW_CONSTANT = 1 << 4,  /* NaN, Infinity, N/A …: null */
	GT_JSON_FLAW_HUGE = 1 << 5,      /* a number beyond a double, or of 400 digits: null */
	GT_JSON_FLAW_DEPTH = 1 << 6      /* nested deeper than GT_JSON_CLEAN_DEPTH: null */
};

/* Readers that recurse (Python's json) stop at about a thousand. */
#define GT_JSON_CLEAN_DEPTH 256
/* A longer value is refused: its copy may take three times the memory. */
#define GT_JSON_CLEAN_MAX ((size_t)32 << 20)

/*
 * Append the copy of raw, which is one value, to out and its flaws to *flaws. False: it is no JSON
 * even so, or out->failed; out is as before. GT_JSON_PAD bytes behind raw must be readable.
 */
bool gt_json_clean(struct gt_str raw, struct gt_buf *out, unsigned int *flaws);

/* The same for a member of an object, "key": value; key: what is between its quotes. */
bool gt_json_clean_member(struct gt_str key, struct gt_str raw, struct gt_buf *out,
			  unsigned int *flaws);

#endif
