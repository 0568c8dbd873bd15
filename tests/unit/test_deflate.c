/*
 * test_deflate.c - what the encoder writes, zlib reads back: any text, with right and wrong hints;
 * and codes of limited length are complete and as good as they can be.
 */
#include "base.h"
#include "deflate.h"
#include "huffman.h"
#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

static void assert_inflates(const struct gt_buf *packed, const char *want, size_t len)
{
	char *got = malloc(len + 1);
	z_stream z = { 0 };

	assert_non_null(got);
	assert_false(packed->failed);
	assert_int_equal(inflateInit2(&z, -15), Z_OK);
	z.next_in = (Bytef *)packed->data;
	z.avail_in = (uInt)packed->len;
	z.next_out = (Bytef *)got;
	z.avail_out = (uInt)len + 1;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	assert_int_equal(z.total_out, len);
	assert_memory_equal(got, want, len);
	inflateEnd(&z);
	free(got);
}

enum kind { ZEROS, NOISE, DIGITS, LINES, KIND_MAX };

static void fill(char *text, size_t len, enum kind kind)
{
	for (size_t i = 0; i < len; i++) {
		switch (kind) {
		case ZEROS:
			text[i] = 0;
			break;
		case NOISE:
			text[i] = (char)random_u64();
			break;
		case DIGITS:
			text[i] = (char)('0' + random_below(10));
			break;
		default:
			text[i] = i < 40 || !random_below(9) ? (char)('a' + random_below(26))
							     : text[i - 40];
		}
	}
}

static size_t make_hints(struct gt_deflate_hint *hints, size_t max, size_t from, size_t to)
{
	size_t count = 0, at = from;

	while (count < max && at < to) {
		static const uint32_t dists[] = {
			0, 1, 3, 40, 80, 32767, 32768, 40000, UINT32_MAX
		};

		hints[count].at = (uint32_t)at;
		hints[count++].dist = dists[random_below(ARRAY_SIZE(dists))];
		at += random_below(60);
	}
	return count;
}

/* In pieces with flushes between them; the history moves to the front now and then. */
static void round_trip(enum kind kind, size_t len, bool hinted)
{
	char *text = malloc(len + 1), *window = malloc(len + 1);
	struct gt_deflate_hint hints[4096];
	struct gt_buf out = { 0 };
	struct gt_deflate *deflate;
	size_t done = 0, from = 0;

	assert_non_null(text);
	assert_non_null(window);
	assert_int_equal(gt_deflate_new(&deflate), 0);
	fill(text, len, kind);
	while (done < len) {
		size_t n = 1 + random_below(random_below(4) ? 2000 : len), count = 0;

		n = GT_MIN(n, len - done);
		memcpy(window + from, text + done, n);
		if (hinted)
			count = make_hints(hints, ARRAY_SIZE(hints), from, from + n);
		gt_deflate_text(deflate, window, from, from + n, hints, count, &out);
		done += n;
		from += n;
		if (!random_below(4))
			gt_deflate_flush(deflate, false, &out);
		if (from > GT_DEFLATE_WINDOW) {
			memmove(window, window + from - GT_DEFLATE_WINDOW, GT_DEFLATE_WINDOW);
			from = GT_DEFLATE_WINDOW;
		}
	}
	gt_deflate_flush(deflate, true, &out);
	assert_inflates(&out, text, len);
	gt_deflate_free(deflate);
	gt_buf_release(&out);
	free(window);
	free(text);
}

static void test_round_trips(void **state)
{
	static const size_t lens[] = { 0, 1, 2, 3, 4, 5, 100, 70000, 300000 };

	(void)state;
	for (int kind = 0; kind < KIND_MAX; kind++) {
		for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
			round_trip((enum kind)kind, lens[i], false);
			round_trip((enum kind)kind, lens[i], true);
		}
	}
}

