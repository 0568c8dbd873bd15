/*
 * torch_ops.c - torch's operators as events. An observer is registered once, right after torch was
 * imported, and switched by the control thread; while it is off, torch does not call it.
 *
 * Each operator in progress has a context, which torch hands back at its end. Those of a thread are
 * linked, the innermost first: an end that comes in another order, or on another thread (as of
 * asynchronous ones), ends what it belongs to and nothing else.
 */
#include "torch_ops.h"
#include "env.h"
#include "events.h"
#include "nsight.h"
#include "py_stacks.h"
#include "torch_abi.h"
#include "torch_comms.h"
#include "torch_inputs.h"
#include "torch_memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* What torch calls the range around an optimizer's step(). */
#define STEP_NAME "Optimizer.step#"

enum stack_kind { STACK_OPS, STACK_USER, STACK_KINDS };

struct op {
	struct torch_context torch; /* first */
	struct op *outer;           /* of its thread and kind */
	uint64_t step_key;
	uint32_t depth;
	uint8_t kind;         /* enum stack_kind */
	bool optimizer;       /* named STEP_NAME */
	bool marks_step;      /* with step_key, when it ends */
	bool ended;           /* by its own thread: the context is free to go */
	_Atomic bool strayed; /* by another one; its own thread frees it */
};

enum observer {
	OBSERVER_NONE,    /* not registered, or given up */
	OBSERVER_TESTING, /* on, to see one operator on the thread that registered it */
	OBSERVER_WAITING, /* on: the first operator starts the session */
	OBSERVER_READY,   /* the control thread switches it */
};

static _Atomic int observer; /* enum observer */
static _Atomic bool enabled; /* torch calls us; after registration the control thread's to change */
static _Atomic(const char *) problem;
static _Atomic bool by_nvtx;        /* not us, but torch's NVTX profiler */
static _Atomic bool inputs_unknown; /* is to be said */
static struct torch_abi torch;
static uint64_t handle;
static pid_t registered_pid;
static bool with_inputs; /* set before the first event */

static struct {
	uint64_t thread;
	uint32_t seen;
} test;

static __thread struct op *open_ops[STACK_KINDS];

/* ---- switching ---- */

/*
 * Held while torch holds its own lock for us: a child that is forked meanwhile would wait for that
 * one for ever.
 */
static pthread_mutex_t switching = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
	pthread_mutex_lock(&switching);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&switching);
}

static void switch_to(bool on)
{
	pthread_mutex_lock(&switching);
	atomic_store(&enabled, on);
	if (on)
		torch.enable(handle);
	else
		torch.disable(handle);
	pthread_mutex_unlock(&switching);
}

/* ---- contexts ---- */

static void complete_destructor(struct op *op)
{
	(void)op;
}

/* Torch lets go of the context, right after the end callback. */
static void deleting_destructor(struct op *op)
{
	if (op->ended)
		free(op);
	else
		atomic_store_explicit(&op->strayed, true, memory_order_release);
}

/* Behind the two words that precede a C++ object's table: offset to top, type information. */
static const void *const context_table[] = { NULL, NULL, (const void *)complete_destructor,
					     (const void *)deleting_destructor };

/* Let go of the innermost ones that ended elsewhere. */
static void drop_strayed(enum stack_kind kind)
{
	struct op *op;

	while ((op = open_ops[kind]) && atomic_load_explicit(&op->strayed, memory_order_acquire)) {
		open_ops[kind] = op->outer;
		free(op);
		if (inj_nsight() && inj_alive())
			inj_nsight_pop();
	}
}

static struct op *op_new(enum stack_kind kind)
{
	struct op *op = malloc(sizeof(*op));

	drop_strayed(kind);
	if (!op)
		return NULL;
	*op = (struct op){
		.torch.vtable = context_table + 2,
		.outer = open_ops[kind],
		.depth = open_ops[kind] ? open_ops[kind]->depth + 1 : 1,
		.kind = (uint8_t)kind,
	};
	return op;
}

/* Take it out of this thread's; false: it is another thread's. */
static bool op_unlink(struct op *op)
{
	struct op **place = &open_ops[op->kind];

	while (*place && *place != op)
		place = &(*place)->outer;
	if (!*place)
		return false;
	*place = op->outer;
	return true;
}

/* ---- events ---- */

/* At at in an event of which size bytes are used so far, and GT_INPUTS_MAX more are reserved. */
static uint32_t put_inputs(void *event, uint32_t size, const char *function)
{
	char *at = (char *)event + size;
	uint32_t len, padded;

	if (!with_inputs)
		return 0;
	len = torch_inputs_put(at, torch_inputs(function, &torch),
			       torch_inputs_count(function, &torch));
	padded = GT_PAD8(len);
	memset(at + len, 0, padded - len);
	inj_shrink(event, size + padded);
	return len;
}

static uint32_t inputs_max(void)
{
	return with_inputs ? GT_INPUTS_MAX : 0;
}

