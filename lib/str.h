/*
 * str.h - bytes that somebody else owns.
 */
#ifndef GT_STR_H
#define GT_STR_H

#include "base.h"

/* Bytes of any kind, NUL included; not terminated. ptr may be NULL when len is 0. */
struct gt_str {
	const char *ptr;
	size_t len;
};

#define GT_STR(literal) ((struct gt_str){ (literal), sizeof(literal) - 1 })

/* Up to its NUL; of NULL: no bytes. */
static inline struct gt_str gt_str_of(const char *text)
{
	return (struct gt_str){ text, text ? strlen(text) : 0 };
}

/* Words that overlap at the end: for short ones that is done before memcmp() would have begun. */
static inline bool gt_bytes_equal(const char *a, const char *b, size_t len)
{
	uint64_t x, y, tail_x, tail_y;

	if (len < 8)
		return !len || !memcmp(a, b, len);
	memcpy(&tail_x, a + len - 8, 8);
	memcpy(&tail_y, b + len - 8, 8);
	if (tail_x != tail_y)
		return false;
	for (size_t i = 0; i + 8 < len; i += 8) {
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		if (x != y)
			return false;
	}
	return true;
}

static inline bool gt_str_equal(struct gt_str a, struct gt_str b)
{
	return a.len == b.len && gt_bytes_equal(a.ptr, b.ptr, a.len);
}

static inline bool gt_str_starts(struct gt_str str, struct gt_str prefix)
{
	return str.len >= prefix.len && !memcmp(str.ptr, prefix.ptr, prefix.len);
}

/* part is not empty. */
static inline bool gt_str_has(struct gt_str str, struct gt_str part)
{
	return str.ptr && memmem(str.ptr, str.len, part.ptr, part.len);
}

/* The same without regard to case; word is in small letters. */
static inline bool gt_str_has_nocase(struct gt_str text, struct gt_str word)
{
	for (size_t i = 0; i + word.len <= text.len; i++) {
		size_t k = 0;

		while (k < word.len && (text.ptr[i + k] | 0x20) == (word.ptr[k] | 0x20))
			k++;
		if (k == word.len)
			return true;
	}
	return false;
}

#define GT_HASH_START UINT64_C(0xcbf29ce484222325)

/* FNV-1a of the text behind what hash is of. */
static inline uint64_t gt_str_hash(uint64_t hash, struct gt_str text)
{
	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static inline bool gt_text_ends(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && !strcmp(text + len - end_len, end);
}

#endif
