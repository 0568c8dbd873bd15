/* Python stacks in a window's file: what operators have of them, and the functions made of them. */
#include "base.h"
#include "recorder_rig.h"

enum { TRAIN = 10, MODEL, MAIN_NAME, STEP, FORWARD, ADD, CLASS, RAW };

/* Stacks by the number of their innermost frame. */
enum {
	AT_MAIN = 1, /* train.py: main, at line 9 */
	AT_STEP,     /* step(), called from there */
	AT_MODULE,   /* an nn.Module, called from there */
	AT_FORWARD,  /* its forward() */
	AT_STEP_2,   /* step(), at its next line */
	AT_MODULE_2, /* the other nn.Module of that class, called from there */
	AT_MAIN_2,   /* main at line 11 */
	AT_STEP_3,   /* step() called from there, at its first line */
	AT_CUT,
	AT_DEEP,
};

static bool without_stack;

static void frame(uint32_t id, uint32_t outer_id, uint32_t file_id, uint32_t function_id,
		  uint32_t line, uint32_t first_line)
{
	ab_frame(&ab, MAIN,
		 (struct gt_ev_frame){ .id = id,
				       .outer_id = outer_id,
				       .file_id = file_id,
				       .function_id = function_id,
				       .line = line,
				       .first_line = first_line });
}

static void module(uint32_t id, uint32_t outer_id, uint32_t instance)
{
	ab_frame(&ab, MAIN,
		 (struct gt_ev_frame){ .id = id,
				       .outer_id = outer_id,
				       .file_id = MODEL,
				       .function_id = STEP,
				       .line = 77,
				       .class_id = CLASS,
				       .instance = instance });
}

static void begin(void)
{
	config.with_stack = !without_stack;
	config.with_modules = true;
	start();
	ab_string(&ab, MAIN, TRAIN, "train.py");
	ab_string(&ab, MAIN, MODEL, "model.py");
	ab_string(&ab, MAIN, MAIN_NAME, "main");
	ab_string(&ab, MAIN, STEP, "step");
	ab_string(&ab, MAIN, FORWARD, "forward");
	ab_string(&ab, MAIN, ADD, "aten::add");
	ab_string(&ab, MAIN, CLASS, "Block");
	frame(AT_MAIN, 0, TRAIN, MAIN_NAME, 9, 3);
	frame(AT_STEP, AT_MAIN, TRAIN, STEP, 21, 20);
	module(AT_MODULE, AT_STEP, 0);
	frame(AT_FORWARD, AT_MODULE, MODEL, FORWARD, 5, 4);
	frame(AT_STEP_2, AT_MAIN, TRAIN, STEP, 22, 20);
	module(AT_MODULE_2, AT_STEP_2, 1);
	frame(AT_MAIN_2, 0, TRAIN, MAIN_NAME, 11, 3);
	frame(AT_STEP_3, AT_MAIN_2, TRAIN, STEP, 21, 20);
	frame(AT_CUT, 0, 0, 0, 0, 0);
	frame(AT_DEEP, AT_CUT, MODEL, FORWARD, 6, 4);
	steps_to(2);
}

static void op_begin(uint32_t step_number, double ms, uint32_t depth, uint32_t stack_id)
{
	ab_op(&ab, (struct ab_op){ .tid = MAIN,
				   .step = step_number,
				   .name_id = ADD,
				   .depth = depth,
				   .thread = 1,
				   .sequence = -1,
				   .stack_id = stack_id,
				   .start_ns = AB_MS(ms) });
}

static void op_end(uint32_t step_number, double ms, uint32_t depth)
{
	ab_op_end(&ab, MAIN, step_number, AB_MS(ms), depth);
}

static void op(uint32_t step_number, double start_ms, double end_ms, uint32_t stack_id)
{
	op_begin(step_number, start_ms, 1, stack_id);
	op_end(step_number, end_ms, 1);
}

static void end(void)
{
	steps_to(4);
	drain(45);
	close_cycle(50);
	finish(false, 70);
}

