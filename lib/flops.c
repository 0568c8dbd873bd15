/*
 * flops.c - see flops.h. The rules are those of computeFlops() in PyTorch's
 * torch/csrc/profiler/util.cpp.
 */
#include "base.h"
#include "flops.h"
#include "input_dims.h"

/* Where torch keeps them in the arguments of aten::conv2d. */
enum { CONV_STRIDE = 3, CONV_PADDING, CONV_DILATION, CONV_GROUPS };

enum rule { RULE_NONE, RULE_CONV2D, RULE_MATMUL, RULE_BATCHED, RULE_ELEMENTS };

static const struct {
	struct gt_str op;
	enum rule rule;
	size_t first; /* of the inputs that count */
} rules[] = {
	{ GT_STR("aten::mm"), RULE_MATMUL, 0 },     { GT_STR("aten::addmm"), RULE_MATMUL, 1 },
	{ GT_STR("aten::bmm"), RULE_BATCHED, 0 },   { GT_STR("aten::baddbmm"), RULE_BATCHED, 1 },
	{ GT_STR("aten::mul"), RULE_ELEMENTS, 0 },  { GT_STR("aten::add"), RULE_ELEMENTS, 0 },
	{ GT_STR("aten::conv2d"), RULE_CONV2D, 0 },
};

/* Products of two matrices that torch does not count: of fp8, of int8. */
static const struct gt_str uncounted_products[] = { GT_STR("aten::_scaled_mm"),
						    GT_STR("aten::_int_mm") };

/* Query, key and value are the inputs from first on: batch, heads, length, size of a head. */
static const struct {
	struct gt_str op;
	size_t first;
	bool backward;
} attentions[] = {
	{ GT_STR("aten::_scaled_dot_product_flash_attention"), 0, false },
	{ GT_STR("aten::_scaled_dot_product_efficient_attention"), 0, false },
	{ GT_STR("aten::_scaled_dot_product_cudnn_attention"), 0, false },
	{ GT_STR("aten::_scaled_dot_product_fused_attention_overrideable"), 0, false },
	{ GT_STR("aten::_scaled_dot_product_flash_attention_for_cpu"), 0, false },
	{ GT_STR("aten::_scaled_dot_product_flash_attention_backward"), 1, true },
	{ GT_STR("aten::_scaled_dot_product_efficient_attention_backward"), 1, true },
	{ GT_STR("aten::_scaled_dot_product_cudnn_attention_backward"), 1, true },
	{ GT_STR("aten::_scaled_dot_product_flash_attention_for_cpu_backward"), 1, true },
};

enum gt_flops_from gt_flops_from(struct gt_str op)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (gt_str_equal(op, rules[i].op))
			return rules[i].rule == RULE_CONV2D ? GT_FLOPS_FROM_VALUES
							    : GT_FLOPS_FROM_DIMS;
	}
	return gt_flops_input(op) >= 0 ? GT_FLOPS_FROM_DIMS : GT_FLOPS_NONE;
}

int gt_flops_input(struct gt_str op)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (gt_str_equal(op, rules[i].op))
			return (int)rules[i].first;
	}
	for (size_t i = 0; i < ARRAY_SIZE(attentions); i++) {
		if (gt_str_equal(op, attentions[i].op))
			return (int)attentions[i].first;
	}
	for (size_t i = 0; i < ARRAY_SIZE(uncounted_products); i++) {
		if (gt_str_equal(op, uncounted_products[i]))
			return 0;
	}
	return -1;
}

static uint64_t product(const struct gt_dims *dims)
{
	uint64_t ret = 1;

	for (size_t i = 0; i < dims->count; i++)
		ret *= (uint64_t)dims->sizes[i];
	return ret;
}

/* batched: the first dimension of both counts once. */
static uint64_t matmul(struct gt_str dims, size_t first, bool batched)
{
	struct gt_dims left, right;
	int64_t shared, batches;

	if (!gt_dims_at(dims, first, &left) || !gt_dims_at(dims, first + 1, &right) || !left.count)
		return 0;
	shared = left.sizes[left.count - 1];
	batches = batched ? left.sizes[0] : 1;
	if (!shared || !batches)
		return 0;
	return product(&left) / (uint64_t)shared / (uint64_t)batches * product(&right) * 2;
}

/*
 * The text of the "Concrete Inputs" at index, in its quotes, is a list of integers or one: into
 * ret. False: something else, such as padding "same".
 */
