/* Torch's operators in a window's file: which are in it, how they nest, what belongs to them. */
#include "base.h"
#include "recorder_rig.h"

enum { ADD = 10, LINEAR, BACKWARD, EVALUATE };

static void begin(void)
{
	start();
	ab_string(&ab, MAIN, ADD, "aten::add");
	ab_string(&ab, MAIN, LINEAR, "aten::linear");
	ab_string(&ab, MAIN, BACKWARD, "AddmmBackward0");
	ab_string(&ab, MAIN, EVALUATE, "autograd::engine::evaluate_function: AddmmBackward0");
}

static void op(uint32_t tid, uint32_t step_number, double ms, uint32_t depth, uint32_t name)
{
	ab_op(&ab, (struct ab_op){ .tid = tid,
				   .step = step_number,
				   .name_id = name,
				   .depth = depth,
				   .thread = 1,
				   .sequence = -1,
				   .start_ns = AB_MS(ms) });
}

/* One that autograd keeps account of. */
static void grad_op(uint32_t tid, double ms, uint32_t depth, uint32_t name, int64_t sequence,
		    uint32_t fwd_thread)
{
	ab_op(&ab, (struct ab_op){ .tid = tid,
				   .step = 2,
				   .name_id = name,
				   .depth = depth,
				   .thread = tid == MAIN ? 1 : 2,
				   .fwd_thread = fwd_thread,
				   .sequence = sequence,
				   .start_ns = AB_MS(ms) });
}

static void op_end(uint32_t tid, uint32_t step_number, double ms, uint32_t depth)
{
	ab_op_end(&ab, tid, step_number, AB_MS(ms), depth);
}

/* The nth operator of this name in the file. */
static const struct fake_op *op_of(const char *name, size_t nth)
{
	const struct gt_trace *trace = only_trace();
	size_t i;

	for (i = 0; i < trace->op_count; i++)
		if (!strcmp(trace->ops[i].name, name) && !nth--)
			return &trace->ops[i];
	fail_msg("no %s", name);
	return NULL;
}

static void assert_interval(const char *name, size_t nth, double start_ms, double end_ms)
{
	assert_int_equal(op_of(name, nth)->op.start_ns, AB_MS(start_ms));
	assert_int_equal(op_of(name, nth)->op.end_ns, AB_MS(end_ms));
}

static uint64_t id_of_call(uint32_t correlation)
{
	return call_of(only_trace(), correlation)->call.external_id;
}

static void launch(double ms, uint32_t step_number, uint32_t correlation)
{
	ab_launch(&ab, MAIN, step_number, correlation, AB_MS(ms));
	ab_kernel(&ab, correlation, AB_MS(ms + .1));
	ab_flush(&ab);
}

/* The window is over, and so is the program. */
static void end(void)
{
	steps_to(4);
	drain(45);
	close_cycle(50);
	finish(false, 70);
}

static void nested(void **state)
{
	(void)state;
	begin();
	steps_to(2);
	ab_push(&ab, MAIN, 2, AB_MS(21), 1, "range");
	op(MAIN, 2, 22, 1, LINEAR);
	op(MAIN, 2, 23, 2, ADD);
	launch(23.5, 2, 1);
	op_end(MAIN, 2, 24, 2);
	launch(24.5, 2, 2);
	op_end(MAIN, 2, 25, 1);
	launch(25.5, 2, 3);
	ab_pop(&ab, MAIN, 2, AB_MS(26), 1);
	end();
	assert_interval("aten::linear", 0, 22, 25);
	assert_interval("aten::add", 0, 23, 24);
	assert_int_equal(op_of("aten::add", 0)->op.tid, MAIN);
	assert_int_equal(op_of("aten::add", 0)->op.sequence, -1);
	assert_int_equal(id_of_call(1), op_of("aten::add", 0)->op.external_id);
	assert_int_equal(id_of_call(2), op_of("aten::linear", 0)->op.external_id);
	assert_int_equal(id_of_call(3), range_of(only_trace(), "range")->range.external_id);
	/* GPU work is shown for ranges only */
	assert_non_null(span_of(only_trace(), "range", 7));
	assert_null(span_of(only_trace(), "aten::add", 7));
	assert_true(only_trace()->health.complete);
}

