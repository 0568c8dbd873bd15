/*
 * window.c - from the program's steps to windows: when CUPTI is switched on and off, and what the
 * collector is told. All of it on the control thread, but for inj_cupti_on(), which the program's
 * thread calls within cuInit(), too.
 */
#include "capture.h"
#include "control.h"
#include "cupti_api.h"
#include "events.h"
#include "py_stacks.h"
#include "quiet.h"
#include "torch_memory.h"
#include "torch_ops.h"

/*
 * So long the records of a window's last launches are awaited, from the last buffer on: the GPU can
 * be seconds behind the program, and is silent while it does what was launched before CUPTI was on.
 * The collector, which knows whose records come, says sooner when there is nothing to wait for.
 */
#define LINGER_MS     10000
#define LINGER_MAX_MS 60000 /* from the window's end on */
#define STOP_DRAIN_MS 200   /* the same when tracing ends */
#define DRAIN_TICK_MS 5     /* between two looks at the end of the program */
#define KEEP_MAX_MS   30000 /* of GPU work, without a step */

/*
 * From the first step on CUPTI stays on for so long. When its kinds are disabled within some
 * milliseconds of a thread's first launch, CUPTI 13.0 can lose all later records of that thread: on
 * an H100 those of one of 8 threads in a third of the runs, in none after 10 ms. A recording ends
 * with the first step, and the threads that make a step often begin in it.
 */
#define SETTLE_MS 100

/* cuptiGetVersion() of CUDA 13.1 Update 1 */
#define CUPTI_GRAPHS_MEND 130101

struct inj_control inj_control;

static struct inj_control *const ctl = &inj_control;

/* ---- CUPTI ---- */

/*
 * Callbacks before kinds, and the other way round at the end: every GPU record has its launch. A
 * launch in between has no record, but it is none of a window's.
 */
int inj_cupti_on(void)
{
	int err;

	if (inj_activity_take() < 0)
		return -EIO;
	err = inj_launches_on();
	if (inj_activity_on() < 0) {
		inj_launches_off();
		return -EIO;
	}
	atomic_store_explicit(&inj_live.on, 1, memory_order_relaxed);
	return err;
}

static void cupti_off(void)
{
	inj_activity_flush(false);
	if (!inj_quiet_begin())
		inj_log(GT_LOG_DEBUG, "CUPTI is switched off in the middle of a launch");
	inj_activity_off();
	inj_quiet_end();
	if (ctl->stopped) /* nobody is there any more to name them when they are handed out */
		inj_activity_name_held();
	inj_launches_off();
	atomic_store_explicit(&inj_live.on, 0, memory_order_relaxed);
}

/* Rather than the whole run, or a recording until the first step. */
static bool steps_rule(void)
{
	return atomic_load_explicit(&inj_arena->mode, memory_order_relaxed) == GT_MODE_STEPS;
}

static uint64_t dropped_records(void)
{
	return atomic_load_explicit(&inj_arena->dropped_cupti, memory_order_relaxed) +
	       atomic_load_explicit(&inj_arena->dropped_arena, memory_order_relaxed);
}

static void switch_on(void)
{
	int err = inj_cupti_on();

	if (err == -EIO) {
		ctl->attached = false;
		ctl->refused = true;
		inj_tell(GT_WHAT_NO_CUPTI, ctl->cycle, 0);
		return;
	}
	ctl->on = true;
	ctl->launches_at_on = inj_launches_total();
	ctl->buffers_at_on = inj_activity_buffers();
	ctl->dropped_at_on = dropped_records();
	if (err)
		inj_tell(GT_WHAT_FALLBACK, ctl->cycle, 0);
	else if (ctl->fallback)
		inj_tell(GT_WHAT_CALLBACKS, ctl->cycle, 0);
	ctl->fallback = err;
}

/*
 * Launches since CUPTI was switched on. With none of their records, it may not be ours any more;
 * but for a recording that the first step has ended nobody waited, or cares.
 */
static uint64_t count_launches(void)
{
	uint64_t launches = inj_launches_total() - ctl->launches_at_on;

	if (launches && inj_activity_buffers() == ctl->buffers_at_on &&
	    dropped_records() == ctl->dropped_at_on && (ctl->closed || !steps_rule()))
		inj_log(GT_LOG_WARN,
			"CUPTI gave no record for %llu launch%s: %s may have taken it over",
			(unsigned long long)launches, launches == 1 ? "" : "es",
			inj_config.kineto_daemon ? "a profile that the daemon of KINETO_USE_DAEMON "
						   "asked for"
						 : "another profiler");
	return launches;
}

