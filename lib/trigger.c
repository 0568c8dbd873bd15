#include "base.h"
#include "step_marks.h"
#include "trigger.h"

#define SAMPLE_MS     50 /* so long steps are counted, to know how fast they are */
#define ANSWER_MS     2000
#define DECIDE_MS     15000
#define ATTEMPTS      6
#define LEAD_FIRST_MS 20 /* for messages to come and go; four times as long in each attempt */
#define LEAD_STEPS    2

static const struct gt_client_info *info_of(const struct gt_trigger *trigger, size_t i)
{
	return gt_client_info(trigger->collector->clients[i]);
}

/* Launchers and helpers are asked, too, as their first step may be to come; they do not count. */
static bool has_steps(const struct gt_client_info *info)
{
	return info->step_source != GT_STEP_NONE;
}

/* Not while it only waits for its files to be complete: others may have begun in its place. */
static bool can_be_asked(const struct gt_trigger *trigger, size_t i)
{
	return gt_client_can_plan(trigger->collector->clients[i]);
}

/* Of those that this is true of. */
static uint64_t foremost(const struct gt_trigger *trigger,
			 bool (*counts)(const struct gt_client *client), unsigned int *ret_ranks)
{
	uint64_t step = 0;

	*ret_ranks = 0;
	for (size_t i = 0; i < trigger->collector->client_count; i++) {
		const struct gt_client *client = trigger->collector->clients[i];

		if (!counts(client))
			continue;
		*ret_ranks += has_steps(gt_client_info(client));
		step = GT_MAX(step, gt_client_step(client));
	}
	return step;
}

uint64_t gt_trigger_step(const struct gt_trigger *trigger, unsigned int *ret_ranks)
{
	return foremost(trigger, gt_client_can_plan, ret_ranks);
}

static bool everyone(const struct gt_client *client)
{
	return client != NULL;
}

uint64_t gt_trigger_shown_step(const struct gt_trigger *trigger, unsigned int *ret_ranks)
{
	uint64_t step = foremost(trigger, gt_client_is_traced, ret_ranks);

	return *ret_ranks ? step : foremost(trigger, everyone, ret_ranks);
}

uint64_t gt_trigger_next_cycle(const struct gt_trigger *trigger, uint64_t first_step)
{
	uint64_t cycle = trigger->next_cycle;

	for (size_t i = 0; i < trigger->collector->client_count; i++)
		cycle = GT_MAX(cycle, gt_plans_next_cycle(trigger->schedule,
							  &info_of(trigger, i)->plans, first_step));
	return cycle;
}

/* ---- ends ---- */

static void decide_all(struct gt_trigger *trigger, bool commit)
{
	for (size_t i = trigger->collector->client_count; i-- > 0;)
		gt_client_decide(trigger->collector->clients[i], commit);
}

static void finish(struct gt_trigger *trigger, const struct gt_trigger_result *result)
{
	if (result->rc < 0 || !trigger->request.prepare) {
		trigger->state = GT_TRIGGER_IDLE;
		uv_timer_stop(&trigger->timer);
	}
	trigger->done(trigger->ctx, result);
}

static void fail(struct gt_trigger *trigger, int code, const char *why)
{
	struct gt_trigger_result result = { .rc = code };

	gt_err_set(&result.err, code, "%s", why);
	finish(trigger, &result);
}

/* ---- the agreement ---- */

static void on_timer(uv_timer_t *timer);

/* What is to lie between now and the plan's beginning, by the rate of steps. */
static uint64_t lead_steps(const struct gt_trigger *trigger, uint64_t step)
{
	uint64_t lead_ms = (uint64_t)LEAD_FIRST_MS << 2 * trigger->attempt;
	uint64_t taken_ms = (uv_hrtime() - trigger->sample_ns) / GT_NSEC_PER_MSEC;

	if (!taken_ms || step <= trigger->sample_step)
		return LEAD_STEPS;
	return LEAD_STEPS + (step - trigger->sample_step) * lead_ms / taken_ms;
}

