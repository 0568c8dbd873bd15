/* What torch.distributed tells of a collective, by a fake libtorch_cpu.so. */
#include "fake_torch_comms.h"
#include "inject.h"
#include "torch_comms.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char path[4096];
static void *library;
static struct fake_comms_state *fake;
static _Alignas(8) char event[8192];
static int committed;
static bool full;

void *inj_reserve(enum gt_event_type type, uint32_t size_bytes)
{
	assert_int_equal(type, GT_EV_COMMS);
	assert_true(size_bytes <= sizeof(event) && size_bytes % 8 == 0);
	memset(event, 0xff, sizeof(event));
	*(struct gt_ev *)event =
		(struct gt_ev){ .type = (uint16_t)type, .size_bytes = (uint16_t)size_bytes };
	return full ? NULL : event;
}

void inj_commit(void)
{
	committed++;
}

static int reset(void **state)
{
	(void)state;
	*fake = (struct fake_comms_state){ 0 };
	committed = 0;
	full = false;
	return 0;
}

static struct fake_string text(const char *bytes, size_t len)
{
	return (struct fake_string){ .bytes = bytes, .len = len };
}

static struct fake_numbers numbers(int64_t *first, size_t count)
{
	return (struct fake_numbers){ first, first + count, first + count };
}

/* One that is found later; its table is that of those that torch makes. */
static struct fake_comms make(const void *table)
{
	return (struct fake_comms){ .table = table,
				    .description = text("default_pg", 10),
				    .group = text("0", 1),
				    .rank = 1,
				    .size = 2,
				    .collective = text("allreduce", 9),
				    .in_count = INT64_C(1) << 40,
				    .out_count = 7,
				    .type = 15,
				    .first = 3,
				    .stride = 1 };
}

static const void *find(void)
{
	torch_comms_find(library);
	return fake->table;
}

static void one(void **state)
{
	int64_t splits[] = { 10, 20, 30 }, ranks[] = { 3, 4 };
	const struct gt_ev_comms *ev = (const void *)event;
	struct fake_comms comms = make(find());
	const int64_t *lists = (const void *)ev->bytes;

	(void)state;
	assert_int_equal(fake->destroyed, 1);
	comms.in_splits = numbers(splits, 3);
	comms.ranks = numbers(ranks, 2);
	fake->current = &comms;
	torch_comms_put(5);
	assert_int_equal(committed, 1);
	assert_int_equal(ev->depth, 5);
	assert_int_equal(ev->rank, 1);
	assert_int_equal(ev->size, 2);
	assert_int_equal(ev->first, 3);
	assert_int_equal(ev->stride, 1);
	assert_int_equal(ev->type, 15);
	assert_int_equal(ev->in_count, INT64_C(1) << 40);
	assert_int_equal(ev->out_count, 7);
	assert_int_equal(ev->in_splits, 3);
	assert_int_equal(ev->out_splits, 0);
	assert_int_equal(ev->ranks, 2);
	assert_memory_equal(lists, splits, sizeof(splits));
	assert_memory_equal(lists + 3, ranks, sizeof(ranks));
	assert_memory_equal(lists + 5, "allreduce0default_pg\0\0\0\0", 24);
	assert_int_equal(ev->ev.size_bytes, sizeof(*ev) + 5 * 8 + 24);
	assert_int_equal(ev->ev.size_bytes, gt_comms_bytes(ev));
	assert_int_equal(ev->reserved2, 0);
}

static void long_ones(void **state)
{
	static int64_t ranks[1000];
	static char name[1000];
	const struct gt_ev_comms *ev = (const void *)event;
	struct fake_comms comms = make(find());

	(void)state;
	memset(name, 'n', sizeof(name));
	for (size_t i = 0; i < ARRAY_SIZE(ranks); i++)
		ranks[i] = (int64_t)i;
	comms.collective = comms.group = comms.description = text(name, sizeof(name));
	comms.ranks = comms.in_splits = comms.out_splits = numbers(ranks, ARRAY_SIZE(ranks));
	fake->current = &comms;
	torch_comms_put(1);
	assert_int_equal(ev->ranks, GT_COMMS_LIST_MAX + 1);
	assert_int_equal(((const int64_t *)ev->bytes)[28], 28);
	assert_int_equal(((const int64_t *)ev->bytes)[29], 999);
	assert_int_equal(ev->group_bytes, 256);
	assert_int_equal(ev->ev.size_bytes, sizeof(*ev) + 3 * 30 * 8 + 3 * 256);
	assert_int_equal(ev->ev.size_bytes, gt_comms_bytes(ev));
}

/* Nothing to tell, and nothing to read. */
static void none(void **state)
{
	struct fake_comms comms = make(find());

	(void)state;
	torch_comms_put(1);
	comms.table = &comms; /* of another class */
	fake->current = &comms;
	torch_comms_put(1);
	assert_int_equal(committed, 0);
	comms = make(find());
	full = true;
	torch_comms_put(1);
	assert_int_equal(committed, 0);
}

/* Fields elsewhere: not read. What was made is left as it is, since it is not known. */
static void other_layout(void **state)
{
	struct fake_comms comms = make(find());

	(void)state;
	*fake = (struct fake_comms_state){ .shift = 8 };
	torch_comms_find(library);
	assert_int_equal(fake->made, 1);
	assert_int_equal(fake->destroyed, 0);
	fake->current = &comms;
	torch_comms_put(1);
	assert_int_equal(committed, 0);
	torch_comms_find(dlopen(NULL, RTLD_LAZY)); /* without the constructor */
	torch_comms_put(1);
	assert_int_equal(committed, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { TEST(one), TEST(long_ones), TEST(none),
					    TEST(other_layout) };

	(void)argc;
	snprintf(path, sizeof(path), "%.*s/fake-torch/libtorch_cpu.so",
		 (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	library = dlopen(path, RTLD_NOW);
	fake = library ? dlsym(library, "fake_comms") : NULL;
	if (!fake)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