static void switch_off(void)
{
	uint64_t launches;

	cupti_off();
	launches = count_launches();
	ctl->on = false;
	ctl->draining = false;
	ctl->drain_end_ms = 0;
	if ((ctl->closed || ctl->opened) && !ctl->stopped) /* then it is the last word */
		inj_tell(GT_WHAT_OFF, ctl->cycle, launches);
	ctl->closed = false;
}

/* Have the program's threads record, or not. */
static void set_wanted(bool wanted)
{
	ctl->wanted = wanted;
	atomic_store_explicit(&inj_live.taking, wanted, memory_order_relaxed);
	atomic_store_explicit(&inj_live.recording, wanted, memory_order_relaxed);
	if (!wanted)
		atomic_store_explicit(&inj_live.armed, 0, memory_order_relaxed);
}

/* ---- windows ---- */

static uint32_t next_step;     /* the first one that has not been followed */
static uint64_t settle_end_ms; /* 0: steps do not rule so far */
static uint64_t skip_below;    /* cycles that have had their turn, or lost it to a profiler */
static uint64_t lost_cycle;    /* of these the last one that lost it, in part or whole, + 1 */
static uint64_t drained_below; /* no record of these is awaited */

/* From the release notes of CUDA 13.1 Update 1. Not seen in many windows of 13.0: no alarm. */
static void warn_of_graphs(void)
{
	static bool warned;

	if (warned || !ctl->attached || !ctl->cycle || inj_cupti.version >= CUPTI_GRAPHS_MEND ||
	    !inj_launches_graph_seen())
		return;
	warned = true;
	inj_log(GT_LOG_INFO,
		"this CUPTI can link graph launches and their kernels wrongly from the "
		"second window on; CUDA 13.1 Update 1 fixes it");
}

/* The program's own profiler takes this window, or the rest of it. */
static void tell_yield(enum gt_phase_what what, uint64_t cycle, uint32_t step)
{
	uint32_t count = atomic_load(&inj_arena->yields);
	struct gt_yield *yield = &inj_arena->yield[count % GT_YIELDS];

	atomic_store(&yield->what, what);
	atomic_store(&yield->cycle, cycle);
	atomic_store(&yield->step, step);
	atomic_store(&yield->time_ns, inj_now_ns());
	atomic_store(&inj_arena->yields, count + 1);
	inj_tell(what, cycle, step);
}

static void open_window(uint64_t cycle, uint32_t step)
{
	if (cycle < skip_below)
		return;
	skip_below = cycle + 1;
	ctl->cycle = cycle;
	if (ctl->yielded) {
		lost_cycle = cycle + 1;
		tell_yield(steps_rule() ? GT_WHAT_LEFT_OUT : GT_WHAT_YIELD, cycle, step);
		return;
	}
	ctl->opened = true;
	ctl->draining = false;
	inj_tell(GT_WHAT_OPEN, cycle, step);
}

static void close_window(uint32_t next)
{
	ctl->opened = false;
	ctl->closed = true;
	ctl->closed_cycle = ctl->cycle;
	ctl->closed_ms = inj_now_ms();
	/* The collector, which sees the program's steps itself, can be sooner than we are. */
	ctl->draining = ctl->on && ctl->cycle >= drained_below;
	ctl->drain_end_ms = ctl->cycle >= drained_below ? ctl->closed_ms + LINGER_MS : 0;
	inj_tell_devices();
	warn_of_graphs();
	inj_tell(GT_WHAT_CLOSE, ctl->cycle, next);
}

static void follow_step(uint32_t step)
{
	struct gt_sched_pos pos;
	bool active;

	inj_steps_at(step, &pos);
	active = pos.phase == GT_PHASE_ACTIVE;
	if (ctl->opened && (!active || pos.cycle != ctl->cycle))
		close_window(step);
	if (!ctl->opened && active && !ctl->stopped)
		open_window(pos.cycle, step);
}

