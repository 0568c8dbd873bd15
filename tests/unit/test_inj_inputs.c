/* The inputs of torch's operators: objects laid out as torch's are, in each of the known ways. */
#include "torch_inputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum { NONE = 0, TENSOR = 1, DOUBLE = 3, COMPLEX = 4, INT = 5 };

struct value {
	uint64_t payload;
	uint32_t tag;
	uint32_t reserved;
};

static struct {
	uint8_t sizes_at, list_at, complex_at;
	uint32_t tag_list;
} torch;

static const struct {
	uint8_t sizes_at, list_at, complex_at;
	uint32_t tag_list;
} versions[] = {
	{ 72, 24, 32, 12 }, { 72, 24, 32, 13 }, { 64, 16, 16, 13 },
	{ 64, 16, 16, 14 }, { 56, 16, 16, 14 },
};

/* ---- objects ---- */

static char pool[1 << 16] __attribute__((aligned(16)));
static size_t pool_used;
static char undefined[256];

static void *object(size_t bytes)
{
	void *ret = pool + pool_used;

	pool_used += (bytes + 15) & ~(size_t)15;
	assert_true(pool_used <= sizeof(pool));
	memset(ret, 0, bytes);
	return ret;
}

static void set(char *object_, size_t at, const void *data, size_t len)
{
	memcpy(object_ + at, data, len);
}

static void set_u64(char *object_, size_t at, uint64_t value)
{
	set(object_, at, &value, sizeof(value));
}

static uint64_t address(const void *object_)
{
	return (uint64_t)(uintptr_t)object_;
}

/* numbers: the sizes, then the strides. */
static struct value tensor(uint16_t type, uint8_t policy, uint64_t count, const int64_t *numbers)
{
	char *ret = object(192), *place = ret + torch.sizes_at + 8;
	size_t bytes = count * sizeof(*numbers);

	set_u64(ret, torch.sizes_at, count);
	if (count > 5) {
		place = object(2 * bytes);
		set_u64(ret, torch.sizes_at + 8U, address(place));
	}
	set(place, 0, numbers, bytes);
	set(place, GT_MAX(bytes, 40), numbers + count, bytes);
	set(ret, torch.sizes_at + 104U, &type, sizeof(type));
	ret[torch.sizes_at + 110] = (char)(policy << 2 | 0x33);
	return (struct value){ address(ret), TENSOR, 0 };
}

/* What a resize_() on another thread leaves for a moment: many sizes, but not yet their place. */
static struct value half_resized(uint64_t first_size)
{
	struct value ret = tensor(6, 0, 1, (const int64_t[]){ 1, 1 });
	char *at = (char *)(uintptr_t)ret.payload + torch.sizes_at;

	set_u64(at, 0, 6);
	set_u64(at, 8, first_size);
	return ret;
}

#define TENSOR_OF(type, policy, count, ...) \
	tensor(type, policy, count, (const int64_t[]){ __VA_ARGS__ })

static struct value list(bool of_tensors, size_t count, const struct value *values)
{
	char *ret = object(96), *type = object(64), *place = object(count * sizeof(*values));

	set(place, 0, values, count * sizeof(*values));
	set_u64(ret, torch.list_at, address(place));
	set_u64(ret, torch.list_at + 8U, address(place + count * sizeof(*values)));
	set_u64(ret, torch.list_at + 24U, address(type));
	type[8] = of_tensors ? 3 : 7;
	return (struct value){ address(ret), torch.tag_list, 0 };
}

#define LIST_OF(of_tensors, ...)                                                         \
	list(of_tensors, sizeof((struct value[]){ __VA_ARGS__ }) / sizeof(struct value), \
	     (const struct value[]){ __VA_ARGS__ })

static struct value integer(int64_t value)
{
	return (struct value){ (uint64_t)value, INT, 0 };
}

static struct value boolean(bool value)
{
	return (struct value){ value | 0xab00, torch.tag_list - 4, 0xffffffff };
}

static struct value real(double value)
{
	struct value ret = { 0, DOUBLE, 0 };

	memcpy(&ret.payload, &value, sizeof(value));
	return ret;
}

static struct value complex_number(double re, double im)
{
	char *ret = object(64);

	set(ret, torch.complex_at, &re, sizeof(re));
	set(ret, torch.complex_at + 8U, &im, sizeof(im));
	return (struct value){ address(ret), COMPLEX, 0 };
}

static struct value other(uint32_t tag)
{
	return (struct value){ 1, tag, 0 }; /* no place to look at */
}

/* ---- the test that torch has to pass ---- */

enum { AS_STRIDED, EXPAND, BROADCAST, SCALAR_COMPLEX, SCALAR_REAL, DETACH_6, DETACH_SPARSE, OPS };

static void show_op(const char *name, const struct value *values, size_t count)
{
	torch_inputs_test("aten::other", NULL, 0);
	torch_inputs_test(name, (const char *)values, count);
}

#define SHOW(name, ...)                                      \
	show_op(name, (const struct value[]){ __VA_ARGS__ }, \
		sizeof((struct value[]){ __VA_ARGS__ }) / sizeof(struct value))

