/* The arena, the threads' event streams in it, and names. */
#include "events.h"
#include "in_child.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct gt_chunk *chunks(enum gt_pool pool)
{
	return (struct gt_chunk *)((char *)inj_arena + inj_arena->pool[pool].table_offset);
}

/* Of those that were in use. */
static uint32_t count_state(enum gt_pool pool, enum gt_chunk_state state)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < inj_arena->pool[pool].count; i++)
		n += chunks(pool)[i].seq && atomic_load(&chunks(pool)[i].state) == state;
	return n;
}

/* What the collector does with everything that is DONE. */
static void free_done(enum gt_pool pool)
{
	for (uint32_t i = 0; i < inj_arena->pool[pool].count; i++) {
		if (atomic_load(&chunks(pool)[i].state) != GT_CHUNK_DONE)
			continue;
		atomic_store(&chunks(pool)[i].used_bytes, 0);
		atomic_store(&chunks(pool)[i].state, GT_CHUNK_FREE);
	}
}

/* A forked child starts from a process without a session. */
#define in_child(...) in_child_until(_exit, __VA_ARGS__)

/* ---- before there is an arena ---- */

static void limited_file_size(void **state)
{
	(void)state;
	/* SIGXFSZ would show as a signal. */
	in_child({
		struct rlimit limit = { 5 << 20, 5 << 20 };
		int fd = -1;

		check(!setrlimit(RLIMIT_FSIZE, &limit));
		check(!inj_arena_create(64 << 20, GT_MODE_STEPS, &fd));
		check(inj_arena->arena_bytes <= 5 << 20);
		/* three quarters of it */
		check(inj_arena->pool[GT_POOL_CUPTI].count == (5u << 20) / 4 * 3 / GT_CUPTI_CHUNK);
		check(inj_arena_attach());
	});
	in_child({
		struct rlimit limit = { 1 << 20, 1 << 20 };
		int fd = -1;

		check(!setrlimit(RLIMIT_FSIZE, &limit));
		check(inj_arena_create(64 << 20, GT_MODE_STEPS, &fd) == -EFBIG);
		check(fd == -1);
	});
}

static void layout(void **state)
{
	static const uint64_t sizes[] = { GT_ARENA_MIN_BYTES, GT_ARENA_MIN_BYTES + 12345,
					  UINT64_C(64) << 20, UINT64_C(1) << 30 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		in_child({
			struct stat st;
			uint64_t end = sizeof(*inj_arena);
			int fd = -1;

			check(!inj_arena_create(sizes[i], GT_MODE_KEEP, &fd));
			check(!fstat(fd, &st) && (uint64_t)st.st_size == inj_arena->arena_bytes);
			check(inj_arena->arena_bytes <= sizes[i]);
			check(inj_arena->arena_bytes > sizes[i] - GT_ARENA_DATA_ALIGN);
			check((fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW)) ==
			      (F_SEAL_SHRINK | F_SEAL_GROW));
			check(fcntl(fd, F_GETFD) == FD_CLOEXEC);
			check(inj_arena->mode == GT_MODE_KEEP);
			/* header, tables and data one after the other */
			for (int pool = 0; pool < GT_POOL_MAX; pool++) {
				const struct gt_pool_desc *desc = &inj_arena->pool[pool];

				check(desc->table_offset >= end && desc->count > 0);
				end = desc->table_offset + desc->count * sizeof(struct gt_chunk);
			}
			for (int pool = GT_POOL_MAX; pool--;) {
				const struct gt_pool_desc *desc = &inj_arena->pool[pool];

				check(desc->data_offset >= end &&
				      desc->data_offset % GT_ARENA_DATA_ALIGN == 0);
				end = desc->data_offset + (uint64_t)desc->count * desc->chunk_bytes;
			}
			check(end <= inj_arena->arena_bytes);
			check(end + 2 * GT_EVENT_CHUNK > inj_arena->arena_bytes);
		});
	}
}

/* ---- chunks ---- */

