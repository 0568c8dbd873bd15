/* Which marks are steps, and from which on CUPTI is wanted. */
#include "events.h"
#include "in_child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Each case runs in a process of its own: which source rules is decided once in a process. */
#define in_session(mode_, sources_, schedule_, ...) \
	in_child_until(_exit, start(mode_, sources_, (struct gt_schedule)schedule_); __VA_ARGS__)

#define ALL ((1U << GT_STEP_SOURCE_MAX) - 2)
#define LATE                                                                         \
	{                                                                            \
		.skip_first = 100, .wait = 1, .warmup = 1, .active = 3, .repeat = 1, \
	}

static void start(enum gt_arena_mode mode, uint32_t sources, struct gt_schedule schedule)
{
	int fd;

	inj_config.schedule = schedule;
	inj_config.sources = sources;
	check(!inj_arena_create(GT_ARENA_MIN_BYTES, mode, &fd));
	check(!inj_events_init() && !inj_names_init());
	atomic_store(&inj_live.alive, 1);
	atomic_store(&inj_live.armed, 1); /* there is no control thread to wait for */
}

static void steps(enum gt_step_source source, uint64_t key, int count)
{
	while (count--)
		inj_step(source, key);
}

static void mark(void)
{
	check(inj_reserve(GT_EV_MARK, sizeof(struct gt_ev_range)));
	inj_commit();
}

static void one_source(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, LATE, {
		const struct gt_ev_step *ev;

		check(inj_arena->step == 0);
		inj_step(GT_STEP_API, 0);
		check(inj_arena->step == 1);
		check(inj_arena->step_source == GT_STEP_API);
		steps(GT_STEP_API, 0, 41);
		check(inj_arena->step == 42);
		/* each is in this thread's stream, with the number that begins */
		ev = (const void *)inj_self->data;
		for (uint32_t i = 1; i <= 42; i++, ev++)
			check(ev->ev.type == GT_EV_STEP && ev->ev.step == i &&
			      ev->source == GT_STEP_API);
	});
}

static void authority(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, LATE, {
		steps(GT_STEP_OPTIMIZER, 1, 5);
		check(inj_arena->step == 5);
		/* a higher one begins to rule with its own count */
		inj_step(GT_STEP_NVTX, 0);
		check(inj_arena->step == 1);
		check(inj_arena->step_source == GT_STEP_NVTX);
		steps(GT_STEP_OPTIMIZER, 1, 10);
		check(inj_arena->step == 1);
		steps(GT_STEP_API, 0, 2);
		steps(GT_STEP_NVTX, 0, 7);
		check(inj_arena->step == 2);
		check(inj_arena->step_source == GT_STEP_API);
		check(inj_steps_frozen() == GT_STEP_NONE);
	});
}

static void claimed(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, LATE, {
		inj_steps_claim(GT_STEP_LIGHTNING);
		steps(GT_STEP_OPTIMIZER, 1, 3); /* before Lightning's first mark */
		check(inj_arena->step == 0);
		steps(GT_STEP_LIGHTNING, 0, 2);
		inj_steps_claim(GT_STEP_DEEPSPEED); /* a lesser one */
		inj_steps_claim(GT_STEP_LIGHTNING);
		steps(GT_STEP_DEEPSPEED, 0, 5);
		steps(GT_STEP_LIGHTNING, 0, 1);
		check(inj_arena->step == 3);
		steps(GT_STEP_API, 0, 1);
		check(inj_arena->step == 1);
		check(inj_arena->step_source == GT_STEP_API);
	});
	in_session(GT_MODE_STEPS, ALL, GT_SCHEDULE_DEFAULT, {
		steps(GT_STEP_OPTIMIZER, 1, 2);
		inj_steps_claim(GT_STEP_LIGHTNING); /* too late */
		steps(GT_STEP_LIGHTNING, 0, 5);
		steps(GT_STEP_OPTIMIZER, 1, 1);
		check(inj_arena->step == 3);
	});
	in_session(GT_MODE_STEPS, 1U << GT_STEP_OPTIMIZER, LATE, {
		check(!gtrace_inject_source("lightning")); /* is not asked for, nor claimed */
		steps(GT_STEP_OPTIMIZER, 1, 3);
		check(inj_arena->step == 3);
	});
	in_session(GT_MODE_STEPS, ALL, LATE, {
		check(gtrace_inject_source("lightning") == GT_STEP_LIGHTNING);
		check(!gtrace_inject_source("none") && !gtrace_inject_source(""));
		gtrace_inject_mark(GT_STEP_LIGHTNING);
		gtrace_inject_mark(GT_STEP_NONE);
		gtrace_inject_mark(GT_STEP_SOURCE_MAX);
		gtrace_inject_mark(-1);
		check(inj_arena->step == 1);
	});
}

