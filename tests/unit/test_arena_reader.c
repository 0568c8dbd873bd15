#include "base.h"
#include "arena_builder.h"
#include "arena_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct arena_builder ab;
static struct gt_arena *arena;
static struct gt_err err;

static int setup(void **state)
{
	(void)state;
	ab_init(&ab, GT_MODE_STEPS);
	arena = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gt_arena_close(arena);
	ab_release(&ab);
	return 0;
}

static void open_it(void)
{
	assert_int_equal(gt_arena_open(&arena, ab_fd(&ab), ab.map_bytes, &err), 0);
}

static void refused(int fd)
{
	err = (struct gt_err){ 0 };
	assert_int_equal(gt_arena_open(&arena, fd, ab.map_bytes, &err), -EPROTO);
	assert_null(arena);
	assert_int_not_equal(err.msg[0], '\0');
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void takes_the_descriptor(void **state)
{
	int fd = ab_fd(&ab);

	(void)state;
	assert_int_equal(gt_arena_open(&arena, fd, ab.map_bytes, &err), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(gt_arena_count(arena, GT_POOL_CUPTI), 16);
	assert_int_equal(gt_arena_count(arena, GT_POOL_EVENT), 32);
}

static void seals(void **state)
{
	static const int sets[] = { 0, F_SEAL_SHRINK, F_SEAL_GROW };
	size_t i;
	int fds[2];

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		int fd = memfd_create("unsealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);

		assert_int_equal(ftruncate(fd, (off_t)ab.map_bytes), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, sets[i]), 0);
		refused(fd);
	}
	assert_int_equal(pipe(fds), 0);
	close(fds[1]);
	refused(fds[0]);
	refused(open("/dev/zero", O_RDWR | O_CLOEXEC));
}

static void size(void **state)
{
	(void)state;
	assert_int_equal(gt_arena_open(&arena, ab_fd(&ab), ab.map_bytes + 1, &err), -EPROTO);
	ab.hdr->arena_bytes--;
	refused(ab_fd(&ab));
	ab.hdr->arena_bytes++;
	open_it();
}

#define REFUSE_WITH(field, value)                    \
	do {                                         \
		struct gt_arena_hdr kept;            \
		memcpy(&kept, ab.hdr, sizeof(kept)); \
		ab.hdr->field = (value);             \
		refused(ab_fd(&ab));                 \
		memcpy(ab.hdr, &kept, sizeof(kept)); \
	} while (0)

static void layout(void **state)
{
	(void)state;
	REFUSE_WITH(magic, 0);
	REFUSE_WITH(version, GT_WIRE_VERSION + 1);
	REFUSE_WITH(hdr_bytes, 64);
	REFUSE_WITH(pool[0].count, UINT32_MAX);
	REFUSE_WITH(pool[0].count, 17); /* into the events */
	REFUSE_WITH(pool[1].count, 33); /* beyond the end */
	REFUSE_WITH(pool[1].chunk_bytes, 0);
	REFUSE_WITH(pool[1].chunk_bytes, GT_CUPTI_CHUNK);
	REFUSE_WITH(pool[0].table_offset, 0); /* over the header */
	REFUSE_WITH(pool[0].table_offset, 4096 + 8);
	REFUSE_WITH(pool[0].table_offset, ab.map_bytes - 64);
	REFUSE_WITH(pool[0].table_offset, UINT64_MAX - 63);
	REFUSE_WITH(pool[0].table_offset, 4096 * 2); /* over the other table */
	REFUSE_WITH(pool[0].data_offset, 0);         /* over the header */
	REFUSE_WITH(pool[0].data_offset, 4096);      /* in the middle of a large page */
	REFUSE_WITH(pool[0].data_offset, UINT64_MAX & ~(uint64_t)(GT_ARENA_DATA_ALIGN - 1));
	REFUSE_WITH(pool[1].data_offset, GT_ARENA_DATA_ALIGN);
	open_it();
}

static void lists(void **state)
{
	struct gt_arena_chunk chunks[32];
	struct gt_chunk *table = ab_table(&ab, GT_POOL_EVENT);

	(void)state;
	open_it();
	assert_int_equal(gt_arena_list(arena, GT_POOL_EVENT, true, chunks), 0);
	ab_push(&ab, 11, 0, 1, 1, "a");
	ab_push(&ab, 12, 0, 1, 1, "b");
	ab_push(&ab, 13, 0, 1, 1, "c");
	ab_done(&ab, 12);
	ab_take(&ab, GT_POOL_EVENT, 14); /* nothing in it yet */
	atomic_store(&table[0].seq, 9);  /* taken last */
	assert_int_equal(gt_arena_list(arena, GT_POOL_EVENT, true, chunks), 3);
	assert_int_equal(chunks[0].tid, 12);
	assert_true(chunks[0].done);
	assert_int_equal(chunks[1].tid, 13);
	assert_int_equal(chunks[2].tid, 11);
	assert_int_equal(chunks[2].used_bytes, sizeof(struct gt_ev_range) + 8);
	assert_false(chunks[2].done);
	assert_int_equal(gt_arena_list(arena, GT_POOL_EVENT, false, chunks), 1);
	atomic_store(&table[1].used_bytes, UINT32_MAX);
	assert_int_equal(gt_arena_list(arena, GT_POOL_EVENT, false, chunks), 1);
	assert_int_equal(chunks[0].used_bytes, GT_EVENT_CHUNK);
	atomic_store(&table[0].state, 77);
	atomic_store(&table[1].state, GT_CHUNK_FREE);
	assert_int_equal(gt_arena_list(arena, GT_POOL_EVENT, true, chunks), 1);
}

static struct gt_arena_chunk only_chunk(void)
{
	struct gt_arena_chunk chunks[32];

	assert_int_equal(gt_arena_list(arena, GT_POOL_EVENT, true, chunks), 1);
	return chunks[0];
}

/* How many events this pass finds new; -1: one is malformed. */
static int count_new(enum gt_arena_pass pass)
{
	struct gt_arena_chunk chunk = only_chunk();
	struct gt_event_cursor cur;
	const struct gt_ev *ev;
	int rc, count = 0;

	gt_arena_events(arena, &chunk, pass, &cur);
	while ((rc = gt_event_next(&cur, &ev)) > 0)
		count++;
	if (rc < 0)
		gt_arena_spoil(arena, &chunk);
	return rc < 0 ? -1 : count;
}

static void passes(void **state)
{
	struct gt_arena_chunk chunk;

	(void)state;
	open_it();
	ab_push(&ab, 1, 0, 1, 1, "a");
	assert_int_equal(count_new(GT_PASS_EVENTS), 1);
	assert_int_equal(count_new(GT_PASS_EVENTS), 0);
	ab_push(&ab, 1, 0, 1, 2, "b");
	assert_int_equal(count_new(GT_PASS_NAMES), 2);
	assert_int_equal(count_new(GT_PASS_EVENTS), 1);
	chunk = only_chunk();
	assert_false(gt_arena_consumed(arena, &chunk, GT_PASS_EVENTS));
	ab_done(&ab, 1);
	chunk = only_chunk();
	assert_true(gt_arena_consumed(arena, &chunk, GT_PASS_EVENTS));
	gt_arena_free_chunk(arena, GT_POOL_EVENT, &chunk);
	assert_int_equal(ab_count(&ab, GT_POOL_EVENT, GT_CHUNK_FREE), 32);
	/* the same chunk, in its next life */
	ab_push(&ab, 1, 0, 1, 1, "c");
	assert_int_equal(count_new(GT_PASS_EVENTS), 1);
}

static void malformed(void **state)
{
	struct gt_arena_chunk chunk;
	struct gt_ev bad = ab_ev(GT_EV_POP, 24, 0, 0);

	(void)state;
	open_it();
	ab_push(&ab, 1, 0, 1, 1, "a");
	ab_put(&ab, 1, &bad, sizeof(bad));
	assert_int_equal(count_new(GT_PASS_EVENTS), -1);
	ab_push(&ab, 1, 0, 1, 1, "b");
	assert_int_equal(count_new(GT_PASS_EVENTS), 0);
	assert_int_equal(count_new(GT_PASS_NAMES), 0);
	ab_done(&ab, 1);
	chunk = only_chunk();
	assert_true(gt_arena_consumed(arena, &chunk, GT_PASS_NAMES));
}

static int next_of(const void *bytes, size_t len)
{
	static uint64_t copy[GT_EVENT_CHUNK / 8];
	struct gt_event_cursor cur = { .pos = (void *)copy };
	const struct gt_ev *ev;

	memcpy(copy, bytes, len);
	cur.end = cur.pos + len;
	return gt_event_next(&cur, &ev);
}

static void event_sizes(void **state)
{
	static const struct {
		uint16_t type, size;
	} types[] = {
		{ GT_EV_STRING, sizeof(struct gt_ev_string) },
		{ GT_EV_STEP, sizeof(struct gt_ev_step) },
		{ GT_EV_CALL, sizeof(struct gt_ev_call) },
		{ GT_EV_PUSH, sizeof(struct gt_ev_range) },
		{ GT_EV_POP, sizeof(struct gt_ev_end) },
		{ GT_EV_RANGE_START, sizeof(struct gt_ev_range) },
		{ GT_EV_RANGE_END, sizeof(struct gt_ev_end) },
		{ GT_EV_MARK, sizeof(struct gt_ev_range) },
		{ GT_EV_THREAD_NAME, sizeof(struct gt_ev_name) },
		{ GT_EV_POINTER, sizeof(struct gt_ev_name) },
		{ GT_EV_API_NAME, sizeof(struct gt_ev_name) },
		{ GT_EV_OP, sizeof(struct gt_ev_op) },
		{ GT_EV_OP_END, sizeof(struct gt_ev_op_end) },
		{ GT_EV_FRAME, sizeof(struct gt_ev_frame) },
		{ GT_EV_MEMORY, sizeof(struct gt_ev_memory) },
	};
	uint64_t buf[16] = { 0 };
	struct gt_ev *ev = (void *)buf;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		*ev = ab_ev(types[i].type, types[i].size, 0, 0);
		if (types[i].type == GT_EV_STRING)
			((struct gt_ev_string *)ev)->id = 1;
		assert_int_equal(next_of(buf, types[i].size), 1);
		assert_int_equal(next_of(buf, types[i].size - 8), -EBADMSG); /* cut */
		ev->size_bytes -= 8;
		assert_int_equal(next_of(buf, types[i].size), -EBADMSG);
		ev->size_bytes += 4;
		assert_int_equal(next_of(buf, types[i].size), -EBADMSG);
	}
	*ev = ab_ev(GT_EV_MEMORY, sizeof(struct gt_ev_memory) + 8, 0, 0); /* nothing is behind it */
	assert_int_equal(next_of(buf, sizeof(struct gt_ev_memory) + 8), -EBADMSG);
	*ev = ab_ev(999, 24, 0, 0); /* of a later version: skipped by its size */
	assert_int_equal(next_of(buf, 24), 0);
	*ev = ab_ev(GT_EV_END, 0, 0, 0);
	assert_int_equal(next_of(buf, 128), 0);
	*ev = ab_ev(999, 0, 0, 0); /* would not end */
	assert_int_equal(next_of(buf, 128), -EBADMSG);
	assert_int_equal(next_of(buf, 8), -EBADMSG);
	assert_int_equal(next_of(buf, 0), 0);
}

