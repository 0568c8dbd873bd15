/*
 * json_reader.c - see json_reader.h. JSON is RFC 8259.
 */
#include "base.h"
#include "json_reader.h"
#include "json_scan.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

/* ---- containers ------------------------------------------------------------------------------ */

/*
 * Bits of the bytes that a backslash before them escapes, of a block of len bytes. *carry is that
 * of its first byte, and then of the first byte behind it.
 */
static inline uint64_t escaped_bytes(uint64_t backslash, uint64_t *carry, size_t len)
{
	uint64_t escaped = *carry;
	uint64_t last = UINT64_C(1) << (len - 1);

	backslash &= ~escaped;
	*carry = 0;
	while (backslash) {
		uint64_t bit = backslash & -backslash;

		*carry = bit == last;
		escaped |= bit << 1;
		backslash &= ~(bit | bit << 1);
	}
	return escaped;
}

/* One past the bit at which *depth becomes 0; 0 when it does not, with the depth at the end. */
static inline int closing_bit(uint64_t open, uint64_t close, uint64_t *depth)
{
	while (close) {
		uint64_t bit = close & -close;

		*depth += (uint64_t)__builtin_popcountll(open & (bit - 1));
		open &= ~(bit - 1);
		if (--*depth == 0)
			return __builtin_ctzll(bit) + 1;
		close ^= bit;
	}
	*depth += (uint64_t)__builtin_popcountll(open);
	return 0;
}

typedef void scan_fn(struct gt_scan_block *ret, const char *at, char open);
typedef uint64_t prefix_fn(uint64_t bits);

/* The body of every gt_json_skip_piece(); scan and prefix_xor are constants after inlining. */
__attribute__((always_inline)) static inline const char *skip_piece(struct gt_json_skip *skip,
								    const char *at, const char *end,
								    scan_fn *scan,
								    prefix_fn *prefix_xor)
{
	if (!skip->depth)
		skip->open = *at;
	for (; at < end; at += GT_SCAN_BLOCK) {
		struct gt_scan_block block;
		size_t len = GT_MIN((size_t)(end - at), (size_t)GT_SCAN_BLOCK);
		uint64_t valid = UINT64_MAX >> (GT_SCAN_BLOCK - len);
		uint64_t in_string;
		int closing;

		scan(&block, at, skip->open);
		block.quote &= valid;
		if (GT_UNLIKELY(block.backslash || skip->escaped))
			block.quote &= ~escaped_bytes(block.backslash & valid, &skip->escaped, len);
		in_string = prefix_xor(block.quote) ^ skip->in_string;
		closing = closing_bit(block.open & ~in_string & valid,
				      block.close & ~in_string & valid, &skip->depth);
		if (closing)
			valid &= (UINT64_C(2) << (closing - 1)) - 1;
		if (GT_UNLIKELY(block.control & in_string & valid) && skip->strict)
			return NULL;
		if (closing)
			return at + closing;
		skip->in_string = (uint64_t)((int64_t)in_string >> 63);
	}
	return end;
}

static const char *skip_portable(struct gt_json_skip *skip, const char *at, const char *end)
{
	return skip_piece(skip, at, end, gt_scan_portable, gt_scan_prefix_xor);
}

#ifdef __x86_64__

static const char *skip_sse2(struct gt_json_skip *skip, const char *at, const char *end)
{
	return skip_piece(skip, at, end, gt_scan_sse2, gt_scan_prefix_xor);
}

GT_SCAN_AVX2 static const char *skip_avx2(struct gt_json_skip *skip, const char *at,
					  const char *end)
{
	return skip_piece(skip, at, end, gt_scan_avx2, gt_scan_prefix_xor_clmul);
}

/* What GT_SCAN_AVX2 names. By hand: not every compiler's run-time has __builtin_cpu_supports(). */
static bool has_avx2(void)
{
	const unsigned int of_leaf1 = bit_PCLMUL | bit_POPCNT | bit_OSXSAVE | bit_AVX;
	const unsigned int of_leaf7 = bit_BMI | bit_AVX2, saves_ymm = 6;
	unsigned int a, b, c, d, saved, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || (c & of_leaf1) != of_leaf1)
		return false;
	__asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
	return (saved & saves_ymm) == saves_ymm && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       (b & of_leaf7) == of_leaf7;
}

#endif

static const char *(*skip_best)(struct gt_json_skip *, const char *, const char *) = skip_portable;

enum gt_json_simd gt_json_use(enum gt_json_simd wanted)
{
#ifdef __x86_64__
	if (wanted >= GT_JSON_AVX2 && has_avx2()) {
		skip_best = skip_avx2;
		return GT_JSON_AVX2;
	}
	if (wanted >= GT_JSON_SSE2) {
		skip_best = skip_sse2;
		return GT_JSON_SSE2;
	}
#endif
	(void)wanted;
	skip_best = skip_portable;
	return GT_JSON_PORTABLE;
}

__attribute__((constructor)) static void use_best(void)
{
	gt_json_use(GT_JSON_AVX2);
}

const char *gt_json_skip_piece(struct gt_json_skip *skip, const char *at, const char *end)
{
	return skip_best(skip, at, end);
}

const char *gt_json_container_end(struct gt_json_text *text, const char *at)
{
	struct gt_json_skip skip = { .strict = true };
	const char *after;

	if (at >= text->end)
		return gt_json_fail(text, text->end);
	after = skip_best(&skip, at, text->end);
	if (!after)
		return gt_json_fail(text, at);
	return skip.depth ? gt_json_fail(text, text->end) : after;
}

