/* Torch's operators, by a fake libtorch_cpu.so. */
#include "control.h"
#include "events.h"
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
#define in_process(...)                                                        \
	do {                                                                   \
		pid_t child_ = fork();                                         \
		int status_ = 0;                                               \
		if (!child_) {                                                 \
			load();                                                \
			__VA_ARGS__;                                           \
			exit(0);                                               \
		}                                                              \
		assert_int_equal(waitpid(child_, &status_, 0), child_);        \
		if (status_)                                                   \
			fail_msg("line ~%d of the case failed", status_ >> 8); \
	} while (0)

#define check(cond)                                \
	do {                                       \
		if (!(cond))                       \
			_exit(__LINE__ % 255 + 1); \
	} while (0)

static struct fake_torch *torch;
static void (*begin)(struct fake_op *op, uint8_t scope, const char *name, int64_t sequence,
		     uint64_t fwd_thread);
static void (*end)(struct fake_op *op);
static char library[4096];
static uint32_t read_bytes; /* of this thread's chunk */

static void load(void)
{
	void *handle = dlopen(library, RTLD_NOW);

	check(handle);
	torch = dlsym(handle, "fake_torch");
	begin = (typeof(begin))dlsym(handle, "fake_op_begin");
	end = (typeof(end))dlsym(handle, "fake_op_end");
	check(torch && begin && end);
}

static void start_session(bool recording)
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

static int observe(bool at_once)
{
	struct fake_op test;

	if (!gtrace_inject_ops_test())
		return -1;
	begin(&test, FUNCTION, "aten::empty", -1, 0);
	end(&test);
	return gtrace_inject_ops_begin(at_once);
}

/* An observer that is on, and a session that records. */
static void go(void)
{
	start_session(true);
	check(observe(false) == 1);
	inj_ops_follow(true);
}

/* The next event of this thread but names; NULL: there is none. */
static const void *next_event(void)
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

static void check_op(uint32_t depth, int64_t sequence, uint32_t fwd_thread)
{
	const struct gt_ev_op *op = next_event();

	check(op && op->ev.type == GT_EV_OP && op->depth == depth);
	check(op->sequence == sequence && op->fwd_thread == fwd_thread);
	check(op->thread >= 1 && op->name_id && !op->stack_id && !op->inputs_bytes);
}

static void check_op_end(uint32_t depth)
{
	const struct gt_ev_op_end *op = next_event();

	check(op && op->ev.type == GT_EV_OP_END && op->depth == depth && !op->reserved);
}

static void check_user(const char *name, uint64_t depth)
{
	const struct gt_ev_range *range = next_event();

	check(range && range->ev.type == GT_EV_PUSH && range->domain_id == GT_DOMAIN_TORCH);
	check(range->range_id == depth && range->len_bytes == strlen(name));
	check(!memcmp(range->bytes, name, strlen(name)) && !range->inputs_bytes);
}

static void check_user_end(uint64_t depth)
{
	const struct gt_ev_end *range = next_event();

	check(range && range->ev.type == GT_EV_POP && range->domain_id == GT_DOMAIN_TORCH &&
	      range->range_id == depth);
}

/* ---- registering ---- */