static void show(int without, int wrong)
{
	struct value view;

	pool_used = 0;
	torch_inputs_begin_test(undefined);
	view = TENSOR_OF(7, 0, 2, 3, 2, 1, wrong == BROADCAST ? 6 : 7);
	if (without != AS_STRIDED)
		SHOW("aten::as_strided",
		     TENSOR_OF(7, 0, 3, 2, 3, 5, 15, 5, wrong == AS_STRIDED ? 2 : 1),
		     LIST_OF(false, integer(3), integer(2)),
		     LIST_OF(false, integer(1), integer(7)));
	if (without != EXPAND)
		SHOW("aten::expand", TENSOR_OF(7, 0, 2, 3, 2, 1, 7),
		     LIST_OF(false, integer(3), integer(2)),
		     wrong == EXPAND ? boolean(false) : boolean(true));
	if (without != BROADCAST)
		SHOW("aten::broadcast_tensors", LIST_OF(true, view, view));
	if (without != SCALAR_COMPLEX)
		SHOW("aten::scalar_tensor", complex_number(1.5, wrong == SCALAR_COMPLEX ? 0 : -2.5),
		     integer(10), other(NONE));
	if (without != SCALAR_REAL)
		SHOW("aten::scalar_tensor", real(wrong == SCALAR_REAL ? 1.25 : 1.5), integer(7),
		     other(NONE));
	if (without != DETACH_6)
		SHOW("aten::detach", TENSOR_OF(6, 0, 6, 1, 2, 1, 3, 1, wrong == DETACH_6 ? 4 : 5,
					       30, 15, 15, 5, 5, 1));
	if (without != DETACH_SPARSE)
		SHOW("aten::detach", TENSOR_OF(6, wrong == DETACH_SPARSE ? 0 : 1, 2, 2, 3, 0, 0));
}

static void be(size_t version)
{
	torch.sizes_at = versions[version].sizes_at;
	torch.list_at = versions[version].list_at;
	torch.complex_at = versions[version].complex_at;
	torch.tag_list = versions[version].tag_list;
}

static void known_versions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		be(i);
		show(-1, -1);
		assert_true(torch_inputs_passed());
	}
}

static void unknown_versions(void **state)
{
	char to[GT_INPUTS_MAX];
	struct value value;

	(void)state;
	for (int op = 0; op < OPS; op++) {
		be(3);
		show(op, -1);
		assert_false(torch_inputs_passed());
		show(-1, op);
		assert_false(torch_inputs_passed());
		value = integer(1);
		assert_int_equal(torch_inputs_put(to, (const char *)&value, 1), 0);
	}
	torch.tag_list = 15;
	show(-1, -1);
	assert_false(torch_inputs_passed());
	be(3);
	torch.sizes_at = 80;
	show(-1, -1);
	assert_false(torch_inputs_passed());
	be(3);
	torch.complex_at = 24;
	show(-1, -1);
	assert_false(torch_inputs_passed());
	be(3);
	show(-1, -1);
	assert_true(torch_inputs_passed());
	torch_inputs_begin_test(NULL); /* what is no tensor is not known */
	assert_false(torch_inputs_passed());
	show_op("aten::as_strided", NULL, 0);
	assert_false(torch_inputs_passed());
}

/* ---- inputs ---- */

static void put_all(const struct value *values, size_t count, const uint32_t *want, size_t words)
{
	uint32_t to[GT_INPUTS_MAX / sizeof(uint32_t)];

	assert_int_equal(torch_inputs_put((char *)to, (const char *)values, count),
			 words * sizeof(*want));
	assert_memory_equal(to, want, words * sizeof(*want));
}

#define assert_put(input, ...)                                 \
	do {                                                   \
		const struct value input_ = (input);           \
		const uint32_t want_[] = { __VA_ARGS__ };      \
		put_all(&input_, 1, want_, ARRAY_SIZE(want_)); \
	} while (0)

#define HEAD(tag, item, count, flags)                                        \
	((uint32_t)(tag) | (uint32_t)(item) << 8 | (uint32_t)(count) << 16 | \
	 (uint32_t)(flags) << 24)

