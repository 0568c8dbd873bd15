/*
 * steps.c - in which step the program is. Each source of marks counts for itself; the highest one
 * seen rules, until the first warm-up freezes the choice.
 */
#include "events.h"
#include "nsight.h"

#include <regex.h>

/*
 * How long a program may wait before its first active step for what is to be switched on. The first
 * time CUPTI makes its buffers, too.
 */
#define ARM_WAIT_MS       200
#define FIRST_ARM_WAIT_MS 1000

/*
 * How far ahead of a warm-up CUPTI is first called, which takes 13 to 22 ms on an H200 with
 * CUPTI 13.0; enabling a kind then takes less than 0.3 ms.
 */
#define LEAD_STEPS 50

static _Atomic uint32_t counts[GT_STEP_SOURCE_MAX];

/* What rules, in one word: the step, its source, and whether that can still change. */
static _Atomic uint64_t ruling;

#define RULING_STEP(word)   ((uint32_t)(word))
#define RULING_SOURCE(word) ((enum gt_step_source)((word) >> 32 & 0xff))
#define RULING_FROZEN       (UINT64_C(1) << 40)
#define RULING_WORD(step, source, frozen) \
	((uint64_t)(step) | (uint64_t)(source) << 32 | ((frozen) ? RULING_FROZEN : 0))

/* Until when the mark that opens a window waits for it to be switched on; 0: none does. */
static _Atomic uint64_t wait_end_ms;

/* The same of the program's own steps, while captured ranges are the steps. */
static _Atomic uint64_t own_ruling;

static bool is_captured(uint64_t word)
{
	return RULING_SOURCE(word) == GT_STEP_CAPTURE;
}

/* Does the count-th mark of this source count, while that word is in force? */
static bool may_rule(uint64_t word, enum gt_step_source source, uint32_t count)
{
	if (source == RULING_SOURCE(word))
		return count > RULING_STEP(word);
	return source > RULING_SOURCE(word) && !(word & RULING_FROZEN);
}

/* ---- the optimizer hook ---- */

/* When another optimizer has been called so often since the anchor, that one is gone. */
#define ANCHOR_GONE_CALLS 32

static _Atomic uint64_t anchor_key;    /* the optimizer whose return ends a step */
static _Atomic uint64_t anchor_events; /* of all threads when it was last seen */
static _Atomic uint32_t anchor_hearing;
static _Atomic uint64_t other_key; /* the first other one since */
static _Atomic uint32_t other_calls;

static bool is_anchor(uint64_t key)
{
	uint64_t anchor = 0, other = 0;

	if (atomic_compare_exchange_strong(&anchor_key, &anchor, key) || anchor == key) {
		atomic_store_explicit(&other_key, 0, memory_order_relaxed);
		return true;
	}
	if (atomic_compare_exchange_strong(&other_key, &other, key))
		atomic_store_explicit(&other_calls, 1, memory_order_relaxed);
	else if (other == key && atomic_fetch_add_explicit(&other_calls, 1, memory_order_relaxed) >=
					 ANCHOR_GONE_CALLS)
		atomic_store_explicit(&anchor_key, key, memory_order_relaxed);
	return false;
}

/* The subscription by which all calls are heard and taken now, 0 when they are not. */
static uint32_t hearing(void)
{
	if (!atomic_load_explicit(&inj_live.heard, memory_order_acquire) ||
	    !atomic_load_explicit(&inj_live.taking, memory_order_relaxed))
		return 0;
	return atomic_load_explicit(&inj_live.generation, memory_order_relaxed);
}

/*
 * Several optimizers, or one that is called several times, make one step: it ends when the first
 * one comes round again with work in between. When calls were not heard all the time since, work
 * is assumed.
 */
static bool optimizer_ends_step(uint64_t key)
{
	uint64_t events, events_before;
	uint32_t heard, heard_before;

	if (!is_anchor(key))
		return false;
	events = inj_events_total();
	events_before = atomic_exchange(&anchor_events, events);
	heard = hearing();
	heard_before = atomic_exchange(&anchor_hearing, heard);
	return !counts[GT_STEP_OPTIMIZER] || events != events_before || !heard ||
	       heard != heard_before;
}