/* Why the plan cannot be; NULL: it can. */
static const char *conflict(const struct gt_trigger *trigger, char *buf, size_t len)
{
	for (size_t i = 0; i < trigger->collector->client_count; i++) {
		const struct gt_plans *plans = &info_of(trigger, i)->plans;
		const struct gt_plan *other = &plans->list[0];
		int rc = gt_plans_check(trigger->schedule, plans, &trigger->plan);

		if (!rc || !can_be_asked(trigger, i))
			continue;
		if (rc == -EINVAL)
			return "such a window cannot be";
		if (other->active &&
		    gt_plan_begin(&trigger->plan) < (uint64_t)other->first_step + other->active)
			snprintf(buf, len, "a window of %s is on its way",
				 gt_steps_text(other->first_step,
					       (uint64_t)other->first_step + other->active - 1)
					 .text);
		else
			snprintf(buf, len,
				 "a window of %s would overlap one of the session's schedule",
				 gt_steps_text(gt_plan_begin(&trigger->plan),
					       (uint64_t)trigger->plan.first_step +
						       trigger->plan.active - 1)
					 .text);
		return buf;
	}
	return NULL;
}

/* The plan, by the step that the foremost process is in now. */
static void make_plan(struct gt_trigger *trigger)
{
	const struct gt_trigger_request *request = &trigger->request;
	unsigned int ranks;
	uint64_t step = gt_trigger_step(trigger, &ranks), first = request->step;

	if (request->at == GT_AT_AFTER)
		first += step;
	else if (request->at == GT_AT_SOON)
		first = step + lead_steps(trigger, step) + GT_MAX(request->warmup, 1);
	trigger->plan = (struct gt_plan){
		.first_step = (uint32_t)GT_MIN(first, UINT32_MAX),
		.warmup = (uint32_t)request->warmup,
		.active = (uint32_t)request->active,
	};
	trigger->plan.cycle = GT_MAX(request->cycle, gt_trigger_next_cycle(trigger, first));
}

static void say_late(struct gt_trigger *trigger, const struct gt_client_info *info, uint64_t step)
{
	struct gt_trigger_result result = { .late = true, .step = step };
	uint64_t first = trigger->plan.first_step;
	char who[32];

	snprintf(who, sizeof(who),
		 info->hello.rank_source == GT_RANK_NONE ? "process %u" : "rank %u",
		 info->hello.rank_source == GT_RANK_NONE ? info->hello.pid : info->hello.rank);
	if (step > first)
		result.rc = gt_err_set(&result.err, -ETIME, "step %llu is over: %s is in step %llu",
				       (unsigned long long)first, who, (unsigned long long)step);
	else
		result.rc = gt_err_set(
			&result.err, -ETIME,
			"step %llu is too near: %s is in step %llu, and the window would begin in "
			"step %llu",
			(unsigned long long)first, who, (unsigned long long)step,
			(unsigned long long)gt_plan_begin(&trigger->plan));
	decide_all(trigger, false); /* makes the answers forgotten */
	finish(trigger, &result);
}

/* Who is past the beginning of the plan already. */
static struct gt_client *find_past(const struct gt_trigger *trigger)
{
	for (size_t i = 0; i < trigger->collector->client_count; i++) {
		struct gt_client *client = trigger->collector->clients[i];

		if (can_be_asked(trigger, i) && has_steps(gt_client_info(client)) &&
		    gt_client_step(client) > gt_plan_begin(&trigger->plan))
			return client;
	}
	return NULL;
}

