/*
 * test_op_report.c - rows of operators: how they are grouped, chosen, ordered and printed.
 */
#include "op_report_rig.h"

#define DIMS(dims) "\"Input Dims\": " dims ", \"Ev Idx\": 4"
#define CONV(padding)                                                    \
	"\"Concrete Inputs\": [\"\", \"\", \"\", \"[1, 1]\", \"" padding \
	"\", \"[1, 1]\", \"1\"], \"Input Dims\": [[1, 1, 4, 4], [1, 1, 3, 3], [], [], [], [], []]"

static void test_shapes(void **state)
{
	static const char events[] = OP("aten::mm", 0, 1, DIMS("[[2, 3], [3, 4]]"))
		OP("aten::mm", 10, 2, DIMS("[[2,3],[3,4]]"))
			OP("aten::mm", 20, 4, DIMS("[[2, 3], [3, 5]]"))
				OP("aten::cat", 30, 1, DIMS("[[[2, 3], [3]], []]"))
					OP("aten::cat", 40, 1, DIMS("[[[7]], []]"))
						OP("aten::conv2d", 50, 1, CONV("[0, 0]"))
							OP("aten::conv2d", 60, 1, CONV("[1, 1]"));
	struct gt_op_grouping grouping = { .by_shape = true, .with_flops = true };
	struct fixture f = load(events, 0, &grouping);
	const struct gt_op_line *line = find_line(&f, "aten::mm", "[[2, 3], [3, 4]]");

	(void)state;
	assert_int_equal(f.report.count, 4);
	assert_non_null(line);
	assert_int_equal(line->sum.calls, 2);
	assert_int_equal(line->flops, 2 * 48);
	assert_non_null(find_line(&f, "aten::mm", "[[2, 3], [3, 5]]"));
	assert_int_equal(find_line(&f, "aten::cat", "[[], []]")->sum.calls, 2);
	line = find_line(&f, "aten::conv2d", NULL);
	assert_int_equal(line->sum.calls, 2);
	assert_int_equal(line->flops, 2 * 4 * 9 + 2 * 16 * 9);
	unload(&f);

	grouping = (struct gt_op_grouping){ .with_flops = false };
	f = load(events, 0, &grouping);
	assert_int_equal(f.report.count, 3);
	line = find_line(&f, "aten::mm", NULL);
	assert_int_equal(line->sum.calls, 3);
	assert_int_equal(line->flops, 0);
	assert_int_equal(line->estimated_flops, 2 * 48 + 60);
	unload(&f);
}

#define ADD(ts, type)          \
	OP("aten::add", ts, 1, \
	   DIMS("[[], [], []]") ", \"Input type\": [\"" type "\", \"float\", \"\"]")

/* A number is no operand of torch's FLOPs, but a tensor of no dimension is one of one element. */
static void test_no_tensor(void **state)
{
	static const char events[] = ADD(0, "float") ADD(10, "long int") ADD(20, "Scalar")
		ADD(30, "") ADD(40, "double");
	struct gt_op_grouping grouping = { .with_flops = true };
	struct fixture f = load(events, 0, &grouping);

	(void)state;
	assert_int_equal(find_line(&f, "aten::add", NULL)->sum.calls, 5);
	assert_int_equal(find_line(&f, "aten::add", NULL)->flops, 3);
	unload(&f);
}

#define FRAME(name, ts, dur) EVENT("python_function", name, 1, ts, dur, "")

static void test_stacks(void **state)
{
	static const char events[] = FRAME("main", 0, 100) FRAME("a", 10, 30) FRAME(
		"a", 60, 30) FRAME("torch/autograd/__init__.py(9): backward", 12,
				   20) FRAME("b", 15, 10) OP("aten::op", 16, 2, "")
		OP("aten::op", 30, 1, "") OP("aten::op", 70, 1, "") OP("aten::op", 95, 1, "")
			OP("aten::jit", 98, 1,
			   "\"Call stack\": \"x;torch/autograd/__init__.py(8): _make_grads;y;z\"");
	struct gt_op_grouping grouping = { .by_stack = true };
	struct fixture f = load(events, 2, &grouping);

	(void)state;
	assert_int_equal(f.report.count, 4);
	assert_int_equal(find_line(&f, "aten::op", "b\na\n")->sum.calls, 1);
	assert_int_equal(find_line(&f, "aten::op", "a\nmain\n")->sum.calls, 2);
	assert_int_equal(find_line(&f, "aten::op", "main\n")->sum.calls, 1);
	assert_int_equal(find_line(&f, "aten::jit", "x\ny\n")->sum.calls, 1);
	unload(&f);
}

static void check_order(const char *key, const char *const *names, size_t count)
{
	static const char events[] = OP("cpu", 0, 100, "") OP("calls", 200, 10, "")
		OP("calls", 210, 10, "") OP("gpu", 300, 20, EXTERNAL(5))
			KERNEL("kernel", 310, 50, LAUNCH(5, 101))
				EVENT("gpu_user_annotation", "span", 7, 300, 90, "");
	struct gt_op_grouping grouping = { 0 };
	struct fixture f;

	if (key)
		assert_true(gt_op_sort_of(key, &grouping.sort));
	f = load(events, 0, &grouping);
	for (size_t i = 0; i < count; i++)
		assert_true(gt_str_equal(f.report.lines[i].name, gt_str_of(names[i])));
	unload(&f);
}