/* The nth function of this name, in the order in which they began. */
static const struct gt_trace_function *function_of(const char *name, size_t nth)
{
	const struct gt_trace *trace = only_trace();
	const struct gt_trace_function *found = NULL;
	uint64_t after = 0;

	do {
		found = NULL;
		for (size_t i = 0; i < trace->function_count; i++) {
			const struct fake_function *each = &trace->functions[i];

			if (!strcmp(each->name, name) && each->function.id > after &&
			    (!found || each->function.id < found->id))
				found = &each->function;
		}
		after = found ? found->id : 0;
	} while (found && nth--);
	return found;
}

/* It is of these operators, and wider by what is in it. */
static void assert_function(const char *name, size_t nth, double start_ms, double end_ms,
			    uint32_t inner)
{
	const struct gt_trace_function *function = function_of(name, nth);

	assert_non_null(function);
	assert_int_equal(function->start_ns, AB_MS(start_ms) - inner - 1);
	assert_int_equal(function->end_ns, AB_MS(end_ms) + inner + 1);
	assert_int_equal(function->tid, MAIN);
}

static void calls_of_operators(void **state)
{
	(void)state;
	begin();
	op(2, 21, 22, AT_FORWARD);
	op(2, 23, 24, 0);
	op(2, 25, 26, AT_DEEP);
	end();
	assert_string_equal(only_trace()->ops[0].calls,
			    "model.py(5): forward;model.py(77): step;train.py(21): step;"
			    "train.py(9): main;");
	assert_string_equal(only_trace()->ops[0].modules, "Block_0");
	assert_string_equal(only_trace()->ops[1].calls, "");
	assert_string_equal(only_trace()->ops[1].modules, "");
	assert_string_equal(only_trace()->ops[2].calls,
			    "model.py(6): forward;...(0): outer frames;");
	assert_true(only_trace()->meta.with_stack && only_trace()->meta.with_modules);
	assert_true(only_trace()->health.complete);
}

/* Also where operators have none of their own; calls between them make no functions. */
static void calls_of_cuda_calls(void **state)
{
	const struct ab_call wait = { .tid = MAIN,
				      .step = 2,
				      .correlation = 7,
				      .klass = GT_CALL_SYNC,
				      .stack_id = AT_FORWARD,
				      .start_ns = AB_MS(21) };
	const struct ab_call launch = { .tid = MAIN,
					.step = 2,
					.correlation = 8,
					.klass = GT_CALL_KERNEL,
					.stack_id = AT_MAIN,
					.start_ns = AB_MS(23) };

	(void)state;
	without_stack = true;
	begin();
	without_stack = false;
	ab_call(&ab, wait);
	op(2, 22, 22.5, AT_FORWARD);
	ab_call(&ab, launch);
	ab_launch(&ab, MAIN, 2, 9, AB_MS(24));
	ab_kernel(&ab, 8, AB_MS(25));
	ab_kernel(&ab, 9, AB_MS(26));
	end();
	assert_int_equal(only_trace()->call_count, 3);
	assert_string_equal(only_trace()->calls[0].calls,
			    "model.py(5): forward;model.py(77): step;train.py(21): step;"
			    "train.py(9): main;");
	assert_string_equal(only_trace()->calls[1].calls, "train.py(9): main;");
	assert_string_equal(only_trace()->calls[2].calls, "");
	assert_string_equal(only_trace()->ops[0].calls, "");
	assert_string_equal(only_trace()->ops[0].modules, "Block_0");
	assert_int_equal(only_trace()->function_count, 1);
	assert_true(only_trace()->health.complete);
}

