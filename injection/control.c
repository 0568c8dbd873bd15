/*
 * control.c - the one thread of ours. It follows the program's steps and switches CUPTI on and off,
 * takes what CUPTI has, and talks with the collector. Everything slow is done here, nothing by the
 * program's threads.
 */
#include "cupti_api.h"
#include "events.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_IDLE_MS     1000 /* a stop or the collector's end is noticed after this at most */
#define TICK_ACTIVE_MS   50   /* flush while a window is open */
#define TICK_DRAIN_MS    5    /* flush while the last launches' records are awaited */
#define LINGER_MS        2000 /* for those, at most */
#define YIELD_WAIT_MS    2000
#define EXIT_WAIT_MS     200
#define EXIT_DRAIN_MS    120   /* of it, for records to arrive without force */
#define KEEP_MAX_MS      30000 /* of GPU work, without a step */
#define SEND_WAIT_MS     20
#define DEVICES_AFTER_MS 1000 /* by when cuInit() has returned */

enum attach_state { ATTACH_NONE, ATTACH_OK, ATTACH_FAILED };

/* Asked for or told by other threads. */
static _Atomic uint32_t yields;
static _Atomic uint32_t exiting;
static _Atomic uint32_t attach_state;
static uint32_t runtime_version; /* once it may be asked for */
static bool attached_on;         /* CUPTI was switched on at once; before attach_state */

/* The control thread's own. */
static struct {
	bool attached; /* CUPTI can be used */
	bool on;       /* kinds and callbacks are on */
	bool wanted;   /* by the schedule */
	bool opened;   /* the window of this cycle is open */
	bool closed;   /* it was closed, and that CUPTI is off since has not been told */
	bool draining; /* it is closed, but not all of its launches have their records */
	bool yielded;  /* to the program's own profiler */
	bool stopped;  /* for good */
	bool mute;     /* the program closed the socket: nobody to talk to */
	bool told_attach;
	bool told_source;
	bool told_full;
	bool told_devices;
	uint32_t next_step; /* the first one that has not been followed */
	uint64_t cycle;
	uint64_t skip_cycle; /* + 1: a yield took it */
	uint64_t drain_end_ms;
	uint64_t keep_end_ms;
	uint64_t flush_due_ms;
	uint64_t devices_due_ms;
} ctl;

/* ---- waking and waiting ---- */

static uint64_t now_ms(void)
{
	return inj_clock_ns(CLOCK_MONOTONIC) / GT_NSEC_PER_MSEC;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ms)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ms / 1000),
				    .tv_nsec = (long)(timeout_ms % 1000 * GT_NSEC_PER_MSEC) };

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/*
 * A futex instead of an eventfd: there is no descriptor that the program could close and reuse, so
 * that our wake-up would go into one of its files.
 */
uint32_t inj_control_post(void)
{
	int saved = errno;
	uint32_t ticket = atomic_fetch_add(&inj_live.request, 1) + 1;

	futex_wake(&inj_live.request);
	errno = saved;
	return ticket;
}

bool inj_control_wait(uint32_t ticket, unsigned timeout_ms)
{
	uint64_t end = now_ms() + timeout_ms, now;
	uint32_t done;
	int saved = errno;

	for (;;) {
		done = atomic_load(&inj_live.done);
		now = now_ms();
		if ((int32_t)(done - ticket) >= 0 || now >= end)
			break;
		futex_wait(&inj_live.done, done, end - now);
	}
	errno = saved;
	return (int32_t)(done - ticket) >= 0;
}

/* ---- the collector ---- */

static void stop(void)
{
	ctl.stopped = true;
	atomic_store_explicit(&inj_live.recording, 0, memory_order_relaxed);
	atomic_store_explicit(&inj_live.taking, 0, memory_order_relaxed);
}

/* What became of the socket: with the collector gone there is nothing left to do. */
static void check(int result)
{
	if (result == -EBADF)
		ctl.mute = true;
	else if (result < 0 && result != -EAGAIN)
		stop();
}