static void frozen_by_warmup(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, GT_SCHEDULE_DEFAULT, {
		steps(GT_STEP_OPTIMIZER, 1, 1);
		check(inj_steps_frozen() == GT_STEP_NONE);
		steps(GT_STEP_OPTIMIZER, 1, 1); /* step 2 is the warm-up */
		check(inj_steps_frozen() == GT_STEP_OPTIMIZER);
		steps(GT_STEP_API, 0, 9);
		check(inj_arena->step == 2);
		check(inj_arena->step_source == GT_STEP_OPTIMIZER);
		steps(GT_STEP_OPTIMIZER, 1, 1);
		check(inj_arena->step == 3);
	});
}

static void only_what_was_asked_for(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, 1U << GT_STEP_NVTX, LATE, {
		steps(GT_STEP_API, 0, 3);
		steps(GT_STEP_OPTIMIZER, 1, 3);
		check(inj_arena->step == 0);
		steps(GT_STEP_NVTX, 0, 3);
		check(inj_arena->step == 3);
	});
	in_session(GT_MODE_WHOLE, 0, LATE, {
		steps(GT_STEP_API, 0, 3);
		check(inj_arena->step == 0);
		check(inj_arena->mode == GT_MODE_WHOLE);
	});
}

static void recording_ends_with_the_first_mark(void **state)
{
	(void)state;
	in_session(GT_MODE_KEEP, ALL, LATE, {
		check(inj_arena->request == 0);
		inj_step(GT_STEP_OPTIMIZER, 1);
		check(inj_arena->mode == GT_MODE_STEPS);
		check(inj_arena->request == 1);
		inj_step(GT_STEP_OPTIMIZER, 1);
		check(inj_arena->request == 1); /* nothing changes: no wake-up */
	});
}

static void several_optimizers(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, LATE, {
		for (int i = 0; i < 10; i++) {
			inj_step(GT_STEP_OPTIMIZER, 0xa);
			inj_step(GT_STEP_OPTIMIZER, 0xb);
			inj_step(GT_STEP_OPTIMIZER, 0xb);
			inj_step(GT_STEP_OPTIMIZER, 0xc);
		}
		check(inj_arena->step == 10);
	});
}

static void optimizer_is_replaced(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, LATE, {
		uint32_t step;

		steps(GT_STEP_OPTIMIZER, 0xa, 3);
		/* One for each parameter, hundreds of them, is no replacement. */
		for (uint64_t key = 0xa; key < 0xa + 500; key++)
			inj_step(GT_STEP_OPTIMIZER, key);
		check(inj_arena->step == 4);
		/* The first one is never called again. */
		steps(GT_STEP_OPTIMIZER, 0xb, 50);
		step = inj_arena->step;
		check(step > 4);
		steps(GT_STEP_OPTIMIZER, 0xb, 10);
		check(inj_arena->step == step + 10);
	});
}

static void one_optimizer_in_parts(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, LATE, {
		inj_step(GT_STEP_OPTIMIZER, 0xa);
		inj_step(GT_STEP_OPTIMIZER, 0xa);
		check(inj_arena->step == 2);
		/* The work of this step may have been done before calls were heard. */
		atomic_store(&inj_live.heard, 1);
		atomic_store(&inj_live.taking, 1);
		atomic_store(&inj_live.generation, 1);
		inj_step(GT_STEP_OPTIMIZER, 0xa);
		check(inj_arena->step == 3);
		/* While calls are heard, a step has at least one of them. */
		for (int i = 0; i < 10; i++) {
			mark();
			inj_step(GT_STEP_OPTIMIZER, 0xa);
			inj_step(GT_STEP_OPTIMIZER, 0xa);
			inj_step(GT_STEP_OPTIMIZER, 0xa);
		}
		check(inj_arena->step == 13);
		/* While a window drains they are not taken. */
		atomic_store(&inj_live.taking, 0);
		inj_step(GT_STEP_OPTIMIZER, 0xa);
		inj_step(GT_STEP_OPTIMIZER, 0xa);
		check(inj_arena->step == 15);
	});
}

