/*
 * test_lines.c - what source lines cost, from small traces.
 */
#include "base.h"
#include "buf.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENT(cat, name, tid, ts, dur, args)                                              \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":9,\"tid\":" #tid \
	",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{" args "}},\n"
#define FRAME(name, ts, dur)      EVENT("python_function", name, 9, ts, dur, "")
#define ID(id)                    "\"External id\": " #id
#define SEQUENCE(n, thread)       ",\"Sequence number\": " #n ",\"Fwd thread id\": " #thread
#define STACK(stack)              ",\"Call stack\": \"" stack "\""
#define OP(name, ts, dur, args)   EVENT("cpu_op", name, 9, ts, dur, args)
#define NODE(name, ts, dur, args) EVENT("cpu_op", name, 10, ts, dur, args)
#define KERNEL(ts, dur, args)                                                             \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":" #ts \
	",\"dur\":" #dur ",\"args\":{" args ",\"device\":0,\"stream\":7}},\n"
#define END "{\"ph\":\"M\"}]"

/* As CSV, under its titles. */
static void check(const char *events, enum gt_summary_sort sort, const char *rows)
{
	struct gt_summary_options options = { .by = GT_SUMMARY_BY_LINE };
	struct gt_summary_style style = { .by = GT_SUMMARY_BY_LINE,
					  .format = GT_SUMMARY_CSV,
					  .sort = sort };
	struct gt_buf text = { 0 }, out = { 0 };
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;

	gt_buf_printf(&text, "[%s" END, events);
	assert_int_equal(gt_gz_open_mem(&gz, text.data, text.len), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "trace", &options, &err), 0);
	gt_gz_close(gz);
	gt_buf_release(&text);
	assert_int_equal(gt_summary_print(summary, &style, &out), 0);
	gt_buf_byte(&out, '\0');
	assert_false(out.failed);
	assert_string_equal(strchr(out.data, '\n') + 1, rows);
	gt_buf_release(&out);
	gt_summary_free(summary);
}

/* As gtrace writes both: a function's slice has its first line, the operator's stack the right one.
 */
static void test_call_stacks_in_functions(void **state)
{
	(void)state;
	check(FRAME("m.py(1): f", 0, 100) OP("aten::mm", 10, 50, ID(1) STACK("m.py(7): f")) EVENT(
		      "cuda_runtime", "cudaLaunchKernel", 9, 20, 10, "\"correlation\": 5," ID(1))
		      KERNEL(200, 40, "\"correlation\": 5," ID(1)),
	      GT_SUMMARY_BY_TOTAL, "1,50.000,0.000,40.000,0.000,\"m.py\",7,\"f\"\n");
}

/* "Call stack" of operators; what an operator calls belongs to its line, and so its kernels. */
static void test_call_stacks(void **state)
{
	(void)state;
	check(OP("aten::linear", 0, 100, ID(1) STACK("torch/f.py(1): linear;m.py(7): f;m.py(1): g"))
		      OP("aten::mm", 10, 50, ID(2) STACK("torch/f.py(1): linear;m.py(7): f"))
			      EVENT("cuda_runtime", "cudaLaunchKernel", 9, 20, 10,
				    "\"correlation\": 5," ID(2))
				      OP("aten::relu", 200, 10, ID(3) STACK("m.py(8): f"))
					      OP("aten::add", 300, 20, ID(4) STACK(""))
						      KERNEL(500, 40, ID(2) ",\"correlation\": 5"),
	      GT_SUMMARY_BY_TOTAL,
	      "1,100.000,0.000,40.000,0.000,\"m.py\",7,\"f\"\n"
	      "1,20.000,0.000,0.000,0.000,\"\",,\"\"\n"
	      "1,10.000,0.000,0.000,0.000,\"m.py\",8,\"f\"\n");
}

/* Other tools that write a file again escape what Kineto and gtrace do not. */
static void test_escaped_stacks(void **state)
{
	(void)state;
	check(OP("aten::mm", 0, 10,
		 ID(1) STACK("torch\\/f.py(1): linear;m\\u00e9.py(7): \\u003cmodule\\u003e"))
		      OP("aten::mm", 20, 10, ID(2) STACK("m\xc3\xa9.py(7): <module>")),
	      GT_SUMMARY_BY_TOTAL, "2,20.000,0.000,0.000,0.000,\"m\xc3\xa9.py\",7,\"<module>\"\n");
}

