/*
 * test_ops.c - operators of small traces: how they nest and merge, whose GPU work is whose, memory,
 * stacks, and how the rows are grouped, chosen and ordered.
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
#define EXTERNAL(id)                "\"External id\": " #id
#define LAUNCH(ext, corr)           EXTERNAL(ext) ",\"cbid\": 211,\"correlation\": " #corr
#define OP(name, ts, dur, args)     EVENT("cpu_op", name, 1, ts, dur, args)
#define RANGE(name, ts, dur)        EVENT("user_annotation", name, 1, ts, dur, "")
#define CALL(name, ts, dur, args)   EVENT("cuda_runtime", name, 1, ts, dur, args)
#define KERNEL(name, ts, dur, args) EVENT("kernel", name, 7, ts, dur, args)
#define MEMORY(name, ts, bytes, device)                                            \
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"" name \
	"\",\"pid\":9,\"tid\":2,\"ts\":" #ts ",\"args\":{\"Bytes\": " #bytes       \
	",\"Device Type\": " #device "}},\n"

struct fixture {
	struct gt_summary *summary;
	struct gt_op_report report;
};

static struct fixture load(const char *events, size_t stack_depth,
			   const struct gt_op_grouping *grouping)
{
	struct gt_summary_options options = { .stack_depth = stack_depth };
	struct gt_buf text = { 0 };
	struct gt_gz_reader *gz;
	struct fixture ret;
	struct gt_err err;

	gt_buf_printf(&text, "{\"with_flops\": 1,\"traceEvents\":[%s]}", events);
	assert_int_equal(gt_gz_open_mem(&gz, text.data, text.len), 0);
	assert_int_equal(gt_summary_read(&ret.summary, gz, "trace", &options, &err), 0);
	gt_gz_close(gz);
	gt_buf_release(&text);
	assert_int_equal(gt_op_report(&ret.summary->ops, grouping, &ret.report), 0);
	return ret;
}

static struct fixture load_plain(const char *events)
{
	struct gt_op_grouping grouping = { .with_flops = true };

	return load(events, 0, &grouping);
}

static void unload(struct fixture *fixture)
{
	gt_op_report_release(&fixture->report);
	gt_summary_free(fixture->summary);
}

static const struct gt_op_line *find_line(const struct fixture *fixture, const char *name,
					  const char *rest)
{
	for (size_t i = 0; i < fixture->report.count; i++) {
		const struct gt_op_line *line = &fixture->report.lines[i];
		struct gt_str wanted = { name, strlen(name) };
		struct gt_str shapes_or_stack = line->shapes.len ? line->shapes : line->stack;

		if (gt_str_equal(line->name, wanted) &&
		    (!rest || gt_str_equal(shapes_or_stack, (struct gt_str){ rest, strlen(rest) })))
			return line;
	}
	return NULL;
}

static const struct gt_op_row *line_of(const struct fixture *fixture, const char *name)
{
	const struct gt_op_line *line = find_line(fixture, name, NULL);

	if (!line)
		fail_msg("no line %s", name);
	return &line->sum;
}

/* Times in ns. */
static void check_host(const struct fixture *fixture, const char *name, uint64_t calls,
		       int64_t self_cpu_ns, int64_t cpu_ns)
{
	const struct gt_op_row *sum = line_of(fixture, name);

	assert_int_equal(sum->calls, calls);
	assert_int_equal(sum->self_cpu_ns, self_cpu_ns);
	assert_int_equal(sum->cpu_ns, cpu_ns);
}

static void check_gpu(const struct fixture *fixture, const char *name, int64_t self_gpu_ns,
		      int64_t gpu_ns)
{
	const struct gt_op_row *sum = line_of(fixture, name);

	assert_int_equal(sum->self_gpu_ns, self_gpu_ns);
	assert_int_equal(sum->gpu_ns, gpu_ns);
}

/* ---- nesting --------------------------------------------------------------------------------- */

