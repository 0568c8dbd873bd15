/*
 * quiet.c - a moment without launches. The program's threads wait at the beginning of a launch, for
 * some tens of microseconds once a window, after it; whatever goes wrong, not for long.
 */
#include "quiet.h"
#include "clock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define QUIET_WAIT_NS (3 * GT_NSEC_PER_MSEC) /* of a thread, at most */
#define TRY_NS        GT_NSEC_PER_MSEC       /* for those within a launch to come out */
#define PAUSE_NS      (2 * GT_NSEC_PER_MSEC) /* between two tries */
#define LOOK_NS       (20 * 1000)
#define TRIES         50

_Atomic bool inj_quiet_wanted;

static bool has_membarrier;

static bool membarrier(int command)
{
	return !syscall(SYS_membarrier, command, 0, 0);
}

void inj_quiet_init(void)
{
	has_membarrier = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static void pause_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

void inj_quiet_wait(struct inj_thread *self, uint32_t generation)
{
	uint64_t end_ns = gt_clock_ns(CLOCK_MONOTONIC) + QUIET_WAIT_NS;

	/* Looked at again once we seem to launch: it may be wanted again by then. */
	while (atomic_load_explicit(&inj_quiet_wanted, memory_order_acquire)) {
		inj_launch_ends(self);
		/* The control thread hangs: nobody is to wait for it again. */
		if (gt_clock_ns(CLOCK_MONOTONIC) > end_ns)
			inj_quiet_end();
		sched_yield(); /* to those within a launch */
		if (atomic_load_explicit(&inj_quiet_wanted, memory_order_acquire))
			continue;
		atomic_store_explicit(&self->launching, generation, memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
	}
}

static bool becomes_quiet(void)
{
	uint64_t end_ns;

	atomic_store(&inj_quiet_wanted, true);
	/* Either a thread sees that, or we see that it launches. */
	if (!has_membarrier || !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		pause_ns(TRY_NS / 4);
	end_ns = gt_clock_ns(CLOCK_MONOTONIC) + TRY_NS;
	while (inj_threads_launching()) {
		if (gt_clock_ns(CLOCK_MONOTONIC) > end_ns)
			return false;
		pause_ns(LOOK_NS);
	}
	/* Not when this thread was not run meanwhile, and one has waited for too long. */
	return atomic_load(&inj_quiet_wanted);
}

bool inj_quiet_begin(void)
{
	if (!atomic_load_explicit(&inj_live.heard, memory_order_relaxed))
		return true; /* launches are records, which tell nothing while they last */
	for (int i = 0; i < TRIES; i++) {
		if (becomes_quiet())
			return true;
		inj_quiet_end();
		pause_ns(PAUSE_NS);
	}
	return false;
}

void inj_quiet_end(void)
{
	atomic_store_explicit(&inj_quiet_wanted, false, memory_order_release);
}
