/*
 * op_inputs.c - see op_inputs.h. What is written follows parseArgData() in PyTorch's
 * torch/csrc/autograd/profiler_kineto.cpp, variantShapesToStr() in torch/csrc/profiler/util.cpp
 * and operator<< in aten/src/ATen/core/ivalue.cpp.
 */
#include "op_inputs.h"
#include "json_writer.h"
#include "wire.h"

#include <math.h>

struct input {
	struct gt_input head;
	const char *body; /* what follows it: numbers or, of lists, inputs */
	const char *end;  /* of the body */
};

/* ---- reading ---- */

static size_t tensor_bytes(const struct gt_input *head)
{
	return (size_t)head->count * (head->flags & GT_INPUT_WIDE ? 8 : 4) *
	       (head->flags & GT_INPUT_STRIDES ? 2 : 1);
}

static bool is_scalar(const struct gt_input *head)
{
	return head->tag >= GT_INPUT_BOOL && head->tag <= GT_INPUT_COMPLEX;
}

static bool is_tensor(const struct gt_input *head)
{
	return head->tag == GT_INPUT_TENSOR || head->tag == GT_INPUT_UNDEFINED;
}

/* The input at *at, but for what it consists of if it is a list. */
static bool next_flat(const char **at, const char *end, struct input *ret)
{
	size_t bytes = 0;

	if ((size_t)(end - *at) < sizeof(ret->head))
		return false;
	memcpy(&ret->head, *at, sizeof(ret->head));
	ret->body = *at + sizeof(ret->head);
	switch (ret->head.tag) {
	case GT_INPUT_TENSOR:
		if (ret->head.count > GT_INPUT_DIMS_MAX)
			return false;
		bytes = tensor_bytes(&ret->head);
		break;
	case GT_INPUT_INT:
	case GT_INPUT_DOUBLE:
		bytes = 8;
		break;
	case GT_INPUT_COMPLEX:
		bytes = 16;
		break;
	case GT_INPUT_OTHER:
	case GT_INPUT_UNDEFINED:
	case GT_INPUT_BOOL:
	case GT_INPUT_LIST:
	case GT_INPUT_TENSORS:
		break;
	default:
		return false;
	}
	if ((size_t)(end - ret->body) < bytes)
		return false;
	*at = ret->end = ret->body + bytes;
	return true;
}

static bool next_input(const char **at, const char *end, struct input *ret)
{
	struct input item;

	if (!next_flat(at, end, ret))
		return false;
	if (ret->head.tag != GT_INPUT_LIST && ret->head.tag != GT_INPUT_TENSORS)
		return true;
	for (unsigned int i = 0; i < ret->head.count; i++) {
		if (!next_flat(at, end, &item) ||
		    !(ret->head.tag == GT_INPUT_LIST ? is_scalar(&item.head)
						     : is_tensor(&item.head)))
			return false;
	}
	ret->end = *at;
	return true;
}

static bool all_valid(struct gt_str inputs)
{
	const char *at = inputs.ptr, *end = at + inputs.len;
	struct input input;

	while (at < end) {
		if (!next_input(&at, end, &input))
			return false;
	}
	return inputs.len;
}

/* ---- sizes and strides ---- */

static int64_t number_at(const struct input *tensor, size_t index)
{
	uint32_t narrow;
	int64_t wide;

	if (tensor->head.flags & GT_INPUT_WIDE) {
		memcpy(&wide, tensor->body + index * sizeof(wide), sizeof(wide));
		return wide;
	}
	memcpy(&narrow, tensor->body + index * sizeof(narrow), sizeof(narrow));
	return narrow;
}

static void read_strides(const struct input *tensor, int64_t *ret)
{
	size_t count = tensor->head.count;
	uint64_t stride = 1;

	for (size_t i = count; i--;) {
		if (tensor->head.flags & GT_INPUT_STRIDES) {
			ret[i] = number_at(tensor, count + i);
		} else {
			ret[i] = (int64_t)stride;
			stride *= (uint64_t)GT_MAX(number_at(tensor, i), 1);
		}
	}
}

