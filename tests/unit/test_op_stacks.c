/*
 * test_op_stacks.c - operators of the backward pass have the stacks of those of the forward pass.
 */
#include "base.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENT(cat, name, tid, ts, dur, args)                                              \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":9,\"tid\":" #tid \
	",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{" args "}},\n"
#define ENGINE                     "autograd::engine::evaluate_function: "
#define FRAME(name, tid, ts, dur)  EVENT("python_function", name, tid, ts, dur, "")
#define OP(name, tid, ts, dur, id) EVENT("cpu_op", name, tid, ts, dur, "\"External id\": " #id)
#define FORWARD(name, tid, ts, dur, id, sequence) \
	EVENT("cpu_op", name, tid, ts, dur,       \
	      "\"External id\": " #id ",\"Sequence number\": " #sequence ",\"Fwd thread id\": 0")
#define BACKWARD(name, tid, ts, dur, id, sequence, thread)               \
	EVENT("cpu_op", name, tid, ts, dur,                              \
	      "\"External id\": " #id ",\"Sequence number\": " #sequence \
	      ",\"Fwd thread id\": " #thread)

static struct gt_summary *summary;
static struct gt_op_report report;

static void load(const char *events)
{
	struct gt_summary_options options = { .stack_depth = 3 };
	struct gt_op_grouping grouping = { .by_stack = true };
	struct gt_buf text = { 0 };
	struct gt_gz_reader *gz;
	struct gt_err err;

	gt_buf_printf(&text, "[%s]", events);
	assert_int_equal(gt_gz_open_mem(&gz, text.data, text.len), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "trace", &options, &err), 0);
	gt_gz_close(gz);
	gt_buf_release(&text);
	assert_int_equal(gt_op_report(&summary->ops, &grouping, &report), 0);
}

static void unload(void)
{
	gt_op_report_release(&report);
	gt_summary_free(summary);
}

/* The only row of this name has this stack. */
static void check(const char *name, const char *stack)
{
	size_t found = 0;

	for (size_t i = 0; i < report.count; i++) {
		const struct gt_op_line *line = &report.lines[i];

		if (!gt_str_equal(line->name, gt_str_of(name)))
			continue;
		found++;
		if (!gt_str_equal(line->stack, gt_str_of(stack)))
			fail_msg("%s has the stack '%.*s'", name, (int)line->stack.len,
				 line->stack.ptr);
	}
	assert_int_equal(found, 1);
}

/* The engine's thread has no Python; the forward pass stands behind it in the file. */
static void test_other_thread(void **state)
{
	(void)state;
	load(OP(ENGINE "MmBackward0", 2, 500, 90, 20) BACKWARD("MmBackward0", 2, 510, 70, 21, 7, 1)
		     OP("aten::mm_backward", 2, 520, 40,
			22) EVENT("cuda_runtime", "cudaLaunchKernel", 2, 530, 5,
				  "\"External id\": 22,\"correlation\": 3")
			     OP("unrelated", 2, 700, 5, 29) FRAME("main", 1, 0, 1000) FRAME(
				     "model", 1, 10, 80) FORWARD("aten::linear", 1, 20, 50, 1, 7)
				     FORWARD("aten::mm", 1, 30, 20, 2, 7) FRAME("loss", 1, 100, 50)
					     FORWARD("aten::loss", 1, 110, 10, 3, 8) BACKWARD(
						     "LossBackward0", 2, 400, 50, 19, 8, 1));
	check("aten::linear", "model\nmain\n");
	check("MmBackward0", "model\nmain\n");
	check("aten::mm_backward", "model\nmain\n");
	check("cudaLaunchKernel", "model\nmain\n");
	check("LossBackward0", "loss\nmain\n");
	check(ENGINE "MmBackward0", "");
	check("unrelated", "");
	unload();
}

/* Under the call of backward(): its stack is not theirs, whether or not there is another. */
static void test_same_thread(void **state)
{
	(void)state;
	load(FRAME("main", 1, 0, 1000) FRAME("model", 1, 10, 80) FORWARD("aten::relu", 1, 20, 50, 1,
									 0)
		     FRAME("backward", 1, 200, 300) OP(ENGINE "ReluBackward0", 1, 210, 50, 10)
			     BACKWARD("ReluBackward0", 1, 220, 30, 11, 0,
				      1) FORWARD("aten::inner", 1, 225, 5, 12,
						 3) BACKWARD("LostBackward0", 1, 300, 20, 13, 5, 1)
				     OP("torch::autograd::AccumulateGrad", 1, 350, 20,
					14) OP("aten::detach", 1, 355, 5, 15)
					     BACKWARD("OfInnerBackward0", 1, 400, 20, 16, 3, 1)
						     OP("aten::last", 1, 450, 20, 17));
	check("ReluBackward0", "model\nmain\n");
	check("aten::inner", "model\nmain\n");
	check(ENGINE "ReluBackward0", "backward\nmain\n");
	check("LostBackward0", "");
	check("torch::autograd::AccumulateGrad", "");
	check("aten::detach", "");
	check("OfInnerBackward0", ""); /* a forward operator of the backward pass is none */
	check("aten::last", "backward\nmain\n");
	unload();
}

/* Two threads with the same sequence numbers, as torch counts them for each. */
static void test_two_forward_threads(void **state)
{
	(void)state;
	load(FRAME("one", 1, 0, 100) FORWARD("a", 1, 10, 5, 1, 7) FORWARD("b", 1, 20, 5, 2, 8)
		     FRAME("two", 3, 0, 100) FORWARD("c", 3, 10, 5, 3, 8) FORWARD(
			     "d", 3, 20, 5, 4, 9) BACKWARD("BBackward0", 2, 200, 5, 10, 8, 4)
			     BACKWARD("ABackward0", 2, 210, 5, 11, 7, 4)
				     BACKWARD("DBackward0", 5, 200, 5, 12, 9, 6)
					     BACKWARD("CBackward0", 5, 210, 5, 13, 8, 6));
	check("ABackward0", "one\n");
	check("BBackward0", "one\n");
	check("CBackward0", "two\n");
	check("DBackward0", "two\n");
	unload();
}

/* Calls that are made by the operator of the forward pass first count; the file may name stacks. */
static void test_named_stacks(void **state)
{
	(void)state;
	load(EVENT("cpu_op", "aten::mm", 1, 0, 10,
		   "\"External id\": 1,\"Sequence number\": 4,\"Call stack\": \"x;y\"")
		     EVENT("cpu_op", "again", 1, 20, 10,
			   "\"External id\": 2,\"Sequence number\": 4,\"Call stack\": \"z\"")
			     EVENT("cpu_op", "MmBackward0", 1, 50, 10,
				   "\"External id\": 3,\"Sequence number\": 4,\"Fwd thread id\": 1,"
				   "\"Call stack\": \"engine\""));
	check("MmBackward0", "x\ny\n");
	check("again", "z\n");
	unload();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_thread),
		cmocka_unit_test(test_same_thread),
		cmocka_unit_test(test_two_forward_threads),
		cmocka_unit_test(test_named_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