static void pool_of_buffers(void **state)
{
	uint32_t count = inj_arena->pool[GT_POOL_CUPTI].count;
	struct gt_chunk *chunk = NULL;
	uint64_t seq = 0;

	(void)state;
	/* Some are ready, the others are made so when they are needed. */
	assert_true(inj_arena_attach());
	for (uint32_t i = 0; i < count; i++) {
		chunk = inj_chunk_take(GT_POOL_CUPTI, 0);
		assert_non_null(chunk);
		assert_true(chunk->seq > seq);
		seq = chunk->seq;
		assert_ptr_equal(inj_chunk_of(GT_POOL_CUPTI, inj_chunk_data(GT_POOL_CUPTI, chunk)),
				 chunk);
		memset(inj_chunk_data(GT_POOL_CUPTI, chunk), 0xff, GT_CUPTI_CHUNK);
	}
	assert_null(inj_chunk_take(GT_POOL_CUPTI, 0));

	/* Pointers that are no buffer of ours, or not one that CUPTI has. */
	assert_null(inj_chunk_of(GT_POOL_CUPTI, NULL));
	assert_null(inj_chunk_of(GT_POOL_CUPTI, &seq));
	assert_null(inj_chunk_of(GT_POOL_CUPTI, (char *)inj_chunk_data(GT_POOL_CUPTI, chunk) + 8));
	assert_null(inj_chunk_of(GT_POOL_CUPTI, (char *)inj_arena + inj_arena->arena_bytes));
	inj_chunk_done(chunk, 100);
	assert_null(inj_chunk_of(GT_POOL_CUPTI, inj_chunk_data(GT_POOL_CUPTI, chunk)));
	assert_int_equal(chunk->state, GT_CHUNK_DONE);
	assert_int_equal(chunk->used_bytes, 100);

	/* One without records needs no collector. */
	chunk = &chunks(GT_POOL_CUPTI)[0];
	inj_chunk_done(chunk, 0);
	assert_ptr_equal(inj_chunk_take(GT_POOL_CUPTI, 0), chunk);
	for (uint32_t i = 0; i < count; i++)
		inj_chunk_done(&chunks(GT_POOL_CUPTI)[i], 0);
}

/* ---- events ---- */

static void events_in_order(void **state)
{
	struct gt_ev_step *ev;
	struct gt_chunk *chunk;
	const char *data;

	(void)state;
	atomic_store(&inj_arena->step, 7);
	for (uint32_t i = 0; i < 3; i++) {
		ev = inj_reserve(GT_EV_STEP, sizeof(*ev));
		assert_non_null(ev);
		assert_int_equal(ev->ev.type, GT_EV_STEP);
		assert_int_equal(ev->ev.size_bytes, sizeof(*ev));
		assert_int_equal(ev->ev.step, 7);
		assert_true(ev->ev.time_ns > UINT64_C(1500000000) * GT_NSEC_PER_SEC);
		ev->source = i;
		/* Not to be seen before it is committed. */
		assert_int_equal(inj_self->chunk->used_bytes, i * sizeof(*ev));
		inj_commit();
		assert_int_equal(inj_self->chunk->used_bytes, (i + 1) * sizeof(*ev));
	}
	chunk = inj_self->chunk;
	assert_int_equal(chunk->tid, gettid());
	assert_int_equal(chunk->state, GT_CHUNK_BUSY);
	data = inj_chunk_data(GT_POOL_EVENT, chunk);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(((const struct gt_ev_step *)data)[i].source, i);
	assert_true(inj_events_total() >= 3);
}

static void next_chunk(void **state)
{
	struct gt_chunk *first = inj_self->chunk;
	uint32_t left = GT_EVENT_CHUNK - inj_self->pos;

	(void)state;
	/* To the last byte, then a new one. */
	for (; left > 40000; left -= 32768) {
		assert_non_null(inj_reserve(GT_EV_PUSH, 32768));
		inj_commit();
	}
	assert_non_null(inj_reserve(GT_EV_PUSH, left));
	inj_commit();
	assert_ptr_equal(inj_self->chunk, first);
	assert_int_equal(first->used_bytes, GT_EVENT_CHUNK);
	assert_non_null(inj_reserve(GT_EV_PUSH, 64));
	assert_int_equal(first->state, GT_CHUNK_DONE);
	inj_commit();
	assert_ptr_not_equal(inj_self->chunk, first);
	assert_true(inj_self->chunk->seq > first->seq);
	free_done(GT_POOL_EVENT);
}

