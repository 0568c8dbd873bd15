/*
 * huffman.h - prefix codes of limited length, as deflate (RFC 1951) wants them.
 */
#ifndef GT_HUFFMAN_H
#define GT_HUFFMAN_H

#include "base.h"

#define GT_HUFFMAN_SYMBOLS_MAX 288

struct gt_huffman_code {
	uint16_t bits[GT_HUFFMAN_SYMBOLS_MAX]; /* in the order in which deflate writes them */
	uint8_t len[GT_HUFFMAN_SYMBOLS_MAX];   /* 0: the symbol has no code */
};

/*
 * A complete code for count symbols of these frequencies, no codeword longer than limit bits
 * (2^limit >= count). At least two symbols get one, used or not.
 */
void gt_huffman_build(struct gt_huffman_code *code, const uint32_t *freq, unsigned int count,
		      unsigned int limit);

#endif
