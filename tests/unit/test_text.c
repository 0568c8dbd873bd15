/*
 * test_text.c - from the bytes of a name to the columns of a terminal: interner, safe text, tables.
 */
#include "base.h"
#include "buf.h"
#include "interner.h"
#include "safe_text.h"
#include "text_table.h"
#include "utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_text(struct gt_buf *buf, const char *want)
{
	gt_buf_byte(buf, '\0');
	assert_false(buf->failed);
	assert_string_equal(buf->data, want);
	gt_buf_release(buf);
}

static void test_interner(void **state)
{
	struct gt_interner interner = { 0 };
	char name[32];

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			int len = snprintf(name, sizeof(name), "%*u", (int)(i % 20), i);

			assert_int_equal(gt_intern(&interner, (struct gt_str){ name, (size_t)len }),
					 i);
		}
	}
	assert_int_equal(interner.count, 5000);
	assert_true(gt_str_equal(gt_interned(&interner, 4321), GT_STR("4321")));
	assert_int_equal(gt_intern(&interner, (struct gt_str){ NULL, 0 }), 5000);
	assert_int_equal(gt_intern(&interner, GT_STR("")), 5000);
	assert_int_equal(gt_intern(&interner, GT_STR("\0")), 5001);
	gt_interner_release(&interner);
}

/* The one that followed last time is tried first; it must not win when it is another. */
static void test_interner_order(void **state)
{
	static const char names[] = "abacabbccbaacbabc";
	struct gt_interner interner = { 0 };

	(void)state;
	for (const char *at = names; *at; at++)
		assert_int_equal(gt_intern(&interner, (struct gt_str){ at, 1 }),
				 (uint32_t)(*at - 'a'));
	assert_int_equal(interner.count, 3);
	gt_interner_release(&interner);
}

/* Of every length, with a difference at each place. */
static void test_equal(void **state)
{
	char a[40], b[40];

	(void)state;
	for (size_t len = 0; len <= sizeof(a); len++) {
		memset(a, 'x', sizeof(a));
		memset(b, 'x', sizeof(b));
		assert_true(gt_str_equal((struct gt_str){ a, len }, (struct gt_str){ b, len }));
		for (size_t i = 0; i < sizeof(a); i++) {
			b[i] = 'y';
			assert_int_equal(
				gt_str_equal((struct gt_str){ a, len }, (struct gt_str){ b, len }),
				i >= len);
			b[i] = 'x';
		}
		if (len)
			assert_false(gt_str_equal((struct gt_str){ a, len },
						  (struct gt_str){ b, len - 1 }));
	}
}

static void test_utf8(void **state)
{
	static const struct gt_str bad[] = {
		GT_STR("\x80"),
		GT_STR("\xc0\x80"),
		GT_STR("\xc3"),
		GT_STR("\xe0\x80\x80"),
		GT_STR("\xed\xa0\x80"),
		GT_STR("\xf4\x90\x80\x80"),
		GT_STR("\xf5\x80\x80\x80"),
		GT_STR("\xe2\x82"),
		GT_STR("\xff"),
	};
	char bytes[4];
	size_t len;

	(void)state;
	for (uint32_t code = 0; code < 0x110000; code += code < 0x900 ? 1 : 251) {
		if (code >= 0xd800 && code <= 0xdfff)
			continue;
		assert_int_equal(gt_utf8_decode(bytes, gt_utf8_encode(code, bytes), &len), code);
		assert_int_equal(len, gt_utf8_encode(code, bytes));
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(gt_utf8_decode(bad[i].ptr, bad[i].len, &len), GT_UTF8_REPLACEMENT);
		assert_int_equal(len, 1);
	}
}

static void test_safe(void **state)
{
	static const struct {
		struct gt_str text;
		const char *safe;
		const char *json;
	} cases[] = {
		{ GT_STR(""), "", "\"\"" },
		{ GT_STR("a \"b\" \\"), "a \"b\" \\", "\"a \\\"b\\\" \\\\\"" },
		{ GT_STR("\x1b[31m\n\0\x7f"), "\\x1b[31m\\x0a\\x00\\x7f",
		  "\"\\u001b[31m\\u000a\\u0000\\u007f\"" },
		{ GT_STR("\xc2\x9b"
			 "2J"),
		  "\\x9b2J", "\"\\u009b2J\"" },
		{ GT_STR("\xe2\x80\xae"), "\\u202e", "\"\\u202e\"" },
		{ GT_STR("\xc3\xa9\xf0\x9f\x98\x80"), "\xc3\xa9\xf0\x9f\x98\x80",
		  "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
		{ GT_STR("\xff\xc3"), "\xef\xbf\xbd\xef\xbf\xbd", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gt_buf buf = { 0 };

		gt_safe_put(&buf, cases[i].text);
		assert_text(&buf, cases[i].safe);
		gt_safe_put_json(&buf, cases[i].text);
		assert_text(&buf, cases[i].json);
	}
}

static void test_cut(void **state)
{
	struct gt_buf buf = { 0 };

	(void)state;
	gt_safe_put_cut(&buf, GT_STR("abcdefghij"), 10);
	assert_text(&buf, "abcdefghij");
	gt_safe_put_cut(&buf, GT_STR("abcdefghij"), 9);
	assert_text(&buf, "abc...hij");
	gt_safe_put_cut(&buf, GT_STR("abcdefghij"), 8);
	assert_text(&buf, "abc...ij");
	gt_safe_put_cut(&buf, GT_STR("\xc3\xa1\xc3\xa9\xc3\xad\xc3\xb3\xc3\xba\xc3\xbd"), 5);
	assert_text(&buf, "\xc3\xa1...\xc3\xbd");
	assert_int_equal(gt_safe_width(GT_STR("\xc3\xa1"
					      "b")),
			 2);
}

static void test_table(void **state)
{
	static const char *const titles[] = { "n", "time", "name" };
	struct gt_text_table table = { .titles = titles, .columns = 3 };
	struct gt_buf buf = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		gt_text_cell(&table, "%d", i ? 12345 : 1);
		gt_text_cell(&table, "%s", i ? "-" : "2.0us");
		gt_text_cell_name(&table, i ? GT_STR("a|b") : GT_STR("a name that is long"));
		if (!i)
			continue;
		gt_text_table_print(&table, 28, &buf);
		assert_text(&buf, "    n   time  name\n"
				  "    1  2.0us  a name... long\n"
				  "12345      -  a|b\n");
	}
	gt_text_cell(&table, "1");
	gt_text_cell(&table, "2");
	gt_text_cell_name(&table, GT_STR("a|b_c"));
	gt_text_table_markdown(&table, &buf);
	assert_text(&buf, "| n | time | name |\n|---:|---:|---|\n| 1 | 2 | a\\|b\\_c |\n");
}

static void test_buf(void **state)
{
	struct gt_buf buf = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		gt_buf_printf(&buf, "%03d,", i);
	assert_int_equal(buf.len, 4000);
	assert_memory_equal(buf.data + 3996, "999,", 4);
	assert_null(gt_buf_reserve(&buf, SIZE_MAX / 2));
	assert_true(buf.failed);
	gt_buf_text(&buf, "dropped");
	assert_int_equal(buf.len, 4000);
	gt_buf_release(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interner), cmocka_unit_test(test_interner_order),
		cmocka_unit_test(test_equal),    cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_safe),     cmocka_unit_test(test_cut),
		cmocka_unit_test(test_table),    cmocka_unit_test(test_buf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