static bool is_armed(uint64_t step)
{
	struct gt_sched_pos pos;

	inj_steps_at(step, &pos);
	return pos.armed;
}

static void wanted(void **state)
{
	(void)state;
	inj_config.schedule = (struct gt_schedule)GT_SCHEDULE_DEFAULT;
	for (uint64_t step = 0; step < 10; step++)
		assert_int_equal(is_armed(step), step >= 2 && step < 6);
	/* Without a warm-up: from the step before. */
	inj_config.schedule.warmup = 0;
	for (uint64_t step = 0; step < 10; step++)
		assert_int_equal(is_armed(step), step >= 1 && step < 5);
	inj_config.schedule = (struct gt_schedule){ .active = 2, .repeat = 0 };
	for (uint64_t step = 0; step < 10; step++)
		assert_true(is_armed(step));
}

#define ON_DEMAND                  \
	{                          \
		.on_demand = true, \
	}

static bool take(uint64_t cycle, uint32_t first_step, uint32_t warmup, uint32_t active)
{
	const struct gt_plan plan = { cycle, first_step, warmup, active };
	uint32_t step, now = inj_arena->step;
	bool taken = inj_steps_plan(&plan, &step);

	check(step == now);
	return taken;
}

static void plans(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, ON_DEMAND, {
		struct gt_sched_pos pos;

		steps(GT_STEP_OPTIMIZER, 1, 10);
		check(inj_arena->request == 0);
		check(!take(0, 11, 1, 2)); /* its warm-up is now */
		check(!take(0, 11, 0, 2)); /* nor can it be switched on in time */
		check(!take(0, 5, 1, 2));
		check(!take(0, 20, 1, 0));
		check(inj_steps_frozen() == GT_STEP_NONE);
		check(take(0, 12, 1, 2));
		check(inj_steps_frozen() == GT_STEP_OPTIMIZER); /* it is of these steps */
		check(!take(1, 14, 1, 2));                      /* overlaps it */
		for (uint32_t step = 0; step < 20; step++)
			check(is_armed(step) == (step >= 11 && step < 14));
		steps(GT_STEP_API, 0, 5);
		check(inj_arena->step == 10);
		steps(GT_STEP_OPTIMIZER, 1, 1);
		check(inj_arena->request == 1); /* the control thread hears of the warm-up */
		steps(GT_STEP_OPTIMIZER, 1, 3);
		check(inj_arena->request == 3); /* of the first and of the last step */
		check(take(1, 20, 0, 1));
		inj_steps_cancel(0);
		check(is_armed(19) && is_armed(13));
		inj_steps_cancel(1);
		check(!is_armed(19) && is_armed(13));
		check(take(1, 16, 1, 3));
		inj_steps_at(17, &pos);
		check(pos.phase == GT_PHASE_ACTIVE && pos.index == 1 && pos.active == 3);
	});
	/* Before the first mark it is not known which source the plan will be of. */
	in_session(GT_MODE_STEPS, ALL, ON_DEMAND, {
		check(take(0, 3, 1, 1));
		steps(GT_STEP_OPTIMIZER, 1, 1);
		check(inj_steps_frozen() == GT_STEP_NONE);
		steps(GT_STEP_API, 0, 2);
		check(inj_steps_frozen() == GT_STEP_API);
	});
}

#define CAPTURE  ((struct gt_schedule)GT_SCHEDULE_CAPTURE)
#define CAPTURED (ALL & ~(1U << GT_STEP_CALL))

/* The last event of this thread. */
static const struct gt_ev_step *last_mark(void)
{
	return (const void *)(inj_self->data + inj_self->pos - sizeof(struct gt_ev_step));
}

static void begin_session(struct gt_schedule schedule, enum gt_arena_mode mode)
{
	start(mode, CAPTURED, schedule);
	check(!inj_steps_init());
}

