#include "base.h"
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_before_unwarmed(const struct gt_schedule *sched, const struct gt_sched_pos *pos)
{
	return !sched->warmup && pos->steps_to_active == 1;
}

void gt_schedule_at(const struct gt_schedule *sched, uint64_t step, struct gt_sched_pos *ret)
{
	uint64_t idle = sched->wait + sched->warmup; /* steps of a cycle before its first active */
	uint64_t len = idle + sched->active;
	uint64_t pos;

	*ret = (struct gt_sched_pos){
		.phase = GT_PHASE_IDLE,
		.warmup = sched->warmup,
		.active = sched->active,
	};
	if (sched->on_demand) {
		ret->phase = GT_PHASE_OVER;
		return;
	}
	if (step < sched->skip_first) {
		ret->steps_to_active = sched->skip_first - step + idle;
		if (sched->skip_first_wait)
			ret->steps_to_active -= sched->wait;
		ret->armed = is_before_unwarmed(sched, ret);
		return;
	}
	step -= sched->skip_first;
	if (sched->skip_first_wait)
		step += sched->wait;
	ret->cycle = step / len;
	if (sched->repeat && ret->cycle >= sched->repeat) {
		ret->phase = GT_PHASE_OVER;
		return;
	}
	pos = step % len;
	if (pos < sched->wait) {
		ret->index = pos;
		ret->steps_to_active = idle - pos;
		ret->armed = is_before_unwarmed(sched, ret);
	} else if (pos < idle) {
		ret->phase = GT_PHASE_WARMUP;
		ret->index = pos - sched->wait;
		ret->steps_to_active = idle - pos;
		ret->armed = true;
	} else {
		ret->phase = GT_PHASE_ACTIVE;
		ret->index = pos - idle;
		ret->last = pos + 1 == len;
		ret->armed = true;
	}
}

/* ---- plans ---- */

uint64_t gt_plan_begin(const struct gt_plan *plan)
{
	return gt_sub(plan->first_step, GT_MAX(plan->warmup, 1));
}

void gt_plans_add(struct gt_plans *plans, const struct gt_plan *plan)
{
	if (plans->list[0].active)
		memmove(plans->list + 1, plans->list, sizeof(plans->list) - sizeof(plans->list[0]));
	plans->list[0] = *plan;
}

/* How many of the schedule's cycles begin before this step, which is in none of them. */
static uint64_t cycles_before(const struct gt_schedule *sched, uint64_t step)
{
	struct gt_sched_pos pos;

	gt_schedule_at(sched, step, &pos);
	if (sched->on_demand)
		return 0;
	return pos.phase == GT_PHASE_OVER ? sched->repeat : pos.cycle;
}

/* A step of the plan itself. */
static void at_plan(const struct gt_plan *plan, uint64_t step, struct gt_sched_pos *ret)
{
	*ret = (struct gt_sched_pos){
		.phase = GT_PHASE_ACTIVE,
		.cycle = plan->cycle,
		.warmup = plan->warmup,
		.active = plan->active,
		.armed = true,
	};
	if (step >= plan->first_step) {
		ret->index = step - plan->first_step;
		ret->last = ret->index + 1 == plan->active;
		return;
	}
	ret->steps_to_active = plan->first_step - step;
	ret->phase = plan->warmup ? GT_PHASE_WARMUP : GT_PHASE_IDLE;
	if (plan->warmup)
		ret->index = step - gt_plan_begin(plan);
}

void gt_plans_at(const struct gt_schedule *sched, const struct gt_plans *plans, uint64_t step,
		 struct gt_sched_pos *ret)
{
	const struct gt_plan *plan = NULL, *next = NULL;

	for (size_t i = 0; plans && i < GT_PLANS_KEPT && !plan; i++) {
		if (!plans->list[i].active)
			continue;
		if (step >= gt_plan_begin(&plans->list[i]))
			plan = &plans->list[i];
		else
			next = &plans->list[i];
	}
	if (plan && step < (uint64_t)plan->first_step + plan->active) {
		at_plan(plan, step, ret);
		return;
	}
	gt_schedule_at(sched, step, ret);
	if (plan)
		ret->cycle += plan->cycle + 1 - cycles_before(sched, plan->first_step);
	if (!next || (ret->phase != GT_PHASE_IDLE && ret->phase != GT_PHASE_OVER))
		return;
	if (ret->phase == GT_PHASE_OVER || ret->steps_to_active > next->first_step - step)
		ret->steps_to_active = next->first_step - step;
	ret->phase = GT_PHASE_IDLE;
}

