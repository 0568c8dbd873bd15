/*
 * input_dims.c - see input_dims.h. The text is not followed by padding, so it is read byte by byte.
 */
#include "base.h"
#include "input_dims.h"

/* Out of range saturates. */
static int64_t read_int(const char **at, const char *end)
{
	bool negative = **at == '-';
	int64_t value = 0;

	for (*at += negative; *at < end && gt_is_digit(**at); ++*at) {
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, **at - '0', &value))
			value = INT64_MAX;
	}
	return negative ? -value : value;
}

bool gt_dims_next(const char **at, const char *end, struct gt_dims *ret)
{
	bool is_list = false;
	size_t depth = 1;

	ret->count = 0;
	while (*at < end && **at != '[' && **at != ']')
		++*at;
	if (*at == end || **at == ']')
		return false;
	++*at;
	while (*at < end && depth) {
		if (gt_is_digit(**at) || **at == '-') {
			int64_t size = read_int(at, end);

			if (ret->count < GT_DIMS_MAX)
				ret->sizes[ret->count++] = size;
			continue;
		}
		is_list |= **at == '[';
		depth += **at == '[';
		depth -= **at == ']';
		++*at;
	}
	if (is_list)
		ret->count = 0;
	return true;
}

/* Behind the bracket of the whole. */
static const char *inside(struct gt_str raw)
{
	const char *open = raw.len ? memchr(raw.ptr, '[', raw.len) : NULL;

	return open ? open + 1 : raw.ptr + raw.len;
}

bool gt_dims_at(struct gt_str raw, size_t index, struct gt_dims *ret)
{
	const char *at = inside(raw);

	for (size_t i = 0; gt_dims_next(&at, raw.ptr + raw.len, ret); i++) {
		if (i == index)
			return true;
	}
	return false;
}

void gt_dims_put(struct gt_buf *out, struct gt_str raw)
{
	const char *at = inside(raw);
	const char *separator = "[";
	struct gt_dims dims;

	while (gt_dims_next(&at, raw.ptr + raw.len, &dims)) {
		gt_buf_text(out, separator);
		gt_buf_byte(out, '[');
		for (size_t i = 0; i < dims.count; i++)
			gt_buf_printf(out, "%s%lld", i ? ", " : "", (long long)dims.sizes[i]);
		gt_buf_byte(out, ']');
		separator = ", ";
	}
	if (*separator == ',')
		gt_buf_byte(out, ']');
}
