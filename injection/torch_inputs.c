/*
 * torch_inputs.c - what an operator is called with: reads the c10::IValue of its inputs, and of
 * tensors their sizes, strides and type.
 *
 * Source: ATen/core/ivalue.h, List.h, jit_type_base.h, c10/core/TensorImpl.h,
 * c10/core/impl/SizesAndStrides.h of PyTorch 1.13 to 2.15, by offsetof, for x86-64. As they say
 * nothing of stability, inputs that are known must be found with these offsets before any other
 * is read.
 */
#include "torch_inputs.h"
#include "field.h"

struct value {            /* c10::IValue */
	uint64_t payload; /* the value, or where it is */
	uint32_t tag;
	uint32_t reserved;
};

/* c10::IValue::Tag, but for GenericList, which is TAG_LIST_MIN to TAG_LIST_MAX. */
enum { TAG_NONE = 0, TAG_TENSOR = 1, TAG_DOUBLE = 3, TAG_COMPLEX = 4, TAG_INT = 5 };
#define TAG_LIST_MIN   12 /* to 2.0; to 2.8 it is 13, since then 14 */
#define TAG_LIST_MAX   14
#define LIST_FROM_BOOL 4 /* GenericList comes so many behind Bool */

static const struct layout {
	uint8_t sizes_at;   /* c10::TensorImpl::sizes_and_strides_ */
	uint8_t list_at;    /* c10::detail::ListImpl::list; behind it elementType, a pointer */
	uint8_t complex_at; /* c10::ivalue::ComplexHolder::val */
} layouts[] = {
	{ 56, 16, 16 }, /* 2.13 to 2.15 */
	{ 64, 16, 16 }, /* 2.3 to 2.12 */
	{ 72, 24, 32 }, /* 1.13 to 2.2 */
};

/* From sizes_and_strides_ on: how many; both in place, or where they are; then other fields. */
#define DIMS_INLINE       5
#define PLACE_MIN         (1 << 16) /* bytes: no memory is below, as Linux's vm.mmap_min_addr has it */
#define TYPE_BEHIND       104       /* data_type_, uint16_t: c10::ScalarType */
#define POLICY_BEHIND     110       /* two bits of it are sizes_strides_policy_ */
#define POLICY_SHIFT      2
#define POLICY_NO_STRIDES 1 /* sparse, and others that have strides of their own kind */
#define POLICY_NO_SIZES   2 /* nested, of symbolic shape, of Python's making */

/* c10::Type */
#define KIND_AT     8 /* c10::TypeKind */
#define KIND_TENSOR 3

static struct {
	const struct layout *layout; /* NULL: not known */
	const void *undefined;
	uint32_t tag_list;
	size_t passed; /* of the test's operators */
	bool failed;
} torch;

struct out {
	char *at;
	char *end; /* what is said at all times fits behind */
};

static const void *pointer_of(const struct value *value)
{
	return (const void *)(uintptr_t)value->payload;
}

/* ---- writing ---- */

/* Returns where bytes go that follow; NULL: there is no room. */
static char *put(struct out *out, struct gt_input input, size_t bytes)
{
	char *at = out->at;

	if ((size_t)(out->end - at) < sizeof(input) + bytes)
		return NULL;
	memcpy(at, &input, sizeof(input));
	out->at = at + sizeof(input) + bytes;
	return at + sizeof(input);
}

static bool put_plain(struct out *out, enum gt_input_tag tag, uint8_t item)
{
	return put(out, (struct gt_input){ .tag = (uint8_t)tag, .item = item }, 0);
}

static bool put_bytes(struct out *out, enum gt_input_tag tag, const void *bytes, size_t len)
{
	char *to = put(out, (struct gt_input){ .tag = (uint8_t)tag }, len);

	if (to)
		memcpy(to, bytes, len);
	return to;
}

/* ---- tensors ---- */

static bool is_contiguous(const int64_t *sizes, const int64_t *strides, size_t count)
{
	uint64_t stride = 1;

	while (count--) {
		if ((uint64_t)strides[count] != stride)
			return false;
		stride *= sizes[count] ? (uint64_t)sizes[count] : 1;
	}
	return true;
}

