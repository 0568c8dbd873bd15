/* A moment without launches. */
#include "quiet.h"
#include "session.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define GENERATION 7
#define THREADS    3

static _Atomic bool over;
static _Atomic uint64_t launches[THREADS];
static pthread_barrier_t barrier;

static void *launch_on(void *arg)
{
	_Atomic uint64_t *count = arg;
	struct inj_thread *self = inj_thread_self();

	assert_non_null(self);
	pthread_barrier_wait(&barrier);
	while (!atomic_load(&over)) {
		inj_launch_begins(self, GENERATION);
		atomic_fetch_add(count, 1);
		inj_launch_ends(self);
		sched_yield();
	}
	return NULL;
}

static uint64_t all_launches(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < THREADS; i++)
		sum += atomic_load(&launches[i]);
	return sum;
}

static void nobody_launches_meanwhile(void **state)
{
	pthread_t threads[THREADS];
	uint64_t before, after;
	int held = 0;

	(void)state;
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_on, &launches[i]), 0);
	pthread_barrier_wait(&barrier);
	while (held < 100) {
		before = all_launches();
		while (all_launches() < before + THREADS)
			sched_yield(); /* they are under way */
		assert_true(inj_quiet_begin());
		before = after = all_launches();
		for (int k = 0; k < 1000 && after == before; k++)
			after = all_launches();
		/* Whoever has waited for too long says so before it launches. */
		if (atomic_load(&inj_quiet_wanted)) {
			assert_int_equal(after, before);
			held++;
		}
		inj_quiet_end();
	}
	atomic_store(&over, true);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static void one_does_not_come_out(void **state)
{
	struct inj_thread *self = inj_thread_self();

	(void)state;
	inj_launch_begins(self, GENERATION);
	assert_true(inj_threads_launching());
	assert_false(inj_quiet_begin());
	assert_false(atomic_load(&inj_quiet_wanted));
	inj_launch_ends(self);
	assert_true(inj_quiet_begin());
	inj_quiet_end();
	/* it was one of another subscription, whose end is not heard */
	inj_launch_begins(self, GENERATION - 1);
	assert_true(inj_quiet_begin());
	inj_quiet_end();
	inj_launch_ends(self);
}

static void a_hang_holds_nobody_for_long(void **state)
{
	struct inj_thread *self = inj_thread_self();

	(void)state;
	assert_true(inj_quiet_begin());
	inj_launch_begins(self, GENERATION); /* returns */
	assert_false(atomic_load(&inj_quiet_wanted));
	assert_true(inj_threads_launching());
	inj_launch_ends(self);
}

static void without_callbacks(void **state)
{
	(void)state;
	atomic_store(&inj_live.heard, 0);
	assert_true(inj_quiet_begin());
	assert_false(atomic_load(&inj_quiet_wanted));
	atomic_store(&inj_live.heard, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_launches_meanwhile),
		cmocka_unit_test(one_does_not_come_out),
		cmocka_unit_test(a_hang_holds_nobody_for_long),
		cmocka_unit_test(without_callbacks),
	};
	int fd;

	assert_int_equal(inj_arena_create(GT_ARENA_MIN_BYTES, GT_MODE_STEPS, &fd), 0);
	assert_int_equal(inj_events_init(), 0);
	atomic_store(&inj_live.alive, 1);
	atomic_store(&inj_live.heard, 1);
	atomic_store(&inj_live.generation, GENERATION);
	inj_quiet_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