static void functions_last_from_operator_to_operator(void **state)
{
	(void)state;
	begin();
	op(2, 21, 22, AT_FORWARD);
	op(2, 23, 24, AT_FORWARD);
	op(2, 25, 26, AT_STEP_2);
	op(2, 27, 28, AT_MAIN_2);
	end();
	assert_int_equal(only_trace()->function_count, 4);
	assert_int_equal(function_of("train.py(3): main", 0)->outer_id, 0);
	assert_int_equal(function_of("train.py(3): main", 0)->start_ns, AB_MS(21) - 4);
	assert_int_equal(function_of("train.py(3): main", 0)->end_ns, AB_MS(28) + 1);
	assert_int_equal(function_of("train.py(20): step", 0)->start_ns, AB_MS(21) - 3);
	assert_int_equal(function_of("train.py(20): step", 0)->end_ns, AB_MS(26) + 1);
	assert_int_equal(function_of("train.py(20): step", 0)->outer_id,
			 function_of("train.py(3): main", 0)->id);
	assert_function("Block_0", 0, 21, 24, 1);
	assert_true(function_of("Block_0", 0)->is_module);
	assert_int_equal(function_of("Block_0", 0)->instance, 0);
	assert_function("model.py(4): forward", 0, 21, 24, 0);
	assert_false(function_of("model.py(4): forward", 0)->is_module);
}

/* A function that is at another line calls others. */
static void calls_are_told_apart(void **state)
{
	(void)state;
	begin();
	op(2, 21, 22, AT_STEP);
	op(2, 23, 24, AT_STEP_3); /* from another line of main */
	op(2, 25, 26, AT_STEP_3);
	op(2, 27, 28, AT_MODULE_2);
	end();
	assert_function("train.py(20): step", 0, 21, 22, 0);
	assert_function("train.py(20): step", 1, 23, 26, 0);
	assert_int_equal(function_of("train.py(20): step", 2)->start_ns, AB_MS(27) - 2);
	assert_int_equal(function_of("Block_1", 0)->instance, 1);
	assert_null(function_of("train.py(3): main", 1));
}

/* Operators in Python code that operators call. */
static void within_an_operator(void **state)
{
	(void)state;
	begin();
	op_begin(2, 21, 1, AT_STEP);
	op_begin(2, 22, 2, AT_FORWARD);
	op_end(2, 23, 2);
	op_end(2, 24, 1);
	end();
	assert_function("model.py(4): forward", 0, 22, 23, 0);
	assert_int_equal(function_of("train.py(20): step", 0)->end_ns, AB_MS(24) + 1);
	assert_int_equal(function_of("train.py(20): step", 0)->start_ns, AB_MS(21) - 1);
}

static void put_range(uint16_t type, double ms, uint32_t stack_id)
{
	struct gt_ev_range push = { .ev = ab_ev(type, sizeof(push), 2, AB_MS(ms)),
				    .range_id = 1,
				    .domain_id = GT_DOMAIN_TORCH,
				    .stack_id = stack_id };
	struct gt_ev_end pop = { .ev = ab_ev(type, sizeof(pop), 2, AB_MS(ms)),
				 .range_id = 1,
				 .domain_id = GT_DOMAIN_TORCH,
				 .stack_id = stack_id };

	if (type == GT_EV_PUSH)
		ab_put(&ab, MAIN, &push, sizeof(push));
	else
		ab_put(&ab, MAIN, &pop, sizeof(pop));
}

/* What begins and ends a range is no function to show; what it is in lasts as long as it does. */
static void ranges(void **state)
{
	(void)state;
	begin();
	put_range(GT_EV_PUSH, 21, AT_FORWARD);
	op(2, 22, 23, AT_STEP_2);
	put_range(GT_EV_POP, 25, AT_STEP_3);
	end();
	assert_null(function_of("model.py(4): forward", 0));
	assert_null(function_of("Block_0", 0));
	assert_int_equal(function_of("train.py(3): main", 0)->start_ns, AB_MS(21) - 4);
	assert_int_equal(function_of("train.py(3): main", 0)->end_ns, AB_MS(25));
	assert_int_equal(only_trace()->function_count, 2);
}