#define CHECK_ORDER(key, ...)                                  \
	check_order(key, (const char *const[]){ __VA_ARGS__ }, \
		    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static void test_order(void **state)
{
	enum gt_op_sort sort;

	(void)state;
	CHECK_ORDER(NULL, "gpu", "kernel", "calls", "cpu", "span");
	CHECK_ORDER("self_cuda_time_total", "span", "gpu", "kernel");
	CHECK_ORDER("device_time_total", "span", "gpu", "kernel");
	CHECK_ORDER("self_cpu_time_total", "cpu", "calls", "gpu");
	CHECK_ORDER("cpu_time", "cpu", "gpu", "calls");
	CHECK_ORDER("cpu", "cpu", "calls", "gpu");
	CHECK_ORDER("count", "calls", "cpu");
	CHECK_ORDER("name", "calls", "cpu", "gpu", "kernel", "span");
	assert_true(gt_op_sort_of("self_xpu_memory_usage", &sort));
	assert_int_equal(sort, GT_OP_BY_SELF_GPU_BYTES);
	assert_false(gt_op_sort_of("self_time_total", &sort));
	assert_false(gt_op_sort_of("", &sort));
}

static void test_filter(void **state)
{
	struct gt_op_grouping grouping = { 0 };
	struct fixture f;
	regex_t regex;

	(void)state;
	assert_int_equal(regcomp(&regex, "^aten::(mm|add)$", REG_EXTENDED), 0);
	grouping.filter = &regex;
	f = load(OP("aten::mm", 0, 1, "") OP("aten::addmm", 10, 1, "") OP("aten::add", 20, 1, ""),
		 0, &grouping);
	assert_int_equal(f.report.count, 2);
	assert_int_equal(f.report.self_cpu_ns, 3000);
	unload(&f);
	regfree(&regex);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void check_print(const struct gt_summary *summary, const struct gt_summary_style *style,
			const char *part)
{
	struct gt_buf out = { 0 };

	assert_int_equal(gt_summary_print(summary, style, &out), 0);
	gt_buf_byte(&out, '\0');
	if (!strstr(out.data, part))
		fail_msg("no '%s' in:\n%s", part, out.data);
	gt_buf_release(&out);
}

static void test_print(void **state)
{
	struct gt_summary_style style = { .by = GT_SUMMARY_BY_OP, .by_shape = true, .width = 80 };
	struct fixture f = load_plain(OP("aten::mm", 0, 1.5, DIMS("[[200, 300], [300, 400], []]"))
					      MEMORY("[memory]", 0, 2048, 0));

	(void)state;
	check_print(f.summary, &style,
		    "calls  self CPU   share  self CPU mem   FLOPs  operator\n"
		    "    1   1.500us  100.0%        2.00KB  48.00M  aten::mm [[200, 300], [300, "
		    "400]]\n");
	style.format = GT_SUMMARY_CSV;
	check_print(f.summary, &style,
		    "device,user_annotation,calls,self_cpu_us,cpu_us,self_cuda_us,cuda_us,flops,"
		    "estimated_flops,flops_per_s,peak_share,peak_dtype,self_cpu_mem,cpu_mem,"
		    "self_cuda_mem,cuda_mem,input_shapes,name\n"
		    "CPU,0,1,1.500,1.500,0.000,0.000,48000000,0,32000000000000,,,2048,2048,0,0,"
		    "\"[[200, 300], [300, 400], []]\",\"aten::mm\"\n");
	style.format = GT_SUMMARY_JSON;
	check_print(f.summary, &style,
		    "\"ops\":[\n{\"name\":\"aten::mm\",\"calls\":1,\"self_cpu_us\":1.500,"
		    "\"cpu_us\":1.500,\"self_cuda_us\":0.000,\"cuda_us\":0.000,\"flops\":48000000,"
		    "\"estimated_flops\":0,\"flops_per_s\":32000000000000,\"self_cpu_mem\":2048,"
		    "\"cpu_mem\":2048,"
		    "\"self_cuda_mem\":0,\"cuda_mem\":0,\"device\":\"CPU\","
		    "\"user_annotation\":false,"
		    "\"input_shapes\":\"[[200, 300], [300, 400], []]\"}]");
	unload(&f);
}

/* Wide tables leave room for names: a GPU's memory needs more than averages do. */
static void test_print_memory(void **state)
{
	struct gt_summary_style style = { .by = GT_SUMMARY_BY_OP, .width = 160 };
	struct fixture f = load_plain(
		OP("aten::mm", 0, 1.5, "") CALL("cudaLaunchKernel", 0.5, 0.5, LAUNCH(1, 2))
			KERNEL("k", 2, 1, LAUNCH(1, 2)) MEMORY("[memory]", 1, 2048, 1));

	(void)state;
	check_print(f.summary, &style, "GPU total  GPU avg  self GPU mem  operator\n");
	style.width = 180;
	check_print(f.summary, &style,
		    "GPU avg  CPU mem  self CPU mem  GPU mem  self GPU mem  operator\n");
	unload(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),       cmocka_unit_test(test_no_tensor),
		cmocka_unit_test(test_stacks),       cmocka_unit_test(test_order),
		cmocka_unit_test(test_filter),       cmocka_unit_test(test_print),
		cmocka_unit_test(test_print_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
