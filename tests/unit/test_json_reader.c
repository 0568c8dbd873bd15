/*
 * test_json_reader.c - the vector code against a plain model, and what values say.
 */
#include "base.h"
#include "buf.h"
#include "json_reader.h"
#include "json_repair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* A text with its padding, in a block of its exact size: a sanitizer sees what is read beyond. */
struct padded {
	char *data;
	struct gt_json_text text;
};

static struct padded pad(const char *data, size_t len)
{
	struct padded ret = { malloc(len + GT_JSON_PAD), { NULL, NULL } };

	assert_non_null(ret.data);
	memcpy(ret.data, data, len);
	memset(ret.data + len, '"', GT_JSON_PAD);
	ret.text.end = ret.data + len;
	return ret;
}

/* ---- containers ------------------------------------------------------------------------------ */

/* One byte after the other. Returns the length of the container, 0: it does not end; -1: a control
 * character in a string comes first. */
static ptrdiff_t model_container(const char *data, size_t len)
{
	char open = data[0], close = (char)(open == '{' ? '}' : ']');
	bool in_string = false, escaped = false;
	size_t depth = 0;

	for (size_t i = 0; i < len; i++) {
		if (in_string && (unsigned char)data[i] < 0x20)
			return -1;
		if (data[i] == '"' && !escaped)
			in_string = !in_string;
		else if (!in_string && data[i] == open)
			depth++;
		else if (!in_string && data[i] == close && --depth == 0)
			return (ptrdiff_t)i + 1;
		escaped = data[i] == '\\' && !escaped;
	}
	return 0;
}

static uint32_t random_state;

static uint32_t random_below(uint32_t bound)
{
	random_state = random_state * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)random_state * bound >> 32);
}

/* Dense in what matters, so that quotes and backslashes meet the edges of blocks. */
static size_t random_text(char *data, size_t cap)
{
	static const char often[] = "\"\"\\\\{}[]{}ab:, 1";
	size_t len = 1 + random_below((uint32_t)cap - 1);

	data[0] = random_below(2) ? '{' : '[';
	for (size_t i = 1; i < len; i++) {
		uint32_t kind = random_below(100);

		if (kind < 45)
			data[i] = 'x';
		else if (kind == 45)
			data[i] = '\n';
		else
			data[i] = often[random_below(sizeof(often) - 1)];
	}
	return len;
}

static void check_container(const char *data, size_t len)
{
	struct padded padded = pad(data, len);
	ptrdiff_t want = model_container(data, len);
	const char *end = gt_json_container_end(&padded.text, padded.data);

	if (want > 0) {
		assert_ptr_equal(end, padded.data + want);
	} else {
		assert_null(end);
		/* Both may be true of one block: what comes first is not told apart. */
		if (want == 0)
			assert_ptr_equal(padded.text.stop, padded.text.end);
	}
	free(padded.data);
}

static void test_containers_like_model(void **state)
{
	static const enum gt_json_simd kinds[] = { GT_JSON_PORTABLE, GT_JSON_SSE2, GT_JSON_AVX2 };
	char data[400];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		gt_json_use(kinds[k]);
		random_state = 7;
		for (int i = 0; i < 20000; i++)
			check_container(data, random_text(data, sizeof(data)));
	}
	assert_int_equal(gt_json_use(GT_JSON_PORTABLE), GT_JSON_PORTABLE);
	gt_json_use(GT_JSON_AVX2);
}

/* In pieces of every size, as when it is larger than the buffer. */
static void test_container_in_pieces(void **state)
{
	static const char data[] =
		"{\"a\":[{\"b\\\\\\\"}\":1},\"}}\"],\"c\":{\"d\":\"\\\\\"}} tail";
	const size_t len = sizeof(data) - 1 - strlen(" tail");

	(void)state;
	for (size_t step = 1; step <= len; step++) {
		struct gt_json_skip skip = { 0 };
		size_t at = 0;

		do {
			size_t piece = GT_MIN(step, sizeof(data) - 1 - at);
			struct padded padded = pad(data + at, piece);
			const char *next = gt_json_skip_piece(&skip, padded.data, padded.text.end);

			assert_non_null(next);
			at += (size_t)(next - padded.data);
			free(padded.data);
		} while (skip.depth);
		assert_int_equal(at, len);
	}
}