static void known_layouts(void **state)
{
	static const uint16_t known[][2] = {
		{ 200, 304 }, { 200, 248 }, { 176, 280 }, { 176, 224 }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		in_process({
			struct fake_op op;

			torch->sequence_at = known[i][0];
			torch->fwd_thread_at = known[i][1];
			torch->bytes = (uint16_t)(known[i][1] + 40);
			go();
			begin(&op, FUNCTION, "aten::add", 5, 3);
			end(&op);
			check_op(1, 5, 3);
			check_op_end(1);
		});
}

static void other_layouts(void **state)
{
	(void)state;
	in_process({
		torch->bytes = 352; /* another field at the end */
		start_session(true);
		check(observe(true) == -1 && !torch->registered);
	});
	in_process({
		torch->sequence_at = 208;
		start_session(true);
		check(observe(true) == -1 && !torch->registered);
	});
	in_process({
		torch->fwd_thread_at = 296;
		torch->bytes = 344;
		start_session(true);
		check(observe(true) == -1 && !torch->registered);
	});
}

static void no_torch(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		check(!gtrace_inject_ops_test());
		check(!gtrace_inject_ops_begin(1));
		inj_ops_follow(true);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Operators need more room for events; there is less for the GPU's records then. */
static void share_of_the_arena(void **state)
{
	uint32_t events;

	(void)state;
	in_process({
		start_session(true);
		check(inj_arena->pool[GT_POOL_EVENT].count <
		      inj_arena->pool[GT_POOL_CUPTI].count * 2);
	});
	in_process({
		check(observe(true) == 1);
		start_session(true);
		events = inj_arena->pool[GT_POOL_EVENT].count;
		check(events > inj_arena->pool[GT_POOL_CUPTI].count * 3);
	});
}

static void not_asked_for(void **state)
{
	(void)state;
	in_process({
		setenv("GTRACE_ACTIVITIES", "gpu", 1);
		start_session(true);
		check(observe(true) == -1 && !torch->registered);
	});
}

/* Those that are known are not seen: operators go on without. */
static void inputs(void **state)
{
	(void)state;
	in_process({
		struct fake_op op;

		setenv("GTRACE_WITH", "stack,shapes", 1);
		start_session(true);
		check(gtrace_inject_ops_test() == 2 && torch->needs_inputs);
		begin(&op, FUNCTION, "aten::empty", -1, 0);
		end(&op);
		check(gtrace_inject_ops_begin(false) == 1);
		inj_ops_follow(true);
		begin(&op, FUNCTION, "aten::add", -1, 0);
		end(&op);
		check_op(1, -1, 0);
	});
}

static void test_must_be_seen(void **state)
{
	(void)state;
	in_process({
		torch->deaf = true;
		start_session(true);
		check(observe(true) == 0);
		check(torch->registered == 1 && !torch->enabled);
		inj_ops_follow(true); /* never again */
		check(!torch->enabled);
	});
	in_process({ /* another operator, and one with a field that cannot be */
		     struct fake_op op;

		     start_session(false);
		     check(gtrace_inject_ops_test() == 1);
		     begin(&op, FUNCTION, "aten::add", -1, 0);
		     end(&op);
		     begin(&op, FUNCTION, "aten::empty", INT64_MIN, 0);
		     end(&op);
		     begin(&op, FUNCTION, "aten::empty", -1, 1);
		     end(&op);
		     begin(&op, USER, "aten::empty", -1, 0);
		     end(&op);
		     check(!gtrace_inject_ops_begin(1));
		     check(!torch->enabled);
	});
}

static void registers_once(void **state)
{
	(void)state;
	in_process({
		go();
		check(observe(true) == -1);
		check(torch->registered == 1 && torch->enabled && !torch->needs_inputs);
	});
}

static void switched_by_the_control_thread(void **state)
{
	(void)state;
	in_process({
		int switched;

		start_session(false);
		check(observe(false) == 1 && !torch->enabled);
		switched = torch->switched;
		inj_ops_follow(false);
		check(torch->switched == switched);
		inj_ops_follow(true);
		inj_ops_follow(true);
		check(torch->enabled && torch->switched == switched + 1);
		inj_ops_follow(false);
		check(!torch->enabled && torch->switched == switched + 2);
	});
}

static void first_operator_finds_no_session(void **state)
{
	(void)state;
	in_process({ /* not under gtrace: nothing is left of us */
		     struct fake_op op;

		     unsetenv("GTRACE_SOCKET");
		     check(observe(true) == 1 && torch->enabled);
		     begin(&op, FUNCTION, "aten::add", -1, 0);
		     check(!op.context && !torch->enabled);
		     end(&op);
	});
	in_process({ /* a worker that was forked before the first one */
		     struct fake_op op;
		     pid_t child;
		     int status;

		     check(observe(true) == 1);
		     child = fork();
		     if (!child) {
			     begin(&op, FUNCTION, "aten::add", -1, 0);
			     end(&op);
			     _exit(!op.context && !torch->enabled ? 0 : 1);
		     }
		     check(waitpid(child, &status, 0) == child && !status);
	});
}

/* ---- events ---- */

static void operators_nest(void **state)
{
	(void)state;
	in_process({
		struct fake_op outer, inner, next;

		go();
		begin(&outer, FUNCTION, "aten::linear", 12, 0);
		begin(&inner, 1, "AddmmBackward0", 12, 4);
		end(&inner);
		begin(&next, FUNCTION, "aten::t", -1, 0);
		end(&next);
		end(&outer);
		check_op(1, 12, 0);
		check_op(2, 12, 4);
		check_op_end(2);
		check_op(2, -1, 0);
		check_op_end(2);
		check_op_end(1);
		check(!next_event());
	});
}

static void ranges_end_in_any_order(void **state)
{
	(void)state;
	in_process({
		struct fake_op enter, range, op;

		go();
		begin(&enter, FUNCTION, "profiler::_record_function_enter_new", -1, 0);
		begin(&range, USER, "my range", -1, 0);
		end(&enter);
		begin(&op, FUNCTION, "aten::add", -1, 0);
		end(&range);
		end(&op);
		check_op(1, -1, 0);
		check_user("my range", 1);
		check_op_end(1);
		check_op(1, -1, 0);
		check_user_end(1);
		check_op_end(1);
		check(!next_event());
	});
}

static void *end_it(void *op)
{
	end(op);
	return NULL;
}

static void end_on_another_thread(void **state)
{
	(void)state;
	in_process({
		struct fake_op outer, async, op;
		pthread_t thread;

		go();
		begin(&outer, FUNCTION, "aten::linear", -1, 0);
		begin(&async, FUNCTION, "async", -1, 0);
		check(!pthread_create(&thread, NULL, end_it, &async) &&
		      !pthread_join(thread, NULL));
		begin(&op, FUNCTION, "aten::add", -1, 0);
		end(&op);
		end(&outer);
		check_op(1, -1, 0);
		check_op(2, -1, 0);
		check_op(2, -1, 0); /* which tells the collector that async has ended */
		check_op_end(2);
		check_op_end(1);
		check(!next_event());
	});
}

static void recording_ends_in_between(void **state)
{
	(void)state;
	in_process({
		struct fake_op before, op, after;

		go();
		atomic_store(&inj_live.recording, 0);
		begin(&before, FUNCTION, "aten::linear", -1, 0);
		check(!before.context);
		atomic_store(&inj_live.recording, 1);
		begin(&op, FUNCTION, "aten::add", -1, 0);
		atomic_store(&inj_live.recording, 0);
		begin(&after, FUNCTION, "aten::mul", -1, 0);
		end(&after);
		end(&op);
		end(&before);
		check_op(1, -1, 0);
		check_op_end(1);
		check(!next_event());
	});
}

static void without_room(void **state)
{
	(void)state;
	in_process({
		struct fake_op kept, op;

		go();
		begin(&kept, FUNCTION, "aten::add", -1, 0);
		inj_self->busy = 1; /* as within a signal handler */
		begin(&op, FUNCTION, "aten::add", -1, 0);
		check(!op.context);
		inj_self->busy = 0;
		end(&op);
		end(&kept);
		check_op(1, -1, 0);
		check_op_end(1);
		check(!next_event());
		check(inj_arena->dropped_events);
	});
}

/* Until the first step operators leave half of the room to what comes. */
static void before_the_first_step(void **state)
{
	(void)state;
	in_process({
		struct fake_op op;

		go();
		atomic_store(&inj_arena->mode, GT_MODE_KEEP);
		while (!inj_arena->ops_full && !inj_arena->keep_full) {
			begin(&op, FUNCTION, "aten::add", -1, 0);
			end(&op);
		}
		check(!inj_arena->keep_full && inj_recording());
		check(inj_arena->seq < inj_arena_chunks(GT_POOL_EVENT) / 2 + 4);
	});
}

static void inert_in_a_forked_child(void **state)
{
	(void)state;
	in_process({
		struct fake_op op, inner;
		uint32_t used;

		go();
		begin(&op, FUNCTION, "aten::add", -1, 0);
		used = inj_self->pos;
		memset(&inj_live, 0, sizeof(inj_live)); /* as the kernel does it at a fork */
		begin(&inner, FUNCTION, "aten::add", -1, 0);
		end(&inner);
		end(&op);
		check(inj_self->pos == used);
		check(!torch->enabled);
	});
}

static void long_names(void **state)
{
	(void)state;
	in_process({
		static char name[3 * GT_INLINE_MAX];
		struct fake_op op;

		memset(name, 'x', sizeof(name) - 1);
		go();
		begin(&op, USER, name, -1, 0);
		end(&op);
		begin(&op, USER, "", -1, 0);
		end(&op);
		name[GT_INLINE_MAX] = '\0';
		check_user(name, 1);
		check_user_end(1);
		check_user("", 1);
		check_user_end(1);
	});
}

/* What a collective's operator does stands right behind its beginning. */
static void collectives(void **state)
{
	(void)state;
	in_process({
		struct fake_comms_state *comms = dlsym(dlopen(library, RTLD_NOW), "fake_comms");
		struct fake_comms object = { 0 };
		const struct gt_ev_comms *ev;
		struct fake_op op;

		go();
		check(comms && comms->made == 1 && comms->destroyed == 1);
		object.table = comms->table;
		object.size = 8;
		comms->current = &object;
		begin(&op, FUNCTION, "record_param_comms", -1, 0);
		end(&op);
		begin(&op, FUNCTION, "record_param_comms_", -1, 0);
		end(&op);
		check_op(1, -1, 0);
		ev = next_event();
		check(ev && ev->ev.type == GT_EV_COMMS && ev->depth == 1 && ev->size == 8);
		check_op_end(1);
		check_op(1, -1, 0);
		check_op_end(1);
	});
}

static void step_waits_for_its_range(void **state)
{
	(void)state;
	in_process({
		struct fake_op range, inner;

		go();
		gtrace_inject_optimizer_step(1);
		check(inj_arena->step == 1); /* outside of a range: at once */
		begin(&range, USER, "Optimizer.step#SGD.step", -1, 0);
		gtrace_inject_optimizer_step(1);
		check(inj_arena->step == 1);
		end(&range);
		check(inj_arena->step == 2);
		begin(&range, USER, "Optimizer.zero_grad#SGD.zero_grad", -1, 0);
		gtrace_inject_optimizer_step(1);
		check(inj_arena->step == 3);
		end(&range);
		/* a range of the program's own inside, which is not the optimizer's */
		begin(&range, USER, "Optimizer.step#SGD.step", -1, 0);
		begin(&inner, USER, "mine", -1, 0);
		gtrace_inject_optimizer_step(1);
		check(inj_arena->step == 4);
		end(&inner);
		end(&range);
		check(inj_arena->step == 4);
	});
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_layouts),
		cmocka_unit_test(other_layouts),
		cmocka_unit_test(no_torch),
		cmocka_unit_test(share_of_the_arena),
		cmocka_unit_test(not_asked_for),
		cmocka_unit_test(inputs),
		cmocka_unit_test(test_must_be_seen),
		cmocka_unit_test(registers_once),
		cmocka_unit_test(switched_by_the_control_thread),
		cmocka_unit_test(first_operator_finds_no_session),
		cmocka_unit_test(operators_nest),
		cmocka_unit_test(ranges_end_in_any_order),
		cmocka_unit_test(end_on_another_thread),
		cmocka_unit_test(recording_ends_in_between),
		cmocka_unit_test(without_room),
		cmocka_unit_test(before_the_first_step),
		cmocka_unit_test(inert_in_a_forked_child),
		cmocka_unit_test(long_names),
		cmocka_unit_test(collectives),
		cmocka_unit_test(step_waits_for_its_range),
	};

	(void)argc;
	snprintf(library, sizeof(library), "%.*s/fake-torch/libtorch_cpu.so",
		 (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
