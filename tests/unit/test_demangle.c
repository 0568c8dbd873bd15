/*
 * test_demangle.c - names of kernels, and names that were made to do harm.
 */
#include "base.h"
#include "demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_plain(const char *name, const char *want)
{
	struct gt_buf plain = { 0 };

	assert_int_equal(gt_demangle(gt_str_of(name), &plain), want != NULL);
	if (want) {
		gt_buf_byte(&plain, '\0');
		assert_string_equal(plain.data, want);
	}
	gt_buf_release(&plain);
}

static void test_names(void **state)
{
	(void)state;
	assert_plain("_Z3addPfS_", "add(float*, float*)");
	assert_plain("_ZN7cutlass6KernelI4GemmEEvT_", "void cutlass::Kernel<Gemm>(Gemm)");
	assert_plain("_ZN2at6native55_GLOBAL__N__00000000_1_a_cu_00000000_0000_0000004kernEv",
		     NULL); /* a length that lies */
	assert_plain("_Z1fIXadL_Z1gvEEEvv", "void f<&(g())>()");
	assert_plain("nvjet_sm90_tst_64x24_64x16_2x4_h_bz_bias_TNT", NULL);
	assert_plain("triton_poi_fused_add_0", NULL);
	assert_plain("_Z", NULL);
	assert_plain("_Zzz", NULL);
	assert_plain("_Z3add extra", NULL);
	assert_plain("", NULL);
	assert_false(gt_demangle(GT_STR("_Z3add\0v"), &(struct gt_buf){ 0 }));
}

/* As CUTLASS's: many kilobytes, deeply nested. */
static void test_long_names(void **state)
{
	static const size_t depths[] = { 10, 100, 200 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		struct gt_buf name = { 0 }, plain = { 0 };
		size_t depth = depths[i];

		gt_buf_text(&name, "_Z6kernelI");
		for (size_t n = 0; n < depth; n++)
			gt_buf_text(&name, "10SomePolicyI");
		gt_buf_byte(&name, 'i');
		gt_buf_fill(&name, 'E', depth);
		gt_buf_text(&name, "Evv");
		assert_true(gt_demangle(gt_buf_str(&name), &plain));
		assert_memory_equal(plain.data, "void kernel<SomePolicy<SomePolicy<", 34);
		assert_true(plain.len > 12 * depth);
		gt_buf_release(&name);
		gt_buf_release(&plain);
	}
}

/* No stack is exhausted, no text grows without end, and nothing is given back that is half done. */
static void test_harmful(void **state)
{
	static const char *const nests[] = {
		"P", "F", "N", "1aI", "ng", "A_", "ZL", "Dp", "XX", "K"
	};
	struct gt_buf name = { 0 }, plain = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nests); i++) {
		for (int half = 0; half < 2; half++) {
			name.len = 0;
			gt_buf_text(&name, half ? "_Z" : "_Z1f");
			while (name.len < GT_DEMANGLE_MAX - 8)
				gt_buf_text(&name, nests[i]);
			gt_buf_text(&name, "i");
			assert_true(name.len <= GT_DEMANGLE_MAX);
			plain.len = 0;
			gt_demangle(gt_buf_str(&name), &plain);
			assert_false(plain.failed);
		}
	}
	/* Each argument is twice the one before: 2^60 bytes in 300. */
	name.len = 0;
	gt_buf_text(&name, "_Z1fSt4pairIiiE");
	for (int i = 0; i < 60; i++)
		gt_buf_printf(&name, "S_I%s%sE", i ? "S0_" : "S_", i ? "S0_" : "S_");
	plain.len = 0;
	gt_demangle(gt_buf_str(&name), &plain);
	gt_buf_release(&name);
	gt_buf_text(&name, "_Z1f1aIiE");
	for (int i = 0; i < 30; i++)
		gt_buf_printf(&name, "1aIS%c_S%c_E", "0123456789ABCDEFGHIJKLMNOPQRST"[i],
			      "0123456789ABCDEFGHIJKLMNOPQRST"[i]);
	plain.len = 0;
	gt_demangle(gt_buf_str(&name), &plain);
	assert_true(plain.len <= (size_t)1 << 20);
	name.len = 0;
	gt_buf_text(&name, "_Z1f");
	gt_buf_fill(&name, 'i', GT_DEMANGLE_MAX);
	assert_false(gt_demangle(gt_buf_str(&name), &plain));
	gt_buf_release(&name);
	gt_buf_release(&plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_harmful),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