static int send_phase(enum gt_phase_what what, uint64_t cycle, uint64_t value)
{
	struct gt_msg_phase msg = {
		.what = what, .cycle = cycle, .value = value, .time_ns = inj_now_ns()
	};

	if (what == GT_WHAT_ATTACHED) {
		msg.cupti_version = inj_cupti.version;
		msg.driver_version = inj_driver_version();
		msg.runtime_version = runtime_version;
		memcpy(msg.record_bytes, inj_cupti.record_bytes, sizeof(msg.record_bytes));
	}
	return inj_transport_send(GT_MSG_PHASE, &msg, sizeof(msg), SEND_WAIT_MS);
}

/* The same from the control thread. */
static void tell(enum gt_phase_what what, uint64_t cycle, uint64_t value)
{
	if (!ctl.mute)
		check(send_phase(what, cycle, value));
}

static void read_messages(void)
{
	uint64_t cycle;
	int type;

	while (!ctl.mute && !ctl.stopped && (type = inj_transport_recv(&cycle)) != 0) {
		if (type < 0)
			check(type);
		else if (type == GT_MSG_STOP)
			stop();
		else if (type == GT_MSG_DRAINED && ctl.draining && cycle == ctl.cycle)
			ctl.draining = false;
	}
}

/* ---- switching ---- */

/* 0, -EBUSY with the API kinds instead of callbacks, or -EIO and nothing is on. */
static int cupti_on(void)
{
	int err;

	err = inj_arena_populate();
	if (err < 0)
		inj_log(GT_LOG_WARN, "no memory for GPU work: %s", strerrordesc_np(-err));
	if (err < 0 || inj_activity_on() < 0)
		return -EIO;
	atomic_store_explicit(&inj_live.on, 1, memory_order_relaxed);
	err = inj_launches_on();
	return err == -EBUSY ? err : 0;
}

static void cupti_off(void)
{
	inj_activity_flush(false);
	inj_activity_off();
	inj_launches_off();
	atomic_store_explicit(&inj_live.on, 0, memory_order_relaxed);
}

/* Have the program's threads record, or not. */
static void set_wanted(bool wanted)
{
	ctl.wanted = wanted;
	atomic_store_explicit(&inj_live.taking, wanted, memory_order_relaxed);
	atomic_store_explicit(&inj_live.recording, wanted, memory_order_relaxed);
	atomic_store_explicit(&inj_live.armed, wanted, memory_order_relaxed);
}

static void switch_on(void)
{
	int err = cupti_on();

	if (err && err != -EBUSY) {
		ctl.attached = false;
		tell(GT_WHAT_NO_CUPTI, ctl.cycle, 0);
		return;
	}
	ctl.on = true;
	if (err)
		tell(GT_WHAT_FALLBACK, ctl.cycle, 0);
}

static void switch_off(void)
{
	cupti_off();
	ctl.on = false;
	ctl.draining = false;
	if (ctl.closed)
		tell(GT_WHAT_OFF, ctl.cycle, 0);
	ctl.closed = false;
}

/* ---- following the program ---- */

/* What the GPUs are. Not while cuInit() runs, which let us in; at the latest with a window's end.
 */
static void tell_devices(void)
{
	if (!ctl.attached || ctl.told_devices || ctl.mute)
		return;
	ctl.told_devices = inj_devices_send();
	runtime_version = inj_runtime_version();
	if (runtime_version)
		tell(GT_WHAT_ATTACHED, 0, 0);
}

static void open_window(uint64_t cycle, uint32_t step)
{
	if (ctl.skip_cycle == cycle + 1)
		return;
	ctl.cycle = cycle;
	if (ctl.yielded) {
		ctl.skip_cycle = cycle + 1;
		tell(GT_WHAT_YIELD, cycle, step);
		return;
	}
	ctl.opened = true;
	ctl.draining = false;
	tell(GT_WHAT_OPEN, cycle, step);
}

static void close_window(uint32_t next_step)
{
	ctl.opened = false;
	ctl.closed = true;
	ctl.draining = ctl.on;
	ctl.drain_end_ms = now_ms() + LINGER_MS;
	ctl.flush_due_ms = 0;
	tell_devices();
	tell(GT_WHAT_CLOSE, ctl.cycle, next_step);
}

