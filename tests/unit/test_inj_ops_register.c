/* How torch's observer is registered, or why not, by a fake libtorch_cpu.so. */
#include "ops_rig.h"

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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_layouts),     cmocka_unit_test(other_layouts),
		cmocka_unit_test(no_torch),          cmocka_unit_test(share_of_the_arena),
		cmocka_unit_test(not_asked_for),     cmocka_unit_test(inputs),
		cmocka_unit_test(test_must_be_seen), cmocka_unit_test(registers_once),
	};

	(void)argc;
	find_library(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
