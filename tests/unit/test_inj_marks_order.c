/* Marks of several threads at one time. */
#include "events.h"
#include "in_child.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

enum { THREADS = 4, ROUNDS = 50000 };

static _Atomic uint32_t round_number; /* which the threads may begin */
static _Atomic uint32_t done;         /* threads that have made their mark in it */

static void *marks(void *arg)
{
	(void)arg;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		while (atomic_load(&round_number) != i)
			sched_yield();
		inj_step(GT_STEP_API, 0);
		atomic_fetch_add(&done, 1);
	}
	return NULL;
}

/* Whatever thread was last: the step is what was counted. It was not once in some 50000 rounds. */
static void of_several_threads(void **state)
{
	(void)state;
	in_child_until(_exit, {
		pthread_t threads[THREADS];
		int fd;

		inj_config.schedule = (struct gt_schedule){ .skip_first = 100000000, .active = 1 };
		inj_config.sources = 1U << GT_STEP_API;
		check(!inj_arena_create(GT_ARENA_MIN_BYTES, GT_MODE_STEPS, &fd));
		check(!inj_events_init() && !inj_names_init());
		atomic_store(&inj_live.alive, 1);
		for (int i = 0; i < THREADS; i++)
			check(!pthread_create(&threads[i], NULL, marks, NULL));
		for (uint32_t i = 1; i <= ROUNDS; i++) {
			atomic_store(&done, 0);
			atomic_store(&round_number, i);
			while (atomic_load(&done) < THREADS)
				sched_yield();
			check(inj_arena->step == i * THREADS);
		}
		for (int i = 0; i < THREADS; i++)
			check(!pthread_join(threads[i], NULL));
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_several_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