static void follow_step(uint32_t step)
{
	struct gt_sched_pos pos;
	bool active;

	gt_schedule_at(&inj_config.schedule, step, &pos);
	active = pos.phase == GT_PHASE_ACTIVE;
	if (ctl.opened && (!active || pos.cycle != ctl.cycle))
		close_window(step);
	if (!ctl.opened && active)
		open_window(pos.cycle, step);
}

/* Catch up with the marks; true when this step needs CUPTI. */
static bool follow_steps(void)
{
	uint32_t mode = atomic_load_explicit(&inj_arena->mode, memory_order_relaxed);
	uint32_t step = atomic_load_explicit(&inj_arena->step, memory_order_relaxed);
	struct gt_sched_pos pos;

	if (mode == GT_MODE_KEEP)
		return !atomic_load_explicit(&inj_arena->keep_full, memory_order_relaxed);
	if (mode == GT_MODE_WHOLE) {
		if (!ctl.opened)
			open_window(0, 0);
		return true;
	}
	/* A source of more authority began to rule, and counts from its own first mark. */
	if (ctl.next_step > step + 1)
		ctl.next_step = step;
	while (ctl.next_step <= step)
		follow_step(ctl.next_step++);
	if (inj_steps_frozen() && !ctl.told_source) {
		ctl.told_source = true;
		tell(GT_WHAT_STEP_SOURCE, ctl.cycle, inj_steps_frozen());
	}
	return inj_steps_wanted(step, &pos);
}

/* The program's own torch.profiler comes or goes. */
static void follow_yields(void)
{
	bool yielded = atomic_load_explicit(&yields, memory_order_relaxed);

	if (yielded == ctl.yielded)
		return;
	ctl.yielded = yielded;
	if (!yielded) {
		tell(GT_WHAT_RESUME, ctl.cycle, 0);
		return;
	}
	if (ctl.opened || ctl.draining) {
		tell(GT_WHAT_YIELD, ctl.cycle, inj_step_now());
		ctl.skip_cycle = ctl.cycle + 1;
		ctl.opened = false;
		ctl.draining = false;
	}
}

static void follow_attach(void)
{
	uint32_t state = atomic_load_explicit(&attach_state, memory_order_acquire);

	if (ctl.told_attach || state == ATTACH_NONE)
		return;
	ctl.told_attach = true;
	ctl.attached = state == ATTACH_OK;
	ctl.on = attached_on;
	ctl.devices_due_ms = now_ms() + DEVICES_AFTER_MS;
	if (!ctl.attached)
		tell(GT_WHAT_NO_CUPTI, 0, 0);
}

/* The bound of a recording without steps: time with GPU work. */
static void limit_recording(void)
{
	uint64_t now = now_ms();

	if (atomic_load_explicit(&inj_arena->mode, memory_order_relaxed) != GT_MODE_KEEP)
		return;
	if (!ctl.keep_end_ms && inj_activity_seen())
		ctl.keep_end_ms = now + KEEP_MAX_MS;
	if (ctl.keep_end_ms && now >= ctl.keep_end_ms)
		inj_recording_full();
	if (!ctl.told_full && atomic_load_explicit(&inj_arena->keep_full, memory_order_relaxed)) {
		ctl.told_full = true;
		tell(GT_WHAT_RECORDING_FULL, 0, 0);
	}
}

/* ---- the thread ---- */

/* One turn. Returns after how many ms the next one is due. */
static uint64_t turn(void)
{
	bool keeping = atomic_load_explicit(&inj_arena->mode, memory_order_relaxed) == GT_MODE_KEEP;
	uint64_t now = now_ms();
	bool wanted;

	read_messages();
	follow_attach();
	if (now >= ctl.devices_due_ms)
		tell_devices();
	limit_recording();
	follow_yields();
	wanted = follow_steps() && !ctl.yielded && !ctl.stopped;
	if (!wanted)
		set_wanted(false);
	if (wanted && ctl.attached && !ctl.on)
		switch_on();
	if (wanted && !ctl.stopped)
		set_wanted(true);

	if (now >= ctl.drain_end_ms || ctl.stopped)
		ctl.draining = false;
	if (ctl.on && !ctl.wanted && !ctl.draining) {
		switch_off();
	} else if (ctl.on && !keeping && now >= ctl.flush_due_ms) {
		/* While keeping, a flush would only use up chunks that are not full. */
		inj_activity_flush(false);
		ctl.flush_due_ms = now_ms() + (ctl.draining ? TICK_DRAIN_MS : TICK_ACTIVE_MS);
	}
	if (ctl.draining)
		return TICK_DRAIN_MS;
	return ctl.on && !keeping ? TICK_ACTIVE_MS : TICK_IDLE_MS;
}

