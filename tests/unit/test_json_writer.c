/*
 * test_json_writer.c - numbers against printf, strings against what they must become.
 */
#include "base.h"
#include "json_writer.h"
#include "random.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t random_of_any_length(void)
{
	uint64_t value = random_u64();

	return value >> (value & 63);
}

static void assert_put(const char *begin, char *end, const char *want)
{
	*end = '\0';
	assert_string_equal(begin, want);
}

static void test_numbers(void **state)
{
	static const uint64_t edges[] = { 0,         9,        10,        99,
					  100,       999,      1000,      9999,
					  10000,     99999999, 100000000, UINT64_MAX / 10,
					  UINT64_MAX };
	char got[64], want[64];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t v = (size_t)i < ARRAY_SIZE(edges) ? edges[i] : random_of_any_length();

		snprintf(want, sizeof(want), "%" PRIu64, v);
		assert_put(got, gt_json_put_u64(got, v), want);
		assert_true(strlen(got) <= GT_JSON_INT_MAX);
		snprintf(want, sizeof(want), "%" PRId64, (int64_t)v);
		assert_put(got, gt_json_put_i64(got, (int64_t)v), want);
		assert_true(strlen(got) <= GT_JSON_INT_MAX);
		snprintf(want, sizeof(want), "%" PRIu64 ".%03u", v / 1000,
			 (unsigned int)(v % 1000));
		assert_put(got, gt_json_put_us(got, v), want);
		assert_true(strlen(got) <= GT_JSON_US_MAX);
	}
	assert_put(got, gt_json_put_i64(got, INT64_MIN), "-9223372036854775808");
	assert_put(got, gt_json_put_micro(got, 0), "0.0");
	assert_put(got, gt_json_put_micro(got, 969697), "0.969697");
	assert_put(got, gt_json_put_micro(got, 1500000), "1.5");
	assert_put(got, gt_json_put_micro(got, 12000000), "12.0");
	assert_put(got, gt_json_put_micro(got, 1), "0.000001");
}

static void assert_str(struct gt_str str, const char *want)
{
	char *got = malloc(GT_JSON_STR_MAX(str.len) + 1), *end;

	assert_non_null(got);
	end = gt_json_put_str(got, str);
	assert_true((size_t)(end - got) <= GT_JSON_STR_MAX(str.len));
	assert_put(got, end, want);
	free(got);
}

static void test_strings(void **state)
{
	(void)state;
	assert_str((struct gt_str){ 0 }, "\"\"");
	assert_str(GT_STR("a plain name, longer than a word"),
		   "\"a plain name, longer than a word\"");
	assert_str(GT_STR("say \"hi\"\\"), "\"say \\\"hi\\\"\\\\\"");
	assert_str(GT_STR("\n\t\r"), "\"\\n\\t\\r\"");
	assert_str(GT_STR("\0\x01\x1b\x1f\x7f"), "\"\\u0000\\u0001\\u001b\\u001f\\u007f\"");
	assert_str(GT_STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
		   "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	/* cut, overlong, surrogate, too large, stray: one replacement a byte */
	assert_str(GT_STR("a\xe2\x82"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_str(GT_STR("\xc0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_str(GT_STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_str(GT_STR("\xf5\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	assert_str(GT_STR("\x80z"), "\"\xef\xbf\xbdz\"");
}

/* Wherever in the eight bytes that are looked at together it stands, nothing is missed. */
static void test_every_byte_at_every_place(void **state)
{
	char text[24], plain[GT_JSON_STR_MAX(24)], *end;

	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		for (size_t at = 0; at < sizeof(text); at++) {
			bool as_is = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';

			memset(text, 'x', sizeof(text));
			text[at] = (char)byte;
			end = gt_json_put_chars(plain, (struct gt_str){ text, sizeof(text) });
			assert_int_equal((size_t)(end - plain) == sizeof(text), as_is);
			assert_memory_equal(plain, text, at);
			assert_memory_equal(end - (sizeof(text) - at - 1), text + at + 1,
					    sizeof(text) - at - 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_every_byte_at_every_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
