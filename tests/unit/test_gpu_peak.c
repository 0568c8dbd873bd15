/*
 * test_gpu_peak.c - what GPUs can do at most, and how much of that operators did.
 */
#include "base.h"
#include "gpu_peak.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENT(cat, name, tid, ts, dur, args)                                              \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":9,\"tid\":" #tid \
	",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{" args "}},\n"
#define INPUTS(id, dims, types) \
	"\"External id\": " #id ",\"Input type\": " types ",\"Input Dims\": " dims
/* 10^9 FLOPs */
#define GIGA_DIMS         "[[1000, 500], [500, 1000]]"
#define MM(id, ts, types) EVENT("cpu_op", "aten::mm", 1, ts, 10, INPUTS(id, GIGA_DIMS, types))
#define KERNEL(id, name, dur) \
	EVENT("kernel", name, 7, 500, dur, "\"External id\": " #id ",\"correlation\": 1" #id)
#define BF16 "[\"c10::BFloat16\", \"c10::BFloat16\"]"
#define FP32 "[\"float\", \"float\"]"
#define H100 "NVIDIA H100 80GB HBM3"

static double peak(const char *name, enum gt_dtype dtype)
{
	const struct gt_gpu_peak *found = gt_gpu_peak_of(gt_str_of(name));

	return found ? found->tera_ops[dtype] : -1;
}

static void test_names(void **state)
{
	(void)state;
	assert_float_equal(peak(H100, GT_DTYPE_BF16), 989.5, 0);
	assert_float_equal(peak("NVIDIA H100 PCIe", GT_DTYPE_TF32), 378, 0);
	assert_float_equal(peak("NVIDIA H200 NVL", GT_DTYPE_FP32), 60, 0);
	assert_float_equal(peak("NVIDIA A100-SXM4-80GB", GT_DTYPE_INT8), 624, 0);
	assert_float_equal(peak("A100-PCIE-40GB", GT_DTYPE_FP16), 312, 0);
	assert_float_equal(peak("NVIDIA A100-SXM4-80GB", GT_DTYPE_FP8), 0, 0);
	assert_float_equal(peak("Tesla V100-SXM2-32GB", GT_DTYPE_FP64), 7.8, 0);
	assert_float_equal(peak("Tesla V100-SXM2-32GB", GT_DTYPE_BF16), 0, 0);
	assert_float_equal(peak("NVIDIA L4", GT_DTYPE_FP8), 242.5, 0);
	assert_float_equal(peak("AMD Instinct MI300X VF", GT_DTYPE_BF16), 1307.4, 0);
	assert_float_equal(peak(H100, GT_DTYPE_NONE), 0, 0);
}

static void test_unknown_names(void **state)
{
	static const char *const names[] = {
		"",
		"NVIDIA",
		"NVIDIA H100", /* which of them? */
		"NVIDIA A100-SXM4-40GB MIG 1g.5gb",
		"GRID A100-10C",
		"NVIDIA A10G",
		"NVIDIA L40",
		"NVIDIA H20",
		"NVIDIA GeForce RTX 4090 Laptop GPU",
		"NVIDIA H200, NVIDIA H100 PCIe",
		"AMD Instinct MI250X/MI250",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_null(gt_gpu_peak_of(gt_str_of(names[i])));
}

static void test_dtypes(void **state)
{
	static const char types[] = "[\"double\",\n \"float\", \"c10::Half\",\"c10::BFloat16\", "
				    "\"c10::Float8_e5m2\", \"signed char\", \"\", \"long int\"]";
	static const enum gt_dtype wanted[] = { GT_DTYPE_FP64,      GT_DTYPE_FP32, GT_DTYPE_FP16,
						GT_DTYPE_BF16,      GT_DTYPE_FP8,  GT_DTYPE_INT8,
						GT_DTYPE_NO_TENSOR, GT_DTYPE_NONE, GT_DTYPE_NONE };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		assert_int_equal(gt_dtype_at(gt_str_of(types), i), wanted[i]);
	assert_int_equal(gt_dtype_at(gt_str_of(""), 0), GT_DTYPE_NONE);
	assert_int_equal(gt_dtype_at(gt_str_of("[\"float"), 0), GT_DTYPE_NONE);
	assert_string_equal(gt_dtype_name(GT_DTYPE_TF32), "tf32");
	assert_string_equal(gt_dtype_name(GT_DTYPE_NONE), "");
}

/* ---- operators ------------------------------------------------------------------------------- */

struct fixture {
	struct gt_summary *summary;
	struct gt_op_report report;
};

static struct fixture load(const char *events, const char *gpu)
{
	struct gt_op_grouping grouping = { .on_gpu = gpu != NULL,
					   .peak = gpu ? gt_gpu_peak_of(gt_str_of(gpu)) : NULL };
	struct gt_buf text = { 0 };
	struct gt_gz_reader *gz;
	struct fixture ret;
	struct gt_err err;

	gt_buf_printf(&text, "{\"traceEvents\":[%s]}", events);
	assert_int_equal(gt_gz_open_mem(&gz, text.data, text.len), 0);
	assert_int_equal(gt_summary_read(&ret.summary, gz, "trace", NULL, &err), 0);
	gt_gz_close(gz);
	gt_buf_release(&text);
	assert_int_equal(gt_op_report(&ret.summary->ops, &grouping, &ret.report), 0);
	return ret;
}

static void check(const char *events, const char *gpu, const char *op, double flops_per_s,
		  double share, enum gt_dtype dtype)
{
	struct fixture f = load(events, gpu);
	const struct gt_op_line *line = NULL;

	for (size_t i = 0; i < f.report.count; i++) {
		if (gt_str_equal(f.report.lines[i].name, gt_str_of(op)))
			line = &f.report.lines[i];
	}
	assert_non_null(line);
	assert_float_equal(line->flops_per_s / 1e12, flops_per_s / 1e12, 1e-9);
	assert_float_equal(line->peak_share, share, 1e-9);
	if (share > 0)
		assert_int_equal(line->peak_dtype, dtype);
	assert_int_equal(f.report.has_peak, share > 0);
	gt_op_report_release(&f.report);
	gt_summary_free(f.summary);
}

/* 10^9 in 2 us are 500 T/s. */
static void test_shares(void **state)
{
	(void)state;
	check(MM(5, 0, BF16) KERNEL(5, "nvjet", 2), H100, "aten::mm", 5e14, 500 / 989.5,
	      GT_DTYPE_BF16);
	check(MM(5, 0, "[\"float\"]") KERNEL(5, "sgemm", 100), H100, "aten::mm", 1e13, 10 / 67.0,
	      GT_DTYPE_FP32);
	check(MM(5, 0, FP32) KERNEL(5, "sm80_xmma_gemm_f32f32_tf32f32_f32", 4), H100, "aten::mm",
	      2.5e14, 250 / 494.5, GT_DTYPE_TF32);
	check(MM(5, 0, FP32) KERNEL(5, "void cutlass_80_tensorop_s1688gemm_128x64", 4), H100,
	      "aten::mm", 2.5e14, 250 / 494.5, GT_DTYPE_TF32);
	/* two types: what they would take at least, of what they took */
	check(MM(5, 0, BF16) MM(6, 20, FP32) KERNEL(5, "a", 2) KERNEL(6, "b", 98), H100, "aten::mm",
	      2e13, (1000 / 989.5 + 1000 / 67.0) / 100, GT_DTYPE_MAX);
}

/* A number only where it is known. */
static void test_unknown(void **state)
{
	(void)state;
	check(MM(5, 0, BF16) KERNEL(5, "k", 2), "NVIDIA H100", "aten::mm", 5e14, 0, 0);
	check(MM(5, 0, "[\"long int\"]") KERNEL(5, "k", 2), H100, "aten::mm", 5e14, 0, 0);
	check(MM(5, 0, BF16) MM(6, 20, "[]") KERNEL(5, "k", 1) KERNEL(6, "k", 1), H100, "aten::mm",
	      1e15, 0, 0);
	/* on the host of a GPU: of one of its own, and without one */
	check(MM(5, 0, BF16) KERNEL(6, "k", 2), H100, "aten::mm", 0, 0, 0);
	check(MM(5, 0, BF16), NULL, "aten::mm", 1e14, 0, 0);
}

/* Casts as autocast does, then the same operator again: 4 us for both, but no fp32 anywhere. */
static void test_autocast(void **state)
{
	static const char outer[] =
		EVENT("cpu_op", "aten::mm", 1, 0, 40, INPUTS(4, GIGA_DIMS, FP32));
	static const char inner[] = EVENT("cpu_op", "aten::to", 1, 1, 2, "") MM(5, 10, BF16)
		KERNEL(5, "k", 4);
	char text[2048];

	(void)state;
	snprintf(text, sizeof(text), "%s%s", outer, inner);
	check(text, H100, "aten::mm", 2.5e14, 250 / 989.5, GT_DTYPE_BF16);
	/* one that did without: not told apart, so not known */
	snprintf(text, sizeof(text), "%s%s%s", outer, inner, MM(7, 100, FP32) KERNEL(7, "k", 2));
	check(text, H100, "aten::mm", 3e9 / 10e-6, 0, 0);
}

/* A kernel is that of an operator inside, and where only the correlation links it. */
static void test_tf32_of_inner(void **state)
{
	(void)state;
	check(EVENT("cpu_op", "aten::conv2d", 1, 0, 50,
		    "\"External id\": 4,\"Input type\": " FP32
		    ",\"Input Dims\": [[1, 1, 1000, 1000], [1, 1, 1, 1], [], [], [], [], []],"
		    "\"Concrete Inputs\": "
		    "[\"\", \"\", \"\", \"[1, 1]\", \"[0, 0]\", \"[1, 1]\", \"1\"]")
		      EVENT("cpu_op", "aten::cudnn_convolution", 1, 5, 20, "\"External id\": 5")
			      KERNEL(5, "tf32", 4),
	      H100, "aten::conv2d", 5e11, 0.5 / 494.5, GT_DTYPE_TF32);
	check(EVENT("cpu_op", "aten::mm", 1, 0, 10,
		    "\"Input type\": " FP32 ",\"Input Dims\": " GIGA_DIMS)
		      EVENT("cuda_runtime", "cudaLaunchKernel", 1, 2, 3, "\"correlation\": 15")
			      EVENT("kernel", "tf32", 7, 500, 4, "\"correlation\": 15"),
	      H100, "aten::mm", 2.5e14, 250 / 494.5, GT_DTYPE_TF32);
}

static void test_print(void **state)
{
	static const char text[] = "{\"deviceProperties\": [{\"id\": 0, \"name\": \"" H100
				   "\"}], \"traceEvents\": [" MM(5, 0, BF16)
					   KERNEL(5, "nvjet", 2) "]}";
	static const struct {
		enum gt_summary_format format;
		const char *part;
	} wanted[] = {
		{ GT_SUMMARY_TABLE, "est. FLOPs  FLOP/s     of peak  operator\n" },
		{ GT_SUMMARY_TABLE, "1.000G  500.0T  50.5% bf16  aten::mm\n" },
		{ GT_SUMMARY_CSV, "CPU,0,1,10.000,10.000,2.000,2.000,0,1000000000,"
				  "500000000000000,0.505306,bf16,\"aten::mm\"\n" },
		{ GT_SUMMARY_CSV, "CUDA,0,1,0.000,0.000,2.000,2.000,0,0,,,,\"nvjet\"\n" },
		{ GT_SUMMARY_JSON, "\"estimated_flops\":1000000000,\"flops_per_s\":500000000000000,"
				   "\"peak_share\":0.505306,\"peak_dtype\":\"bf16\"," },
	};
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;

	(void)state;
	assert_int_equal(gt_gz_open_mem(&gz, text, sizeof(text) - 1), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "trace", NULL, &err), 0);
	gt_gz_close(gz);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct gt_summary_style style = { .format = wanted[i].format,
						  .by = GT_SUMMARY_BY_OP,
						  .width = 200 };
		struct gt_buf out = { 0 };

		assert_int_equal(gt_summary_print(summary, &style, &out), 0);
		gt_buf_byte(&out, '\0');
		if (!strstr(out.data, wanted[i].part))
			fail_msg("no '%s' in:\n%s", wanted[i].part, out.data);
		gt_buf_release(&out);
	}
	gt_summary_free(summary);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),         cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_dtypes),        cmocka_unit_test(test_shares),
		cmocka_unit_test(test_unknown),       cmocka_unit_test(test_autocast),
		cmocka_unit_test(test_tf32_of_inner), cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
