/* Torch's operators, by a fake libtorch_cpu.so. */
#include "ops_rig.h"

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
	find_library(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
