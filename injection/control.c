/*
 * control.c - the one thread of ours. It does whatever is slow: follows the program's steps, has
 * CUPTI switched, takes what CUPTI has, and talks with the collector. The program's threads only
 * leave it requests.
 */
#include "control.h"
#include "capture.h"
#include "cupti_api.h"
#include "events.h"
#include "nsight.h"
#include "quiet.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_IDLE_MS     1000 /* a stop or the collector's end is noticed after this at most */
#define TICK_ACTIVE_MS   1000 /* flush while a window is open: each one costs the program time */
#define TICK_BOTH_MS     50   /* and the last records of the one before are awaited */
#define TICK_DRAIN_MS    5    /* flush while a window's last records are awaited */
#define DRAIN_SOON_MS    2000 /* so long; then the GPU is far behind, and TICK_BOTH_MS does */
#define YIELD_WAIT_MS    2000
#define EXIT_WAIT_MS     200
#define EXIT_DRAIN_MS    120 /* of it, for records to arrive without force */
#define SEND_WAIT_MS     20
#define DEVICES_FIRST_MS 20 /* first try to ask for the GPUs; the next after twice the time */

/* cuptiGetVersion() of CUDA 13.0, whose first call was seen to do no harm within a program */
#define CUPTI_LATE_CALL 130000

enum attach_state { ATTACH_NONE, ATTACH_BEGUN, ATTACH_OK, ATTACH_FAILED };

/* Asked for or told by other threads. */
static _Atomic uint32_t yields;
static _Atomic uint32_t resume_step; /* in which the last one came back */
static _Atomic uint32_t exiting;
static _Atomic uint32_t attach_state;
/* CUPTI was switched on at once, without its callbacks; before attach_state. */
static bool attached_on, attached_fallback;

static struct inj_control *const ctl = &inj_control;
static uint32_t runtime_version; /* once it may be asked for */
static bool devices_told;
static sigset_t host_signals; /* blocked in the thread that started ours */

/* ---- the collector ---- */

/* What became of the socket: with the collector gone there is nothing left to do. */
static void check(int result)
{
	if (!result || result == -EAGAIN)
		return;
	ctl->mute = true;
	if (result == -EBADF)
		return;
	ctl->stopped = true;
	atomic_store_explicit(&inj_live.recording, 0, memory_order_relaxed);
	atomic_store_explicit(&inj_live.taking, 0, memory_order_relaxed);
}

static int send_phase(enum gt_phase_what what, uint64_t cycle, uint64_t value)
{
	struct gt_msg_phase msg = {
		.what = what, .cycle = cycle, .value = value, .time_ns = inj_now_ns()
	};

	inj_log(GT_LOG_DEBUG, "phase %d, cycle %llu, value %llu", (int)what,
		(unsigned long long)cycle, (unsigned long long)value);
	if (what == GT_WHAT_ATTACHED) {
		msg.cupti_version = inj_cupti.version;
		msg.driver_version = inj_driver_version();
		msg.runtime_version = runtime_version;
		memcpy(msg.record_bytes, inj_cupti.record_bytes, sizeof(msg.record_bytes));
	}
	return inj_transport_send(GT_MSG_PHASE, &msg, sizeof(msg), SEND_WAIT_MS);
}

void inj_tell(enum gt_phase_what what, uint64_t cycle, uint64_t value)
{
	if (!ctl->mute)
		check(send_phase(what, cycle, value));
}

static void take_message(int type, const union inj_message *msg)
{
	if (ctl->stopped && type != GT_MSG_DRAINED)
		return;
	switch (type) {
	case GT_MSG_STOP:
		ctl->stopped = true; /* what is launched until the window is closed is in it */
		return;
	case GT_MSG_PLAN:
		inj_window_plan(&msg->plan);
		return;
	case GT_MSG_CANCEL:
		inj_window_cancel(msg->cycle.cycle);
		return;
	case GT_MSG_DRAINED:
		inj_window_drained(msg->cycle.cycle);
	}
}

static void read_messages(void)
{
	union inj_message msg;
	int type;

	while (!ctl->mute && (type = inj_transport_recv(&msg)) != 0) {
		if (type < 0)
			check(type);
		else
			take_message(type, &msg);
	}
}

void inj_tell_devices(void)
{
	if (devices_told || !ctl->attached || ctl->mute)
		return;
	devices_told = inj_devices_send();
	if (devices_told)
		inj_exit_early();
	runtime_version = inj_runtime_version();
	if (runtime_version)
		inj_tell(GT_WHAT_ATTACHED, 0, 0);
}

/* Not at once: cuInit(), which let us in, has yet to return. Returns ms to the next try. */
static uint32_t try_devices(void)
{
	static uint64_t due_ms;
	static uint32_t pause_ms = DEVICES_FIRST_MS;

	if (devices_told || !ctl->attached || ctl->mute)
		return UINT32_MAX;
	if (due_ms && inj_now_ms() >= due_ms) {
		inj_tell_devices();
		pause_ms = GT_MIN(2 * pause_ms, (uint32_t)TICK_IDLE_MS);
		due_ms = 0;
	}
	if (!due_ms)
		due_ms = inj_now_ms() + pause_ms;
	return pause_ms;
}