static void event_lengths(void **state)
{
	uint64_t buf[(GT_STRING_PIECE + 64) / 8] = { 0 };
	struct gt_ev_string *string = (void *)buf;
	struct gt_ev_range *range = (void *)buf;
	struct gt_ev_op *op = (void *)buf;
	const struct gt_ev_string good = {
		.ev = ab_ev(GT_EV_STRING, sizeof(*string) + 16, 0, 0),
		.id = 1,
		.total_bytes = 32,
		.offset_bytes = 16,
		.len_bytes = 16,
	};

	(void)state;
#define STRING_WITH(field, value) \
	(*string = good, string->field = (value), next_of(buf, string->ev.size_bytes))
	assert_int_equal(STRING_WITH(id, 1), 1);
	assert_int_equal(STRING_WITH(id, 0), -EBADMSG);
	assert_int_equal(STRING_WITH(len_bytes, 17), -EBADMSG);
	assert_int_equal(STRING_WITH(len_bytes, UINT32_MAX), -EBADMSG);
	assert_int_equal(STRING_WITH(offset_bytes, 17), -EBADMSG);
	assert_int_equal(STRING_WITH(offset_bytes, UINT32_MAX - 8), -EBADMSG);
	assert_int_equal(STRING_WITH(total_bytes, 31), -EBADMSG);
	assert_int_equal(STRING_WITH(total_bytes, GT_STRING_MAX + 1), -EBADMSG);
#undef STRING_WITH
	*range = (struct gt_ev_range){
		.ev = ab_ev(GT_EV_MARK, sizeof(*range) + 8, 0, 0),
		.len_bytes = 8,
	};
	assert_int_equal(next_of(buf, range->ev.size_bytes), 1);
	range->len_bytes = 9;
	assert_int_equal(next_of(buf, range->ev.size_bytes), -EBADMSG);
	range->len_bytes = GT_INLINE_MAX + 1;
	range->ev.size_bytes = sizeof(*range) + GT_INLINE_MAX + 8;
	assert_int_equal(next_of(buf, range->ev.size_bytes), -EBADMSG);
	*range = (struct gt_ev_range){
		.ev = ab_ev(GT_EV_PUSH, sizeof(*range) + 16, 0, 0),
		.len_bytes = 1,
		.inputs_bytes = 8,
	};
	assert_int_equal(next_of(buf, range->ev.size_bytes), 1);
	range->len_bytes = 9;
	assert_int_equal(next_of(buf, range->ev.size_bytes), -EBADMSG);
	range->len_bytes = 8;
	range->inputs_bytes = 9;
	assert_int_equal(next_of(buf, range->ev.size_bytes), -EBADMSG);
	range->inputs_bytes = UINT32_MAX;
	assert_int_equal(next_of(buf, range->ev.size_bytes), -EBADMSG);
	*op = (struct gt_ev_op){ .ev = ab_ev(GT_EV_OP, sizeof(*op) + 8, 0, 0), .inputs_bytes = 8 };
	assert_int_equal(next_of(buf, op->ev.size_bytes), 1);
	op->inputs_bytes = 9;
	assert_int_equal(next_of(buf, op->ev.size_bytes), -EBADMSG);
	op->inputs_bytes = GT_INPUTS_MAX + 1;
	op->ev.size_bytes = sizeof(*op) + GT_INPUTS_MAX + 8;
	assert_int_equal(next_of(buf, op->ev.size_bytes), -EBADMSG);
}