static void test_nesting(void **state)
{
	/* out of order, as no producer sorts; the last one begins in outer and ends behind it */
	struct fixture f =
		load_plain(OP("inner", 20, 10, "") CALL("cudaLaunchKernel", 22, 3.5, "")
				   RANGE("ProfilerStep#1", 0, 200) RANGE("ProfilerStep#2", 300, 100)
					   OP("outer", 10, 90, "") OP("inner", 40, 20, "")
						   OP("across", 90, 30, ""));

	(void)state;
	assert_int_equal(f.report.count, 5);
	check_host(&f, "ProfilerStep*", 2, 200000 - 90000 - 30000 + 100000, 300000);
	check_host(&f, "outer", 1, 60000, 90000);
	check_host(&f, "inner", 2, 26500, 30000);
	check_host(&f, "cudaLaunchKernel", 1, 3500, 3500);
	check_host(&f, "across", 1, 30000, 30000);
	assert_int_equal(f.report.self_cpu_ns, 300000);
	unload(&f);
}

/* Slices with the same times: the first in the file is the outer one, a call is the inner one. */
static void test_same_times(void **state)
{
	struct fixture f = load_plain(CALL("call", 10, 5, "") OP("first", 10, 5, "")
					      OP("second", 10, 5, "") OP("empty", 15, 0, ""));

	(void)state;
	check_host(&f, "first", 1, 0, 5000);
	check_host(&f, "second", 1, 0, 5000);
	check_host(&f, "call", 1, 5000, 5000);
	check_host(&f, "empty", 1, 0, 0);
	unload(&f);
}

static void test_other_threads(void **state)
{
	struct fixture f = load_plain(OP("outer", 0, 10, "") EVENT("cpu_op", "other", 2, 1, 2, "")
					      EVENT("cpu_op", "text", "worker", 1, 2, "") "{}");

	(void)state;
	check_host(&f, "outer", 1, 10000, 10000);
	check_host(&f, "other", 1, 2000, 2000);
	check_host(&f, "text", 1, 2000, 2000);
	unload(&f);
}

static void test_merging(void **state)
{
	struct fixture f = load_plain(
		/* alone in one of its name, twice over: one call, with what is in the innermost */
		OP("aten::a", 0, 100, EXTERNAL(1)) OP("aten::a", 10, 80, EXTERNAL(2))
			OP("aten::a", 20, 60, EXTERNAL(3)) OP("aten::x", 30, 10, "")
				OP("aten::y", 50, 5, "")
		/* not alone */
		OP("aten::b", 200, 100, "") OP("aten::b", 210, 10, "") OP("aten::b", 230, 10, "")
		/* not alone because of a call */
		OP("aten::c", 400, 100, "") OP("aten::c", 410, 10, "") CALL("call", 450, 1, "")
		/* a range of that name counts, too */
		RANGE("aten::d", 600, 100) OP("aten::d", 610, 10, "")
		/* the GPU work is that of the innermost */
		KERNEL("k1", 0, 7, LAUNCH(1, 101)) KERNEL("k2", 0, 9, LAUNCH(3, 103)));

	(void)state;
	check_host(&f, "aten::a", 1, 85000, 100000);
	check_gpu(&f, "aten::a", 9000, 9000);
	check_host(&f, "aten::b", 3, 100000, 120000);
	check_host(&f, "aten::c", 2, 99000, 110000);
	check_host(&f, "aten::d", 1, 100000, 100000);
	assert_int_equal(line_of(&f, "aten::d")->kind, GT_OP_RANGE);
	unload(&f);
}

static void test_left_out(void **state)
{
	struct fixture f = load_plain(OP("aten::op", 0, 100, "") OP("aten::is_leaf", 10, 20, "") OP(
		"profiler::_record_function_enter_new", 40, 20, "") OP("aten::_version", 70, 5, "")
					      EVENT("python_function", "f", 1, 5, 90, ""));

	(void)state;
	assert_int_equal(f.report.count, 1);
	check_host(&f, "aten::op", 1, 100000, 100000);
	unload(&f);
}

