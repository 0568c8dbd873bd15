/*
 * json_writer.h - JSON text, fast. Nothing here allocates or checks: the caller reserves once what
 * an event takes at most; each function returns the end of what it wrote.
 */
#ifndef GT_JSON_WRITER_H
#define GT_JSON_WRITER_H

#include "base.h"
#include "str.h"

/* The most bytes that each kind of value takes. */
#define GT_JSON_INT_MAX      20
#define GT_JSON_US_MAX       21
#define GT_JSON_STR_MAX(len) (6 * (len) + 2)

/* The bytes of a string literal. */
#define GT_JSON_PUT(p, literal) \
	((char *)memcpy((p), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

char *gt_json_put_u64(char *p, uint64_t value);
char *gt_json_put_i64(char *p, int64_t value);

/* Nanoseconds as microseconds with exactly three decimals. */
char *gt_json_put_us(char *p, uint64_t ns);

/* micro / 10^6 with as many of its six decimals as it needs, at least one. */
char *gt_json_put_micro(char *p, uint64_t micro);

/*
 * A quoted string that reads back as these bytes: quotes, backslashes and control characters
 * (DEL too, for terminals' sake) are escaped, everything else stays raw UTF-8. Each byte that is
 * not part of valid UTF-8 becomes U+FFFD.
 */
char *gt_json_put_str(char *p, struct gt_str str);

/* The same without the quotes. */
char *gt_json_put_chars(char *p, struct gt_str str);

#endif