/* As far as this step. */
static void follow_steps(uint32_t last)
{
	static bool told_source;
	uint32_t step = atomic_load_explicit(&inj_arena->step, memory_order_relaxed);

	if (!settle_end_ms)
		settle_end_ms = inj_now_ms() + SETTLE_MS;
	/* A source of more authority began to rule, and counts from its own first mark. */
	if (next_step > step + 1)
		next_step = step;
	if (!told_source && inj_steps_frozen()) {
		told_source = true;
		inj_tell(GT_WHAT_STEP_SOURCE, ctl->cycle, inj_steps_frozen());
	}
	while (next_step <= GT_MIN(step, last))
		follow_step(next_step++);
}

/* CUPTI's first call, ahead of the first window. */
static void prepare(void)
{
	if (ctl->attached && !ctl->yielded && !ctl->stopped)
		inj_activity_prepare();
}

void inj_window_plan(const struct gt_msg_plan *msg)
{
	const struct gt_plan plan = {
		.cycle = msg->cycle,
		.first_step = msg->first_step,
		.warmup = msg->warmup,
		.active = msg->active,
	};
	bool taken;
	uint32_t step;

	/* Windows of the plans before it that are over by now. */
	if (steps_rule())
		follow_steps(UINT32_MAX);
	/* Before it is taken: should this take long, it is late, and the next one is not. */
	if (inj_steps_plan_near(&plan))
		prepare();
	taken = inj_steps_plan(&plan, &step);
	inj_tell(taken ? GT_WHAT_PLAN_TAKEN : GT_WHAT_PLAN_LATE, msg->id, step);
}

void inj_window_cancel(uint64_t cycle)
{
	inj_steps_cancel(cycle);
	if (cycle >= skip_below)
		return;
	/* It has begun; the next plan may have its number. */
	skip_below = cycle;
	lost_cycle = 0;
	if (ctl->cycle != cycle)
		return;
	if (ctl->opened)
		ctl->opened = false;
	else
		ctl->closed_cycle = cycle - (cycle > 0);
	/* The one before it may be waiting. */
	if (cycle <= drained_below)
		ctl->drain_end_ms = 0;
	ctl->draining = ctl->on && ctl->drain_end_ms;
}

void inj_window_drained(uint64_t cycle)
{
	drained_below = cycle + 1;
	if (cycle < ctl->closed_cycle)
		return;
	ctl->draining = false;
	ctl->drain_end_ms = 0;
}

/* The program's own torch.profiler comes or goes. */
static void follow_yields(bool yielded, uint32_t resume_step)
{
	if (yielded == ctl->yielded)
		return;
	if (steps_rule()) /* what was marked before */
		follow_steps(yielded ? UINT32_MAX : resume_step);
	ctl->yielded = yielded;
	if (!yielded) {
		inj_tell(GT_WHAT_RESUME, ctl->cycle, 0);
		return;
	}
	if (ctl->opened || ctl->draining)
		tell_yield(GT_WHAT_YIELD, ctl->cycle, inj_step_now());
	else if (atomic_load_explicit(&inj_arena->mode, memory_order_relaxed) == GT_MODE_KEEP &&
		 !atomic_load_explicit(&inj_arena->keep_full, memory_order_relaxed))
		atomic_store_explicit(&inj_arena->keep_yielded, 1, memory_order_relaxed);
	if (ctl->opened)
		lost_cycle = ctl->cycle + 1;
	if (ctl->on)
		switch_off();
	ctl->opened = false;
	ctl->draining = false;
	set_wanted(false);
}

/* A recording without steps ends after some time with GPU work, or for want of room. */
static void limit_recording(void)
{
	static uint64_t end_ms;
	static bool told_full;
	uint64_t now = inj_now_ms();

	if (!end_ms && inj_activity_seen())
		end_ms = now + KEEP_MAX_MS;
	if (end_ms && now >= end_ms)
		inj_recording_full();
	if (!told_full && atomic_load_explicit(&inj_arena->keep_full, memory_order_relaxed)) {
		told_full = true;
		inj_tell(GT_WHAT_RECORDING_FULL, 0, 0);
	}
}

/* No window will open any more. */
static bool is_over(void)
{
	struct gt_sched_pos pos;

	gt_schedule_at(inj_steps_schedule(), inj_step_now(), &pos);
	return pos.phase == GT_PHASE_OVER;
}

bool inj_cupti_wanted(void)
{
	struct gt_sched_pos pos;

	switch (atomic_load_explicit(&inj_arena->mode, memory_order_relaxed)) {
	case GT_MODE_KEEP:
		return !atomic_load_explicit(&inj_arena->keep_full, memory_order_relaxed);
	case GT_MODE_WHOLE:
		return true;
	default:
		inj_steps_at(inj_step_now(), &pos);
		return pos.armed;
	}
}

