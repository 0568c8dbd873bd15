/*
 * schedule.h - the profiling schedule: one pure function from a step number to a phase. Shared by
 * the injection, which switches, and by the collector, which labels.
 *
 * The semantics are those of torch.profiler.schedule: skip_first steps once, then cycles of wait,
 * warmup and active steps, repeat times (0: without end). skip_first_wait leaves the wait steps
 * out of the first cycle.
 */
#ifndef GT_SCHEDULE_H
#define GT_SCHEDULE_H

#include "base.h"

#define GT_SCHEDULE_MAX UINT64_C(1000000000) /* largest value of each field */

struct gt_schedule {
	uint64_t skip_first;
	uint64_t wait;
	uint64_t warmup;
	uint64_t active; /* at least 1 */
	uint64_t repeat; /* 0: until the program ends */
	bool skip_first_wait;
	bool capture;   /* of captured ranges, see GT_SCHEDULE_CAPTURE */
	bool on_demand; /* no cycles at all, only plans */
};

enum gt_phase {
	GT_PHASE_IDLE = 0,
	GT_PHASE_WARMUP = 1,
	GT_PHASE_ACTIVE = 2,
	GT_PHASE_OVER = 3, /* every cycle is done; idle for good, unless there comes a plan */
};

struct gt_sched_pos {
	enum gt_phase phase;
	uint64_t cycle;           /* from 0; the cycle a WARMUP or ACTIVE step belongs to */
	uint64_t index;           /* from 0: which step of its phase */
	bool last;                /* the last ACTIVE step of its cycle */
	uint64_t steps_to_active; /* IDLE, WARMUP: how many steps until the next ACTIVE one */
	uint64_t warmup;          /* WARMUP, ACTIVE: steps of that kind in this cycle */
	uint64_t active;          /* likewise */
	/* What records is to be on: WARMUP, ACTIVE, and the step before an ACTIVE one that has no
	 * warm-up. */
	bool armed;
};

#define GT_SCHEDULE_DEFAULT                                                       \
	{                                                                         \
		.skip_first = 1, .wait = 1, .warmup = 1, .active = 3, .repeat = 1 \
	}

/*
 * Captured ranges as a schedule, with three marks each: it is coming, which is the time until all
 * is on, it begins, it ends.
 */
#define GT_SCHEDULE_CAPTURE                                                    \
	{                                                                      \
		.wait = 1, .warmup = 1, .active = 1, .repeat = 1, .capture = 1 \
	}

/* Where step stands in the schedule. Total: defined for every step of a valid schedule. */
void gt_schedule_at(const struct gt_schedule *sched, uint64_t step, struct gt_sched_pos *ret);

/*
 * A window on demand: a cycle of its own, between those of the schedule. These are numbered on
 * behind it.
 */
struct gt_plan {
	uint64_t cycle; /* from 0 */
	uint32_t first_step;
	uint32_t warmup; /* at most GT_PLAN_WARMUP_MAX */
	uint32_t active; /* at most GT_PLAN_ACTIVE_MAX; 0: this is no plan */
};

#define GT_PLAN_WARMUP_MAX 255
#define GT_PLAN_ACTIVE_MAX ((1U << 24) - 1)

#define GT_PLANS_KEPT      4 /* steps of older ones are no longer asked for */

struct gt_plans {
	struct gt_plan list[GT_PLANS_KEPT]; /* from the newest, which begins last, to the oldest */
};

/* The step in which the plan takes effect: nothing of it is before. */
uint64_t gt_plan_begin(const struct gt_plan *plan);

/* Add the newest; it takes the place of a former newest one that is none. */
void gt_plans_add(struct gt_plans *plans, const struct gt_plan *plan);

/* gt_schedule_at() with plans; NULL: none. */
void gt_plans_at(const struct gt_schedule *sched, const struct gt_plans *plans, uint64_t step,
		 struct gt_sched_pos *ret);

/* The number of a new plan whose first step is this one. */
uint64_t gt_plans_next_cycle(const struct gt_schedule *sched, const struct gt_plans *plans,
			     uint64_t first_step);

/*
 * Can it be added? 0; -EINVAL when a field is out of range; -EBUSY when it overlaps a cycle of the
 * schedule or another plan.
 */
int gt_plans_check(const struct gt_schedule *sched, const struct gt_plans *plans,
		   const struct gt_plan *plan);

/*
 * Text form
 * "skip_first=1,wait=1,warmup=1,active=3,repeat=1,skip_first_wait=0,capture=0,on_demand=0" for the
 * environment. format: 0 or -ENOSPC. parse: 0 or -EINVAL, *ret untouched on failure; unknown keys
 * are refused.
 */
#define GT_SCHEDULE_TEXT_MAX 160
int gt_schedule_format(const struct gt_schedule *sched, char *buf, size_t len);
int gt_schedule_parse(const char *text, struct gt_schedule *ret);

#endif