/* ---- walking --------------------------------------------------------------------------------- */

static void test_members_and_elements(void **state)
{
	static const char data[] = " { , \"a\" : 1 ,\"b\":[1, \"x]\" ,{}],\"\":\"\\\"\",, } rest";
	struct padded padded = pad(data, sizeof(data) - 1);
	const char *at = gt_json_skip_space(padded.data) + 1;
	const char *inner;
	struct gt_str key;
	int elements = 0;

	(void)state;
	assert_int_equal(gt_json_member(&padded.text, &at, &key), 1);
	assert_true(gt_str_equal(key, GT_STR("a")));
	at = gt_json_value_end(&padded.text, at);
	assert_int_equal(gt_json_member(&padded.text, &at, &key), 1);
	assert_true(gt_str_equal(key, GT_STR("b")));
	for (inner = at + 1; gt_json_element(&padded.text, &inner) > 0; elements++)
		inner = gt_json_value_end(&padded.text, inner);
	assert_int_equal(elements, 3);
	at = gt_json_value_end(&padded.text, at);
	assert_ptr_equal(inner, at);
	assert_int_equal(gt_json_member(&padded.text, &at, &key), 1);
	assert_int_equal(key.len, 0);
	at = gt_json_value_end(&padded.text, at);
	assert_int_equal(gt_json_member(&padded.text, &at, &key), 0);
	assert_memory_equal(at, " rest", 5);
	free(padded.data);
}

/* A text that ends anywhere never makes a function say that it is not JSON. */
static void check_find(const char *object, const char *expected)
{
	struct padded at = pad(object, strlen(object));
	struct gt_str value =
		gt_json_find_last((struct gt_str){ at.data, strlen(object) }, GT_STR("\"key\""));

	assert_true(gt_str_equal(value, gt_str_of(expected)));
	free(at.data);
}

static void test_find_last(void **state)
{
	char object[160];

	(void)state;
	check_find("{}", "");
	check_find("{\"key\":1}", "1");
	check_find("{ \"key\" : [1, {\"a\": 2}] , \"b\":3}", "[1, {\"a\": 2}]");
	check_find("{\"key\":1,\"key\":2}", "2");
	check_find("{\"key\":1,\"other\":\"key\"}", "1");
	check_find("{\"key\":1,\"text\":\"say \\\"key\\\": 2\"}", "1");
	check_find("{\"keys\":1,\"ke\":2,\"Key\":3}", "");
	check_find("{\"key\"", "");
	check_find("{\"key\":", "");
	/* at every distance from the blocks that are looked at */
	for (int before = 0; before < 40; before++) {
		for (int behind = 0; behind < 40; behind++) {
			snprintf(object, sizeof(object), "{%*s\"key\":7%*s}", before, "", behind,
				 "");
			check_find(object, "7");
		}
	}
}

static void test_ends_anywhere(void **state)
{
	static const char data[] = "{\"a\": [1, {\"b\": \"c\\\\\"}], \"d\": true, \"e\": -1.5e3}";

	(void)state;
	for (size_t len = 1; len < sizeof(data) - 1; len++) {
		struct padded padded = pad(data, len);
		const char *at = padded.data + 1;
		struct gt_str key;
		int rc = 1;

		assert_null(gt_json_value_end(&padded.text, padded.data));
		assert_true(padded.text.stop >= padded.text.end);
		while (rc > 0 && at) {
			rc = gt_json_member(&padded.text, &at, &key);
			if (rc > 0)
				at = gt_json_value_end(&padded.text, at);
		}
		assert_true(rc < 0 || !at || at >= padded.text.end);
		if (rc < 0 || !at)
			assert_true(padded.text.stop >= padded.text.end);
		free(padded.data);
	}
}

