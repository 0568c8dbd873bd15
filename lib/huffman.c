#include "huffman.h"

#include <stdlib.h>

#define LEN_MAX 15

struct leaf {
	uint32_t freq;
	uint16_t symbol;
};

static int leaf_compare(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;

	if (x->freq != y->freq)
		return x->freq < y->freq ? -1 : 1;
	return (int)x->symbol - (int)y->symbol;
}

/* The symbols in use, rarest first; padded to two. */
static unsigned int collect(struct leaf *leaves, const uint32_t *freq, unsigned int count)
{
	unsigned int n = 0, i;

	for (i = 0; i < count; i++) {
		if (freq[i])
			leaves[n++] = (struct leaf){ freq[i], (uint16_t)i };
	}
	for (i = 0; n < 2; i++) {
		if (!freq[i])
			leaves[n++] = (struct leaf){ 1, (uint16_t)i };
	}
	qsort(leaves, n, sizeof(*leaves), leaf_compare);
	return n;
}

/*
 * How many codewords there are of each length in Huffman's tree, which is built with two queues:
 * the sorted leaves, and the inner nodes, which come up in order of their weight.
 */
static void count_lengths(const struct leaf *leaves, unsigned int n,
			  unsigned int counts[GT_HUFFMAN_SYMBOLS_MAX])
{
	uint32_t weight[GT_HUFFMAN_SYMBOLS_MAX];
	uint16_t parent[2 * GT_HUFFMAN_SYMBOLS_MAX]; /* leaves first, then inner nodes */
	uint16_t depth[GT_HUFFMAN_SYMBOLS_MAX];      /* of inner nodes */
	unsigned int leaf = 0, inner = 0, made, side, i;

	for (made = 0; made < n - 1; made++) {
		weight[made] = 0;
		for (side = 0; side < 2; side++) {
			if (leaf < n && (inner == made || leaves[leaf].freq <= weight[inner])) {
				weight[made] += leaves[leaf].freq;
				parent[leaf++] = (uint16_t)made;
			} else {
				weight[made] += weight[inner];
				parent[n + inner++] = (uint16_t)made;
			}
		}
	}
	memset(counts, 0, GT_HUFFMAN_SYMBOLS_MAX * sizeof(*counts));
	depth[n - 2] = 0;
	for (i = n - 2; i-- > 0;)
		depth[i] = depth[parent[n + i]] + 1;
	for (i = 0; i < n; i++)
		counts[depth[parent[i]] + 1]++;
}

/*
 * Shorten what is longer than limit, then pay for it: the sum over all codewords of 2^-length may
 * not exceed 1. Each step makes one of the longest codewords that still can grow a bit longer.
 */
static void limit_lengths(unsigned int counts[GT_HUFFMAN_SYMBOLS_MAX], unsigned int limit)
{
	uint64_t sum = 0, one = UINT64_C(1) << limit;
	unsigned int len;

	for (len = limit + 1; len < GT_HUFFMAN_SYMBOLS_MAX; len++) {
		counts[limit] += counts[len];
		counts[len] = 0;
	}
	for (len = 1; len <= limit; len++)
		sum += (uint64_t)counts[len] << (limit - len);
	while (sum > one) {
		for (len = limit - 1; !counts[len]; len--)
			;
		counts[len]--;
		counts[len + 1]++;
		sum -= UINT64_C(1) << (limit - len - 1);
	}
	/* That may have paid too much: what is left goes to the shortest that can use it. */
	for (len = limit; len > 1 && sum < one; len--) {
		while (counts[len] && sum + (UINT64_C(1) << (limit - len)) <= one) {
			counts[len]--;
			counts[len - 1]++;
			sum += UINT64_C(1) << (limit - len);
		}
	}
}

/* The code that follows from its lengths. */
static void number_codes(struct gt_huffman_code *code, unsigned int count)
{
	unsigned int counts[LEN_MAX + 1] = { 0 }, next[LEN_MAX + 1], bits = 0, len, i;

	for (i = 0; i < count; i++)
		counts[code->len[i]]++;
	counts[0] = 0;
	for (len = 1; len <= LEN_MAX; len++) {
		bits = (bits + counts[len - 1]) << 1;
		next[len] = bits;
	}
	for (i = 0; i < count; i++) {
		unsigned int value, reversed = 0;

		if (!code->len[i])
			continue;
		value = next[code->len[i]]++;
		for (len = code->len[i]; len; len--, value >>= 1)
			reversed = reversed << 1 | (value & 1);
		code->bits[i] = (uint16_t)reversed;
	}
}

void gt_huffman_build(struct gt_huffman_code *code, const uint32_t *freq, unsigned int count,
		      unsigned int limit)
{
	struct leaf leaves[GT_HUFFMAN_SYMBOLS_MAX];
	unsigned int counts[GT_HUFFMAN_SYMBOLS_MAX];
	unsigned int n = collect(leaves, freq, count), len, i = 0;

	count_lengths(leaves, n, counts);
	limit_lengths(counts, limit);
	memset(code->len, 0, count);
	for (len = limit; len; len--) { /* the rarest get the longest */
		while (counts[len]--)
			code->len[leaves[i++].symbol] = (uint8_t)len;
	}
	number_codes(code, count);
}