/* NCCL pushes a range of its own in torch's operator, which has the GPU work in torch's tables. */
static void range_in_operator(void **state)
{
	(void)state;
	begin();
	steps_to(2);
	op(MAIN, 2, 21, 1, LINEAR);
	ab_push(&ab, MAIN, 2, AB_MS(22), 1, "outer");
	ab_push(&ab, MAIN, 2, AB_MS(23), 2, "inner");
	launch(23.5, 2, 1);
	ab_pop(&ab, MAIN, 2, AB_MS(24), 2);
	ab_pop(&ab, MAIN, 2, AB_MS(25), 1);
	op_end(MAIN, 2, 26, 1);
	end();
	assert_int_equal(id_of_call(1), op_of("aten::linear", 0)->op.external_id);
	assert_non_null(span_of(only_trace(), "outer", 7));
	assert_non_null(span_of(only_trace(), "inner", 7));
}

/* What torch's NVTX profiler pushes. */
static void by_nvtx(void **state)
{
	static const char *const others[] = {
		"op_id = 3",       ", op_id = 3",
		"add, op_id = ",   "add, op_id = 1234567890123456789",
		"add, op_id = 3x",
	};
	double ms = 30;

	(void)state;
	begin();
	steps_to(2);
	ab_push(&ab, MAIN, 2, AB_MS(21), 1, "Optimizer.step#SGD.step, op_id = 7");
	ab_push(&ab, MAIN, 2, AB_MS(22), 2, "aten::linear, seq = 15, op_id = 8");
	ab_push(&ab, MAIN, 2, AB_MS(23), 3, "aten::t, op_id = 9");
	launch(23.5, 2, 1);
	ab_pop(&ab, MAIN, 2, AB_MS(24), 3);
	ab_pop(&ab, MAIN, 2, AB_MS(25), 2);
	ab_pop(&ab, MAIN, 2, AB_MS(26), 1);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++, ms++) {
		ab_push(&ab, MAIN, 2, AB_MS(ms), 1, others[i]);
		ab_pop(&ab, MAIN, 2, AB_MS(ms + .5), 1);
	}
	end();
	assert_interval("aten::linear", 0, 22, 25);
	assert_int_equal(op_of("aten::linear", 0)->op.sequence, 15);
	assert_interval("aten::t", 0, 23, 24);
	assert_int_equal(op_of("aten::t", 0)->op.sequence, -1);
	assert_int_equal(id_of_call(1), op_of("aten::t", 0)->op.external_id);
	assert_int_equal(only_trace()->op_count, 2);
	assert_int_equal(range_of(only_trace(), "Optimizer.step#SGD.step")->range.end_ns,
			 AB_MS(26));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_non_null(range_of(only_trace(), others[i]));
}

static void ranges_of_torch_cross(void **state)
{
	(void)state;
	begin();
	steps_to(2);
	op(MAIN, 2, 21, 1, LINEAR); /* which begins a record_function() */
	ab_range(&ab, GT_EV_PUSH, MAIN, 2, AB_MS(22), GT_DOMAIN_TORCH, 1, "mine");
	op_end(MAIN, 2, 23, 1);
	op(MAIN, 2, 24, 1, ADD);
	op_end(MAIN, 2, 25, 1);
	ab_end(&ab, GT_EV_POP, MAIN, 2, AB_MS(26), GT_DOMAIN_TORCH, 1);
	end();
	assert_interval("aten::linear", 0, 21, 23);
	assert_interval("aten::add", 0, 24, 25);
	assert_int_equal(range_of(only_trace(), "mine")->range.start_ns, AB_MS(22));
	assert_int_equal(range_of(only_trace(), "mine")->range.end_ns, AB_MS(26));
	assert_string_equal(range_of(only_trace(), "mine")->domain, "");
}

