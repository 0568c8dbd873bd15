#include "base.h"
#include "torch_nvtx.h"

#define DIGITS_MAX 18 /* as many fit an int64_t, whatever they are */

/* Cuts ", KEY = digits" off the end of text. false: it does not end so. */
static bool cut_number(struct gt_str *text, struct gt_str key, int64_t *ret)
{
	size_t start = text->len, i;
	int64_t value = 0;

	while (start && gt_is_digit(text->ptr[start - 1]))
		start--;
	if (start == text->len || text->len - start > DIGITS_MAX || start < key.len ||
	    memcmp(text->ptr + start - key.len, key.ptr, key.len))
		return false;
	for (i = start; i < text->len; i++)
		value = value * 10 + (text->ptr[i] - '0');
	text->len = start - key.len;
	*ret = value;
	return true;
}

bool gt_torch_nvtx_parse(struct gt_str *text, int64_t *ret_sequence)
{
	struct gt_str rest = *text;
	int64_t id, sequence = -1;

	if (!cut_number(&rest, GT_STR(", op_id = "), &id))
		return false;
	cut_number(&rest, GT_STR(", seq = "), &sequence);
	if (!rest.len)
		return false;
	*text = rest;
	*ret_sequence = sequence;
	return true;
}