/* ---- GPU work -------------------------------------------------------------------------------- */

#define OPS OP("aten::outer", 0, 100, EXTERNAL(5)) OP("aten::inner", 10, 50, EXTERNAL(6))

static void test_external_ids(void **state)
{
	struct fixture f = load_plain(
		OPS CALL("launch", 20, 1, LAUNCH(6, 101)) KERNEL("k", 30, 40, LAUNCH(6, 101))
			KERNEL("k", 80, 2, LAUNCH(5, 102)) KERNEL("other", 90, 3, LAUNCH(77, 103))
				EVENT("gpu_memset", "set", 7, 95, 4, "\"correlation\": 104")
					EVENT("gpu_user_annotation", "range", 7, 30, 10.002,
					      EXTERNAL(5)));

	(void)state;
	check_gpu(&f, "aten::inner", 40000, 40000);
	check_gpu(&f, "aten::outer", 2000, 42000);
	check_gpu(&f, "launch", 0, 0);
	check_gpu(&f, "k", 42000, 42000);
	check_gpu(&f, "set", 4000, 4000);
	/* Kineto makes it 1 ns longer at both ends. */
	check_gpu(&f, "range", 10000, 10000);
	assert_int_equal(line_of(&f, "range")->kind, GT_OP_GPU_RANGE);
	assert_int_equal(f.report.self_gpu_ns, 49000);
	unload(&f);
}

/* An External id that is the correlation counts where the launch lies in that operator. */
static void test_ids_in_doubt(void **state)
{
	struct fixture f = load_plain(
		OPS OP("aten::later", 200, 10, EXTERNAL(7)) CALL("launch", 20, 1, LAUNCH(6, 101))
			KERNEL("good", 30, 1, LAUNCH(6, 101)) CALL("launch", 30, 1, LAUNCH(5, 5))
				KERNEL("right", 31, 10, LAUNCH(5, 5))
					CALL("launch", 40, 1, LAUNCH(7, 7))
						KERNEL("wrong", 41, 100, LAUNCH(7, 7)));

	(void)state;
	check_gpu(&f, "aten::inner", 1000, 1000);
	check_gpu(&f, "aten::outer", 10000, 11000);
	check_gpu(&f, "aten::later", 0, 0);
	unload(&f);
}

/* Without any good External id the innermost operator around the launch has the work. */
static void test_correlations_only(void **state)
{
	struct fixture f = load_plain(
		OPS RANGE("range", 15, 30) CALL("launch", 20, 2, "\"correlation\": 101") KERNEL(
			"k", 30, 40, "\"correlation\": 101") CALL("launch", 70, 2, LAUNCH(102, 102))
			KERNEL("k", 80, 2, LAUNCH(102, 102)) KERNEL("k", 90, 3, LAUNCH(103, 103)));

	(void)state;
	check_gpu(&f, "aten::inner", 40000, 40000);
	check_gpu(&f, "aten::outer", 2000, 42000);
	check_gpu(&f, "range", 0, 0);
	unload(&f);
}

static void test_file_of_2021(void **state)
{
	struct gt_op_grouping grouping = { .by_shape = true, .with_flops = true };
	struct fixture f =
		load(EVENT("Operator", "aten::mm", 1, 0, 100,
			   "\"external id\": 5, \"Input dims\": [[2, 3], [3, 4]]")
			     EVENT("Runtime", "launch", 1, 10, 5,
				   "\"external id\": 5, \"correlation\": 9")
				     EVENT("Kernel", "k", 7, 20, 30,
					   "\"external id\": 5, \"correlation\": 9")
					     EVENT("gpu_user_Annotation", "range", 7, 20, 32, ""),
		     0, &grouping);

	(void)state;
	check_host(&f, "aten::mm", 1, 95000, 100000);
	check_gpu(&f, "aten::mm", 30000, 30000);
	check_gpu(&f, "range", 30000, 30000); /* 1 us at both ends */
	assert_non_null(find_line(&f, "aten::mm", "[[2, 3], [3, 4]]"));
	assert_int_equal(find_line(&f, "aten::mm", NULL)->flops, 48);
	unload(&f);
}