/* ---- steps ---- */

/* Captured ranges that rule without having been asked for have their own. */
const struct gt_schedule *inj_steps_schedule(void)
{
	static const struct gt_schedule capture = GT_SCHEDULE_CAPTURE;

	if (!inj_config.schedule.capture &&
	    is_captured(atomic_load_explicit(&ruling, memory_order_relaxed)))
		return &capture;
	return &inj_config.schedule;
}

/*
 * The plans, as in struct gt_plans: each in one word, and its number beside it, by which threads
 * only tell windows apart. Whoever changes them begins with the oldest and whoever reads them with
 * the newest one, so that a plan may be seen twice, but not missed.
 */
static _Atomic uint64_t plan_words[GT_PLANS_KEPT];
static _Atomic uint64_t plan_cycles[GT_PLANS_KEPT];

static uint64_t plan_word(const struct gt_plan *plan)
{
	return plan->first_step | (uint64_t)plan->warmup << 32 | (uint64_t)plan->active << 40;
}

static void load_plans(struct gt_plans *ret)
{
	for (size_t i = 0; i < GT_PLANS_KEPT; i++) {
		uint64_t word = atomic_load(&plan_words[i]);

		ret->list[i] = (struct gt_plan){
			.cycle = atomic_load(&plan_cycles[i]),
			.first_step = (uint32_t)word,
			.warmup = (uint32_t)(word >> 32 & GT_PLAN_WARMUP_MAX),
			.active = (uint32_t)(word >> 40),
		};
	}
}

static void store_plans(const struct gt_plans *plans)
{
	for (size_t i = GT_PLANS_KEPT; i-- > 0;) {
		atomic_store(&plan_cycles[i], plans->list[i].cycle);
		atomic_store(&plan_words[i], plan_word(&plans->list[i]));
	}
}

void inj_steps_at(uint64_t step, struct gt_sched_pos *ret)
{
	struct gt_plans plans;

	load_plans(&plans);
	gt_plans_at(inj_steps_schedule(), &plans, step, ret);
}

static bool is_armed(uint32_t step)
{
	struct gt_sched_pos pos;

	inj_steps_at(step, &pos);
	return pos.armed;
}

bool inj_steps_plan_near(const struct gt_plan *plan)
{
	return gt_plan_begin(plan) <= (uint64_t)RULING_STEP(atomic_load(&ruling)) + LEAD_STEPS;
}

bool inj_steps_plan(const struct gt_plan *plan, uint32_t *ret_step)
{
	struct gt_plans plans;
	uint64_t word, frozen;

	load_plans(&plans);
	if (gt_plans_check(inj_steps_schedule(), &plans, plan) < 0) {
		*ret_step = RULING_STEP(atomic_load(&ruling));
		return false;
	}
	gt_plans_add(&plans, plan);
	store_plans(&plans);
	/* A mark that is not seen here sees the plan; and its steps are of the source it is for. */
	word = atomic_load(&ruling);
	do {
		*ret_step = RULING_STEP(word);
		if (*ret_step >= gt_plan_begin(plan)) {
			inj_steps_cancel(plan->cycle);
			return false;
		}
		frozen = RULING_SOURCE(word) == GT_STEP_NONE ? word : word | RULING_FROZEN;
	} while (!atomic_compare_exchange_weak(&ruling, &word, frozen));
	return true;
}

void inj_steps_cancel(uint64_t cycle)
{
	if (atomic_load(&plan_cycles[0]) == cycle)
		atomic_store(&plan_words[0], 0);
}

enum gt_step_source inj_steps_frozen(void)
{
	uint64_t word = atomic_load_explicit(&ruling, memory_order_relaxed);

	return word & RULING_FROZEN ? RULING_SOURCE(word) : GT_STEP_NONE;
}