static void interrupted(void **state)
{
	uint64_t dropped = inj_arena->dropped_events;

	(void)state;
	/* A signal handler adds an event in the middle of another. */
	assert_non_null(inj_reserve(GT_EV_PUSH, 64));
	assert_null(inj_reserve(GT_EV_MARK, 64));
	assert_int_equal(inj_intern("interrupted", 11), 0);
	inj_commit();
	assert_int_equal(inj_arena->dropped_events, dropped + 2);
	assert_non_null(inj_reserve(GT_EV_PUSH, 64));
	inj_commit();
}

static void *write_one(void *arg)
{
	void *ev = inj_reserve(GT_EV_PUSH, 64);

	if (ev)
		inj_commit();
	*(bool *)arg = ev;
	return NULL;
}

static void thread_ends(void **state)
{
	uint32_t busy = count_state(GT_POOL_EVENT, GT_CHUNK_BUSY);
	bool wrote = false;
	pthread_t thread;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(pthread_create(&thread, NULL, write_one, &wrote), 0);
		pthread_join(thread, NULL);
		assert_true(wrote);
		assert_int_equal(count_state(GT_POOL_EVENT, GT_CHUNK_BUSY), busy);
		assert_int_equal(count_state(GT_POOL_EVENT, GT_CHUNK_DONE), 1);
		free_done(GT_POOL_EVENT);
	}
}

static void *write_one_and_wait(void *barrier)
{
	bool wrote;

	write_one(&wrote);
	pthread_barrier_wait(barrier);
	return NULL;
}

static void more_threads_than_chunks(void **state)
{
	uint32_t count = inj_arena->pool[GT_POOL_EVENT].count;
	uint64_t dropped = inj_arena->dropped_events;
	pthread_t *threads = calloc(count + 5, sizeof(*threads));
	pthread_barrier_t barrier;

	(void)state;
	pthread_barrier_init(&barrier, NULL, count + 6);
	for (uint32_t i = 0; i < count + 5; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_one_and_wait, &barrier),
				 0);
	pthread_barrier_wait(&barrier);
	for (uint32_t i = 0; i < count + 5; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	free(threads);
	/* One chunk is this thread's. */
	assert_int_equal(inj_arena->dropped_events, dropped + 6);
	free_done(GT_POOL_EVENT);
}

static void full_while_keeping(void **state)
{
	(void)state;
	in_child({
		atomic_store(&inj_arena->mode, GT_MODE_KEEP);
		atomic_store(&inj_live.recording, 1);
		atomic_store(&inj_live.taking, 1);
		while (inj_reserve(GT_EV_PUSH, 32768))
			inj_commit();
		check(inj_arena->keep_full == 1);
		check(!inj_recording());
		check(!inj_live.taking);
	});
	/* The child shares the arena. */
	atomic_store(&inj_arena->mode, GT_MODE_STEPS);
	atomic_store(&inj_arena->keep_full, 0);
	free_done(GT_POOL_EVENT);
}

/* ---- names ---- */

static void same_bytes_same_number(void **state)
{
	static char text[200001];
	uint64_t events = inj_events_total();
	uint32_t a = inj_intern("alpha", 5);
	uint32_t b = inj_intern("alpha", 4);

	(void)state;
	assert_true(a && b && a != b);
	assert_int_equal(inj_intern("alphabet", 5), a);
	assert_int_equal(inj_intern("alph", 4), b);
	assert_int_equal(inj_events_total(), events + 2);
	/* Any bytes, also none. */
	assert_true(inj_intern("\0\xff", 2) != inj_intern("\0\xfe", 2));
	assert_true(inj_intern("", 0));
	assert_int_equal(inj_intern("", 0), inj_intern("x", 0));

	/* A long one comes in pieces. */
	memset(text, 'x', sizeof(text) - 1);
	events = inj_events_total();
	a = inj_intern(text, sizeof(text) - 1);
	assert_true(a);
	assert_int_equal(inj_events_total(),
			 events + (sizeof(text) - 1 + GT_STRING_PIECE - 1) / GT_STRING_PIECE);
	free_done(GT_POOL_EVENT);
}