static void captured_ranges(void **state)
{
	(void)state;
	in_child_until(_exit, {
		begin_session(CAPTURE, GT_MODE_STEPS);
		/* Nothing is on before, and what the program marks is its own. */
		check(!is_armed(0));
		steps(GT_STEP_OPTIMIZER, 1, 5);
		check(inj_arena->step == 0 && inj_arena->request == 0);
		check(last_mark()->ev.type == GT_EV_OWN_STEP && last_mark()->number == 5);
		check(last_mark()->source == GT_STEP_OPTIMIZER && last_mark()->ev.step == 0);
		inj_step(GT_STEP_CAPTURE, 0); /* one is coming */
		check(is_armed(1) && inj_arena->request == 1);
		atomic_store(&inj_live.armed, 1);
		inj_step(GT_STEP_CAPTURE, 0);
		check(inj_arena->step == 2 && inj_arena->step_source == GT_STEP_CAPTURE);
		check(is_armed(2) && inj_arena->request == 2);
		check(last_mark()->ev.type == GT_EV_STEP && last_mark()->ev.step == 2);
		steps(GT_STEP_OPTIMIZER, 1, 1);
		check(last_mark()->number == 6 && last_mark()->ev.step == 2);
		/* Whose steps they are is settled by now. */
		steps(GT_STEP_API, 0, 3);
		check(last_mark()->source == GT_STEP_OPTIMIZER);
		inj_step(GT_STEP_CAPTURE, 0);
		check(inj_arena->step == 3 && !is_armed(3));
		check(!is_armed(4) && !is_armed(5)); /* once is enough */
	});
}

static void own_steps_have_authority_too(void **state)
{
	(void)state;
	in_child_until(_exit, {
		begin_session(CAPTURE, GT_MODE_STEPS);
		inj_steps_claim(GT_STEP_LIGHTNING);
		steps(GT_STEP_OPTIMIZER, 1, 5);
		check(!inj_self || !inj_self->pos);
		steps(GT_STEP_LIGHTNING, 0, 2);
		check(last_mark()->source == GT_STEP_LIGHTNING && last_mark()->number == 2);
		steps(GT_STEP_API, 0, 1);
		check(last_mark()->source == GT_STEP_API && last_mark()->number == 1);
		check(inj_arena->step == 0);
	});
}

static void capture_ends_the_recording(void **state)
{
	(void)state;
	in_child_until(_exit, {
		begin_session((struct gt_schedule)GT_SCHEDULE_DEFAULT, GT_MODE_KEEP);
		inj_steps_claim(GT_STEP_LIGHTNING);
		check(!inj_steps_schedule()->capture);
		inj_step(GT_STEP_CAPTURE, 0);
		check(inj_arena->mode == GT_MODE_STEPS && inj_arena->step == 1);
		/* The schedule is that of ranges now; a claim holds for the program's own steps. */
		check(inj_steps_schedule()->capture && is_armed(1));
		steps(GT_STEP_OPTIMIZER, 1, 1);
		check(last_mark()->ev.type == GT_EV_STEP);
		steps(GT_STEP_LIGHTNING, 0, 1);
		check(last_mark()->source == GT_STEP_LIGHTNING);
	});
}

static void use_range(const char *pattern)
{
	snprintf(inj_config.step_range, sizeof(inj_config.step_range), "%s", pattern);
	check(!inj_steps_init());
}

static bool is_step(const char *name)
{
	return inj_is_step_name(name, strlen(name));
}

static void step_ranges(void **state)
{
	(void)state;
	in_session(GT_MODE_STEPS, ALL, LATE, {
		check(!is_step("anything"));
		use_range("train_step");
		check(is_step("train_step") && is_step("my train_step 5"));
		check(!is_step("train") && !is_step(""));
		check(!inj_is_step_name("train_step", 9));
	});
	in_session(GT_MODE_STEPS, ALL, LATE, {
		use_range("^step [0-9]+$");
		check(is_step("step 0") && is_step("step 1234"));
		check(!is_step("a step 0") && !is_step("step x"));
		/* the bytes need not end in NUL */
		check(inj_is_step_name("step 12 tail", 7));
		check(!inj_is_step_name("step 12", 5));
	});
	in_session(GT_MODE_STEPS, ALL, LATE, {
		snprintf(inj_config.step_range, sizeof(inj_config.step_range), "(");
		check(inj_steps_init() == -EINVAL);
		check(!is_step("("));
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_source),
		cmocka_unit_test(authority),
		cmocka_unit_test(claimed),
		cmocka_unit_test(frozen_by_warmup),
		cmocka_unit_test(only_what_was_asked_for),
		cmocka_unit_test(recording_ends_with_the_first_mark),
		cmocka_unit_test(several_optimizers),
		cmocka_unit_test(optimizer_is_replaced),
		cmocka_unit_test(one_optimizer_in_parts),
		cmocka_unit_test(wanted),
		cmocka_unit_test(plans),
		cmocka_unit_test(captured_ranges),
		cmocka_unit_test(own_steps_have_authority_too),
		cmocka_unit_test(capture_ends_the_recording),
		cmocka_unit_test(step_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