/* They travel as they are, also with the part of a range that is in the window. */
static void inputs(void **state)
{
	(void)state;
	begin();
	steps_to(1);
	ab_range_with(&ab, GT_EV_PUSH, MAIN, 1, AB_MS(15), GT_DOMAIN_TORCH, 1, "open",
		      "its inputs");
	steps_to(2);
	ab_range_with(&ab, GT_EV_PUSH, MAIN, 2, AB_MS(21), GT_DOMAIN_TORCH, 2, "mine", "inputs");
	ab_op(&ab, (struct ab_op){ .tid = MAIN,
				   .step = 2,
				   .name_id = ADD,
				   .depth = 1,
				   .sequence = -1,
				   .start_ns = AB_MS(22),
				   .inputs = "two tensors" });
	op(MAIN, 2, 23, 2, LINEAR);
	op_end(MAIN, 2, 24, 2);
	op_end(MAIN, 2, 25, 1);
	ab_end(&ab, GT_EV_POP, MAIN, 2, AB_MS(26), GT_DOMAIN_TORCH, 2);
	end();
	assert_string_equal(op_of("aten::add", 0)->inputs, "two tensors");
	assert_string_equal(op_of("aten::linear", 0)->inputs, "");
	assert_string_equal(range_of(only_trace(), "mine")->inputs, "inputs");
	assert_string_equal(range_of(only_trace(), "open")->inputs, "its inputs");
}

static void lost_events(void **state)
{
	(void)state;
	begin();
	steps_to(2);
	op(MAIN, 2, 21, 1, LINEAR); /* its end is lost */
	op(MAIN, 2, 22, 1, ADD);
	op_end(MAIN, 2, 23, 1);
	op_end(MAIN, 2, 24, 1); /* and here the beginning */
	op(MAIN, 2, 25, 1, ADD);
	op(MAIN, 2, 26, 2, LINEAR); /* its end is lost: so long it lasted, at least */
	op_end(MAIN, 2, 27, 1);
	op_end(MAIN, 2, 28, 7);
	end();
	assert_int_equal(only_trace()->op_count, 4);
	assert_interval("aten::linear", 0, 21, 21);
	assert_interval("aten::add", 0, 22, 23);
	assert_interval("aten::add", 1, 25, 27);
	assert_interval("aten::linear", 1, 26, 26);
}

static void of_the_window_it_begins_in(void **state)
{
	(void)state;
	begin();
	steps_to(1);
	op(MAIN, 1, 19, 1, LINEAR); /* warm-up */
	steps_to(2);
	launch(21, 2, 1);
	op(MAIN, 2, 22, 2, ADD);
	op_end(MAIN, 2, 23, 2);
	op_end(MAIN, 2, 24, 1);
	steps_to(3);
	op(MAIN, 3, 35, 1, ADD); /* until after the window */
	steps_to(4);
	op(MAIN, 4, 41, 2, LINEAR);
	op_end(MAIN, 4, 42, 2);
	op_end(MAIN, 4, 43, 1);
	end();
	assert_int_equal(only_trace()->op_count, 2);
	assert_interval("aten::add", 0, 22, 23);
	assert_interval("aten::add", 1, 35, 40);
	/* what is not in the file has no number in it */
	assert_int_equal(id_of_call(1),
			 range_of(only_trace(), "ProfilerStep#2")->range.external_id);
}

static void assert_link(uint32_t from, uint32_t to)
{
	const struct gt_trace *trace = only_trace();

	assert_int_equal(trace->link_count, 1);
	assert_int_equal(trace->links[0].link.id, 1);
	assert_int_equal(trace->links[0].link.from_lane, from);
	assert_int_equal(trace->links[0].link.to_lane, to);
	assert_int_equal(trace->links[0].link.from_ns, trace->ops[from].op.start_ns);
	assert_int_equal(trace->links[0].link.to_ns, trace->ops[to].op.start_ns);
}