static bool attach_followed;

static void follow_attach(void)
{
	uint32_t state = atomic_load_explicit(&attach_state, memory_order_acquire);

	if (attach_followed || state <= ATTACH_BEGUN)
		return;
	attach_followed = true;
	ctl->attached = state == ATTACH_OK;
	ctl->on = attached_on;
	ctl->fallback = attached_fallback;
	ctl->refused = !ctl->attached;
	if (ctl->refused)
		inj_tell(GT_WHAT_NO_CUPTI, 0, 0);
}

/* ---- the thread ---- */

/* Back more of the arena with memory, a little at a time. */
static bool grow(void)
{
	bool more = false;

	if (ctl->attached)
		more = inj_arena_grow(GT_POOL_CUPTI);
	if (ctl->attached || ctl->wanted)
		more |= inj_arena_grow(GT_POOL_EVENT);
	return more;
}

/* Flush when it is due. Returns after how many ms it is again. */
static uint32_t flush(void)
{
	static uint64_t due_ms, flushed_ms;
	uint32_t mode = atomic_load_explicit(&inj_arena->mode, memory_order_relaxed);
	uint32_t tick_ms = TICK_ACTIVE_MS;
	uint64_t now_ms = inj_now_ms();

	/* While it keeps, a flush would only use up chunks that are not full. */
	if (!ctl->on || mode == GT_MODE_KEEP)
		return UINT32_MAX;
	if (ctl->draining && now_ms < ctl->closed_ms + DRAIN_SOON_MS)
		tick_ms = TICK_DRAIN_MS;
	else if (now_ms < ctl->drain_end_ms)
		tick_ms = TICK_BOTH_MS;
	due_ms = GT_MIN(due_ms, now_ms + tick_ms);
	if (ctl->draining && flushed_ms < ctl->closed_ms) /* most of it is there at once */
		due_ms = now_ms;
	if (now_ms >= due_ms) {
		/* Each flush takes a chunk of every thread that launched. */
		if (inj_arena_keeps_up())
			inj_activity_flush(false);
		flushed_ms = now_ms;
		due_ms = now_ms + tick_ms;
	}
	return (uint32_t)(due_ms - now_ms);
}

/* One turn. Returns after how many ms the next one is due. */
static uint32_t turn(void)
{
	uint32_t wait_ms = TICK_IDLE_MS, now_yields;

	read_messages();
	follow_attach();
	now_yields = atomic_load_explicit(&yields, memory_order_acquire);
	wait_ms = GT_MIN(wait_ms,
			 inj_window_follow(now_yields, atomic_load_explicit(&resume_step,
									    memory_order_relaxed)));
	/* A range of time begins when what it needs is on. */
	wait_ms = GT_MIN(wait_ms, inj_capture_follow());
	wait_ms = GT_MIN(wait_ms, try_devices());
	wait_ms = GT_MIN(wait_ms, flush());
	wait_ms = GT_MIN(wait_ms, (uint32_t)inj_python_poll()); /* -1: never */
	return grow() ? 0 : wait_ms;
}

/*
 * Has the program ended but for this thread, which would keep it? Its first one may have, by
 * pthread_exit(): it stays, without memory, and so has no executable. No descriptor is taken.
 */
static bool is_last_thread(void)
{
	enum { LINKS_OF_TWO = 2 + 2 }; /* of this directory: two, and one for each thread */
	struct stat threads;
	char byte;

	return readlink("/proc/self/exe", &byte, sizeof(byte)) < 0 && errno == ENOENT &&
	       !stat("/proc/self/task", &threads) && threads.st_nlink == LINKS_OF_TWO;
}

static bool is_attaching(void)
{
	return atomic_load_explicit(&attach_state, memory_order_acquire) == ATTACH_BEGUN;
}

/* None will begin any more, and what one has switched on is known. */
static bool end_attaching(void)
{
	uint32_t none = ATTACH_NONE;

	return attach_followed ||
	       atomic_compare_exchange_strong(&attach_state, &none, ATTACH_FAILED);
}

