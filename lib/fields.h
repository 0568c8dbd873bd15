/*
 * fields.h - short texts between gtraces: a line "key value" a field. Whatever is received is
 * checked as a whole before anything of it is used.
 */
#ifndef GT_FIELDS_H
#define GT_FIELDS_H

#include "base.h"

#define GT_FIELDS_MAX 16384 /* bytes of all of them */

struct gt_fields { /* { .len = 0 } is empty */
	size_t len;
	bool full; /* one did not fit, and was left out */
	char text[GT_FIELDS_MAX];
};

/* Control characters of the value become spaces; it is cut where there is no more room. */
void gt_fields_add(struct gt_fields *fields, const char *key, const char *fmt, ...) GT_PRINTF(3, 4);

/* Are the first len bytes of text such lines? 0 or -EBADMSG. */
int gt_fields_check(const struct gt_fields *fields);

/* The value of the first field of this key, terminated, cut to len - 1 bytes. false: none. */
bool gt_fields_get(const struct gt_fields *fields, const char *key, char *buf, size_t len);
bool gt_fields_is(const struct gt_fields *fields, const char *key, const char *value);
/* A decimal number. false: there is none; *ret is untouched. */
bool gt_fields_number(const struct gt_fields *fields, const char *key, uint64_t *ret);

/* The values of all fields of this key, one after the other: *at is NULL at first. false: the end.
 */
bool gt_fields_each(const struct gt_fields *fields, const char *key, const char **at, char *buf,
		    size_t len);

#endif