static void tensors(void **state)
{
	int64_t many[2 * 65];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = 1;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		be(i);
		show(-1, -1);
		assert_put(TENSOR_OF(6, 0, 0, 0), HEAD(GT_INPUT_TENSOR, 6, 0, 0));
		assert_put(TENSOR_OF(15, 0, 2, 5, 0, 1, 1), HEAD(GT_INPUT_TENSOR, 15, 2, 0), 5, 0);
		assert_put(TENSOR_OF(4, 0, 1, 3, 0), HEAD(GT_INPUT_TENSOR, 4, 1, GT_INPUT_STRIDES),
			   3, 0);
		assert_put(TENSOR_OF(300, 0, 1, INT64_C(1) << 32, 1),
			   HEAD(GT_INPUT_TENSOR, 255, 1, GT_INPUT_WIDE), 0, 1);
		assert_put(TENSOR_OF(6, 0, 1, 2, -1),
			   HEAD(GT_INPUT_TENSOR, 6, 1, GT_INPUT_WIDE | GT_INPUT_STRIDES), 2, 0,
			   UINT32_MAX, UINT32_MAX);
		assert_put(TENSOR_OF(6, 1, 1, 7, 9),
			   HEAD(GT_INPUT_TENSOR, 6, 1, GT_INPUT_NO_STRIDES), 7);
		assert_put(TENSOR_OF(6, 2, 1, 7, 1), GT_INPUT_UNDEFINED);
		assert_put(tensor(6, 0, 65, many), GT_INPUT_UNDEFINED);
		assert_put(half_resized(0), GT_INPUT_UNDEFINED);
		assert_put(half_resized(4), GT_INPUT_UNDEFINED);
		assert_put(half_resized(4096), GT_INPUT_UNDEFINED);
		assert_put(half_resized(address(undefined) + 1), GT_INPUT_UNDEFINED);
		assert_put(((struct value){ 0, TENSOR, 0 }), GT_INPUT_UNDEFINED);
		assert_put(((struct value){ address(undefined), TENSOR, 0 }), GT_INPUT_UNDEFINED);
	}
}

static void values(void **state)
{
	struct value many[GT_INPUT_LIST_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		be(i);
		show(-1, -1);
		assert_put(integer(-2), GT_INPUT_INT, (uint32_t)-2, UINT32_MAX);
		assert_put(boolean(false), GT_INPUT_BOOL);
		assert_put(real(1.5), GT_INPUT_DOUBLE, 0, 0x3ff80000);
		assert_put(complex_number(0, 1.5), GT_INPUT_COMPLEX, 0, 0, 0, 0x3ff80000);
		assert_put(((struct value){ 0, COMPLEX, 0 }), GT_INPUT_OTHER);
		for (uint32_t tag = 0; tag < 40; tag++) {
			if (tag != TENSOR && (tag < DOUBLE || tag > INT) && tag != torch.tag_list &&
			    tag != torch.tag_list - 4)
				assert_put(other(tag), GT_INPUT_OTHER);
		}
		for (size_t j = 0; j < ARRAY_SIZE(many); j++)
			many[j] = boolean(true);
		assert_put(list(false, 0, many), GT_INPUT_LIST);
		assert_put(list(false, 2, many), HEAD(GT_INPUT_LIST, 0, 2, 0),
			   HEAD(GT_INPUT_BOOL, 1, 0, 0), HEAD(GT_INPUT_BOOL, 1, 0, 0));
		assert_put(list(false, ARRAY_SIZE(many), many), GT_INPUT_OTHER);
		many[1] = other(NONE);
		assert_put(list(false, 2, many), GT_INPUT_OTHER);
		many[0] = many[1] = TENSOR_OF(6, 0, 0, 0); /* Tensor?[] */
		assert_put(list(false, 2, many), GT_INPUT_OTHER);
		assert_put(list(true, 1, many), HEAD(GT_INPUT_TENSORS, 0, 1, 0),
			   HEAD(GT_INPUT_TENSOR, 6, 0, 0));
		assert_put(list(true, 0, many), GT_INPUT_TENSORS);
		assert_put(list(true, ARRAY_SIZE(many), many),
			   HEAD(GT_INPUT_TENSORS, 0, 0, GT_INPUT_LONG));
		many[1] = integer(1);
		assert_put(list(true, 2, many), GT_INPUT_OTHER);
		assert_put(((struct value){ 0, torch.tag_list, 0 }), GT_INPUT_OTHER);
	}
}

/* As many as fit; then it is said that there are more. */
static void cut(void **state)
{
	static struct value many[GT_INPUTS_MAX / 4 + 1];
	uint32_t to[GT_INPUTS_MAX / sizeof(uint32_t)];

	(void)state;
	be(0);
	show(-1, -1);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = boolean(true);
	assert_int_equal(torch_inputs_put((char *)to, NULL, 7), 0);
	assert_int_equal(torch_inputs_put((char *)to, (const char *)many, 0), 0);
	assert_int_equal(torch_inputs_put((char *)to, (const char *)many, GT_INPUTS_MAX / 4 - 1),
			 GT_INPUTS_MAX - 4);
	assert_int_equal(torch_inputs_put((char *)to, (const char *)many, ARRAY_SIZE(many)),
			 GT_INPUTS_MAX);
	assert_int_equal(to[ARRAY_SIZE(to) - 1], GT_INPUT_CUT);
	/* of a list there is no half */
	for (size_t i = 0; i < GT_INPUTS_MAX / 4 - 3; i++)
		many[i] = other(NONE);
	many[GT_INPUTS_MAX / 4 - 3] = LIST_OF(false, boolean(true), boolean(true));
	assert_int_equal(torch_inputs_put((char *)to, (const char *)many, GT_INPUTS_MAX / 4 - 2),
			 GT_INPUTS_MAX - 8);
	assert_int_equal(to[ARRAY_SIZE(to) - 3], GT_INPUT_CUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_versions),
		cmocka_unit_test(unknown_versions),
		cmocka_unit_test(tensors),
		cmocka_unit_test(values),
		cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests_name("inj_inputs", tests, NULL, NULL);
}
