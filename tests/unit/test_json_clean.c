/*
 * test_json_clean.c - what becomes of JSON that strict readers refuse.
 */
#include "base.h"
#include "json_clean.h"
#include "json_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* The copy of text with its flaws behind it; "refused" when there is none. */
static char *clean(struct gt_str text)
{
	struct gt_buf padded = { 0 }, out = { 0 };
	unsigned int flaws = 0;
	bool good;

	gt_buf_append(&padded, text.ptr, text.len);
	gt_buf_fill(&padded, '"', GT_JSON_PAD);
	good = gt_json_clean((struct gt_str){ padded.data, text.len }, &out, &flaws);
	if (!good) {
		assert_int_equal(out.len, 0);
		gt_buf_text(&out, "refused");
	} else if (flaws) {
		gt_buf_printf(&out, " %x", flaws);
	}
	gt_buf_byte(&out, '\0');
	gt_buf_release(&padded);
	return out.data;
}

static void assert_clean(const char *text, const char *want)
{
	char *got = clean(gt_str_of(text));

	assert_string_equal(got, want);
	free(got);
}

static void test_strict(void **state)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"\"\"",
		"-0.5e+10",
		"{\"a\":[1,true,false,null,{\"b\":\"\\u00e9\\n\\\\\"}]}",
		"{\"rank\": 6,\"n\":123456789012345678901234567890}",
		"[[],[[]],{\"a\":{}}]",
		"[\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_clean(texts[i], texts[i]);
	assert_clean("{\n \"a\" :\t[ 1 ,\r\n2 ] }", "{\"a\": [1,2]}");
}

static void test_flaws(void **state)
{
	(void)state;
	assert_clean("[,1,,2,]", "[1,2] 1");
	assert_clean("[1 2]", "[1,2] 1");
	assert_clean("{\"a\":1,}", "{\"a\":1} 1");
	assert_clean("[1,\x01 2\x7f]", "refused");
	assert_clean("[1,\x01 \f2]", "[1,2] 1");
	assert_clean("[007,-1.-23,0.-500,1.,12345678901234567890123e]",
		     "[7.000000,-1.023000,-0.500000,null,null] 1");
	assert_clean("[\"\\U \\u12 \\x\"]", "[\"\\\\U \\\\u12 \\\\x\"] 1");
	assert_clean("[\"a\nb\x1f\"]", "[\"a\\u000ab\\u001f\"] 2");
	assert_clean("[\"\xff\xc3(\xed\xa0\x80\"]",
		     "[\"\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"] 4");
	assert_clean("[\"\\ud83d\\ude00\",\"\\ud800 \\udfff\"]",
		     "[\"\xf0\x9f\x98\x80\",\"\xef\xbf\xbd \xef\xbf\xbd\"] 8");
	assert_clean("[NaN,-Infinity,inf,N/A,nan]", "[null,null,null,null,null] 10");
	assert_clean("[1e400,-1e999999999,1e-400,1e308]", "[null,null,1e-400,1e308] 20");
}

static void test_no_json(void **state)
{
	static const char *const texts[] = {
		"",     "{",    "{\"a\"}",   "{\"a\":}", "[}",  "{]",          "\"", "{1:2}",
		"[1]]", "[1],", "{\"a\" 1}", "[\"\\\"]", "[@]", "{\"a\":1:2}", "[",  "1 2",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_clean(texts[i], "refused");
}

static void test_depth(void **state)
{
	struct gt_buf text = { 0 };
	char *got;

	(void)state;
	gt_buf_fill(&text, '[', GT_JSON_CLEAN_DEPTH);
	gt_buf_fill(&text, ']', GT_JSON_CLEAN_DEPTH);
	gt_buf_byte(&text, '\0');
	assert_clean(text.data, text.data);
	text.len = 0;
	gt_buf_fill(&text, '[', 100000);
	gt_buf_fill(&text, ']', 100000);
	got = clean(gt_buf_str(&text));
	assert_int_equal(strlen(got), 2 * GT_JSON_CLEAN_DEPTH + 4 + 3);
	assert_memory_equal(got + GT_JSON_CLEAN_DEPTH, "null]", 5);
	assert_string_equal(got + strlen(got) - 4, "] 40");
	free(got);
	gt_buf_release(&text);
}

/* Long integers are JSON, but Python refuses them. */
static void test_long_number(void **state)
{
	struct gt_buf text = { 0 };

	(void)state;
	gt_buf_fill(&text, '9', 5000);
	gt_buf_byte(&text, '\0');
	assert_clean(text.data, "null 20");
	gt_buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strict),      cmocka_unit_test(test_flaws),
		cmocka_unit_test(test_no_json),     cmocka_unit_test(test_depth),
		cmocka_unit_test(test_long_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
