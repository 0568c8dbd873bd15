/*
 * utf8.h - UTF-8 (RFC 3629): encode, validate, step.
 */
#ifndef GT_UTF8_H
#define GT_UTF8_H

#include "base.h"

#define GT_UTF8_REPLACEMENT 0xfffdu

/* The code, or what stands for one that is no scalar value. */
static inline uint32_t gt_utf8_scalar(uint32_t code)
{
	return code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? GT_UTF8_REPLACEMENT : code;
}

/* Writes 1 to 4 bytes; returns how many. code is a scalar value: no surrogate, at most 0x10ffff. */
static inline size_t gt_utf8_encode(uint32_t code, char *out)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/*
 * The scalar value at 'at' (len > 0 bytes), its length in *ret_len. Where the bytes are not UTF-8
 * (overlong, surrogate, too large, cut) it is GT_UTF8_REPLACEMENT with length 1.
 */
static inline uint32_t gt_utf8_decode(const char *at, size_t len, size_t *ret_len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = (unsigned char)at[0];
	size_t want = lead < 0x80   ? 1
		      : lead < 0xc2 ? 0
		      : lead < 0xe0 ? 2
		      : lead < 0xf0 ? 3
		      : lead < 0xf5 ? 4
				    : 0;
	uint32_t code = want < 2 ? lead : lead & (0x7fu >> want);

	*ret_len = 1;
	if (!want || want > len)
		return GT_UTF8_REPLACEMENT;
	for (size_t i = 1; i < want; i++) {
		if (((unsigned char)at[i] & 0xc0) != 0x80)
			return GT_UTF8_REPLACEMENT;
		code = code << 6 | ((unsigned char)at[i] & 0x3f);
	}
	if (code < least[want] || code != gt_utf8_scalar(code))
		return GT_UTF8_REPLACEMENT;
	*ret_len = want;
	return code;
}

#endif
