/*
 * gpu_peak.c - see gpu_peak.h. All rates are those of the makers' data sheets for dense operands:
 * sheets that give the rate with 2:4 sparsity alone are halved. Where vector units and tensor (or
 * matrix) cores have a rate for a type, it is the higher one.
 */
#include "base.h"
#include "gpu_peak.h"

static const char *const names[GT_DTYPE_MAX] = {
	[GT_DTYPE_NONE] = "",     [GT_DTYPE_FP64] = "fp64", [GT_DTYPE_FP32] = "fp32",
	[GT_DTYPE_TF32] = "tf32", [GT_DTYPE_FP16] = "fp16", [GT_DTYPE_BF16] = "bf16",
	[GT_DTYPE_FP8] = "fp8",   [GT_DTYPE_INT8] = "int8", [GT_DTYPE_NO_TENSOR] = "",
};

const char *gt_dtype_name(enum gt_dtype dtype)
{
	return names[dtype];
}

static enum gt_dtype dtype_of(struct gt_str type)
{
	/* caffe2::TypeMeta's names of c10::ScalarType; and what torch's profiler writes for others
	 */
	static const struct {
		struct gt_str type;
		enum gt_dtype dtype;
	} types[] = {
		{ GT_STR("double"), GT_DTYPE_FP64 },
		{ GT_STR("float"), GT_DTYPE_FP32 },
		{ GT_STR("c10::Half"), GT_DTYPE_FP16 },
		{ GT_STR("c10::BFloat16"), GT_DTYPE_BF16 },
		{ GT_STR("c10::Float8_e4m3fn"), GT_DTYPE_FP8 },
		{ GT_STR("c10::Float8_e4m3fnuz"), GT_DTYPE_FP8 },
		{ GT_STR("c10::Float8_e5m2"), GT_DTYPE_FP8 },
		{ GT_STR("c10::Float8_e5m2fnuz"), GT_DTYPE_FP8 },
		{ GT_STR("signed char"), GT_DTYPE_INT8 },
		{ GT_STR("Scalar"), GT_DTYPE_NO_TENSOR },
		{ GT_STR(""), GT_DTYPE_NO_TENSOR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (gt_str_equal(type, types[i].type))
			return types[i].dtype;
	}
	return GT_DTYPE_NONE;
}

enum gt_dtype gt_dtype_at(struct gt_str types, size_t index)
{
	const char *at = types.ptr, *end = types.ptr + types.len, *open, *close;

	for (size_t i = 0; at < end; i++) {
		open = memchr(at, '"', (size_t)(end - at));
		close = open ? memchr(open + 1, '"', (size_t)(end - open - 1)) : NULL;
		if (!close)
			break;
		if (i == index)
			return dtype_of((struct gt_str){ open + 1, (size_t)(close - open - 1) });
		at = close + 1;
	}
	return GT_DTYPE_NONE;
}

/* In the order of enum gt_dtype. */
#define PEAK(fp64, fp32, tf32, fp16, bf16, fp8, int8)              \
	{                                                          \
		{                                                  \
			0, fp64, fp32, tf32, fp16, bf16, fp8, int8 \
		}                                                  \
	}

static const struct {
	const char *name; /* behind the maker; '*': and anything behind it */
	struct gt_gpu_peak peak;
} gpus[] = {
	/* NVIDIA V100 data sheet (January 2020) */
	{ "V100-SXM2-*", PEAK(7.8, 15.7, 0, 125, 0, 0, 0) },
	{ "V100-PCIE-*", PEAK(7, 14, 0, 112, 0, 0, 0) },
	{ "V100S-PCIE-*", PEAK(8.2, 16.4, 0, 130, 0, 0, 0) },
	/* NVIDIA T4 data sheet (March 2019) */
	{ "T4", PEAK(0, 8.1, 0, 65, 0, 0, 130) },
	/* NVIDIA A100 data sheet (2021): the same for all its forms; fp64 by tensor cores */
	{ "A100-*", PEAK(19.5, 19.5, 156, 312, 312, 0, 624) },
	{ "A100 80GB PCIe", PEAK(19.5, 19.5, 156, 312, 312, 0, 624) },
	/* NVIDIA A10 data sheet (2021) */
	{ "A10", PEAK(0, 31.2, 62.5, 125, 125, 0, 250) },
	/* NVIDIA Ampere GA102 whitepaper: fp16 and bf16 with sums in fp32, as PyTorch asks for */
	{ "GeForce RTX 3090", PEAK(0, 35.6, 35.6, 71, 71, 0, 284) },
	/* NVIDIA Ada GPU architecture whitepaper: the same, and fp8 */
	{ "GeForce RTX 4090", PEAK(0, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6) },
	/* NVIDIA L4 and L40S data sheets (2023) */
	{ "L4", PEAK(0, 30.3, 60, 121, 121, 242.5, 242.5) },
	{ "L40S", PEAK(0, 91.6, 183, 362.05, 362.05, 733, 733) },
	/* NVIDIA H100 data sheet and Hopper whitepaper: SXM, PCIe, NVL; fp64 by tensor cores */
	{ "H100 80GB HBM3", PEAK(67, 67, 494.5, 989.5, 989.5, 1979, 1979) },
	{ "H100 PCIe", PEAK(51, 51, 378, 756.5, 756.5, 1513, 1513) },
	{ "H100 NVL", PEAK(60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5) },
	/* NVIDIA H200 data sheet: SXM, NVL */
	{ "H200", PEAK(67, 67, 494.5, 989.5, 989.5, 1979, 1979) },
	{ "H200 NVL", PEAK(60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5) },
	/* NVIDIA Blackwell data sheet: the GPU of HGX B200 */
	{ "B200", PEAK(37, 75, 1100, 2250, 2250, 4500, 4500) },
	/* AMD Instinct MI200 series data sheet: a device is one of the two dies of an MI250X */
	{ "MI210", PEAK(45.3, 45.3, 0, 181, 181, 0, 181) },
	{ "MI250X", PEAK(47.85, 47.85, 0, 191.5, 191.5, 0, 191.5) },
	/* AMD Instinct MI300X data sheet; VF: the whole of it in a virtual machine */
	{ "MI300X", PEAK(163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9) },
	{ "MI300X VF", PEAK(163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9) },
};

static bool fits(struct gt_str name, const char *pattern)
{
	struct gt_str text = gt_str_of(pattern);

	if (text.ptr[text.len - 1] != '*')
		return gt_str_equal(name, text);
	text.len--;
	return gt_str_starts(name, text);
}

const struct gt_gpu_peak *gt_gpu_peak_of(struct gt_str name)
{
	/* Drivers before 2021 named no maker. */
	static const struct gt_str makers[] = { GT_STR("NVIDIA "), GT_STR("Tesla "),
						GT_STR("AMD Instinct ") };

	if (gt_str_has(name, GT_STR(" MIG ")))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
		if (gt_str_starts(name, makers[i])) {
			name.ptr += makers[i].len;
			name.len -= makers[i].len;
			break;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++) {
		if (fits(name, gpus[i].name))
			return &gpus[i].peak;
	}
	return NULL;
}
