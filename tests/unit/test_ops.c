/*
 * test_ops.c - operators of small traces: how they nest and merge, whose GPU work is whose, memory.
 */
#include "op_report_rig.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),       cmocka_unit_test(test_same_times),
		cmocka_unit_test(test_other_threads), cmocka_unit_test(test_merging),
		cmocka_unit_test(test_left_out),      cmocka_unit_test(test_external_ids),
		cmocka_unit_test(test_ids_in_doubt),  cmocka_unit_test(test_correlations_only),
		cmocka_unit_test(test_file_of_2021),  cmocka_unit_test(test_strays),
		cmocka_unit_test(test_calls_alone),   cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