static void *control_main(void *arg)
{
	uint32_t request, seen, wait_ms, handled = 0;
	bool attaching, last = false;

	(void)arg;
	for (seen = 0;; seen = request) {
		request = atomic_load(&inj_arena->request);
		last = request == seen && is_last_thread(); /* whoever asks for something lives */
		if (last)
			atomic_store_explicit(&exiting, 1, memory_order_relaxed);
		if (atomic_load_explicit(&exiting, memory_order_relaxed)) {
			follow_attach();
			inj_tell_devices();
			inj_window_finish(inj_now_ms() + EXIT_DRAIN_MS, read_messages);
			break;
		}
		attaching = is_attaching();
		wait_ms = turn();
		/* What is being switched on is to be switched off again. */
		if (ctl->stopped && !ctl->on && end_attaching()) {
			inj_tell(GT_WHAT_OFF, ctl->cycle, 0);
			break;
		}
		/* A profiler that begins waits also for what is being switched on. */
		if (!ctl->yielded || !attaching)
			handled = request;
		inj_control_next(handled, request, wait_ms);
	}
	if (ctl->stopped)
		atomic_store_explicit(&inj_live.alive, 0, memory_order_relaxed);
	/* Nobody is to wait for us any more, whatever is posted. */
	inj_control_next(request + INT32_MAX / 2, request, 0);
	/* Not to end beside the process: leak checkers would see a thread that is half gone. */
	while (!ctl->stopped && !last)
		pause();
	if (is_last_thread()) /* the program's handlers of exit() follow, on this one */
		pthread_sigmask(SIG_SETMASK, &host_signals, NULL);
	return NULL;
}

int inj_control_start(void)
{
	sigset_t all;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &host_signals); /* signals are the program's */
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, control_main, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &host_signals, NULL);
	if (!err)
		pthread_setname_np(thread, "gtrace");
	return -err;
}

/* ---- asked by other threads ---- */

/*
 * From CUPTI's first call on, but for what asks for its version and names, each launch goes through
 * it for good: 380 instructions more, of some 8,450, on an H200 with CUPTI 13.0 and no kind
 * enabled. So it is left alone until a window is near. But most captured ranges may begin at any
 * moment; and older ones are said to hang or crash in graphs that were made before their first call
 * (pytorch issue 75504).
 */
static bool is_called_early(void)
{
	return inj_config.capture == INJ_CAPTURE_PROFILER ||
	       inj_config.capture == INJ_CAPTURE_NVTX || inj_cupti.version < CUPTI_LATE_CALL ||
	       inj_steps_near(inj_step_now());
}

static enum attach_state attach(void)
{
	int err;

	inj_device_init();
	if (!inj_arena_attach()) {
		inj_log(GT_LOG_WARN, "no memory for GPU work: it will not be in the trace");
		return ATTACH_FAILED;
	}
	if (!inj_cupti_load())
		return ATTACH_FAILED;
	send_phase(GT_WHAT_ATTACHED, 0, 0);
	inj_launches_init();
	inj_quiet_init();
	/* CUPTI is the program's own profiler's by now: what is missing here follows it. */
	if (atomic_load_explicit(&yields, memory_order_acquire))
		return ATTACH_OK;
	inj_launches_listen(inj_config.capture == INJ_CAPTURE_PROFILER);
	inj_activity_attach(!inj_cupti_wanted() && is_called_early());
	if (!inj_cupti_wanted())
		return ATTACH_OK;
	/* Not later: the program's first launches may follow at once. */
	atomic_store_explicit(&inj_live.taking, 1, memory_order_relaxed);
	err = inj_cupti_on();
	if (err == -EIO)
		return ATTACH_FAILED;
	attached_on = true;
	attached_fallback = err;
	if (err)
		send_phase(GT_WHAT_FALLBACK, 0, 0);
	return ATTACH_OK;
}

void inj_control_attach(void)
{
	uint32_t none = ATTACH_NONE;

	if (!atomic_compare_exchange_strong(&attach_state, &none, ATTACH_BEGUN))
		return;
	atomic_store_explicit(&attach_state, attach(), memory_order_release);
	inj_control_post();
}

void inj_yield(void)
{
	if (!inj_live_alive() || inj_nsight())
		return;
	atomic_fetch_add_explicit(&yields, 1, memory_order_relaxed);
	inj_control_wait(inj_control_post(), YIELD_WAIT_MS);
}

void inj_resume(void)
{
	if (!inj_live_alive() || inj_nsight())
		return;
	atomic_store_explicit(&resume_step, inj_step_now(), memory_order_relaxed);
	atomic_fetch_sub_explicit(&yields, 1, memory_order_release);
	inj_control_post();
}

void inj_control_exit(void)
{
	struct gt_msg_cycle bye = { .cycle = 0 };
	bool waits = !atomic_exchange_explicit(&exiting, 1, memory_order_relaxed);

	/* With a window open, or one that the control thread has not heard of the end of. */
	if (waits && (atomic_load_explicit(&inj_live.on, memory_order_relaxed) ||
		      atomic_load_explicit(&inj_live.armed, memory_order_relaxed) ||
		      atomic_load(&inj_arena->request) != atomic_load(&inj_live.done)))
		inj_control_wait(inj_control_post(), EXIT_WAIT_MS);
	atomic_store_explicit(&inj_arena->ended, 1, memory_order_release);
	inj_transport_send(GT_MSG_BYE, &bye, sizeof(bye), 0);
}