/* Waits that are in the file beside the work of GPUs are none. */
static void test_waits(void **state)
{
	(void)state;
	check(OP("aten::item", 0, 100, ID(1) STACK("m.py(7): f")) KERNEL(500, 40, ID(1))
		      EVENT("cuda_sync", "Stream Sync", 7, 500, 90, ID(1)),
	      GT_SUMMARY_BY_TOTAL, "1,100.000,0.000,40.000,0.000,\"m.py\",7,\"f\"\n");
}

/* A call with a stack of its own is of that line, whatever is around it: item() waits for the GPU.
 */
static void test_call_stacks_of_calls(void **state)
{
	(void)state;
	check(EVENT("user_annotation", "ProfilerStep#3", 9, 0, 1000, ID(1)) OP("aten::item", 10, 90,
									       ID(2))
		      EVENT("cuda_runtime", "cudaStreamSynchronize", 9, 15, 80,
			    "\"correlation\": 5," ID(2) STACK("m.py(7): f;m.py(1): g"))
			      EVENT("cuda_runtime", "cudaDeviceSynchronize", 9, 200, 50,
				    "\"correlation\": 6," ID(1)
					    STACK("torch/cuda/__init__.py(3): sync;m.py(9): g"))
				      EVENT("cuda_runtime", "cudaLaunchKernel", 9, 300, 5,
					    "\"correlation\": 7," ID(1)),
	      GT_SUMMARY_BY_TOTAL,
	      "1,80.000,0.000,0.000,0.000,\"m.py\",7,\"f\"\n"
	      "1,50.000,0.000,0.000,0.000,\"m.py\",9,\"g\"\n"
	      "2,15.000,0.000,0.000,0.000,\"\",,\"\"\n");
}

/* So is the work that it launches, wherever it stands in the file; the rest is of what is around.
 */
static void test_work_of_calls(void **state)
{
	(void)state;
	check(KERNEL(500, 40, "\"correlation\": 5," ID(1)) EVENT(
		      "user_annotation", "ProfilerStep#3", 9, 0, 1000,
		      ID(1)) EVENT("cuda_runtime", "cudaLaunchKernel", 9, 15, 20,
				   "\"correlation\": 5," ID(1) STACK("m.py(7): f;m.py(1): g"))
		      OP("aten::mm", 100, 50, ID(2) STACK("m.py(8): f")) EVENT(
			      "cuda_runtime", "cudaLaunchKernel", 9, 110, 30,
			      "\"correlation\": 6," ID(2) STACK("n.py(9): h"))
			      EVENT("cuda_runtime", "cudaLaunchKernel", 9, 140, 5,
				    "\"correlation\": 7," ID(2))
				      EVENT("cuda_runtime", "cudaLaunchKernel", 9, 200, 5,
					    "\"correlation\": 8," ID(1))
					      KERNEL(600, 60, "\"correlation\": 6," ID(2)) KERNEL(
						      700, 7, "\"correlation\": 7," ID(2))
						      KERNEL(800, 8, "\"correlation\": 8," ID(1)),
	      GT_SUMMARY_BY_NAME,
	      "1,5.000,0.000,8.000,0.000,\"\",,\"\"\n"
	      "1,20.000,0.000,40.000,0.000,\"m.py\",7,\"f\"\n"
	      "1,20.000,0.000,7.000,0.000,\"m.py\",8,\"f\"\n"
	      "1,30.000,0.000,60.000,0.000,\"n.py\",9,\"h\"\n");
}

/* Frames around operators and calls, on their thread alone. */
static void test_frames(void **state)
{
	(void)state;
	check(FRAME("m.py(1): main", 0, 1000) FRAME("torch/nn.py(3): forward", 5, 30)
		      OP("aten::relu", 10, 20, ID(1)) FRAME("<built-in method x>", 40, 20)
			      EVENT("cuda_runtime", "cudaLaunchKernel", 9, 50, 10,
				    "\"correlation\": 5") FRAME("m.py(9): other", 100, 100)
				      OP("own::op", 110, 80, ID(2)) FRAME("n.py(4): impl", 120, 60)
					      OP("aten::mul", 130, 30, ID(3))
						      KERNEL(500, 40, "\"correlation\": 5"),
	      GT_SUMMARY_BY_NAME,
	      "2,30.000,0.000,40.000,0.000,\"m.py\",1,\"main\"\n"
	      "1,50.000,0.000,0.000,0.000,\"m.py\",9,\"other\"\n"
	      "1,30.000,0.000,0.000,0.000,\"n.py\",4,\"impl\"\n");
}

