/*
 * wake.c - waking the control thread, and waiting for it. A futex instead of an eventfd: there is
 * no descriptor that the program could close and reuse, so that our wake-up would go into one of
 * its files. It lies in the arena, for the collector to wake the control thread likewise.
 */
#include "session.h"
#include "clock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t inj_now_ms(void)
{
	return gt_clock_ms(CLOCK_MONOTONIC);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ms)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ms / 1000),
				    .tv_nsec = (long)(timeout_ms % 1000 * GT_NSEC_PER_MSEC) };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

uint32_t inj_control_post(void)
{
	int saved = errno;
	uint32_t ticket = atomic_fetch_add(&inj_arena->request, 1) + 1;

	futex_wake(&inj_arena->request);
	errno = saved;
	return ticket;
}

bool inj_control_wait(uint32_t ticket, uint32_t timeout_ms)
{
	uint64_t end = inj_now_ms() + timeout_ms, now;
	uint32_t done;
	int saved = errno;

	for (;;) {
		done = atomic_load(&inj_live.done);
		now = inj_now_ms();
		if ((int32_t)(done - ticket) >= 0 || now >= end)
			break;
		futex_wait(&inj_live.done, done, end - now);
	}
	errno = saved;
	return (int32_t)(done - ticket) >= 0;
}

void inj_control_next(uint32_t handled, uint32_t seen, uint32_t timeout_ms)
{
	if (atomic_exchange(&inj_live.done, handled) != handled)
		futex_wake(&inj_live.done);
	futex_wait(&inj_arena->request, seen, timeout_ms);
}
