/*
 * tensor_cores.c - see tensor_cores.h, which has the rules and where they come from.
 */
#include "base.h"
#include "tensor_cores.h"

/* A longer name, which only template arguments make, is looked at up to here. */
#define NAME_MAX_BYTES 65536

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool has_one_of(struct gt_str name, const struct gt_str *parts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (gt_str_has(name, parts[i]))
			return true;
	}
	return false;
}

/* The rest of name from 'at' on. */
static struct gt_str rest(struct gt_str name, size_t at)
{
	return (struct gt_str){ name.ptr + at, name.len - at };
}

/* Whether a word of which the first letter tells the type begins here: "s16816gemm", "h884". */
static bool begins_with_shape(struct gt_str word)
{
	static const struct gt_str shapes[] = {
		GT_STR("884"),   GT_STR("1688"), GT_STR("16816"), GT_STR("16832"),
		GT_STR("16864"), GT_STR("8816"), GT_STR("8832"),  GT_STR("161616"),
	};
	size_t end = 1;

	if (!word.len || !memchr("sdhic", word.ptr[0], 5))
		return false;
	while (end < word.len && gt_is_digit(word.ptr[end]))
		end++;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		if (gt_str_equal(shapes[i], (struct gt_str){ word.ptr + 1, end - 1 }))
			return true;
	}
	return false;
}

static bool begins_with_instruction(struct gt_str word)
{
	static const struct gt_str instructions[] = {
		GT_STR("hmma"), GT_STR("imma"),  GT_STR("bmma"),   GT_STR("dmma"), GT_STR("qmma"),
		GT_STR("wmma"), GT_STR("wgmma"), GT_STR("utcmma"), GT_STR("mfma"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(instructions); i++) {
		if (gt_str_starts(word, instructions[i]))
			return true;
	}
	return false;
}

/* Whether one of the words, which anything but letters and digits parts, names an instruction. */
static bool has_instruction(struct gt_str name)
{
	for (size_t i = 0; i < name.len; i++) {
		struct gt_str word = rest(name, i);

		if (i && (is_letter(name.ptr[i - 1]) || gt_is_digit(name.ptr[i - 1])))
			continue;
		if (begins_with_shape(word) || begins_with_instruction(word))
			return true;
	}
	return false;
}

/* Whether part stands in name with a digit behind it. */
static bool has_numbered(struct gt_str name, struct gt_str part)
{
	const char *at = memmem(name.ptr, name.len, part.ptr, part.len);

	return at && at + part.len < name.ptr + name.len && gt_is_digit(at[part.len]);
}

static enum gt_tensor_cores of_nvjet(struct gt_str name)
{
	size_t at = sizeof("nvjet_") - 1;

	if (gt_str_starts(rest(name, at), GT_STR("sm"))) {
		while (at < name.len && name.ptr[at] != '_')
			at++;
		at++;
	}
	return at < name.len && memchr("htqo", name.ptr[at], 4) ? GT_TENSOR_CORES_USED
								: GT_TENSOR_CORES_UNKNOWN;
}

static bool is_attention(struct gt_str name)
{
	static const struct gt_str flash[] = {
		GT_STR("flash_fwd_kernel"),
		GT_STR("flash_fwd_splitkv_kernel"),
		GT_STR("flash_bwd_dq_dk_dv_loop"),
	};
	static const struct gt_str fmha[] = {
		GT_STR("fmha_cutlassF_f16"),
		GT_STR("fmha_cutlassF_bf16"),
		GT_STR("fmha_cutlassB_f16"),
		GT_STR("fmha_cutlassB_bf16"),
	};

	return has_one_of(name, flash, ARRAY_SIZE(flash)) ||
	       (has_one_of(name, fmha, ARRAY_SIZE(fmha)) && !gt_str_has(name, GT_STR("_sm50")));
}

static bool is_of_fp32(struct gt_str name)
{
	static const struct gt_str words[] = { GT_STR("sgemm"), GT_STR("scudnn"), GT_STR("cgemm"),
					       GT_STR("gcgemm") };

	for (size_t i = 0; i < name.len; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(words); k++) {
			struct gt_str tail = rest(name, i);

			if ((!i || name.ptr[i - 1] == '_') && gt_str_starts(tail, words[k]) &&
			    (tail.len == words[k].len || !is_letter(tail.ptr[words[k].len])))
				return true;
		}
	}
	return false;
}

/* Kernels in which no matrices are multiplied. */
static bool is_other_work(struct gt_str name)
{
	static const struct gt_str begins[] = { GT_STR("nccl"), GT_STR("triton_poi_"),
						GT_STR("triton_red_"), GT_STR("triton_per_") };
	static const struct gt_str products[] = {
		GT_STR("gemm"),  GT_STR("bmm"),   GT_STR("m16n8k"), GT_STR("attention"),
		GT_STR("flash"), GT_STR("fmha_"), GT_STR("sdp"),    GT_STR("mma_"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		if (gt_str_starts(name, begins[i]))
			return true;
	}
	if (gt_str_starts(name, GT_STR("void ")))
		name = rest(name, 5);
	return gt_str_starts(name, GT_STR("at::native::")) &&
	       !has_one_of(name, products, ARRAY_SIZE(products));
}

enum gt_tensor_cores gt_tensor_cores_of(struct gt_str name)
{
	static const struct gt_str used[] = { GT_STR("_tensorop_"), GT_STR("OpClassTensorOp"),
					      GT_STR("MmaTensorOp"), GT_STR("warpgroupsize") };
	static const struct gt_str unused[] = { GT_STR("_simt_"), GT_STR("OpClassSimt"),
						GT_STR("_ffma_") };

	name.len = GT_MIN(name.len, (size_t)NAME_MAX_BYTES);
	if (has_one_of(name, unused, ARRAY_SIZE(unused)))
		return GT_TENSOR_CORES_NOT_USED;
	if (gt_str_starts(name, GT_STR("nvjet_")))
		return of_nvjet(name);
	if (has_one_of(name, used, ARRAY_SIZE(used)) || has_instruction(name) ||
	    (gt_str_has(name, GT_STR("_xmma_")) && has_numbered(name, GT_STR("_tensor"))) ||
	    (gt_str_starts(name, GT_STR("Cijk_")) && has_numbered(name, GT_STR("_MI"))) ||
	    is_attention(name))
		return GT_TENSOR_CORES_USED;
	return is_of_fp32(name) || is_other_work(name) ? GT_TENSOR_CORES_NOT_USED
						       : GT_TENSOR_CORES_UNKNOWN;
}
