/*
 * json_scan.h - what sixteen and sixty-four bytes of JSON hold, as bit masks: bit i is byte i. For
 * json_reader.c alone. The portable code is for processors other than x86-64 and for comparison.
 */
#ifndef GT_JSON_SCAN_H
#define GT_JSON_SCAN_H

#include "base.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define GT_SCAN_BLOCK 64

struct gt_scan_block {
	uint64_t quote;
	uint64_t backslash;
	uint64_t open;    /* '{' or '[': as asked for */
	uint64_t close;   /* its counterpart */
	uint64_t control; /* below 0x20 */
};

/* In ASCII a closing bracket stands two behind its opening one. */
#define GT_SCAN_CLOSE(open) ((char)((open) + 2))

static inline void gt_scan_portable(struct gt_scan_block *ret, const char *at, char open)
{
	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < GT_SCAN_BLOCK; i++) {
		uint64_t bit = UINT64_C(1) << i;

		ret->quote |= at[i] == '"' ? bit : 0;
		ret->backslash |= at[i] == '\\' ? bit : 0;
		ret->open |= at[i] == open ? bit : 0;
		ret->close |= at[i] == GT_SCAN_CLOSE(open) ? bit : 0;
		ret->control |= (unsigned char)at[i] < 0x20 ? bit : 0;
	}
}

/* The state of a string after each byte: bit i is the parity of the bits 0 … i. */
static inline uint64_t gt_scan_prefix_xor(uint64_t bits)
{
	for (int shift = 1; shift < 64; shift *= 2)
		bits ^= bits << shift;
	return bits;
}

#ifdef __x86_64__

static inline uint64_t gt_scan_mask16(__m128i match, int index)
{
	return (uint64_t)(uint32_t)_mm_movemask_epi8(match) << (index * 16);
}

static inline void gt_scan_sse2(struct gt_scan_block *ret, const char *at, char open)
{
	const __m128i last_control = _mm_set1_epi8(0x1f);

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < 4; i++) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(at + i * 16));

		ret->quote |= gt_scan_mask16(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')), i);
		ret->backslash |= gt_scan_mask16(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')), i);
		ret->open |= gt_scan_mask16(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(open)), i);
		ret->close |= gt_scan_mask16(
			_mm_cmpeq_epi8(bytes, _mm_set1_epi8(GT_SCAN_CLOSE(open))), i);
		ret->control |=
			gt_scan_mask16(_mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes), i);
	}
}

#define GT_SCAN_AVX2 __attribute__((target("avx2,bmi,popcnt,pclmul")))

GT_SCAN_AVX2 static inline uint64_t gt_scan_mask32(__m256i match, int index)
{
	return (uint64_t)(uint32_t)_mm256_movemask_epi8(match) << (index * 32);
}

GT_SCAN_AVX2 static inline void gt_scan_avx2(struct gt_scan_block *ret, const char *at, char open)
{
	const __m256i last_control = _mm256_set1_epi8(0x1f);

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < 2; i++) {
		__m256i bytes = _mm256_loadu_si256((const __m256i *)(at + i * 32));

		ret->quote |= gt_scan_mask32(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('"')), i);
		ret->backslash |=
			gt_scan_mask32(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8('\\')), i);
		ret->open |= gt_scan_mask32(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(open)), i);
		ret->close |= gt_scan_mask32(
			_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(GT_SCAN_CLOSE(open))), i);
		ret->control |= gt_scan_mask32(
			_mm256_cmpeq_epi8(_mm256_min_epu8(bytes, last_control), bytes), i);
	}
}

GT_SCAN_AVX2 static inline uint64_t gt_scan_prefix_xor_clmul(uint64_t bits)
{
	return (uint64_t)_mm_cvtsi128_si64(
		_mm_clmulepi64_si128(_mm_set_epi64x(0, (int64_t)bits), _mm_set1_epi8(-1), 0));
}

/* Of sixteen bytes: those at which a string may not simply go on. */
static inline uint32_t gt_scan_string16(const char *at)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)at);
	__m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
	__m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
	__m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);

	return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control));
}

/* Of sixteen bytes: those that are first, with second behind them; reads seventeen. */
static inline uint32_t gt_scan_pair16(const char *at, char first, char second)
{
	__m128i here = _mm_loadu_si128((const __m128i *)at);
	__m128i next = _mm_loadu_si128((const __m128i *)(at + 1));

	return (uint32_t)_mm_movemask_epi8(
		_mm_and_si128(_mm_cmpeq_epi8(here, _mm_set1_epi8(first)),
			      _mm_cmpeq_epi8(next, _mm_set1_epi8(second))));
}

/* Of sixteen bytes: those that are not white space. */
static inline uint32_t gt_scan_ink16(const char *at)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)at);
	__m128i space = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(' ')),
						  _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'))),
				     _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')),
						  _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'))));

	return (uint32_t)_mm_movemask_epi8(space) ^ 0xffff;
}

#else

static inline uint32_t gt_scan_string16(const char *at)
{
	uint32_t mask = 0;

	for (int i = 0; i < 16; i++)
		mask |= (uint32_t)(at[i] == '"' || at[i] == '\\' || (unsigned char)at[i] < 0x20)
			<< i;
	return mask;
}

static inline uint32_t gt_scan_pair16(const char *at, char first, char second)
{
	uint32_t mask = 0;

	for (int i = 0; i < 16; i++)
		mask |= (uint32_t)(at[i] == first && at[i + 1] == second) << i;
	return mask;
}

static inline uint32_t gt_scan_ink16(const char *at)
{
	uint32_t mask = 0;

	for (int i = 0; i < 16; i++)
		mask |= (uint32_t)(at[i] != ' ' && at[i] != '\n' && at[i] != '\r' && at[i] != '\t')
			<< i;
	return mask;
}

#endif

#endif