static void ask(struct gt_trigger *trigger)
{
	const struct gt_client *past;
	bool any = false;
	const char *why;
	char words[128];

	make_plan(trigger);
	past = find_past(trigger);
	if (past) {
		say_late(trigger, gt_client_info(past), gt_client_step(past));
		return;
	}
	why = conflict(trigger, words, sizeof(words));
	if (why) {
		fail(trigger, -EBUSY, why);
		return;
	}
	trigger->state = GT_TRIGGER_ASK;
	trigger->end_ms = uv_now(trigger->timer.loop) + ANSWER_MS;
	/* Before it: who cannot be told answers at once. */
	uv_timer_start(&trigger->timer, on_timer, ANSWER_MS, 0);
	for (size_t i = trigger->collector->client_count; i-- > 0;)
		any |= gt_client_propose(trigger->collector->clients[i], &trigger->plan);
	if (!any)
		fail(trigger, -ESRCH, "no process is traced any more");
}

static void be_late(struct gt_trigger *trigger, const struct gt_client_info *info)
{
	if (trigger->request.at == GT_AT_SOON && trigger->attempt + 1 < ATTEMPTS) {
		trigger->attempt++;
		decide_all(trigger, false);
		ask(trigger);
		return;
	}
	say_late(trigger, info, info->plan_step);
}

/* A rank that takes part without steps, and no helper of a process that does them. */
static bool is_stepless_rank(const struct gt_trigger *trigger, const struct gt_client_info *info)
{
	if (info->plan_state != GT_PLAN_TAKEN || has_steps(info) || !info->device_count ||
	    info->hello.rank_source == GT_RANK_NONE)
		return false;
	for (size_t i = 0; i < trigger->collector->client_count; i++)
		if (has_steps(info_of(trigger, i)) &&
		    info_of(trigger, i)->hello.rank == info->hello.rank)
			return false;
	return true;
}

/* Has everybody answered? Who has not in time is left out. */
static void count_answers(struct gt_trigger *trigger)
{
	struct gt_trigger_result result = { .plan = trigger->plan };
	bool over = uv_now(trigger->timer.loop) >= trigger->end_ms;
	unsigned int taken = 0, waiting = 0;

	for (size_t i = 0; i < trigger->collector->client_count; i++) {
		const struct gt_client_info *info = info_of(trigger, i);

		if (info->plan_state == GT_PLAN_LATE) {
			be_late(trigger, info);
			return;
		}
		waiting += info->plan_state == GT_PLAN_ASKED;
		taken += info->plan_state == GT_PLAN_TAKEN;
		result.ranks += info->plan_state == GT_PLAN_TAKEN && has_steps(info);
	}
	if (waiting && !over) {
		uv_timer_start(&trigger->timer, on_timer,
			       trigger->end_ms - uv_now(trigger->timer.loop), 0);
		return;
	}
	for (size_t i = trigger->collector->client_count; i-- > 0;) {
		const struct gt_client_info *info = info_of(trigger, i);

		if (info->plan_state != GT_PLAN_ASKED)
			continue;
		if (has_steps(info))
			trigger->left_out(trigger->ctx, info, "does not answer");
		gt_client_decide(trigger->collector->clients[i], false);
	}
	if (!taken) {
		fail(trigger, -ETIMEDOUT,
		     "no process is left that took it: they did not answer, or ended");
		return;
	}
	for (size_t i = 0; i < trigger->collector->client_count && result.ranks; i++)
		if (is_stepless_rank(trigger, info_of(trigger, i)))
			trigger->stepless(trigger->ctx, info_of(trigger, i));
	trigger->state = GT_TRIGGER_DECIDE;
	if (trigger->request.prepare) {
		trigger->end_ms = uv_now(trigger->timer.loop) + DECIDE_MS;
		uv_timer_start(&trigger->timer, on_timer, DECIDE_MS, 0);
	} else {
		gt_trigger_decide(trigger, true);
	}
	finish(trigger, &result);
}