/* The program ends: what its last calls set going may still arrive, within limits. */
static void finish(void)
{
	const struct timespec pause = { .tv_nsec = TICK_DRAIN_MS * GT_NSEC_PER_MSEC };
	uint64_t end = now_ms() + EXIT_DRAIN_MS;

	follow_attach();
	tell_devices();
	set_wanted(false);
	if (ctl.opened)
		close_window(inj_step_now() + 1);
	if (!ctl.on)
		return;
	do {
		inj_activity_flush(false);
		read_messages();
	} while (ctl.draining && !ctl.mute && !ctl.stopped && now_ms() < end &&
		 !nanosleep(&pause, NULL));
	inj_activity_flush(true);
}

static void *control_main(void *arg)
{
	bool end = false;

	(void)arg;
	while (!end) {
		uint32_t request = atomic_load(&inj_live.request);
		uint64_t wait_ms = 0;
		int python_ms = inj_python_poll();

		if (atomic_load_explicit(&exiting, memory_order_relaxed)) {
			finish();
			end = true;
		} else {
			wait_ms = turn();
			end = ctl.stopped && !ctl.on;
		}
		atomic_store(&inj_live.done, request);
		futex_wake(&inj_live.done);
		if (end)
			break;
		if (python_ms >= 0)
			wait_ms = GT_MIN(wait_ms, (uint64_t)python_ms);
		futex_wait(&inj_live.request, request, wait_ms);
	}
	if (ctl.stopped)
		atomic_store_explicit(&inj_live.alive, 0, memory_order_relaxed);
	return NULL;
}

int inj_control_start(void)
{
	sigset_t all, former;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &former); /* signals are the program's */
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, control_main, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
	if (!err)
		pthread_setname_np(thread, "gtrace");
	return -err;
}

/* ---- asked by other threads ---- */

void inj_control_attach(void)
{
	uint32_t mode = atomic_load_explicit(&inj_arena->mode, memory_order_relaxed);
	enum attach_state state = ATTACH_FAILED;
	struct gt_sched_pos pos;
	int err;

	if (inj_cupti_load()) {
		state = ATTACH_OK;
		send_phase(GT_WHAT_ATTACHED, 0, 0);
		inj_launches_init();
		/* Not later: the program's first launches may follow at once. */
		if (mode != GT_MODE_STEPS || inj_steps_wanted(inj_step_now(), &pos)) {
			err = cupti_on();
			attached_on = err != -EIO;
			if (err == -EBUSY)
				send_phase(GT_WHAT_FALLBACK, 0, 0);
			if (err == -EIO)
				state = ATTACH_FAILED;
		} else {
			inj_activity_prearm();
		}
	}
	atomic_store_explicit(&attach_state, state, memory_order_release);
	inj_control_post();
}

void inj_yield(void)
{
	if (!inj_live_alive())
		return;
	atomic_fetch_add_explicit(&yields, 1, memory_order_relaxed);
	inj_control_wait(inj_control_post(), YIELD_WAIT_MS);
}

void inj_resume(void)
{
	if (!inj_live_alive())
		return;
	atomic_fetch_sub_explicit(&yields, 1, memory_order_relaxed);
	inj_control_post();
}

void inj_control_exit(void)
{
	struct gt_msg_cycle bye = { .cycle = 0 };

	atomic_store_explicit(&exiting, 1, memory_order_relaxed);
	if (atomic_load_explicit(&inj_live.on, memory_order_relaxed))
		inj_control_wait(inj_control_post(), EXIT_WAIT_MS);
	inj_transport_send(GT_MSG_BYE, &bye, sizeof(bye), 0);
}