static bool is_wide(const int64_t *values, size_t count)
{
	uint64_t all = 0;

	while (count--)
		all |= (uint64_t)values[count];
	return all >> 32;
}

static char *put_numbers(char *to, const int64_t *values, size_t count, bool wide)
{
	if (wide)
		return (char *)memcpy(to, values, count * sizeof(*values)) +
		       count * sizeof(*values);
	for (size_t i = 0; i < count; i++, to += sizeof(uint32_t))
		memcpy(to, &(uint32_t){ (uint32_t)values[i] }, sizeof(uint32_t));
	return to;
}

/*
 * The sizes, and behind them the strides. NULL: another thread, one that the program does not wait
 * for, is just giving the tensor other ones, so that a size stands where they are to be.
 */
static const int64_t *sizes_of(const char *sizes_at, uint64_t count)
{
	uint64_t place = field_u64(sizes_at, 8);

	if (count <= DIMS_INLINE)
		return (const void *)(sizes_at + 8);
	return place < PLACE_MIN || place % 8 ? NULL : (const void *)(uintptr_t)place;
}

static bool put_tensor(struct out *out, const char *tensor)
{
	const char *sizes_at = tensor ? tensor + torch.layout->sizes_at : NULL;
	struct gt_input input = { .tag = GT_INPUT_TENSOR };
	const int64_t *sizes, *strides;
	unsigned int policy;
	uint64_t count;
	uint16_t type;
	bool wide;
	char *to;

	if (!tensor || tensor == torch.undefined)
		return put_plain(out, GT_INPUT_UNDEFINED, 0);
	policy = (unsigned char)sizes_at[POLICY_BEHIND] >> POLICY_SHIFT & 3;
	count = field_u64(sizes_at, 0);
	sizes = sizes_of(sizes_at, count);
	if (policy >= POLICY_NO_SIZES || count > GT_INPUT_DIMS_MAX || !sizes)
		return put_plain(out, GT_INPUT_UNDEFINED, 0);
	strides = sizes + GT_MAX(count, DIMS_INLINE);
	type = field_u16(sizes_at, TYPE_BEHIND);
	input.item = (uint8_t)GT_MIN(type, UINT8_MAX);
	input.count = (uint8_t)count;
	wide = is_wide(sizes, count);
	if (policy == POLICY_NO_STRIDES) {
		input.flags = GT_INPUT_NO_STRIDES;
	} else if (!is_contiguous(sizes, strides, count)) {
		input.flags = GT_INPUT_STRIDES;
		wide |= is_wide(strides, count);
	}
	if (wide)
		input.flags |= GT_INPUT_WIDE;
	to = put(out, input,
		 count * (wide ? sizeof(int64_t) : sizeof(uint32_t)) *
			 (input.flags & GT_INPUT_STRIDES ? 2 : 1));
	if (!to)
		return false;
	to = put_numbers(to, sizes, count, wide);
	if (input.flags & GT_INPUT_STRIDES)
		put_numbers(to, strides, count, wide);
	return true;
}

/* ---- values ---- */

static bool is_scalar(const struct value *value)
{
	return value->tag == TAG_INT || value->tag == TAG_DOUBLE || value->tag == TAG_COMPLEX ||
	       value->tag == torch.tag_list - LIST_FROM_BOOL;
}

static bool put_scalar(struct out *out, const struct value *value)
{
	const char *number = pointer_of(value);

	switch (value->tag) {
	case TAG_INT:
		return put_bytes(out, GT_INPUT_INT, &value->payload, sizeof(value->payload));
	case TAG_DOUBLE:
		return put_bytes(out, GT_INPUT_DOUBLE, &value->payload, sizeof(value->payload));
	case TAG_COMPLEX:
		if (!number)
			return put_plain(out, GT_INPUT_OTHER, 0);
		return put_bytes(out, GT_INPUT_COMPLEX, number + torch.layout->complex_at,
				 2 * sizeof(double));
	default:
		return put_plain(out, GT_INPUT_BOOL, (uint8_t)value->payload & 1);
	}
}