#define NODE_OF(name) "autograd::engine::evaluate_function: " name

/* The engine's own time is of the line, too; what has no operator in the forward pass has none. */
static void test_backward(void **state)
{
	(void)state;
	check(OP("aten::mm", 0, 10, ID(1) SEQUENCE(4, 0) STACK("m.py(7): f")) OP(
		      "aten::mul", 20, 10, ID(2) SEQUENCE(5, 0) STACK("m.py(8): f"))
		      NODE(NODE_OF("MulBackward0"), 100, 30,
			   ID(3) SEQUENCE(5, 1)) NODE("MulBackward0", 105, 20, ID(4) SEQUENCE(5, 1))
			      NODE("aten::mul", 110, 10, ID(5))
				      NODE(NODE_OF("MmBackward0"), 200, 10, ID(6) SEQUENCE(4, 1))
					      NODE("torch::autograd::AccumulateGrad", 300, 5, ID(7))
						      KERNEL(500, 40, ID(5)) KERNEL(600, 60, ID(2)),
	      GT_SUMMARY_BY_TOTAL,
	      "1,10.000,30.000,60.000,40.000,\"m.py\",8,\"f\"\n"
	      "1,10.000,10.000,0.000,0.000,\"m.py\",7,\"f\"\n"
	      "0,0.000,5.000,0.000,0.000,\"\",,\"\"\n");
}

/* Operators without gradients have the number of the next node: they did not make it. */
static void test_backward_of_the_last(void **state)
{
	(void)state;
	check(OP("aten::argmax", 0, 10, ID(1) SEQUENCE(4, 0) STACK("m.py(9): metric"))
		      OP("aten::linear", 20, 20, ID(2) SEQUENCE(4, 0) STACK("m.py(7): f"))
			      OP("aten::mm", 25, 10, ID(3) SEQUENCE(4, 0) STACK("m.py(7): f"))
				      NODE(NODE_OF("MmBackward0"), 100, 30, ID(4) SEQUENCE(4, 1))
					      NODE("MmBackward0", 105, 20, ID(5) SEQUENCE(4, 1)),
	      GT_SUMMARY_BY_TOTAL,
	      "1,20.000,30.000,0.000,0.000,\"m.py\",7,\"f\"\n"
	      "1,10.000,0.000,0.000,0.000,\"m.py\",9,\"metric\"\n");
}

/* On one thread what is of no line of the forward pass is of the call of backward(). */
static void test_backward_on_one_thread(void **state)
{
	(void)state;
	check(FRAME("m.py(7): f", 0, 20) OP("aten::mm", 0, 10, ID(1) SEQUENCE(4, 0))
		      FRAME("m.py(20): train", 90, 400) OP(NODE_OF("MmBackward0"), 100, 30,
							   ID(3) SEQUENCE(4, 1))
			      OP("aten::mm", 110, 10, ID(4) SEQUENCE(9, 0))
				      OP(NODE_OF("torch::autograd::AccumulateGrad"), 200, 20, ID(5))
					      OP("torch::autograd::AccumulateGrad", 201, 10, ID(6)),
	      GT_SUMMARY_BY_TOTAL,
	      "1,10.000,30.000,0.000,0.000,\"m.py\",7,\"f\"\n"
	      "0,0.000,20.000,0.000,0.000,\"m.py\",20,\"train\"\n");
}

/* Kernels that nothing in the file launched. */
static void test_no_lines(void **state)
{
	(void)state;
	check(KERNEL(500, 40, "\"correlation\": 5"), GT_SUMMARY_BY_TOTAL,
	      "0,0.000,0.000,40.000,0.000,\"\",,\"\"\n");
	check("", GT_SUMMARY_BY_TOTAL, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_stacks_in_functions),
		cmocka_unit_test(test_call_stacks),
		cmocka_unit_test(test_call_stacks_of_calls),
		cmocka_unit_test(test_work_of_calls),
		cmocka_unit_test(test_escaped_stacks),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_backward),
		cmocka_unit_test(test_backward_of_the_last),
		cmocka_unit_test(test_backward_on_one_thread),
		cmocka_unit_test(test_no_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