/* After a flush decoding can start anew: nothing refers to what was before. */
static void test_flush_points(void **state)
{
	char text[1000];
	struct gt_buf first = { 0 }, second = { 0 };
	struct gt_deflate *deflate;

	(void)state;
	fill(text, sizeof(text), LINES);
	assert_int_equal(gt_deflate_new(&deflate), 0);
	gt_deflate_text(deflate, text, 0, sizeof(text), NULL, 0, &first);
	gt_deflate_flush(deflate, false, &first);
	assert_true(first.len > 5);
	assert_memory_equal(first.data + first.len - 4, "\0\0\xff\xff", 4);
	gt_deflate_text(deflate, text, 0, sizeof(text), NULL, 0, &second);
	gt_deflate_flush(deflate, true, &second);
	assert_inflates(&second, text, sizeof(text));
	gt_deflate_free(deflate);
	gt_buf_release(&first);
	gt_buf_release(&second);
}

/* A hint makes one match of a line that a search would not find in one piece. */
static void test_hints_are_used(void **state)
{
	enum { LINE = 200, COUNT = 64 };
	struct gt_deflate_hint hints[COUNT];
	struct gt_buf with = { 0 }, without = { 0 };
	char text[LINE * COUNT];
	struct gt_deflate *deflate;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) { /* every second line is the same but for digits */
		memset(text + i * LINE, i % 2 ? 'o' : 'e', LINE);
		snprintf(text + i * LINE, 8, "%07u", (unsigned int)random_below(9999999));
		hints[i] = (struct gt_deflate_hint){ (uint32_t)i * LINE + 7, i < 2 ? 0 : 2 * LINE };
	}
	for (int round = 0; round < 2; round++) {
		struct gt_buf *out = round ? &with : &without;

		assert_int_equal(gt_deflate_new(&deflate), 0);
		gt_deflate_text(deflate, text, 0, sizeof(text), hints, round ? COUNT : 0, out);
		gt_deflate_flush(deflate, true, out);
		assert_inflates(out, text, sizeof(text));
		gt_deflate_free(deflate);
	}
	assert_true(with.len < without.len);
	gt_buf_release(&with);
	gt_buf_release(&without);
}

static void check_code(const uint32_t *freq, unsigned int count, unsigned int limit)
{
	struct gt_huffman_code code;
	unsigned int used = 0, coded = 0, i, j;
	uint64_t sum = 0;

	gt_huffman_build(&code, freq, count, limit);
	for (i = 0; i < count; i++) {
		assert_true(code.len[i] <= limit);
		assert_true(!freq[i] || code.len[i]);
		used += freq[i] > 0;
		coded += code.len[i] > 0;
		if (code.len[i])
			sum += UINT64_C(1) << (limit - code.len[i]);
	}
	assert_int_equal(coded, GT_MAX(used, 2u));
	assert_int_equal(sum, UINT64_C(1) << limit); /* complete, and not more */
	for (i = 0; i < count; i++) {
		for (j = 0; j < count; j++) /* the rarer is not shorter */
			assert_false(freq[i] > freq[j] && freq[j] && code.len[i] > code.len[j]);
	}
}

static void test_codes(void **state)
{
	uint32_t freq[GT_HUFFMAN_SYMBOLS_MAX];
	unsigned int round, i;

	(void)state;
	for (round = 0; round < 2000; round++) {
		static const unsigned int counts[] = { 2, 19, 30, 286, 288 };
		unsigned int count = counts[round % ARRAY_SIZE(counts)];

		for (i = 0; i < count; i++)
			freq[i] = random_below(3) ? (uint32_t)random_below(round + 1) : 0;
		check_code(freq, count, count == 19 ? 7 : 15);
	}
	for (i = 0; i < 24; i++) /* Fibonacci: the deepest tree there is */
		freq[i] = i < 2 ? 1 : freq[i - 1] + freq[i - 2];
	check_code(freq, 24, 15);
	check_code(freq, 19, 7);
	memset(freq, 0, sizeof(freq));
	check_code(freq, 30, 15);
	freq[29] = 7;
	check_code(freq, 30, 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_flush_points),
		cmocka_unit_test(test_hints_are_used),
		cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