struct list {
	const struct value *values;
	uint64_t count;
	bool of_tensors;
};

static bool read_list(const struct value *value, struct list *ret)
{
	const char *list = pointer_of(value);
	const void *type;
	uint64_t begin, end;
	int kind = 0;

	if (!list)
		return false;
	begin = field_u64(list, torch.layout->list_at);
	end = field_u64(list, torch.layout->list_at + 8U);
	type = field_pointer(list, torch.layout->list_at + 24U);
	if (end < begin || (end - begin) % sizeof(struct value) || begin % 8 ||
	    (end > begin && !begin))
		return false;
	if (type)
		kind = field_int(type, KIND_AT);
	ret->values = (const void *)(uintptr_t)begin;
	ret->count = (end - begin) / sizeof(struct value);
	ret->of_tensors = kind == KIND_TENSOR;
	return true;
}

/* One that torch's profiler would not show is something else. */
static bool is_shown(const struct list *list)
{
	if (list->count > GT_INPUT_LIST_MAX)
		return list->of_tensors;
	for (uint64_t i = 0; i < list->count; i++) {
		if (list->of_tensors ? list->values[i].tag != TAG_TENSOR
				     : !is_scalar(&list->values[i]))
			return false;
	}
	return true;
}

static bool put_list(struct out *out, const struct value *value)
{
	struct gt_input input = { .tag = GT_INPUT_LIST };
	struct list list;

	if (!read_list(value, &list) || !is_shown(&list))
		return put_plain(out, GT_INPUT_OTHER, 0);
	if (list.of_tensors)
		input.tag = GT_INPUT_TENSORS;
	if (list.count > GT_INPUT_LIST_MAX) {
		input.flags = GT_INPUT_LONG;
		list.count = 0;
	}
	input.count = (uint8_t)list.count;
	if (!put(out, input, 0))
		return false;
	for (uint64_t i = 0; i < list.count; i++) {
		if (!(list.of_tensors ? put_tensor(out, pointer_of(&list.values[i]))
				      : put_scalar(out, &list.values[i])))
			return false;
	}
	return true;
}

static bool put_value(struct out *out, const struct value *value)
{
	if (value->tag == TAG_TENSOR)
		return put_tensor(out, pointer_of(value));
	if (value->tag == torch.tag_list)
		return put_list(out, value);
	if (is_scalar(value))
		return put_scalar(out, value);
	return put_plain(out, GT_INPUT_OTHER, 0);
}

static uint32_t put_inputs(char *to, const char *inputs, uint64_t count)
{
	const struct value *values = (const void *)inputs;
	struct out out = { to, to + GT_INPUTS_MAX - sizeof(struct gt_input) };

	for (uint64_t i = 0; i < count; i++) {
		char *start = out.at;

		if (put_value(&out, &values[i]))
			continue;
		out.at = start;
		out.end += sizeof(struct gt_input);
		put_plain(&out, GT_INPUT_CUT, 0);
		break;
	}
	return (uint32_t)(out.at - to);
}

/* ---- the test ---- */

#define TENSOR(type, flags, ...)                                                    \
	GT_INPUT_TENSOR | (type) << 8 |                                             \
		(uint32_t)(sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t) / \
			   ((flags)&GT_INPUT_STRIDES ? 2 : 1))                      \
			<< 16 |                                                     \
		(uint32_t)(flags) << 24,                                            \
		__VA_ARGS__
#define BOOL(value)  GT_INPUT_BOOL | (value) << 8
#define INT(value)   GT_INPUT_INT, (value), 0
#define LIST(count)  GT_INPUT_LIST | (count) << 16
#define DOUBLE(high) 0, (high) /* of few bits */

/* c10::ScalarType */
#define FLOAT64    7
#define FLOAT32    6
#define COMPLEX128 10

