/* GPU work by buffers, of a CUPTI that this file plays. */
#include "cupti_api.h"
#include "events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- CUPTI ---- */

static struct {
	CUpti_BuffersCallbackRequestFunc request;
	CUpti_BuffersCallbackCompleteFunc complete;
	uint64_t kinds; /* bit mask */
	uint8_t cleared;
	size_t dropped;
} cupti;

static CUptiResult CUPTIAPI register_callbacks(CUpti_BuffersCallbackRequestFunc request,
					       CUpti_BuffersCallbackCompleteFunc complete)
{
	cupti.request = request;
	cupti.complete = complete;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI enable_kind(CUpti_ActivityKind kind)
{
	cupti.kinds |= UINT64_C(1) << kind;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI disable_kind(CUpti_ActivityKind kind)
{
	cupti.kinds &= ~(UINT64_C(1) << kind);
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI flush_all(uint32_t flags)
{
	(void)flags;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI set_attribute(CUpti_ActivityAttribute attribute, size_t *size,
					  void *value)
{
	if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER && *size == 1)
		cupti.cleared = *(uint8_t *)value;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI get_dropped(CUcontext context, uint32_t stream, size_t *ret)
{
	(void)context;
	(void)stream;
	*ret = cupti.dropped;
	return CUPTI_SUCCESS;
}

/* ---- buffers ---- */

static void *get_buffer(size_t *ret_size)
{
	uint8_t *buffer = NULL;
	size_t records = 1;

	cupti.request(&buffer, ret_size, &records);
	assert_non_null(buffer);
	assert_int_equal(records, 0);
	for (size_t i = 0; i < *ret_size; i++)
		assert_int_equal(buffer[i], 0);
	return buffer;
}

static void put_kernel(void *at, const char *name)
{
	CUpti_ActivityKernel10 kernel = {
		.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .start = 1, .end = 2, .name = name
	};

	memcpy(at, &kernel, sizeof(kernel));
}

static void names_in_place(void **state)
{
	static const char *const names[] = { "first", "second", "first" };
	CUpti_ActivityMemcpy6 copy = { .kind = CUPTI_ACTIVITY_KIND_MEMCPY, .bytes = 5 };
	CUpti_ActivityKernel10 kernel;
	size_t size, pos = 0;
	char *buffer = get_buffer(&size);
	struct gt_chunk *chunk = inj_chunk_of(GT_POOL_CUPTI, buffer);

	(void)state;
	assert_int_equal(size, GT_CUPTI_CHUNK);
	assert_non_null(chunk);
	memcpy(buffer, &copy, sizeof(copy));
	pos += sizeof(copy);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++, pos += sizeof(kernel))
		put_kernel(buffer + pos, names[i]);
	cupti.complete(NULL, 0, (uint8_t *)buffer, size, pos);
	assert_int_equal(chunk->state, GT_CHUNK_DONE);
	assert_int_equal(chunk->used_bytes, pos);
	for (size_t i = ARRAY_SIZE(names); i--;) {
		pos -= sizeof(kernel);
		memcpy(&kernel, buffer + pos, sizeof(kernel));
		assert_int_equal((uintptr_t)kernel.name, inj_intern(names[i], strlen(names[i])));
	}
	assert_memory_equal(buffer, &copy, sizeof(copy));
	memset(buffer, 0, GT_CUPTI_CHUNK);
	inj_chunk_done(chunk, 0);
}

/* The events that this thread wrote since then of this type; *last is the last of them. */
static unsigned int events_since(uint32_t pos, enum gt_event_type type, struct gt_ev_name *last)
{
	unsigned int count = 0;
	struct gt_ev ev;

	for (; pos < inj_self->pos; pos += ev.size_bytes) {
		memcpy(&ev, inj_self->data + pos, sizeof(ev));
		if (ev.type != type)
			continue;
		memcpy(last, inj_self->data + pos, sizeof(*last));
		count++;
	}
	return count;
}

/* The last bytes before memory that is not there. */
static const char *text_without_end(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	memset(pages, 'x', page);
	assert_int_equal(munmap(pages + page, page), 0);
	return pages + page - 300;
}

/* Of kernels that may be in flight: the record stays as it is. */
static void names_of_held_records(void **state)
{
	static const char name[] = "held";
	/* Not written so far, a number, and what must not be followed. */
	const uintptr_t bad[] = { 0, 7, GT_NAME_PTR_MIN, UINT64_C(0x7000000000000000),
				  (uintptr_t)text_without_end() };
	const CUpti_ActivityMemcpy6 copy = { .kind = CUPTI_ACTIVITY_KIND_MEMCPY };
	uint32_t kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL | GT_KIND_HELD, begin;
	size_t size, pos = sizeof(copy);
	char *buffer = get_buffer(&size), *before = malloc(size);
	struct gt_chunk *chunk = inj_chunk_of(GT_POOL_CUPTI, buffer);
	struct gt_ev_name pointer;

	(void)state;
	memcpy(buffer, &copy, sizeof(copy));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put_kernel(buffer + pos, (const char *)bad[i]);
		memcpy(buffer + pos, &kind, sizeof(kind));
		pos += sizeof(CUpti_ActivityKernel10);
	}
	put_kernel(buffer + pos, name);
	memcpy(buffer + pos, &kind, sizeof(kind));
	memcpy(before, buffer, size);

	inj_intern("any", 3); /* there is a chunk for events */
	begin = inj_self->pos;
	inj_activity_name_held();
	assert_memory_equal(buffer, before, size);
	assert_int_equal(chunk->state, GT_CHUNK_BUSY);
	assert_int_equal(events_since(begin, GT_EV_POINTER, &pointer), 1);
	assert_int_equal(pointer.ref, (uintptr_t)name);
	assert_int_equal(pointer.name_id, inj_intern(name, strlen(name)));

	begin = inj_self->pos;
	inj_activity_name_held();
	assert_int_equal(inj_self->pos, begin);
	memset(buffer, 0, GT_CUPTI_CHUNK);
	inj_chunk_done(chunk, 0);
	free(before);
}

static void unknown_records_end_the_walk(void **state)
{
	const uint32_t alien = 200;
	size_t size;
	char *buffer = get_buffer(&size);
	struct gt_chunk *chunk = inj_chunk_of(GT_POOL_CUPTI, buffer);

	(void)state;
	memcpy(buffer, &alien, sizeof(alien));
	put_kernel(buffer + 64, (const char *)0x10); /* a pointer that must not be followed */
	cupti.complete(NULL, 0, (uint8_t *)buffer, size, size);
	assert_int_equal(chunk->state, GT_CHUNK_DONE);
	memset(buffer, 0, GT_CUPTI_CHUNK);
	inj_chunk_done(chunk, 0);

	/* a record that would reach beyond what is valid */
	buffer = get_buffer(&size);
	chunk = inj_chunk_of(GT_POOL_CUPTI, buffer);
	put_kernel(buffer, (const char *)0x10);
	cupti.complete(NULL, 0, (uint8_t *)buffer, size, sizeof(CUpti_ActivityKernel10) - 8);
	memset(buffer, 0, GT_CUPTI_CHUNK);
	inj_chunk_done(chunk, 0);
}

static void nothing_in_it(void **state)
{
	size_t size;
	char *buffer = get_buffer(&size);
	struct gt_chunk *chunk = inj_chunk_of(GT_POOL_CUPTI, buffer);

	(void)state;
	buffer[100] = 1; /* a record was begun */
	cupti.complete(NULL, 0, (uint8_t *)buffer, size, 0);
	assert_int_equal(chunk->state, GT_CHUNK_FREE);
	assert_int_equal(buffer[100], 0);
}

static void no_chunk_is_free(void **state)
{
	struct gt_chunk *taken[16], *chunk;
	char *spare[3];
	size_t count = 0, size;

	(void)state;
	while ((chunk = inj_chunk_take(GT_POOL_CUPTI, 0)))
		taken[count++] = chunk;
	for (size_t i = 0; i < ARRAY_SIZE(spare); i++) {
		spare[i] = get_buffer(&size);
		assert_true(size >= sizeof(CUpti_ActivityKernel10) && size < GT_CUPTI_CHUNK);
		for (size_t j = 0; j < i; j++)
			assert_ptr_not_equal(spare[j], spare[i]);
	}
	put_kernel(spare[1], "lost");
	put_kernel(spare[1] + sizeof(CUpti_ActivityKernel10), "lost");
	cupti.complete(NULL, 0, (uint8_t *)spare[1], size, 2 * sizeof(CUpti_ActivityKernel10));
	assert_int_equal(inj_arena->dropped_arena, 2);
	/* clear again, and first in line */
	assert_ptr_equal(get_buffer(&size), spare[1]);
	for (size_t i = 0; i < ARRAY_SIZE(spare); i++)
		cupti.complete(NULL, 0, (uint8_t *)spare[i], size, 0);
	while (count)
		inj_chunk_done(taken[--count], 0);
}

static void buffers_of_others(void **state)
{
	char theirs[512] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL }, before[512];

	(void)state;
	memcpy(before, theirs, sizeof(theirs));
	cupti.complete(NULL, 0, (uint8_t *)theirs, sizeof(theirs), sizeof(theirs));
	cupti.complete(NULL, 0, NULL, 0, 0);
	cupti.complete(NULL, 0, (uint8_t *)(uintptr_t)4096, 10, 10);
	assert_memory_equal(theirs, before, sizeof(theirs));
}

/* CUPTI goes on with the buffer that a thread has when ours are registered. */
static void records_in_buffers_of_others(void **state)
{
	enum { COUNT = 2 * GT_CUPTI_CHUNK / sizeof(CUpti_ActivityKernel10) };
	const size_t valid = COUNT * sizeof(CUpti_ActivityKernel10);
	char *theirs = malloc(valid), *before = malloc(valid);
	struct gt_chunk *table = (struct gt_chunk *)((char *)inj_arena +
						     inj_arena->pool[GT_POOL_CUPTI].table_offset);
	uint32_t bytes = 0;

	(void)state;
	for (size_t i = 0; i < COUNT; i++)
		put_kernel(theirs + i * sizeof(CUpti_ActivityKernel10), "theirs");
	memcpy(before, theirs, valid);
	/* It is no business of ours while nothing is wanted. */
	cupti.complete(NULL, 0, (uint8_t *)theirs, valid, valid);
	for (uint32_t i = 0; i < inj_arena->pool[GT_POOL_CUPTI].count; i++)
		assert_int_not_equal(table[i].state, GT_CHUNK_DONE);
	atomic_store(&inj_live.on, 1);
	cupti.complete(NULL, 0, (uint8_t *)theirs, valid, valid);
	atomic_store(&inj_live.on, 0);
	assert_memory_equal(theirs, before, valid);
	for (uint32_t i = 0; i < inj_arena->pool[GT_POOL_CUPTI].count; i++) {
		CUpti_ActivityKernel10 kernel;
		char *data = inj_chunk_data(GT_POOL_CUPTI, &table[i]);

		if (table[i].state != GT_CHUNK_DONE)
			continue;
		memcpy(&kernel, data, sizeof(kernel));
		assert_int_equal((uintptr_t)kernel.name, inj_intern("theirs", 6));
		assert_int_equal(table[i].used_bytes % sizeof(kernel), 0);
		bytes += table[i].used_bytes;
		memset(data, 0, GT_CUPTI_CHUNK);
		inj_chunk_done(&table[i], 0);
	}
	assert_int_equal(bytes, valid);
	free(theirs);
	free(before);
}

/* CUPTI may go on with its buffers; there is no arena then, and no memory is taken. */
static void after_the_end(void **state)
{
	struct gt_arena_hdr *arena = inj_arena;
	char *first, *buffer;
	size_t size;

	(void)state;
	atomic_store(&inj_live.alive, 0);
	inj_arena = NULL;
	first = get_buffer(&size);
	cupti.complete(NULL, 0, (uint8_t *)first, size, 0);
	for (int i = 0; i < 2000; i++) {
		buffer = get_buffer(&size);
		assert_ptr_equal(buffer, first);
		put_kernel(buffer, "lost");
		cupti.complete(NULL, 0, (uint8_t *)buffer, size, sizeof(CUpti_ActivityKernel10));
	}
	inj_arena = arena;
	atomic_store(&inj_live.alive, 1);
}

static void kinds(void **state)
{
	(void)state;
	assert_int_equal(inj_activity_take(), 0);
	assert_int_equal(inj_activity_on(), 0);
	assert_int_equal(cupti.cleared, 1);
	assert_int_equal(cupti.kinds, UINT64_C(1) << CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL |
					      UINT64_C(1) << CUPTI_ACTIVITY_KIND_MEMCPY |
					      UINT64_C(1) << CUPTI_ACTIVITY_KIND_MEMCPY2 |
					      UINT64_C(1) << CUPTI_ACTIVITY_KIND_MEMSET);
	cupti.dropped = 3;
	inj_activity_flush(false);
	cupti.dropped = 0;
	inj_activity_off();
	assert_int_equal(inj_arena->dropped_cupti, 3);
	assert_int_equal(cupti.kinds, 0);
	/* Another tool's buffers are not clear. */
	assert_int_equal(cupti.cleared, 0);
}

static int create(void **state)
{
	int fd = -1;

	(void)state;
	inj_cupti.cuptiActivityRegisterCallbacks = register_callbacks;
	inj_cupti.cuptiActivityEnable = enable_kind;
	inj_cupti.cuptiActivityDisable = disable_kind;
	inj_cupti.cuptiActivityFlushAll = flush_all;
	inj_cupti.cuptiActivitySetAttribute = set_attribute;
	inj_cupti.cuptiActivityGetNumDroppedRecords = get_dropped;
	inj_cupti.record_bytes[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] =
		sizeof(CUpti_ActivityKernel10);
	inj_cupti.record_bytes[CUPTI_ACTIVITY_KIND_MEMCPY] = sizeof(CUpti_ActivityMemcpy6);
	if (inj_arena_create(GT_ARENA_MIN_BYTES, GT_MODE_STEPS, &fd) || inj_events_init() ||
	    inj_names_init() || !inj_arena_attach())
		return -1;
	close(fd);
	atomic_store(&inj_live.alive, 1);
	return inj_activity_take() || inj_activity_on();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_held_records),
		cmocka_unit_test(names_in_place),
		cmocka_unit_test(unknown_records_end_the_walk),
		cmocka_unit_test(nothing_in_it),
		cmocka_unit_test(no_chunk_is_free),
		cmocka_unit_test(buffers_of_others),
		cmocka_unit_test(records_in_buffers_of_others),
		cmocka_unit_test(after_the_end),
		cmocka_unit_test(kinds),
	};

	return cmocka_run_group_tests(tests, create, NULL);
}