void inj_steps_claim(enum gt_step_source source)
{
	_Atomic uint64_t *word = is_captured(atomic_load_explicit(&ruling, memory_order_relaxed))
					 ? &own_ruling
					 : &ruling;
	uint64_t new, old = atomic_load_explicit(word, memory_order_relaxed);

	do {
		if (old & RULING_FROZEN || source <= RULING_SOURCE(old))
			return;
		new = RULING_WORD(counts[source], source, false);
	} while (!atomic_compare_exchange_weak(word, &old, new));
}

/* Of captured ranges nothing is known ahead but what arms them. */
static bool is_near(const struct gt_sched_pos *pos)
{
	const struct gt_schedule *sched = inj_steps_schedule();

	return pos->armed || (!sched->capture && pos->steps_to_active &&
			      pos->steps_to_active <= sched->warmup + LEAD_STEPS);
}

bool inj_steps_near(uint64_t step)
{
	struct gt_sched_pos pos;

	inj_steps_at(step, &pos);
	return is_near(&pos);
}

/* Does the control thread have anything to do between these steps? */
static bool phase_changes(uint32_t from, uint32_t to)
{
	struct gt_sched_pos a, b;

	inj_steps_at(from, &a);
	inj_steps_at(to, &b);
	return a.armed != b.armed || a.phase != b.phase || a.cycle != b.cycle ||
	       is_near(&a) != is_near(&b);
}

/*
 * Who sees it sees all events of this thread before it. Another thread may have made a newer mark,
 * and told of it, since this one counted: what was told is only replaced by what rules since then.
 */
static void tell_step(void)
{
	uint32_t told = atomic_load(&inj_arena->step);
	uint64_t word;

	do {
		word = atomic_load(&ruling);
		atomic_store(&inj_arena->step_source, RULING_SOURCE(word));
	} while (told != RULING_STEP(word) &&
		 !atomic_compare_exchange_weak(&inj_arena->step, &told, RULING_STEP(word)));
}

/* The program is in this step now, by this source. */
static void enter_step(uint32_t step, enum gt_step_source source)
{
	struct gt_ev_step *ev;

	tell_step();
	ev = inj_reserve(GT_EV_STEP, sizeof(*ev));
	if (!ev)
		return;
	ev->ev.step = step;
	ev->source = source;
	ev->number = step;
	inj_commit();
}

/* By the first captured range it is settled which source's these are. */
static void own_step(enum gt_step_source source, uint32_t count)
{
	uint64_t new, old = atomic_load_explicit(&own_ruling, memory_order_relaxed);
	struct gt_ev_step *ev;

	do {
		if (!may_rule(old, source, count))
			return;
		new = RULING_WORD(count, source, old & RULING_FROZEN || is_armed(inj_step_now()));
	} while (!atomic_compare_exchange_weak(&own_ruling, &old, new));
	ev = inj_reserve(GT_EV_OWN_STEP, sizeof(*ev));
	if (!ev)
		return;
	ev->source = source;
	ev->number = count;
	inj_commit();
}

/* A window that opens before it is switched on would miss its beginning. False: it does. */
static bool await_armed(uint32_t ticket)
{
	uint32_t wait_ms = atomic_load_explicit(&inj_live.was_on, memory_order_relaxed)
				   ? ARM_WAIT_MS
				   : FIRST_ARM_WAIT_MS;
	bool armed;

	if (atomic_load_explicit(&inj_live.armed, memory_order_acquire))
		return true;
	atomic_store(&wait_end_ms, inj_now_ms() + wait_ms);
	armed = inj_control_wait(ticket, wait_ms) || /* its turn may last */
		atomic_load_explicit(&inj_live.armed, memory_order_acquire);
	atomic_store(&wait_end_ms, 0);
	return armed;
}

/* While another thread's mark does so: the steps of its window would go by. */
static void join_wait(void)
{
	uint64_t end_ms = atomic_load_explicit(&wait_end_ms, memory_order_relaxed), now_ms;

	if (!end_ms)
		return;
	now_ms = inj_now_ms();
	if (now_ms < end_ms)
		inj_control_wait(inj_control_post(), (uint32_t)(end_ms - now_ms));
}

