/*
 * test_ncu.c - the command line for a kernel.
 */
#include "base.h"
#include "ncu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_command(const char *trace, const char *kernel, const char *want)
{
	struct gt_buf out = { 0 };
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;
	int rc;

	assert_int_equal(gt_gz_open_mem(&gz, trace, strlen(trace)), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "trace", NULL, &err), 0);
	rc = gt_ncu_put(summary, gt_str_of(kernel), &out);
	assert_int_equal(rc, want ? 0 : -ENOENT);
	gt_buf_byte(&out, '\0');
	assert_string_equal(out.data, want ? want : "");
	gt_buf_release(&out);
	gt_summary_free(summary);
	gt_gz_close(gz);
}

#define SLICE(cat, name, dur)                                                \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":0," \
	"\"tid\":7,\"ts\":1,\"dur\":" dur "},"
#define STEPS                                           \
	SLICE("user_annotation", "ProfilerStep#3", "9") \
	SLICE("user_annotation", "ProfilerStep#4", "9")

static void test_commands(void **state)
{
	(void)state;
	assert_command("[" STEPS SLICE("kernel", "k<1>(int)", "1") SLICE("kernel", "k<2>(int)", "2")
			       SLICE("kernel", "other", "9"),
		       "k<",
		       "ncu --kernel-name 'regex:^k$' --launch-skip 3 --launch-count 1 --set full "
		       "-o profile COMMAND\n");
	assert_command("[" STEPS SLICE("kernel", "a.b'$rm'\\u001b", "1"), "b'",
		       "ncu --kernel-name 'regex:^a\\.b.\\$rm..$' --launch-count 1 --set full "
		       "-o profile COMMAND\n");
	assert_command("[" SLICE("kernel", "a\\u009b\\u202eb\xc3\xa4", "1"), "a",
		       "ncu --kernel-name 'regex:^a.+b.+$' --launch-count 1 --set full "
		       "-o profile COMMAND\n");
	assert_command("[" SLICE("kernel", "k", "1"), "j", NULL);
	assert_command("[" SLICE("kernel", "k", "1"), "", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