static bool value_at(struct gt_str values, size_t index, struct gt_dims *ret)
{
	const char *at = values.ptr, *end = values.ptr + values.len, *quote;
	size_t i = 0;

	for (;; i++) {
		at = at < end ? memchr(at, '"', (size_t)(end - at)) : NULL;
		quote = at && at + 1 < end ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
		if (!quote)
			return false;
		if (i == index)
			break;
		at = quote + 1;
	}
	at++;
	if (at < quote && *at == '[')
		return gt_dims_next(&at, quote, ret);
	ret->count = 0;
	for (int64_t value = 0; at < quote && gt_is_digit(*at); at++) {
		value = value * 10 + (*at - '0');
		if (value > INT32_MAX)
			return false;
		ret->sizes[0] = value;
		ret->count = 1;
	}
	return at == quote && ret->count;
}

/* In the types of torch: sizes are unsigned, the division rounds towards zero. */
static uint64_t conv_length(uint64_t in, uint64_t kernel, int64_t stride, int64_t padding,
			    int64_t dilation)
{
	return (in + 2 * (uint64_t)padding - (uint64_t)dilation * (kernel - 1) - 1) /
		       (uint64_t)stride +
	       1;
}

static uint64_t conv2d(struct gt_str dims, struct gt_str values)
{
	struct gt_dims in, weight, stride, padding, dilation, groups;
	uint64_t height, width;

	if (!gt_dims_at(dims, 0, &in) || !gt_dims_at(dims, 1, &weight) || in.count != 4 ||
	    weight.count != 4)
		return 0;
	if (!value_at(values, CONV_STRIDE, &stride) || !value_at(values, CONV_PADDING, &padding) ||
	    !value_at(values, CONV_DILATION, &dilation) || !value_at(values, CONV_GROUPS, &groups))
		return 0;
	if (stride.count != 2 || padding.count != 2 || dilation.count != 2 || groups.count != 1 ||
	    !groups.sizes[0] || !stride.sizes[0] || !stride.sizes[1])
		return 0;
	height = conv_length((uint64_t)in.sizes[2], (uint64_t)weight.sizes[2], stride.sizes[0],
			     padding.sizes[0], dilation.sizes[0]);
	width = conv_length((uint64_t)in.sizes[3], (uint64_t)weight.sizes[3], stride.sizes[1],
			    padding.sizes[1], dilation.sizes[1]);
	return 2 * (uint64_t)in.sizes[0] * height * width * (uint64_t)weight.sizes[2] *
	       (uint64_t)weight.sizes[3] * (uint64_t)in.sizes[1] * (uint64_t)weight.sizes[0] /
	       (uint64_t)groups.sizes[0];
}

static uint64_t elements(struct gt_str dims)
{
	struct gt_dims input;

	return gt_dims_at(dims, 0, &input) ? product(&input) : 0;
}

uint64_t gt_flops(struct gt_str op, struct gt_str dims, struct gt_str values)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (!gt_str_equal(op, rules[i].op))
			continue;
		switch (rules[i].rule) {
		case RULE_CONV2D:
			return conv2d(dims, values);
		case RULE_MATMUL:
			return matmul(dims, rules[i].first, false);
		case RULE_BATCHED:
			return matmul(dims, rules[i].first, true);
		case RULE_ELEMENTS:
			return elements(dims);
		case RULE_NONE:
			break;
		}
	}
	return 0;
}

static uint64_t attention(struct gt_str dims, size_t first, bool backward)
{
	struct gt_dims query, key, value;
	uint64_t pairs, head;

	if (!gt_dims_at(dims, first, &query) || !gt_dims_at(dims, first + 1, &key) ||
	    !gt_dims_at(dims, first + 2, &value) || query.count != 4 || key.count != 4 ||
	    value.count != 4)
		return 0;
	pairs = (uint64_t)query.sizes[0] * (uint64_t)query.sizes[1] * (uint64_t)query.sizes[2] *
		(uint64_t)key.sizes[2];
	head = (uint64_t)query.sizes[3];
	/* Forward QK' and PV; backward QK' again, and the gradients of P, V, Q and K. */
	if (backward)
		return 2 * pairs * (3 * head + 2 * (uint64_t)value.sizes[3]);
	return 2 * pairs * (head + (uint64_t)value.sizes[3]);
}

uint64_t gt_flops_estimated(struct gt_str op, struct gt_str dims)
{
	for (size_t i = 0; i < ARRAY_SIZE(uncounted_products); i++) {
		if (gt_str_equal(op, uncounted_products[i]))
			return matmul(dims, 0, false);
	}
	for (size_t i = 0; i < ARRAY_SIZE(attentions); i++) {
		if (gt_str_equal(op, attentions[i].op))
			return attention(dims, attentions[i].first, attentions[i].backward);
	}
	return 0;
}
