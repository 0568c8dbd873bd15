/* A drain that is not run for a while between two of its looks at the arena. */
#include "base.h"
#include "arena_reader.h"
#include "recorder_rig.h"

static void (*meanwhile)(void); /* the program, in between */

size_t __real_gt_arena_list(const struct gt_arena *arena, enum gt_pool pool, bool busy,
			    struct gt_arena_chunk *ret);
size_t __wrap_gt_arena_list(const struct gt_arena *arena, enum gt_pool pool, bool busy,
			    struct gt_arena_chunk *ret);

size_t __wrap_gt_arena_list(const struct gt_arena *arena, enum gt_pool pool, bool busy,
			    struct gt_arena_chunk *ret)
{
	void (*run)(void) = meanwhile;

	meanwhile = NULL;
	if (run)
		run();
	return __real_gt_arena_list(arena, pool, busy, ret);
}

/* The first steps, and of the window what was done up to the middle of its first step. */
static void first_steps(void)
{
	step(1);
	atomic_store(&ab.hdr->mode, GT_MODE_STEPS);
	steps_to(2);
	launch_and_kernel(2, 10, 21);
	launch_and_kernel(2, 11, 22);
	ab_flush(&ab);
}

/* A recording reached its bound, and was read, long before the first step. */
static void first_step_after_a_look_at_the_mode(void **state)
{
	const struct gt_trace *trace;

	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_KEEP);
	start();
	launch_and_kernel(0, 1, 2);
	ab_flush(&ab);
	atomic_store(&ab.hdr->keep_full, 1);
	drain(3);
	drain(5);
	drain(9);
	drain(120);
	assert_int_equal(report.closed_count, 1);
	meanwhile = first_steps;
	drain(125);
	launch_and_kernel(2, 12, 23);
	ab_flush(&ab);
	drain(126);
	steps_to(4);
	close_cycle(150);
	drain(300);
	assert_int_equal(fake_count, 2);
	trace = &fake_traces[1];
	assert_true(trace->closed);
	/* Either it has all of its work, or it says that it has not. */
	assert_true(trace->gpu_count == 3 || !trace->health.complete);
	assert_int_equal(trace->gpu_count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_step_after_a_look_at_the_mode),
	};

	return cmocka_run_group_tests_name("recorder_stall", tests, NULL, NULL);
}