static void on_timer(uv_timer_t *timer)
{
	struct gt_trigger *trigger = container_of(timer, struct gt_trigger, timer);

	if (trigger->state == GT_TRIGGER_SAMPLE)
		ask(trigger);
	else if (trigger->state == GT_TRIGGER_ASK)
		count_answers(trigger);
	else if (trigger->state == GT_TRIGGER_DECIDE)
		gt_trigger_decide(trigger, false);
}

void gt_trigger_answered(struct gt_trigger *trigger, const struct gt_client_info *client)
{
	if (trigger->state != GT_TRIGGER_ASK && trigger->state != GT_TRIGGER_DECIDE)
		return;
	if (client->plan_state == GT_PLAN_NONE && has_steps(client))
		trigger->left_out(trigger->ctx, client, "has ended");
	/* Not from here: the client is in the middle of something. */
	if (trigger->state == GT_TRIGGER_ASK)
		uv_timer_start(&trigger->timer, on_timer, 0, 0);
}

void gt_trigger_give_up(struct gt_trigger *trigger, int code, const char *why)
{
	if (trigger->state != GT_TRIGGER_SAMPLE && trigger->state != GT_TRIGGER_ASK)
		return;
	trigger->state = GT_TRIGGER_IDLE;
	decide_all(trigger, false);
	fail(trigger, code, why);
}

bool gt_trigger_decide(struct gt_trigger *trigger, bool commit)
{
	if (trigger->state == GT_TRIGGER_IDLE || (commit && trigger->state != GT_TRIGGER_DECIDE))
		return false;
	trigger->state = GT_TRIGGER_IDLE;
	uv_timer_stop(&trigger->timer);
	if (commit)
		trigger->next_cycle = trigger->plan.cycle + 1;
	decide_all(trigger, commit);
	return true;
}

int gt_trigger_begin(struct gt_trigger *trigger, const struct gt_trigger_request *request,
		     struct gt_err *err)
{
	unsigned int ranks;
	uint64_t step = gt_trigger_step(trigger, &ranks);
	bool any_there = false;

	if (trigger->state != GT_TRIGGER_IDLE)
		return gt_err_set(err, -EBUSY, "another trigger is being agreed on");
	for (size_t i = 0; i < trigger->collector->client_count; i++) {
		const struct gt_client_info *info = info_of(trigger, i);
		const struct gt_plan *plan = &info->plans.list[0];

		if (!can_be_asked(trigger, i))
			continue;
		any_there = true;
		if (info->step_source == GT_STEP_CAPTURE)
			return gt_err_set(err, -EBUSY,
					  "its windows are the ranges that the program captures");
		if (plan->active && has_steps(info) &&
		    gt_client_step(trigger->collector->clients[i]) <
			    (uint64_t)plan->first_step + plan->active)
			return gt_err_set(
				err, -EBUSY, "a window of %s is on its way",
				gt_steps_text(plan->first_step,
					      (uint64_t)plan->first_step + plan->active - 1)
					.text);
	}
	if (!any_there)
		return gt_err_set(err, -ESRCH,
				  "no process is traced yet, or any more: see 'gtrace ps'");
	if (!ranks && request->at != GT_AT_STEP)
		return gt_err_set(
			err, -ENODATA,
			"no step was seen so far: try again when 'gtrace ps' shows ranks, "
			"or name a step with --at-step");
	trigger->request = *request;
	trigger->attempt = 0;
	trigger->sample_ns = uv_hrtime();
	trigger->sample_step = step;
	trigger->state = GT_TRIGGER_SAMPLE;
	uv_timer_start(&trigger->timer, on_timer, request->at == GT_AT_SOON ? SAMPLE_MS : 0, 0);
	return 0;
}

void gt_trigger_start(struct gt_trigger *trigger, uv_loop_t *loop)
{
	uv_timer_init(loop, &trigger->timer);
	trigger->state = GT_TRIGGER_IDLE;
	trigger->next_cycle = 0;
}

void gt_trigger_close(struct gt_trigger *trigger)
{
	uv_close((uv_handle_t *)&trigger->timer, NULL);
}