static char *put_tensor(char *p, const struct input *tensor, bool strides)
{
	int64_t numbers[GT_INPUT_DIMS_MAX];
	size_t count = tensor->head.count;

	*p++ = '[';
	if (strides && tensor->head.flags & GT_INPUT_NO_STRIDES)
		count = 0;
	if (strides)
		read_strides(tensor, numbers);
	for (size_t i = 0; i < count; i++) {
		if (i)
			p = GT_JSON_PUT(p, ", ");
		p = gt_json_put_i64(p, strides ? numbers[i] : number_at(tensor, i));
	}
	*p++ = ']';
	return p;
}

/* Torch shows a list of tensors only if it can show each. */
static bool are_defined(const struct input *list)
{
	const char *at = list->body;
	struct input item;

	while (at < list->end && next_flat(&at, list->end, &item)) {
		if (item.head.tag == GT_INPUT_UNDEFINED)
			return false;
	}
	return true;
}

static char *put_dims(char *p, const struct input *input, bool strides)
{
	const char *at = input->body;
	struct input item;

	if (input->head.tag == GT_INPUT_TENSOR)
		return put_tensor(p, input, strides);
	*p++ = '[';
	if (input->head.tag == GT_INPUT_TENSORS && are_defined(input)) {
		while (at < input->end && next_flat(&at, input->end, &item)) {
			if (p[-1] == ']')
				p = GT_JSON_PUT(p, ", ");
			p = put_tensor(p, &item, strides);
		}
	}
	*p++ = ']';
	return p;
}

static char *put_sizes(char *p, const struct input *input)
{
	return put_dims(p, input, false);
}

static char *put_strides(char *p, const struct input *input)
{
	return put_dims(p, input, true);
}

/* ---- types ---- */

/* c10::ScalarType, as GCC names the types in C++. */
static const struct gt_str type_names[] = {
	GT_STR("unsigned char"),
	GT_STR("signed char"),
	GT_STR("short int"),
	GT_STR("int"),
	GT_STR("long int"),
	GT_STR("c10::Half"),
	GT_STR("float"),
	GT_STR("double"),
	GT_STR("c10::complex<c10::Half>"),
	GT_STR("c10::complex<float>"),
	GT_STR("c10::complex<double>"),
	GT_STR("bool"),
	GT_STR("c10::qint8"),
	GT_STR("c10::quint8"),
	GT_STR("c10::qint32"),
	GT_STR("c10::BFloat16"),
	GT_STR("c10::quint4x2"),
	GT_STR("c10::quint2x4"),
	GT_STR("c10::bits1x8"),
	GT_STR("c10::bits2x4"),
	GT_STR("c10::bits4x2"),
	GT_STR("c10::bits8"),
	GT_STR("c10::bits16"),
	GT_STR("c10::Float8_e5m2"),
	GT_STR("c10::Float8_e4m3fn"),
	GT_STR("c10::Float8_e5m2fnuz"),
	GT_STR("c10::Float8_e4m3fnuz"),
	GT_STR("short unsigned int"),
	GT_STR("unsigned int"),
	GT_STR("long unsigned int"),
	GT_STR("c10::dummy_uint1_7_t<1>"),
	GT_STR("c10::dummy_uint1_7_t<2>"),
	GT_STR("c10::dummy_uint1_7_t<3>"),
	GT_STR("c10::dummy_uint1_7_t<4>"),
	GT_STR("c10::dummy_uint1_7_t<5>"),
	GT_STR("c10::dummy_uint1_7_t<6>"),
	GT_STR("c10::dummy_uint1_7_t<7>"),
	GT_STR("c10::dummy_int1_7_t<1>"),
	GT_STR("c10::dummy_int1_7_t<2>"),
	GT_STR("c10::dummy_int1_7_t<3>"),
	GT_STR("c10::dummy_int1_7_t<4>"),
	GT_STR("c10::dummy_int1_7_t<5>"),
	GT_STR("c10::dummy_int1_7_t<6>"),
	GT_STR("c10::dummy_int1_7_t<7>"),
	GT_STR("c10::Float8_e8m0fnu"),
	GT_STR("c10::Float4_e2m1fn_x2"),
	GT_STR("c10::complex<c10::BFloat16>"),
};