uint64_t gt_plans_next_cycle(const struct gt_schedule *sched, const struct gt_plans *plans,
			     uint64_t first_step)
{
	const struct gt_plan *newest = NULL;

	for (size_t i = 0; i < GT_PLANS_KEPT && !newest; i++)
		if (plans->list[i].active)
			newest = &plans->list[i];
	if (!newest)
		return cycles_before(sched, first_step);
	return newest->cycle + 1 + cycles_before(sched, first_step) -
	       cycles_before(sched, newest->first_step);
}

int gt_plans_check(const struct gt_schedule *sched, const struct gt_plans *plans,
		   const struct gt_plan *plan)
{
	uint64_t begin = gt_plan_begin(plan);
	struct gt_sched_pos pos;

	if (plan->active < 1 || plan->active > GT_PLAN_ACTIVE_MAX ||
	    plan->warmup > GT_PLAN_WARMUP_MAX || plan->first_step <= plan->warmup ||
	    plan->first_step > GT_SCHEDULE_MAX)
		return -EINVAL;
	for (size_t i = 0; i < GT_PLANS_KEPT; i++) {
		const struct gt_plan *other = &plans->list[i];

		/* Between two of them is a step that shows where the one ends. */
		if (other->active && begin < (uint64_t)other->first_step + other->active)
			return -EBUSY;
	}
	gt_schedule_at(sched, begin, &pos);
	if (pos.phase == GT_PHASE_OVER)
		return 0;
	if (pos.phase != GT_PHASE_IDLE || pos.armed)
		return -EBUSY;
	/* The next cycle begins with its warm-up, or the step before it. */
	return begin + pos.steps_to_active - GT_MAX(sched->warmup, 1) <
			       (uint64_t)plan->first_step + plan->active
		       ? -EBUSY
		       : 0;
}

/* ---- text ---- */

int gt_schedule_format(const struct gt_schedule *sched, char *buf, size_t len)
{
	int n = snprintf(buf, len,
			 "skip_first=%llu,wait=%llu,warmup=%llu,active=%llu,repeat=%llu,"
			 "skip_first_wait=%d,capture=%d,on_demand=%d",
			 (unsigned long long)sched->skip_first, (unsigned long long)sched->wait,
			 (unsigned long long)sched->warmup, (unsigned long long)sched->active,
			 (unsigned long long)sched->repeat, sched->skip_first_wait, sched->capture,
			 sched->on_demand);

	return n < 0 || (size_t)n >= len ? -ENOSPC : 0;
}

/* One "key=digits" at *text, which moves behind it and its comma. */
static int parse_field(const char **text, struct gt_schedule *sched)
{
	static const struct {
		const char *key;
		size_t offset;
	} fields[] = {
		{ "skip_first=", offsetof(struct gt_schedule, skip_first) },
		{ "wait=", offsetof(struct gt_schedule, wait) },
		{ "warmup=", offsetof(struct gt_schedule, warmup) },
		{ "active=", offsetof(struct gt_schedule, active) },
		{ "repeat=", offsetof(struct gt_schedule, repeat) },
		{ "skip_first_wait=", offsetof(struct gt_schedule, skip_first_wait) },
		{ "capture=", offsetof(struct gt_schedule, capture) },
		{ "on_demand=", offsetof(struct gt_schedule, on_demand) },
	};
	const char *pos = *text;
	uint64_t value = 0;
	size_t i, digits = 0;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (!strncmp(pos, fields[i].key, strlen(fields[i].key)))
			break;
	if (i == ARRAY_SIZE(fields))
		return -EINVAL;
	pos += strlen(fields[i].key);
	for (; gt_is_digit(*pos) && digits < 10; pos++, digits++)
		value = value * 10 + (uint64_t)(*pos - '0');
	if (!digits || (*pos && *pos != ','))
		return -EINVAL;
	if (fields[i].offset >= offsetof(struct gt_schedule, skip_first_wait))
		*((bool *)sched + fields[i].offset) = value != 0;
	else
		memcpy((char *)sched + fields[i].offset, &value, sizeof(value));
	*text = *pos ? pos + 1 : pos;
	return 0;
}

static bool is_valid(const struct gt_schedule *sched)
{
	return sched->active >= 1 && sched->active <= GT_SCHEDULE_MAX &&
	       sched->skip_first <= GT_SCHEDULE_MAX && sched->wait <= GT_SCHEDULE_MAX &&
	       sched->warmup <= GT_SCHEDULE_MAX && sched->repeat <= GT_SCHEDULE_MAX;
}

int gt_schedule_parse(const char *text, struct gt_schedule *ret)
{
	struct gt_schedule sched = GT_SCHEDULE_DEFAULT;

	while (*text)
		if (parse_field(&text, &sched) < 0)
			return -EINVAL;
	if (!is_valid(&sched))
		return -EINVAL;
	*ret = sched;
	return 0;
}