static bool put_op(const struct op *op, const char *function, const char *name)
{
	uint32_t name_id = inj_intern(name, strlen(name)), stack_id = inj_stack();
	struct gt_ev_op *ev = name_id ? inj_reserve(GT_EV_OP, (uint32_t)sizeof(*ev) + inputs_max())
				      : NULL;

	if (!ev)
		return false;
	ev->sequence = (int64_t)field_u64(function, torch.sequence_at);
	ev->thread = (uint32_t)field_u64(function, TORCH_THREAD_AT);
	ev->fwd_thread = (uint32_t)field_u64(function, torch.fwd_thread_at);
	ev->name_id = name_id;
	ev->depth = op->depth;
	ev->stack_id = stack_id;
	ev->inputs_bytes = put_inputs(ev, sizeof(*ev), function);
	inj_commit();
	if (GT_UNLIKELY(*name == *TORCH_COMMS_NAME) && !strcmp(name, TORCH_COMMS_NAME))
		torch_comms_put(op->depth);
	return true;
}

static void put_op_end(const struct op *op)
{
	struct gt_ev_op_end *ev = inj_reserve(GT_EV_OP_END, sizeof(*ev));

	if (!ev)
		return;
	ev->depth = op->depth;
	ev->reserved = 0;
	inj_commit();
}

/* The name of a record_function() is often made up for it alone, so it is not interned. */
static bool put_user(const struct op *op, const char *function, const char *name)
{
	uint32_t len = (uint32_t)strnlen(name, GT_INLINE_MAX);
	uint32_t size = (uint32_t)sizeof(struct gt_ev_range) + GT_PAD8(len);
	uint32_t stack_id = inj_stack();
	struct gt_ev_range *ev = inj_reserve(GT_EV_PUSH, size + inputs_max());

	if (!ev)
		return false;
	ev->range_id = op->depth;
	ev->domain_id = GT_DOMAIN_TORCH;
	ev->name_id = 0;
	ev->len_bytes = len;
	ev->stack_id = stack_id;
	ev->reserved = 0;
	memcpy(ev->bytes, name, len);
	memset(ev->bytes + len, 0, size - sizeof(*ev) - len);
	ev->inputs_bytes = put_inputs(ev, size, function);
	inj_commit();
	return true;
}

static void put_user_end(const struct op *op)
{
	uint32_t stack_id = inj_stack();
	struct gt_ev_end *ev = inj_reserve(GT_EV_POP, sizeof(*ev));

	if (!ev)
		return;
	ev->range_id = op->depth;
	ev->domain_id = GT_DOMAIN_TORCH;
	ev->stack_id = stack_id;
	inj_commit();
}

static bool put_start(const struct op *op, const char *function, const char *name)
{
	if (inj_nsight()) {
		inj_nsight_push(name);
		return true;
	}
	return op->kind == STACK_USER ? put_user(op, function, name) : put_op(op, function, name);
}

static void put_end(const struct op *op)
{
	if (inj_nsight())
		inj_nsight_pop();
	else if (op->kind == STACK_USER)
		put_user_end(op);
	else
		put_op_end(op);
}

/* ---- called by torch ---- */

/* The session starts with the first operator, not in a child that only forked: workers do so. */
static void start_session(void)
{
	int waiting = OBSERVER_WAITING;

	if (atomic_compare_exchange_strong(&observer, &waiting, OBSERVER_READY) &&
	    (getpid() != registered_pid || !inj_start(GT_DOOR_PYTHON)))
		switch_to(false);
}

static void look_at_test(const char *function)
{
	int64_t sequence = (int64_t)field_u64(function, torch.sequence_at);

	if (test.seen && with_inputs) {
		torch_inputs_test(torch.name(function), torch_inputs(function, &torch),
				  torch_inputs_count(function, &torch));
		return;
	}
	if (field_u64(function, TORCH_THREAD_AT) == test.thread && !torch_scope(function) &&
	    sequence >= -1 && sequence < INT64_C(1) << 48 &&
	    !field_u64(function, torch.fwd_thread_at) &&
	    !strcmp(torch.name(function), "aten::empty"))
		test.seen++;
}

static bool is_ready(void)
{
	return atomic_load_explicit(&observer, memory_order_acquire) == OBSERVER_READY;
}

/* Is this operator, after all, to be recorded? */
static GT_NOINLINE bool becomes_ready(const char *function)
{
	switch (atomic_load_explicit(&observer, memory_order_acquire)) {
	case OBSERVER_TESTING:
		if (torch.thread() == test.thread)
			look_at_test(function);
		return false;
	case OBSERVER_WAITING:
		start_session();
		return inj_recording();
	case OBSERVER_READY:
		/* Forked while it was on, or the collector is gone. */
		if (!inj_alive())
			switch_to(false);
		return false;
	default:
		return false;
	}
}

struct torch_context **torch_op_begins(struct torch_context **ret, const char *function)
{
	enum stack_kind kind;
	const char *name;
	struct op *op;
	bool put;

