/*
 * ops_rig.h - torch's observer on a fake libtorch_cpu.so, for tests that have a main() of their
 * own.
 */
#ifndef OPS_RIG_H
#define OPS_RIG_H

#include "control.h"
#include "events.h"
#include "in_child.h"
#include "fake_torch.h"
#include "fake_torch_comms.h"
#include "torch_ops.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define FUNCTION 0
#define USER     7

/* Each case runs in a process of its own: torch is found once in a process. */
#define in_process(...) in_child_until(exit, load(); __VA_ARGS__)

static struct fake_torch *torch;
static void (*begin)(struct fake_op *op, uint8_t scope, const char *name, int64_t sequence,
		     uint64_t fwd_thread);
static void (*end)(struct fake_op *op);
static char library[4096];
static uint32_t read_bytes; /* of this thread's chunk */

static inline void load(void)
{
	void *handle = dlopen(library, RTLD_NOW);

	check(handle);
	torch = dlsym(handle, "fake_torch");
	begin = (typeof(begin))dlsym(handle, "fake_op_begin");
	end = (typeof(end))dlsym(handle, "fake_op_end");
	check(torch && begin && end);
}

static inline void start_session(bool recording)
{
	int fd;

	inj_config.schedule = (struct gt_schedule)GT_SCHEDULE_DEFAULT;
	inj_config.sources = 1U << GT_STEP_OPTIMIZER;
	check(!inj_arena_create(GT_ARENA_MIN_BYTES, GT_MODE_STEPS, &fd));
	check(!inj_events_init() && !inj_names_init());
	atomic_store(&inj_live.armed, 1); /* there is no control thread to wait for */
	atomic_store(&inj_live.recording, recording);
	atomic_store(&inj_live.alive, 1);
}

static inline int observe(bool at_once)
{
	struct fake_op test;

	if (!gtrace_inject_ops_test())
		return -1;
	begin(&test, FUNCTION, "aten::empty", -1, 0);
	end(&test);
	return gtrace_inject_ops_begin(at_once);
}

/* An observer that is on, and a session that records. */
static inline void go(void)
{
	start_session(true);
	check(observe(false) == 1);
	inj_ops_follow(true);
}

/* The next event of this thread but names; NULL: there is none. */
static inline const void *next_event(void)
{
	const struct gt_ev *ev;

	while (inj_self && inj_self->data && read_bytes < inj_self->pos) {
		ev = (const void *)(inj_self->data + read_bytes);
		read_bytes += ev->size_bytes;
		if (ev->type != GT_EV_STRING)
			return ev;
	}
	return NULL;
}

static inline void check_op(uint32_t depth, int64_t sequence, uint32_t fwd_thread)
{
	const struct gt_ev_op *op = next_event();

	check(op && op->ev.type == GT_EV_OP && op->depth == depth);
	check(op->sequence == sequence && op->fwd_thread == fwd_thread);
	check(op->thread >= 1 && op->name_id && !op->stack_id && !op->inputs_bytes);
}

static inline void check_op_end(uint32_t depth)
{
	const struct gt_ev_op_end *op = next_event();

	check(op && op->ev.type == GT_EV_OP_END && op->depth == depth && !op->reserved);
}

static inline void check_user(const char *name, uint64_t depth)
{
	const struct gt_ev_range *range = next_event();

	check(range && range->ev.type == GT_EV_PUSH && range->domain_id == GT_DOMAIN_TORCH);
	check(range->range_id == depth && range->len_bytes == strlen(name));
	check(!memcmp(range->bytes, name, strlen(name)) && !range->inputs_bytes);
}

static inline void check_user_end(uint64_t depth)
{
	const struct gt_ev_end *range = next_event();

	check(range && range->ev.type == GT_EV_POP && range->domain_id == GT_DOMAIN_TORCH &&
	      range->range_id == depth);
}

/* The library stands beside the program. */
static inline void find_library(const char *program)
{
	snprintf(library, sizeof(library), "%.*s/fake-torch/libtorch_cpu.so",
		 (int)(strrchr(program, '/') - program), program);
}

#endif