/* CUPTI wants the buffers that it gets to be zeroed. */
static void freed_records_are_zero(void **state)
{
	struct gt_arena_chunk chunks[4];
	const unsigned char *bytes;
	size_t i;

	(void)state;
	open_it();
	ab_kernel(&ab, 1, AB_MS(1));
	ab_kernel(&ab, 2, AB_MS(2));
	assert_int_equal(gt_arena_list(arena, GT_POOL_CUPTI, false, chunks), 0);
	ab_flush(&ab);
	assert_int_equal(gt_arena_list(arena, GT_POOL_CUPTI, false, chunks), 1);
	bytes = gt_arena_bytes(arena, GT_POOL_CUPTI, &chunks[0]);
	assert_int_equal(bytes[0], AB_KIND_KERNEL);
	gt_arena_free_chunk(arena, GT_POOL_CUPTI, &chunks[0]);
	for (i = 0; i < 1024; i++)
		assert_int_equal(bytes[i], 0);
	assert_int_equal(ab_state(&ab, GT_POOL_CUPTI, 0), GT_CHUNK_FREE);
	assert_int_equal(atomic_load(&ab_table(&ab, GT_POOL_CUPTI)[0].used_bytes), 0);
}

static void counters(void **state)
{
	struct gt_arena_state now;

	(void)state;
	open_it();
	atomic_store(&ab.hdr->step, 7);
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	atomic_store(&ab.hdr->keep_full, 1);
	atomic_store(&ab.hdr->step_source, GT_STEP_NVTX);
	atomic_store(&ab.hdr->dropped_cupti, 1);
	atomic_store(&ab.hdr->dropped_arena, 2);
	atomic_store(&ab.hdr->dropped_events, 3);
	atomic_store(&ab.hdr->dropped_names, 4);
	gt_arena_state(arena, &now);
	assert_int_equal(now.step, 7);
	assert_int_equal(now.mode, GT_MODE_KEEP);
	assert_true(now.keep_full);
	assert_int_equal(now.step_source, GT_STEP_NVTX);
	assert_int_equal(now.dropped_cupti, 1);
	assert_int_equal(now.dropped_arena, 2);
	assert_int_equal(now.dropped_events, 3);
	assert_int_equal(now.dropped_names, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(takes_the_descriptor),
		TEST(seals),
		TEST(size),
		TEST(layout),
		TEST(lists),
		TEST(passes),
		TEST(malformed),
		TEST(event_sizes),
		TEST(event_lengths),
		TEST(freed_records_are_zero),
		TEST(counters),
	};

	return cmocka_run_group_tests_name("arena_reader", tests, NULL, NULL);
}