static void by_pointer(void **state)
{
	char name[64] = "kernel_one";
	uint32_t one = inj_intern_pointer(name), two;
	uint64_t events = inj_events_total();

	(void)state;
	assert_int_equal(one, inj_intern("kernel_one", 10));
	assert_int_equal(inj_intern_pointer(name), one);
	assert_int_equal(inj_events_total(), events);
	/* The module is gone and the address has another name, longer, then shorter. */
	snprintf(name, sizeof(name), "%s", "kernel_one_and_a_half");
	two = inj_intern_pointer(name);
	assert_int_not_equal(one, two);
	snprintf(name, sizeof(name), "%s", "kernel_one");
	assert_int_equal(inj_intern_pointer(name), one);
	assert_int_equal(inj_intern_pointer(NULL), 0);
}

#define INTERN_THREADS 4
#define INTERN_NAMES   500

static void *intern_many(void *arg)
{
	uint32_t *ids = arg;

	for (uint32_t i = 0; i < INTERN_NAMES; i++) {
		char text[32];
		int len = snprintf(text, sizeof(text), "raced %u", i);

		ids[i] = inj_intern(text, (size_t)len);
	}
	return NULL;
}

static void raced(void **state)
{
	static uint32_t ids[INTERN_THREADS][INTERN_NAMES];
	pthread_t threads[INTERN_THREADS];

	(void)state;
	for (int i = 0; i < INTERN_THREADS; i++)
		pthread_create(&threads[i], NULL, intern_many, ids[i]);
	for (int i = 0; i < INTERN_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < INTERN_THREADS; i++)
		for (int j = 0; j < INTERN_NAMES; j++) {
			assert_true(ids[i][j]);
			assert_int_equal(ids[i][j], ids[0][j]);
		}
	free_done(GT_POOL_EVENT);
}

/* The same few names are tried again and again while the collector is behind, and have their
 * numbers when it is back. */
static void names_without_room(void **state)
{
	(void)state;
	in_child({
		while (inj_reserve(GT_EV_PUSH, 32768))
			inj_commit();
		for (int i = 0; i < 70000; i++)
			check(!inj_intern("no room", 7));
		free_done(GT_POOL_EVENT);
		for (int i = 0; i < 100; i++) /* it looks for room now and then */
			if (inj_reserve(GT_EV_PUSH, 64))
				inj_commit();
		check(inj_intern("no room", 7));
	});
	free_done(GT_POOL_EVENT);
}

static void not_for_a_child(void **state)
{
	(void)state;
	in_child({
		uint64_t seq = inj_arena->seq;

		atomic_store(&inj_live.alive, 0); /* as MADV_WIPEONFORK does */
		check(!inj_intern("child", 5));
		inj_self = NULL;
		check(!inj_reserve(GT_EV_PUSH, 64));
		check(inj_arena->seq == seq);
	});
}

static int create(void **state)
{
	int fd = -1;

	(void)state;
	if (inj_arena_create(GT_ARENA_MIN_BYTES, GT_MODE_STEPS, &fd) || inj_events_init() ||
	    inj_names_init())
		return -1;
	close(fd);
	atomic_store(&inj_live.alive, 1);
	return 0;
}

int main(void)
{
	const struct CMUnitTest before[] = {
		cmocka_unit_test(limited_file_size),
		cmocka_unit_test(layout),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool_of_buffers),    cmocka_unit_test(events_in_order),
		cmocka_unit_test(next_chunk),         cmocka_unit_test(interrupted),
		cmocka_unit_test(thread_ends),        cmocka_unit_test(more_threads_than_chunks),
		cmocka_unit_test(full_while_keeping), cmocka_unit_test(same_bytes_same_number),
		cmocka_unit_test(by_pointer),         cmocka_unit_test(raced),
		cmocka_unit_test(names_without_room), cmocka_unit_test(not_for_a_child),
	};
	int failed = cmocka_run_group_tests(before, NULL, NULL);

	return failed ? failed : cmocka_run_group_tests(tests, create, NULL);
}