/* From the one word to the other: wake the control thread, where it has anything to do. */
static void follow_phase(uint64_t old, uint64_t new)
{
	uint32_t step = RULING_STEP(new), mode = GT_MODE_KEEP, ticket;
	bool first = atomic_compare_exchange_strong(&inj_arena->mode, &mode, GT_MODE_STEPS);
	struct gt_sched_pos pos;

	if (!first && !phase_changes(RULING_STEP(old), step) && !((old ^ new) & RULING_FROZEN))
		return;
	inj_steps_at(step, &pos);
	/* Until the control thread has caught up: it may just be switching off what is on. */
	if (is_armed(RULING_STEP(old)) != pos.armed || first)
		atomic_store_explicit(&inj_live.armed, 0, memory_order_relaxed);
	ticket = inj_control_post();
	if (pos.phase == GT_PHASE_ACTIVE && !await_armed(ticket))
		atomic_store_explicit(&inj_arena->late_step, (uint64_t)step + 1,
				      memory_order_relaxed);
}

void inj_step(enum gt_step_source source, uint64_t key)
{
	uint64_t old, new;
	uint32_t count;
	bool own;

	if (!inj_live_alive()) {
		inj_say_forked();
		return;
	}
	if (!(inj_config.sources & UINT32_C(1) << source))
		return;
	if (source == GT_STEP_OPTIMIZER && !optimizer_ends_step(key))
		return;
	join_wait();
	count = atomic_fetch_add_explicit(&counts[source], 1, memory_order_relaxed) + 1;
	old = atomic_load_explicit(&ruling, memory_order_relaxed);
	do {
		bool frozen = old & RULING_FROZEN || source == GT_STEP_CAPTURE;

		own = is_captured(old) && source != GT_STEP_CAPTURE;
		if (!own && !may_rule(old, source, count))
			return;
		new = own ? old : RULING_WORD(count, source, frozen || is_armed(count));
	} while (!atomic_compare_exchange_weak(&ruling, &old, new));

	if (inj_nsight()) {
		inj_nsight_step(count);
		return;
	}
	if (is_captured(new) && !is_captured(old)) /* there may be a claim */
		atomic_store(&own_ruling, old);
	if (own)
		own_step(source, count);
	else
		enter_step(count, source);
	if (source == GT_STEP_OPTIMIZER) /* the mark itself is no work */
		atomic_store_explicit(&anchor_events, inj_events_total(), memory_order_relaxed);
	if (!own)
		follow_phase(old, new);
}

/* ---- ranges that are steps ---- */

static regex_t step_regex;
static bool step_regex_set;
static char step_text[sizeof(inj_config.step_range)]; /* a pattern without operators */
static size_t step_text_len;

int inj_steps_init(void)
{
	const char *pattern = inj_config.step_range;

	if (inj_config.schedule.capture)
		atomic_store(&ruling, RULING_WORD(0, GT_STEP_CAPTURE, true));
	if (!*pattern)
		return 0;
	if (!pattern[strcspn(pattern, "\\^$.[]|()*+?{}")]) {
		step_text_len = strlen(pattern);
		memcpy(step_text, pattern, step_text_len + 1);
		return 0;
	}
	if (regcomp(&step_regex, pattern, REG_EXTENDED | REG_NOSUB))
		return -EINVAL;
	step_regex_set = true;
	return 0;
}

bool inj_is_step_name(const char *bytes, size_t len)
{
	regmatch_t range = { .rm_so = 0, .rm_eo = (regoff_t)len };

	if (step_text_len)
		return memmem(bytes, len, step_text, step_text_len);
	/* REG_STARTEND: the name need not end in NUL; what it matched is not reported. */
	return step_regex_set && !regexec(&step_regex, bytes, 1, &range, REG_STARTEND);
}