/* Is this a step of the window that was lost to the program's own profiler? */
static bool is_lost(void)
{
	struct gt_sched_pos pos;

	inj_steps_at(inj_step_now(), &pos);
	return steps_rule() && pos.phase == GT_PHASE_ACTIVE && pos.cycle + 1 == lost_cycle;
}

/* Tracing ends: what is in flight is waited for, but not for long. */
static void stop_windows(void)
{
	static uint64_t end_ms;

	if (!end_ms)
		end_ms = inj_now_ms() + STOP_DRAIN_MS;
	if (ctl->opened)
		close_window(inj_step_now() + 1);
	ctl->drain_end_ms = GT_MIN(ctl->drain_end_ms, end_ms);
	set_wanted(false);
}

/* While records come, those that are awaited may. */
static void prolong_drain(void)
{
	uint32_t buffers = inj_activity_buffers();
	uint64_t now_ms = inj_now_ms();

	if (buffers != ctl->buffers_seen && now_ms < ctl->drain_end_ms)
		ctl->drain_end_ms = GT_MIN(now_ms + LINGER_MS, ctl->closed_ms + LINGER_MAX_MS);
	ctl->buffers_seen = buffers;
}

uint32_t inj_window_follow(uint32_t yields, uint32_t resume_step)
{
	uint32_t mode = atomic_load_explicit(&inj_arena->mode, memory_order_relaxed);
	uint64_t unsettled_ms;
	bool wanted, torch_wanted;

	follow_yields(yields, resume_step);
	if (mode == GT_MODE_KEEP)
		limit_recording();
	else if (mode == GT_MODE_STEPS)
		follow_steps(UINT32_MAX);
	else if (!ctl->opened)
		open_window(0, 0);

	prolong_drain();
	if (ctl->stopped)
		stop_windows();
	if (ctl->attached && inj_config.capture == INJ_CAPTURE_PROFILER)
		inj_launches_listen(!ctl->yielded && !ctl->stopped && !is_over());
	wanted = inj_cupti_wanted() && !ctl->yielded && !ctl->stopped && !is_lost();
	if (inj_now_ms() >= ctl->drain_end_ms || (ctl->stopped && ctl->mute))
		ctl->draining = false;
	unsettled_ms = ctl->stopped || ctl->yielded ? 0 : gt_sub(settle_end_ms, inj_now_ms());
	if (ctl->on && !wanted && !ctl->draining && !unsettled_ms)
		switch_off();
	if (ctl->attached && !ctl->on && ctl->yielded)
		inj_activity_yield();
	if (ctl->attached && !ctl->on && ctl->stopped)
		inj_activity_end_graphs();
	if (ctl->refused && (ctl->yielded || ctl->stopped)) {
		inj_launches_listen(false);
		inj_activity_end_graphs();
	}
	if (inj_steps_near(inj_step_now()) || inj_capture_near())
		prepare();
	set_wanted(wanted);
	torch_wanted = wanted &&
		       (mode != GT_MODE_KEEP ||
			!atomic_load_explicit(&inj_arena->ops_full, memory_order_relaxed));
	inj_ops_follow(torch_wanted);
	inj_memory_follow(torch_wanted);
	inj_stacks_follow();
	if (wanted && ctl->attached && !ctl->on)
		switch_on();
	if (wanted && !ctl->stopped)
		atomic_store_explicit(&inj_live.armed, 1, memory_order_release);
	return unsettled_ms ? (uint32_t)unsettled_ms : UINT32_MAX;
}

void inj_window_finish(uint64_t end_ms, void (*read_messages)(void))
{
	const struct timespec pause = { .tv_nsec = DRAIN_TICK_MS * GT_NSEC_PER_MSEC };

	set_wanted(false);
	if (steps_rule())
		follow_steps(UINT32_MAX);
	if (ctl->opened)
		close_window(inj_step_now() + 1);
	if (!ctl->on)
		return;
	do {
		inj_activity_flush(false);
		read_messages();
	} while (ctl->draining && !ctl->mute && !ctl->stopped && inj_now_ms() < end_ms &&
		 !nanosleep(&pause, NULL));
	inj_activity_flush(true);
	count_launches();
}