static struct gt_str type_of(const struct input *input)
{
	switch (input->head.tag) {
	case GT_INPUT_TENSOR:
		return input->head.item < ARRAY_SIZE(type_names) ? type_names[input->head.item]
								 : GT_STR("");
	case GT_INPUT_TENSORS:
		return are_defined(input) ? GT_STR("TensorList") : GT_STR("");
	case GT_INPUT_LIST:
		return GT_STR("ScalarList");
	default:
		return is_scalar(&input->head) ? GT_STR("Scalar") : GT_STR("");
	}
}

static char *put_type(char *p, const struct input *input)
{
	struct gt_str type = type_of(input);

	*p++ = '"';
	p = (char *)memcpy(p, type.ptr, type.len) + type.len;
	*p++ = '"';
	return p;
}

/* ---- values ---- */

#define DOUBLE_MAX_BYTES 32

static char *put_double(char *p, double value)
{
	if (fabs(value) < 0x1p63 && value == trunc(value)) {
		p = gt_json_put_i64(p, (int64_t)value);
		*p++ = '.';
		return p;
	}
	return p + snprintf(p, DOUBLE_MAX_BYTES, "%.17g", value);
}

static char *put_scalar(char *p, const struct input *input)
{
	double number[2];
	int64_t integer;

	switch (input->head.tag) {
	case GT_INPUT_BOOL:
		return input->head.item ? GT_JSON_PUT(p, "True") : GT_JSON_PUT(p, "False");
	case GT_INPUT_INT:
		memcpy(&integer, input->body, sizeof(integer));
		return gt_json_put_i64(p, integer);
	case GT_INPUT_DOUBLE:
		memcpy(number, input->body, sizeof(*number));
		return put_double(p, *number);
	case GT_INPUT_COMPLEX:
		memcpy(number, input->body, sizeof(number));
		p = put_double(p, number[0]);
		*p++ = number[1] >= 0 ? '+' : '-';
		p = put_double(p, fabs(number[1]));
		*p++ = 'j';
		return p;
	default:
		return p;
	}
}

static char *put_value(char *p, const struct input *input)
{
	const char *at = input->body;
	struct input item;

	*p++ = '"';
	if (input->head.tag == GT_INPUT_LIST) {
		*p++ = '[';
		while (at < input->end && next_flat(&at, input->end, &item)) {
			if (p[-1] != '[')
				p = GT_JSON_PUT(p, ", ");
			p = put_scalar(p, &item);
		}
		*p++ = ']';
	} else {
		p = put_scalar(p, input);
	}
	*p++ = '"';
	return p;
}

/* ---- all ---- */

static char *put_each(char *p, struct gt_str inputs,
		      char *(*put)(char *p, const struct input *input))
{
	const char *at = inputs.ptr, *end = at + inputs.len;
	struct input input;

	*p++ = '[';
	for (bool first = true; at < end && next_input(&at, end, &input); first = false) {
		if (!first)
			p = GT_JSON_PUT(p, ", ");
		p = put(p, &input);
	}
	*p++ = ']';
	return p;
}

char *gt_op_inputs_put(char *p, struct gt_str inputs)
{
	if (!all_valid(inputs))
		return p;
	p = put_each(GT_JSON_PUT(p, ",\"Input Dims\":"), inputs, put_sizes);
	p = put_each(GT_JSON_PUT(p, ",\"Input Strides\":"), inputs, put_strides);
	p = put_each(GT_JSON_PUT(p, ",\"Input type\":"), inputs, put_type);
	return put_each(GT_JSON_PUT(p, ",\"Concrete Inputs\":"), inputs, put_value);
}
