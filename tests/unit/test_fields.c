/* Lines of "key value" from another process: what is well formed, and what is in them. */
#include "base.h"
#include "fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct gt_fields fields;

static int setup(void **state)
{
	(void)state;
	memset(&fields, 0, sizeof(fields));
	return 0;
}

static int check_bytes(const char *bytes, size_t len)
{
	memcpy(fields.text, bytes, len);
	fields.len = len;
	return gt_fields_check(&fields);
}

#define CHECK(literal) check_bytes(literal, sizeof(literal) - 1)

static void round_trip(void **state)
{
	const char *at = NULL;
	uint64_t number = 0;
	char buf[16];

	(void)state;
	gt_fields_add(&fields, "name", "a %s", "b\n\x1b\x7f");
	gt_fields_add(&fields, "process", "%d", 1);
	gt_fields_add(&fields, "process", "%d", 22);
	gt_fields_add(&fields, "empty", "%s", "");
	assert_int_equal(gt_fields_check(&fields), 0);
	assert_true(gt_fields_get(&fields, "name", buf, sizeof(buf)));
	assert_string_equal(buf, "a b   ");
	assert_true(gt_fields_get(&fields, "empty", buf, sizeof(buf)));
	assert_string_equal(buf, "");
	assert_true(gt_fields_is(&fields, "process", "1"));
	assert_false(gt_fields_is(&fields, "process", "22"));
	assert_true(gt_fields_number(&fields, "process", &number));
	assert_int_equal(number, 1);
	assert_true(gt_fields_each(&fields, "process", &at, buf, sizeof(buf)));
	assert_true(gt_fields_each(&fields, "process", &at, buf, sizeof(buf)));
	assert_string_equal(buf, "22");
	assert_false(gt_fields_each(&fields, "process", &at, buf, sizeof(buf)));
	assert_false(gt_fields_get(&fields, "proc", buf, sizeof(buf)));
	assert_false(gt_fields_get(&fields, "a", buf, sizeof(buf)));
	assert_true(gt_fields_get(&fields, "name", buf, 3)); /* cut */
	assert_string_equal(buf, "a ");
}

static void numbers(void **state)
{
	static const char *const bad[] = {
		"", " 1", "-1", "1 ", "0x1", "1a", "1234567890123456789"
	};
	uint64_t number = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		fields.len = 0;
		gt_fields_add(&fields, "n", "%s", bad[i]);
		assert_false(gt_fields_number(&fields, "n", &number));
		assert_int_equal(number, 7);
	}
	fields.len = 0;
	gt_fields_add(&fields, "n", "123456789012345678");
	assert_true(gt_fields_number(&fields, "n", &number));
	assert_int_equal(number, 123456789012345678);
}

static void malformed(void **state)
{
	(void)state;
	assert_int_equal(CHECK(""), -EBADMSG);
	assert_int_equal(CHECK("\n"), -EBADMSG);
	assert_int_equal(CHECK("key\n"), -EBADMSG);
	assert_int_equal(CHECK("key value"), -EBADMSG);
	assert_int_equal(CHECK("key value\nmore"), -EBADMSG);
	assert_int_equal(CHECK(" value\n"), -EBADMSG);
	assert_int_equal(CHECK("1 value\n"), -EBADMSG);
	assert_int_equal(CHECK("key va\0lue\n"), -EBADMSG);
	assert_int_equal(CHECK("key va\033lue\n"), -EBADMSG);
	assert_int_equal(CHECK("key value\n\n"), -EBADMSG);
	assert_int_equal(CHECK("key value\nk \n"), 0);
	fields.len = sizeof(fields.text); /* it was longer */
	assert_int_equal(gt_fields_check(&fields), -EBADMSG);
}

static void full(void **state)
{
	char value[900];

	(void)state;
	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	for (int i = 0; i < 30; i++)
		gt_fields_add(&fields, "key", "%s", value);
	assert_true(fields.full);
	assert_true(fields.len < sizeof(fields.text));
	assert_int_equal(gt_fields_check(&fields), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(round_trip, setup),
		cmocka_unit_test_setup(numbers, setup),
		cmocka_unit_test_setup(malformed, setup),
		cmocka_unit_test_setup(full, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