static void backward_belongs_to_forward(void **state)
{
	(void)state;
	begin();
	steps_to(2);
	grad_op(11, 25, 1, EVALUATE, -1, 0); /* another thread; its events are read first */
	grad_op(11, 25.1, 2, BACKWARD, 7, 1);
	op_end(11, 2, 26, 2);
	grad_op(11, 26.5, 2, BACKWARD, 8, 1); /* not the first in it: no number of the outer one */
	op_end(11, 2, 26.6, 2);
	op_end(11, 2, 27, 1);
	drain(28);
	grad_op(MAIN, 21, 1, LINEAR, 7, 0);
	grad_op(MAIN, 22, 2, ADD, 7, 0);
	op_end(MAIN, 2, 23, 2);
	op_end(MAIN, 2, 24, 1);
	end();
	assert_int_equal(op_of("AddmmBackward0", 0)->op.sequence, 7);
	assert_int_equal(op_of("AddmmBackward0", 0)->op.fwd_thread, 1);
	assert_int_equal(only_trace()->op_count, 5);
	assert_string_equal(only_trace()->ops[2].name,
			    "autograd::engine::evaluate_function: AddmmBackward0");
	assert_int_equal(only_trace()->ops[2].op.sequence, 7);
	assert_int_equal(only_trace()->ops[2].op.fwd_thread, 1);
	assert_link(3, 0); /* add, the last to begin; AddmmBackward0, the first to end */
}

/* Each between its window's steps; of one from before, nobody knows to whom it belongs. */
static void memory_of_the_window(void **state)
{
	const struct gt_trace_memory *memory;

	(void)state;
	config.with_memory = true;
	begin();
	steps_to(1);
	ab_memory(&ab, MAIN, 1, AB_MS(15), 10, 1);
	steps_to(2);
	op(MAIN, 2, 21, 1, ADD);
	ab_memory(&ab, MAIN, 2, AB_MS(22), 20, 2);
	op_end(MAIN, 2, 23, 1);
	ab_memory(&ab, MAIN, 2, AB_MS(24), -10, 1);
	ab_memory(&ab, 11, 3, AB_MS(31), -20, 2);
	op(MAIN, 3, 32, 1, ADD);
	op_end(MAIN, 3, 33, 1);
	ab_memory(&ab, MAIN, 4, AB_MS(41), -5, 3);
	end();
	assert_true(only_trace()->meta.with_memory);
	assert_int_equal(only_trace()->block_count, 2);
	memory = &only_trace()->blocks[0].memory;
	assert_int_equal(memory->tid, MAIN);
	assert_int_equal(memory->time_ns, AB_MS(22));
	assert_int_equal(memory->bytes, 20);
	assert_int_equal(memory->address, 4096);
	assert_int_equal(memory->allocated, 100);
	assert_int_equal(memory->reserved, 200);
	assert_int_equal(memory->device_type, 0);
	assert_int_equal(memory->device, -1);
	assert_false(memory->failed);
	/* No operator has its number. */
	assert_int_not_equal(memory->index, op_of("aten::add", 0)->op.external_id - 1);
	assert_int_not_equal(memory->index, op_of("aten::add", 1)->op.external_id - 1);
	memory = &only_trace()->blocks[1].memory;
	assert_int_equal(memory->tid, 11);
	assert_int_equal(memory->bytes, -20);
	assert_int_not_equal(memory->index, only_trace()->blocks[0].memory.index);
}

static void memory_of_the_whole_run(void **state)
{
	(void)state;
	atomic_store(&ab.hdr->mode, GT_MODE_WHOLE);
	begin();
	ab_memory(&ab, MAIN, 0, AB_MS(5), 10, 0);
	ab_memory(&ab, MAIN, 0, AB_MS(6), -10, 0);
	ab_memory(&ab, MAIN, 7, AB_MS(7), -10, 3);
	finish(false, 70);
	assert_int_equal(only_trace()->block_count, 3);
	assert_false(only_trace()->meta.with_memory);
}

static void killed_in_between(void **state)
{
	(void)state;
	begin();
	steps_to(2);
	op(MAIN, 2, 21, 1, LINEAR);
	op(MAIN, 2, 22, 2, ADD);
	finish(true, 30);
	assert_int_equal(only_trace()->op_count, 2);
	assert_interval("aten::linear", 0, 21, 22);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nested),
		TEST(range_in_operator),
		TEST(by_nvtx),
		TEST(ranges_of_torch_cross),
		TEST(inputs),
		TEST(lost_events),
		TEST(of_the_window_it_begins_in),
		TEST(backward_belongs_to_forward),
		TEST(memory_of_the_window),
		TEST(memory_of_the_whole_run),
		TEST(killed_in_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