	*ret = NULL;
	if (GT_UNLIKELY(!is_ready() || !inj_recording()) && !becomes_ready(function))
		return ret;
	kind = torch_scope(function) == TORCH_SCOPE_USER ? STACK_USER : STACK_OPS;
	name = torch.name(function);
	op = name ? op_new(kind) : NULL;
	if (!op)
		return ret;
	put = put_start(op, function, name);
	if (!put) {
		free(op);
		return ret;
	}
	op->optimizer = kind == STACK_USER && !strncmp(name, STEP_NAME, strlen(STEP_NAME));
	open_ops[kind] = op;
	*ret = &op->torch;
	return ret;
}

/* Also when recording has ended meanwhile: the collector has the beginning. */
static void on_end(const char *function, struct torch_context *context)
{
	struct op *op = (struct op *)context;

	(void)function;
	if (!op || !op_unlink(op))
		return;
	op->ended = true;
	if (!inj_alive())
		return;
	put_end(op);
	if (op->marks_step)
		inj_step(GT_STEP_OPTIMIZER, op->step_key);
}

/* ---- registering ---- */

/* Does the user want operators? */
static bool asked_for(void)
{
	const char *activities = getenv(GT_ENV_ACTIVITIES);

	return !activities || strstr(activities, "cpu");
}

/* And their inputs? */
static bool inputs_asked_for(void)
{
	const char *with = getenv(GT_ENV_WITH);

	return with && strstr(with, "shapes");
}

static int give_up(const char *why)
{
	atomic_store(&problem, why);
	atomic_store(&by_nvtx, true);
	atomic_store(&observer, OBSERVER_NONE);
	return 0;
}

static int test_operators(void)
{
	struct torch_callback callback = {
		.start = torch_start,
		.end = on_end,
		.sampling_probability = 1,
	};
	const char *why, *source = getenv(GT_ENV_OPS);
	int none = OBSERVER_NONE;

	if (handle || !asked_for())
		return 0;
	why = source && !strcmp(source, "nvtx") ? GT_ENV_OPS " says so" : torch_abi_find(&torch);
	if (why)
		return give_up(why);
	torch_comms_find(torch.library);
	if (!atomic_compare_exchange_strong(&observer, &none, OBSERVER_TESTING))
		return 0;
	memset(callback.scopes, true, sizeof(callback.scopes));
	with_inputs = inputs_asked_for();
	callback.needs_inputs = with_inputs;
	torch_inputs_begin_test(torch.undefined);
	if (pthread_atfork(before_fork, after_fork, after_fork))
		inj_log(GT_LOG_DEBUG, "no hook for fork");
	registered_pid = getpid();
	test.thread = torch.thread();
	test.seen = 0;
	atomic_store(&enabled, true);
	handle = torch.add(callback);
	return handle ? 1 + with_inputs : 0;
}

int gtrace_inject_ops_test(void)
{
	bool memory = torch_memory_test();
	int operators = test_operators();

	return operators ? operators : memory;
}

int gtrace_inject_ops_begin(int at_once)
{
	int testing = OBSERVER_TESTING;

	torch_memory_begin(at_once);
	if (atomic_load(&observer) != OBSERVER_TESTING)
		return 0;
	if (test.seen != 1) {
		switch_to(false);
		return give_up("its operators are not seen");
	}
	if (with_inputs && !torch_inputs_passed()) {
		with_inputs = false;
		atomic_store(&inputs_unknown, true);
	}
	if (!at_once)
		switch_to(false);
	/* Our handler is to run before torch is gone. */
	if (inj_alive() && !inj_nsight())
		inj_exit_early();
	atomic_compare_exchange_strong(&observer, &testing,
				       at_once && !inj_alive() ? OBSERVER_WAITING : OBSERVER_READY);
	if (inj_alive())
		inj_control_post();
	return 1;
}

/* ---- asked by the session ---- */

bool inj_ops_observed(void)
{
	return atomic_load(&observer) != OBSERVER_NONE || torch_memory_known();
}

void inj_ops_follow(bool wanted)
{
	const char *why = atomic_exchange(&problem, NULL);
	static bool told;

	if (why)
		inj_log(GT_LOG_WARN,
			"torch's operators come from its NVTX profiler, which takes longer and "
			"tells no shapes: %s",
			why);
	if (atomic_exchange(&inputs_unknown, false))
		inj_log(GT_LOG_WARN, "the shapes of torch's operators will not be in the trace: "
				     "this version of torch is not known");
	if (atomic_load(&by_nvtx)) {
		if (told != wanted && inj_python_recording(wanted))
			told = wanted;
		return;
	}
	if (atomic_load_explicit(&observer, memory_order_acquire) < OBSERVER_WAITING ||
	    atomic_load(&enabled) == wanted)
		return;
	atomic_store(&observer, OBSERVER_READY);
	switch_to(wanted);
}

bool inj_ops_defer_step(uint64_t key)
{
	struct op *op;

	drop_strayed(STACK_USER);
	op = open_ops[STACK_USER];
	if (!op || !op->optimizer || !inj_alive())
		return false;
	op->marks_step = true;
	op->step_key = key;
	return true;
}