/* Those of show_inputs() in gtrace_torch.py, and what their inputs begin with. */
static const struct {
	const char *name;
	uint32_t inputs[16];
	uint32_t words;
} shown[] = {
#define SHOWN(name, ...)                                                                      \
	{                                                                                     \
		name, { __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t) \
	}
	SHOWN("aten::as_strided", TENSOR(FLOAT64, 0, 2, 3, 5), LIST(2), INT(3), INT(2), LIST(2)),
	SHOWN("aten::expand", TENSOR(FLOAT64, GT_INPUT_STRIDES, 3, 2, 1, 7), LIST(2), INT(3),
	      INT(2), BOOL(1)),
	SHOWN("aten::broadcast_tensors", GT_INPUT_TENSORS | 2 << 16,
	      TENSOR(FLOAT64, GT_INPUT_STRIDES, 3, 2, 1, 7),
	      TENSOR(FLOAT64, GT_INPUT_STRIDES, 3, 2, 1, 7)),
	SHOWN("aten::scalar_tensor", GT_INPUT_COMPLEX, DOUBLE(0x3ff80000), DOUBLE(0xc0040000),
	      INT(COMPLEX128)),
	SHOWN("aten::scalar_tensor", GT_INPUT_DOUBLE, DOUBLE(0x3ff80000), INT(FLOAT64)),
	SHOWN("aten::detach", TENSOR(FLOAT32, 0, 1, 2, 1, 3, 1, 5)),
	SHOWN("aten::detach", TENSOR(FLOAT32, GT_INPUT_NO_STRIDES, 2, 3)),
#undef SHOWN
};

/* Does this tensor have sizes 2, 3, 5 with this layout, and is this a list of two integers? */
static bool fits(const struct layout *layout, const char *tensor, const char *list)
{
	static const int64_t sizes[] = { 3, 2, 3, 5 }, strides[] = { 15, 5, 1 };
	uint64_t begin = field_u64(list, layout->list_at);

	return !memcmp(tensor + layout->sizes_at, sizes, sizeof(sizes)) &&
	       !memcmp(tensor + layout->sizes_at + 8 + DIMS_INLINE * 8, strides, sizeof(strides)) &&
	       begin && !(begin % 8) &&
	       field_u64(list, layout->list_at + 8U) - begin == 2 * sizeof(struct value);
}

/* By the inputs of the first of these: a tensor, and a list. */
static void find_layout(const struct value *values, uint64_t count)
{
	if (count < 2 || values[0].tag != TAG_TENSOR || values[1].tag < TAG_LIST_MIN ||
	    values[1].tag > TAG_LIST_MAX || !values[0].payload || !values[1].payload)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(layouts) && !torch.layout; i++) {
		if (fits(&layouts[i], pointer_of(&values[0]), pointer_of(&values[1])))
			torch.layout = &layouts[i];
	}
	torch.tag_list = values[1].tag;
}

void torch_inputs_begin_test(const void *undefined)
{
	torch.undefined = undefined;
	torch.layout = NULL;
	torch.passed = 0;
	torch.failed = !undefined;
}

void torch_inputs_test(const char *name, const char *inputs, uint64_t count)
{
	char found[GT_INPUTS_MAX];
	uint32_t bytes;

	if (torch.failed || torch.passed == ARRAY_SIZE(shown) ||
	    strcmp(name, shown[torch.passed].name))
		return;
	if (!torch.layout)
		find_layout((const void *)inputs, count);
	if (torch.layout) {
		bytes = put_inputs(found, inputs, count);
		if (bytes >= shown[torch.passed].words * sizeof(uint32_t) &&
		    !memcmp(found, shown[torch.passed].inputs,
			    shown[torch.passed].words * sizeof(uint32_t))) {
			torch.passed++;
			return;
		}
	}
	torch.failed = true;
}

bool torch_inputs_passed(void)
{
	return torch.passed == ARRAY_SIZE(shown);
}

uint32_t torch_inputs_put(char *to, const char *inputs, uint64_t count)
{
	return torch_inputs_passed() && inputs ? put_inputs(to, inputs, count) : 0;
}