/* ---- strings, numbers, values ---------------------------------------------------------------- */

const char *gt_json_skip_long_space(const char *at)
{
	uint32_t ink;

	while (!(ink = gt_scan_ink16(at)))
		at += 16;
	return at + __builtin_ctz(ink);
}

const char *gt_json_string_end(struct gt_json_text *text, const char *at, bool *ret_escaped)
{
	bool escaped = false;
	uint32_t special;

	for (;;) {
		while (!(special = gt_scan_string16(at)))
			at += 16;
		at += __builtin_ctz(special);
		if (*at != '\\')
			break;
		escaped = true;
		at += 2;
	}
	if (ret_escaped)
		*ret_escaped = escaped;
	return *at == '"' ? at : gt_json_fail(text, at);
}

/* What numbers, literals and the words that profilers write instead consist of. */
static const bool is_word[256] = {
	['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['-'] = true,
	['+'] = true,         ['.'] = true,         ['/'] = true,         ['_'] = true,
	['#'] = true,         ['%'] = true,
};

const char *gt_json_value_end(struct gt_json_text *text, const char *at)
{
	const char *start = at;

	switch (*at) {
	case '"':
		at = gt_json_string_end(text, at + 1, NULL);
		return at ? at + 1 : NULL;
	case '{':
	case '[':
		return gt_json_container_end(text, at);
	default:
		while (is_word[(unsigned char)*at])
			at++;
		return at == start ? gt_json_fail(text, at) : at;
	}
}

static const char *skip_commas(const char *at)
{
	at = gt_json_skip_space(at);
	while (*at == ',')
		at = gt_json_skip_space(at + 1);
	return at;
}

int gt_json_member(struct gt_json_text *text, const char **at, struct gt_str *ret_key)
{
	const char *key = skip_commas(*at);
	const char *colon;
	uint32_t special;

	if (*key == '}') {
		*at = key + 1;
		return 0;
	}
	if (*key != '"' || key >= text->end) {
		gt_json_fail(text, key);
		return -1;
	}
	special = gt_scan_string16(++key);
	colon = key + (special ? __builtin_ctz(special) : 0);
	if (*colon != '"') /* not one of the short keys that most are */
		colon = gt_json_string_end(text, key, NULL);
	if (!colon)
		return -1;
	*ret_key = (struct gt_str){ key, (size_t)(colon - key) };
	colon = gt_json_skip_space(colon + 1);
	if (*colon != ':') {
		gt_json_fail(text, colon);
		return -1;
	}
	*at = gt_json_skip_space(colon + 1);
	return 1;
}

int gt_json_element(struct gt_json_text *text, const char **at)
{
	const char *next = skip_commas(*at);

	if (next >= text->end) {
		gt_json_fail(text, next);
		return -1;
	}
	*at = next + (*next == ']');
	return *next != ']';
}

enum gt_json_kind gt_json_kind(struct gt_str raw)
{
	static const struct {
		struct gt_str word;
		enum gt_json_kind kind;
	} words[] = {
		{ GT_STR("true"), GT_JSON_TRUE },
		{ GT_STR("false"), GT_JSON_FALSE },
		{ GT_STR("null"), GT_JSON_NULL },
	};

	if (!raw.len)
		return GT_JSON_NONE;
	switch (raw.ptr[0]) {
	case '"':
		return GT_JSON_STRING;
	case '{':
		return GT_JSON_OBJECT;
	case '[':
		return GT_JSON_ARRAY;
	case '-':
	case '0' ... '9':
		return GT_JSON_NUMBER;
	default:
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			if (gt_str_equal(raw, words[i].word))
				return words[i].kind;
		}
		return GT_JSON_WORD;
	}
}

struct gt_str gt_json_unquote(struct gt_str raw)
{
	if (raw.len >= 2 && raw.ptr[0] == '"')
		return (struct gt_str){ raw.ptr + 1, raw.len - 2 };
	return raw;
}

/* The value behind the key that ends at 'at'. */
static struct gt_str value_behind(struct gt_str object, const char *at)
{
	struct gt_json_text text = { .end = object.ptr + object.len };
	const char *next;

	at = gt_json_skip_space(at);
	if (*at != ':')
		return (struct gt_str){ NULL, 0 };
	at = gt_json_skip_space(at + 1);
	next = gt_json_value_end(&text, at);
	if (!next || next > text.end)
		return (struct gt_str){ NULL, 0 };
	return (struct gt_str){ at, (size_t)(next - at) };
}

struct gt_str gt_json_find_last(struct gt_str object, struct gt_str quoted_key)
{
	const char *end = object.ptr + object.len; /* padding or more JSON lies behind it */
	size_t left = object.len;

	while (left) {
		size_t step = GT_MIN(left, (size_t)16);
		const char *at = object.ptr + left - step;
		uint32_t mask = gt_scan_pair16(at, quoted_key.ptr[0], quoted_key.ptr[1]) &
				((UINT32_C(1) << step) - 1);

		for (; mask; mask &= ~(UINT32_C(1) << (31 - __builtin_clz(mask)))) {
			const char *key = at + (31 - __builtin_clz(mask));
			struct gt_str value;

			if ((size_t)(end - key) < quoted_key.len ||
			    memcmp(key, quoted_key.ptr, quoted_key.len) != 0)
				continue;
			value = value_behind(object, key + quoted_key.len);
			if (value.len)
				return value;
		}
		left -= step;
	}
	return (struct gt_str){ NULL, 0 };
}
