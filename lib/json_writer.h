/*
 * json_writer.h - JSON text into memory, fast. Space is reserved once for a whole event; the put
 * functions below then write without checks and return the end of what they wrote.
 */
#ifndef GT_JSON_WRITER_H
#define GT_JSON_WRITER_H

#include "base.h"

struct gt_json { /* zero-initialised: empty */
	char *text;
	size_t len;
	size_t cap;
};

void gt_json_release(struct gt_json *json);

/* Where to put up to bytes more, or NULL without memory. Valid until the next call. */
char *gt_json_reserve(struct gt_json *json, size_t bytes);

/* end is what the last put function returned. */
static inline void gt_json_commit(struct gt_json *json, const char *end)
{
	json->len = (size_t)(end - json->text);
}

/* The most bytes that each kind of value takes. */
#define GT_JSON_INT_MAX      20
#define GT_JSON_US_MAX       21
#define GT_JSON_STR_MAX(len) (6 * (len) + 2)

/* The bytes of a string literal. */
#define GT_JSON_PUT(p, literal) \
	((char *)memcpy(p, literal, sizeof(literal) - 1) + sizeof(literal) - 1)

char *gt_json_put_u64(char *p, uint64_t value);
char *gt_json_put_i64(char *p, int64_t value);

/* Nanoseconds as microseconds with exactly three decimals. */
char *gt_json_put_us(char *p, uint64_t ns);

/* micro / 10^6 with as many of its six decimals as it has, at least one. */
char *gt_json_put_micro(char *p, uint64_t micro);

/*
 * A quoted string that reads back as these bytes: quotes, backslashes and control characters
 * (DEL too, for terminals' sake) are escaped, everything else stays raw UTF-8. Each longest
 * possible piece of an invalid sequence becomes one U+FFFD.
 */
char *gt_json_put_str(char *p, const char *str, size_t len);

/* The same without the quotes. */
char *gt_json_put_chars(char *p, const char *str, size_t len);

#endif
