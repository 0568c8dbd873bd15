/*
 * test_ncu.c - base names of kernels, and the command line for them.
 */
#include "base.h"
#include "ncu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_base_names(void **state)
{
	static const struct {
		const char *name, *base;
	} cases[] = {
		{ "ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn" },
		{ "void at::native::k<4, at::F<(bool)1>, at::A<char*, 3ul> >(int, at::F<(bool)1>)",
		  "k" },
		{ "void (anonymous namespace)::softmax<float>(float*)", "softmax" },
		{ "k<(bool)1>", "k" },
		{ "layernorm(float*, int) [clone .1]", "layernorm" },
		{ "ns::f(void (*)(int))", "f" },
		{ "(", "(" },
		{ ")", ")" },
		{ "<>", "<>" },
		{ "a::", "a::" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gt_str base =
			gt_ncu_base_name((struct gt_str){ cases[i].name, strlen(cases[i].name) });

		assert_int_equal(base.len, strlen(cases[i].base));
		assert_memory_equal(base.ptr, cases[i].base, base.len);
	}
}

static void assert_command(const char *trace, const char *kernel, const char *want)
{
	struct gt_buf out = { 0 };
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;
	int rc;

	assert_int_equal(gt_gz_open_mem(&gz, trace, strlen(trace)), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "trace", NULL, &err), 0);
	rc = gt_ncu_put(summary, (struct gt_str){ kernel, strlen(kernel) }, &out);
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
	assert_command("[" SLICE("kernel", "k", "1"), "j", NULL);
	assert_command("[" SLICE("kernel", "k", "1"), "", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base_names),
		cmocka_unit_test(test_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