#define STRAY(name, ts, dur, args) EVENT("cuda_runtime", name, 2, ts, dur, args)

/* As in torch, a call that names no operator of its thread is one of the main thread. */
static void test_strays(void **state)
{
	static const char events[] = RANGE("ProfilerStep#1", 0, 100)
		EVENT("cpu_op", "aten::on_2", 2, 10, 30, EXTERNAL(5))
			EVENT("cpu_op", "aten::on_2", 2, 39, 0.5, "")
				STRAY("linked", 12, 4, LAUNCH(5, 101))
					STRAY("stray", 20, 8, "\"correlation\": 102")
						STRAY("across", 35, 20, LAUNCH(77, 103))
							EVENT("overhead", "flush", -1, 60, 5, "");
	struct fixture f = load_plain(events);

	(void)state;
	check_host(&f, "ProfilerStep*", 1, 67000, 100000);
	check_host(&f, "aten::on_2", 2, 30000 - 4000, 30500);
	check_host(&f, "linked", 1, 4000, 4000);
	check_host(&f, "stray", 1, 8000, 8000);
	unload(&f);
}

/* Without any operator all calls are of one thread. */
static void test_calls_alone(void **state)
{
	struct fixture f = load_plain(CALL("outer", 0, 50, "") STRAY("inner", 10, 5, "")
					      STRAY("outer", 60, 50, "") CALL("outer", 70, 5, ""));

	(void)state;
	check_host(&f, "outer", 2, 45000 + 50000, 100000);
	check_host(&f, "inner", 1, 5000, 5000);
	unload(&f);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_memory(void **state)
{
	struct fixture f = load_plain(
		OP("aten::outer", 0, 100, "") OP("aten::inner", 10, 50, "")
			MEMORY("[memory]", 10, 512, 0) MEMORY("[memory]", 60, 1024, 1)
				MEMORY("[memory]", 70, -12, 0) MEMORY("[memory]", 500, 99, 0)
					MEMORY("[memory]", 30, 5, 3)
						MEMORY("[OutOfMemory]", 600, 4096, 6));
	const struct gt_op_row *sum;

	(void)state;
	sum = line_of(&f, "aten::outer");
	assert_int_equal(sum->cpu_bytes, 500);
	assert_int_equal(sum->self_cpu_bytes, -12);
	assert_int_equal(sum->gpu_bytes, 1024);
	assert_int_equal(sum->self_gpu_bytes, 0);
	sum = line_of(&f, "aten::inner");
	assert_int_equal(sum->self_cpu_bytes, 512);
	assert_int_equal(sum->self_gpu_bytes, 1024);
	sum = line_of(&f, "[memory]");
	assert_int_equal(sum->calls, 1);
	assert_int_equal(sum->self_cpu_bytes, 99);
	sum = line_of(&f, "[OutOfMemory]");
	assert_int_equal(sum->calls, 1);
	assert_int_equal(sum->gpu_bytes, 0);
	unload(&f);
}

/* ---- groups ---------------------------------------------------------------------------------- */

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
		assert_true(gt_str_equal(f.report.lines[i].name,
					 (struct gt_str){ names[i], strlen(names[i]) }));
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
		cmocka_unit_test(test_nesting),       cmocka_unit_test(test_same_times),
		cmocka_unit_test(test_other_threads), cmocka_unit_test(test_merging),
		cmocka_unit_test(test_left_out),      cmocka_unit_test(test_external_ids),
		cmocka_unit_test(test_ids_in_doubt),  cmocka_unit_test(test_correlations_only),
		cmocka_unit_test(test_strays),        cmocka_unit_test(test_calls_alone),
		cmocka_unit_test(test_file_of_2021),  cmocka_unit_test(test_memory),
		cmocka_unit_test(test_shapes),        cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_order),         cmocka_unit_test(test_filter),
		cmocka_unit_test(test_print),         cmocka_unit_test(test_print_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