static void test_not_json(void **state)
{
	static const char *const texts[] = { "{\"a\": \"b\nc\"}", "{\"a\": *}", "{a: 1}",
					     "{\"a\" 1}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct padded padded = pad(texts[i], strlen(texts[i]));
		const char *at = padded.data + 1;
		struct gt_str key;

		if (gt_json_member(&padded.text, &at, &key) > 0)
			assert_null(gt_json_value_end(&padded.text, at));
		assert_non_null(padded.text.stop);
		assert_true(padded.text.stop < padded.text.end);
		free(padded.data);
	}
}

static void test_kinds(void **state)
{
	static const struct {
		const char *raw;
		enum gt_json_kind kind;
	} cases[] = {
		{ "", GT_JSON_NONE },       { "\"\"", GT_JSON_STRING },   { "-1", GT_JSON_NUMBER },
		{ "{}", GT_JSON_OBJECT },   { "[1]", GT_JSON_ARRAY },     { "true", GT_JSON_TRUE },
		{ "false", GT_JSON_FALSE }, { "null", GT_JSON_NULL },     { "NaN", GT_JSON_WORD },
		{ "N/A", GT_JSON_WORD },    { "Infinity", GT_JSON_WORD },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(gt_json_kind(gt_str_of(cases[i].raw)), cases[i].kind);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
	static const struct {
		const char *raw;
		int decimals;
		int64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "-0", 3, 0 },
		{ "42", 0, 42 },
		{ "\"42\"", 0, 42 },
		{ "007", 0, 7 },
		{ "4959420890416.119", 3, 4959420890416119 },
		{ "1699236267071058", 3, 1699236267071058000 },
		{ "1709229000000000.25", 3, 1709229000000000250 },
		{ "0.0004", 3, 0 },
		{ "0.0005", 3, 1 },
		{ "-0.0005", 3, -1 },
		{ "354.5444466721813", 3, 354544 },
		{ "1e-06", 3, 0 },
		{ "1.5e3", 3, 1500000 },
		{ "1.5E+3", 0, 1500 },
		{ "15e-1", 0, 2 },
		{ "1e400", 0, INT64_MAX },
		{ "-1e400", 3, -INT64_MAX },
		{ "1e-400", 3, 0 },
		{ "0e99999999999999999999", 3, 0 },
		{ "9223372036854775807", 0, INT64_MAX },
		{ "9223372036854775808", 0, INT64_MAX },
		{ "18446744073709551615", 0, INT64_MAX },
		{ "123456789012345678901234567890", 0, INT64_MAX },
		{ "0.1234567890123456789012", 3, 123 },
		{ "-1.-05", 3, -1005 },
		{ "-1.-23", 3, -1023 },
		{ "-1.-234", 3, -1234 },
		{ "0.-05", 3, -5 },
		{ "0.-500", 3, -500 },
	};
	static const char *const none[] = { "",     "-",      "\"\"", "1.",  "1e",        "1e+",
					    "100a", "\"1a\"", "NaN",  "inf", "N/A",       "null",
					    "true", ".5",     "1 2",  "[1]", "-Infinity", "0x10" };
	int64_t value;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gt_str raw = gt_str_of(cases[i].raw);

		assert_true(gt_json_scaled(raw, cases[i].decimals, &value));
		assert_int_equal(value, cases[i].value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_false(gt_json_int(gt_str_of(none[i]), &value));
}

/* ---- strings --------------------------------------------------------------------------------- */

static void test_unescape(void **state)
{
	static const struct {
		const char *raw;
		const char *bytes;
	} cases[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t" },
		{ "\\u00e9\\u20ac", "\xc3\xa9\xe2\x82\xac" },
		{ "\\ud83d\\ude00", "\xf0\x9f\x98\x80" },
		{ "\\ud83d", "\xef\xbf\xbd" },
		{ "\\ude00x", "\xef\xbf\xbdx" },
		{ "\\ud83d\\u0041", "\xef\xbf\xbd"
				    "A" },
		{ "\\ud83d\\ud83d\\ude00", "\xef\xbf\xbd\xf0\x9f\x98\x80" },
		{ "C:\\Users", "C:\\Users" },
		{ "\\u12", "\\u12" },
		{ "\\uzzzz", "\\uzzzz" },
		{ "end\\", "end\\" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gt_str raw = gt_str_of(cases[i].raw);
		size_t len = gt_json_unescape(raw, out);

		assert_true(len <= raw.len);
		assert_int_equal(len, strlen(cases[i].bytes));
		assert_memory_equal(out, cases[i].bytes, len);
	}
	assert_int_equal(gt_json_unescape(GT_STR("a\\u0000b"), out), 3);
	assert_memory_equal(out, "a\0b", 3);
}

/* ---- repair ---------------------------------------------------------------------------------- */

static void test_repair(void **state)
{
	static const struct {
		const char *broken;
		const char *repaired; /* NULL: makes no sense */
	} cases[] = {
		{ "{\"a\": 1, \"b\": [1,2,{}]}", "{\"a\":1,\"b\":[1,2,{}]}" },
		{ "{\"a\": \"x \"y\" z\"}", "{\"a\":\"x \\\"y\\\" z\"}" },
		{ "{\"n\": \"f(\"a\", \"b\")\", \"k\": 1}",
		  "{\"n\":\"f(\\\"a\\\", \\\"b\\\")\",\"k\":1}" },
		{ "{\"n\": \"two\nlines\"}", "{\"n\":\"two\\u000alines\"}" },
		{ "{\"a\": 1, b\": 2}", "{\"a\":1,\"b\":2}" },
		{ "[\"a \"b\", \"c\"]", "[\"a \\\"b\",\"c\"]" },
		{ "{\"a\": \"esc \\\" aped\n\"}", "{\"a\":\"esc \\\" aped\\u000a\"}" },
		{ "{\"a\": nan,}", "{\"a\":nan}" },
		{ "{\"a\": *}", NULL },
		{ "{a: 1}", NULL },
		{ "{\"a\" 1}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct padded padded = pad(cases[i].broken, strlen(cases[i].broken));
		struct gt_buf out = { 0 };
		const char *end = gt_json_repair(&padded.text, padded.data, &out);

		if (cases[i].repaired) {
			assert_ptr_equal(end, padded.text.end);
			assert_int_equal(out.len, strlen(cases[i].repaired));
			assert_memory_equal(out.data, cases[i].repaired, out.len);
		} else {
			assert_null(end);
		}
		gt_buf_release(&out);
		free(padded.data);
	}
}

static void test_repair_bounds(void **state)
{
	static const char hole[] = "{\"a\": \"x\0y\", \"b\": 1}";
	char deep[200];
	struct padded padded = pad(hole, sizeof(hole) - 1);
	struct gt_buf out = { 0 };

	(void)state;
	assert_null(gt_json_repair(&padded.text, padded.data, &out));
	free(padded.data);
	memset(deep, '[', sizeof(deep));
	padded = pad(deep, sizeof(deep));
	assert_null(gt_json_repair(&padded.text, padded.data, &out));
	assert_true(padded.text.stop < padded.text.end);
	free(padded.data);
	padded = pad("{\"a\": \"no end", 13);
	assert_null(gt_json_repair(&padded.text, padded.data, &out));
	assert_true(padded.text.stop >= padded.text.end);
	free(padded.data);
	gt_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_containers_like_model),
		cmocka_unit_test(test_container_in_pieces),
		cmocka_unit_test(test_members_and_elements),
		cmocka_unit_test(test_find_last),
		cmocka_unit_test(test_ends_anywhere),
		cmocka_unit_test(test_not_json),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_unescape),
		cmocka_unit_test(test_repair),
		cmocka_unit_test(test_repair_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