static void steps_divide_functions(void **state)
{
	(void)state;
	begin();
	op(2, 21, 22, AT_STEP);
	step(3);
	op(3, 31, 32, AT_STEP);
	op(3, 33, 34, AT_STEP);
	end();
	assert_function("train.py(3): main", 0, 21, 22, 1);
	assert_function("train.py(3): main", 1, 31, 34, 1);
	assert_function("train.py(20): step", 1, 31, 34, 0);
}

static void only_modules(void **state)
{
	(void)state;
	without_stack = true;
	begin();
	op(2, 21, 22, AT_FORWARD);
	op(2, 23, 24, AT_STEP);
	op(2, 25, 26, AT_MODULE_2);
	end();
	without_stack = false;
	assert_string_equal(only_trace()->ops[0].calls, "");
	assert_string_equal(only_trace()->ops[0].modules, "Block_0");
	assert_string_equal(only_trace()->ops[1].modules, "");
	assert_int_equal(only_trace()->function_count, 2);
	assert_function("Block_0", 0, 21, 22, 0);
	assert_function("Block_1", 0, 25, 26, 0);
}

static void hostile(void **state)
{
	(void)state;
	begin();
	frame(20, 20, TRAIN, STEP, 1, 1); /* a ring */
	frame(21, 22, TRAIN, STEP, 1, 1);
	frame(UINT32_MAX, 0, TRAIN, STEP, 1, 1);
	frame(AT_MAIN, 0, MODEL, FORWARD, 1, 1); /* once only */
	frame(23, 19, 999, 999, UINT32_MAX, 0);  /* names and frames that nobody has */
	op(2, 21, 22, 20);
	op(2, 21, 22, UINT32_MAX);
	op(2, 21, 22, AT_MAIN);
	op(2, 21, 22, 23);
	end();
	assert_string_equal(only_trace()->ops[0].calls, "");
	assert_string_equal(only_trace()->ops[1].calls, "");
	assert_string_equal(only_trace()->ops[2].calls, "train.py(9): main;");
	assert_string_equal(only_trace()->ops[3].calls, "(4294967295): ;");
	assert_int_equal(only_trace()->health.dropped_names, 3);
}

/* Deeper than any that the target writes. */
static void deep(void **state)
{
	uint32_t i;

	(void)state;
	begin();
	for (i = 0; i < 1000; i++)
		frame(100 + i, i ? 99 + i : 0, MODEL, FORWARD, i, 4);
	op(2, 21, 22, 1099);
	op(2, 23, 24, 1099);
	end();
	assert_true(only_trace()->function_count >= 100 && only_trace()->function_count <= 200);
	assert_true(only_trace()->health.complete);
}

/* Stacks of 64 KiB and more: a file takes 4 GiB of them, and says what it lacks. */
static void large(void **state)
{
	static char name[4001];
	uint32_t i, count = 0;

	(void)state;
	begin();
	fake_discard = true;
	memset(name, 'n', sizeof(name) - 1);
	ab_string(&ab, MAIN, RAW, name);
	for (i = 0; i < 20; i++)
		frame(100 + i, i ? 99 + i : 0, RAW, FORWARD, i, 4);
	while (count < 70000) {
		for (i = 0; i < 1000; i++)
			op(2, 21, 21, 119);
		count += i;
		drain(21);
	}
	end();
	assert_false(only_trace()->health.complete);
	assert_in_range(only_trace()->health.dropped_names, 70000 - (UINT64_C(4) << 20) / 64,
			70000);
	assert_non_null(strstr(report.closed[0].why, "Python stacks and functions found no room"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_of_operators, setup, teardown),
		cmocka_unit_test_setup_teardown(calls_of_cuda_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(functions_last_from_operator_to_operator, setup,
						teardown),
		cmocka_unit_test_setup_teardown(calls_are_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(within_an_operator, setup, teardown),
		cmocka_unit_test_setup_teardown(ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(steps_divide_functions, setup, teardown),
		cmocka_unit_test_setup_teardown(only_modules, setup, teardown),
		cmocka_unit_test_setup_teardown(hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(deep, setup, teardown),
		cmocka_unit_test_setup_teardown(large, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
