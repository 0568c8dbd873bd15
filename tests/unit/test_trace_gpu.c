/*
 * test_trace_gpu.c - GPU work in a trace: its arguments, its launch, its lanes.
 */
#include "base.h"
#include "trace_rig.h"

static void test_one_kernel(void **state)
{
	struct gt_trace_call call = make_call(540471, 1000123);
	struct gt_gpu_op op = make_kernel(540471, 1010000, 1014831);
	struct gt_trace *trace = create(NULL);
	struct event *kernel, *launch;

	(void)state;
	call.external_id = 12;
	op.channel = 3;
	op.channel_type = 1;
	op.cluster[0] = 2;
	op.cluster[1] = op.cluster[2] = 1;
	op.graph_id = 5;
	op.graph_node_id = UINT64_C(21474836481);
	op.static_shared_bytes = 16;
	op.dynamic_shared_bytes = 8;
	op.priority = -5;
	add_range(trace, "ProfilerStep#3", true, 12, 1000000, 2000000);
	assert_int_equal(gt_trace_call(trace, &call), 0);
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("_ZN2at6native4fillIfEEvT_"), &call), 0);
	finish(trace);
	load();
	validate();
	launch = find('X', GT_CAT_RUNTIME, 0);
	assert_non_null(launch);
	assert_string_equal(launch->args,
			    "{\"cbid\":211,\"External id\":12,\"correlation\":540471}");
	assert_int_equal(launch->pid, PID);
	assert_int_equal(launch->tid, THREAD);
	assert_int_equal(launch->ts, 1000123);
	assert_int_equal(launch->dur, 4000);
	kernel = find('X', GT_CAT_KERNEL, 0);
	assert_non_null(kernel);
	assert_string_equal(kernel->name, "void at::native::fill<float>(float)");
	assert_string_equal(
		kernel->args,
		"{\"device\":0,\"context\":1,\"stream\":7,\"channel\":3,\"channel_type\":1,"
		"\"queued\":0,\"priority\":-5,\"registers per thread\":34,\"shared memory\":24,"
		"\"grid\":[128,1,1],\"block\":[128,1,1],\"cluster\":[2,1,1],"
		"\"blocks per SM\":0.969697,\"warps per SM\":3.878788,"
		"\"est. achieved occupancy %\":6,\"graph id\":5,\"graph node id\":21474836481,"
		"\"External id\":12,\"correlation\":540471}");
	assert_int_equal(kernel->pid, 0);
	assert_int_equal(kernel->tid, 7);
	assert_int_equal(kernel->ts, 1010000);
	assert_int_equal(kernel->dur, 4831);
	assert_has(find('s', GT_CAT_LAUNCH_FLOW, 0)->text, "\"id\":540471,");
	assert_int_equal(find('s', GT_CAT_LAUNCH_FLOW, 0)->ts, launch->ts);
	assert_has(find('f', GT_CAT_LAUNCH_FLOW, 0)->text, "\"bp\":\"e\"");
	assert_int_equal(find('f', GT_CAT_LAUNCH_FLOW, 0)->ts, kernel->ts);
	assert_int_equal(find('f', GT_CAT_LAUNCH_FLOW, 0)->tid, kernel->tid);
}

static void test_copies(void **state)
{
	struct gt_gpu_op op = make_kernel(1, 1000, 2000);
	struct gt_trace *trace = create(NULL);

	(void)state;
	op.kind = GT_GPU_MEMCPY;
	op.bytes = 4000;
	op.copy_kind = 1;
	op.src_kind = 1;
	op.dst_kind = 3;
	assert_int_equal(gt_trace_gpu(trace, &op, (struct gt_str){ 0 }, NULL), 0);
	op.copy_kind = op.src_kind = op.dst_kind = 200;
	op.start_ns = op.end_ns;
	assert_int_equal(gt_trace_gpu(trace, &op, (struct gt_str){ 0 }, NULL), 0);
	op = make_kernel(2, 3000, 4000);
	op.kind = GT_GPU_PEER;
	op.src_kind = op.dst_kind = 3;
	op.bytes = 1;
	op.dst_device = 1;
	op.src_context = 1;
	op.dst_context = 2;
	assert_int_equal(gt_trace_gpu(trace, &op, (struct gt_str){ 0 }, NULL), 0);
	op = make_kernel(3, 5000, 5768);
	op.kind = GT_GPU_MEMSET;
	op.bytes = 4;
	op.dst_kind = 3;
	assert_int_equal(gt_trace_gpu(trace, &op, (struct gt_str){ 0 }, NULL), 0);
	finish(trace);
	load();
	assert_string_equal(find('X', GT_CAT_MEMCPY, 0)->name, "Memcpy HtoD (Pageable -> Device)");
	assert_has(find('X', GT_CAT_MEMCPY, 0)->args,
		   "\"bytes\":4000,\"memory bandwidth (GB/s)\":4.0,\"correlation\":1}");
	assert_string_equal(find('X', GT_CAT_MEMCPY, 1)->name,
			    "Memcpy Unknown (Unknown -> Unknown)");
	assert_lacks(find('X', GT_CAT_MEMCPY, 1)->args, "bandwidth");
	assert_string_equal(find('X', GT_CAT_MEMCPY, 2)->name, "Memcpy PtoP (Device -> Device)");
	assert_has(find('X', GT_CAT_MEMCPY, 2)->args,
		   "\"fromDevice\":0,\"inDevice\":0,\"toDevice\":1,\"fromContext\":1,"
		   "\"inContext\":1,\"toContext\":2,");
	assert_string_equal(find('X', GT_CAT_MEMSET, 0)->name, "Memset (Device)");
	assert_has(find('X', GT_CAT_MEMSET, 0)->args, "\"memory bandwidth (GB/s)\":0.005208,");
}

/* More kernels, and larger names, than are remembered: each comes out as it is, each time. */
static void test_many_kernels(void **state)
{
	enum { KERNELS = 6000, ROUNDS = 2 };
	struct gt_trace *trace = create(NULL);
	static char name[12000];
	uint64_t at = 1000;

	(void)state;
	memset(name, 'n', sizeof(name));
	for (uint32_t i = 0; i < KERNELS * ROUNDS; i++, at += 1000) {
		struct gt_gpu_op op = make_kernel(i + 1, at, at + 500);
		size_t len = i % 3 ? 30 : sizeof(name);

		snprintf(name, 16, "k%08u", i % KERNELS);
		name[9] = 'n';
		op.grid[0] = 1 + i % 7;
		assert_int_equal(gt_trace_gpu(trace, &op, (struct gt_str){ name, len }, NULL), 0);
	}
	finish(trace);
	load();
	for (uint32_t i = 0, n = 0; i < got.count; i++) {
		char want[64];

		if (!is_gpu_work(&got.events[i]))
			continue;
		snprintf(want, sizeof(want), "k%08un", n % KERNELS);
		assert_memory_equal(got.events[i].name, want, 10);
		assert_int_equal(got.events[i].name_len, n % 3 ? 30 : sizeof(name));
		snprintf(want, sizeof(want), "\"grid\":[%u,1,1]", 1 + n % 7);
		assert_has(got.events[i].args, want);
		n++;
	}
}

static void test_overlapping_work(void **state)
{
	struct gt_trace *trace = create(NULL);
	uint32_t correlation;
	size_t others = 0;

	(void)state;
	for (correlation = 1; correlation <= 400; correlation++) {
		uint64_t at = 1000 * (1 + random_below(200));
		struct gt_trace_call call = make_call(correlation, correlation * 5000);
		struct gt_gpu_op op =
			make_kernel(correlation, 3000000 + at, 3000000 + at + random_below(3000));

		op.stream = 7 + 6 * (uint32_t)random_below(2);
		assert_int_equal(gt_trace_call(trace, &call), 0);
		assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("kernel"), &call), 0);
	}
	add_range(trace, "ProfilerStep#0", true, 1, 0, 3000000);
	finish(trace);
	load();
	validate();
	assert_nests();
	for (size_t i = 0; i < got.count; i++) {
		const struct event *event = &got.events[i];

		if (!is_gpu_work(event))
			continue;
		assert_has(event->args,
			   event->tid % 2000000 == 7 ? "\"stream\":7," : "\"stream\":13,");
		others += event->tid >= 2000000;
	}
	assert_true(others > 0);
}

/* A graph's kernels share its launch's correlation; with --cuda-graph graph it is one piece of
 * work. */
static void test_graphs(void **state)
{
	struct gt_trace *trace = create(NULL);
	struct gt_trace_call call = make_call(1, 1000);
	struct gt_gpu_op op;

	(void)state;
	call.name = GT_STR("cudaGraphLaunch");
	assert_int_equal(gt_trace_call(trace, &call), 0);
	for (uint32_t i = 0; i < 5; i++) { /* two at a time */
		op = make_kernel(1, 10000 + 500 * i, 10900 + 500 * i);
		op.graph_id = 3;
		op.graph_node_id = 100 + i;
		assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("node"), &call), 0);
	}
	call = make_call(2, 20000);
	call.name = GT_STR("cudaGraphLaunch");
	assert_int_equal(gt_trace_call(trace, &call), 0);
	op = make_kernel(2, 30000, 40000);
	op.kind = GT_GPU_GRAPH;
	op.graph_id = 3;
	memset(op.grid, 0, sizeof(op.grid));
	memset(op.block, 0, sizeof(op.block));
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("not used"), &call), 0);
	add_range(trace, "ProfilerStep#0", true, 1, 0, 50000);
	finish(trace);
	load();
	validate();
	assert_nests();
	assert_string_equal(find('X', GT_CAT_KERNEL, 5)->name, "CUDA graph");
	assert_has(find('X', GT_CAT_KERNEL, 5)->args, "\"graph id\":3,");
	assert_int_equal(find('X', GT_CAT_KERNEL, 1)->tid, 2000007);
}

/* What cannot be is left out and counted; what is odd is made good. */
static void test_bad_input(void **state)
{
	struct gt_trace *trace = create(NULL);
	struct gt_gpu_op op = make_kernel(1, 1000, 2000);
	struct gt_trace_call call = make_call(0, 1000);
	struct gt_msg_device device = h100;

	(void)state;
	op.device = 64;
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("far device"), NULL), 0);
	op = make_kernel(1, 1000, 2000);
	op.end_ns = UINT64_MAX;
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("no end"), NULL), 0);
	op.start_ns = BASE - 50; /* before the base: begins there */
	op.end_ns = BASE + 50;
	op.correlation = 0;
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("early"), NULL), 0);
	op.start_ns = BASE + 100;
	op.end_ns = BASE + 60; /* ends before it begins: takes no time */
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("backwards"), NULL), 0);
	assert_int_equal(gt_trace_call(trace, &call), 0);
	device.id = 64;
	assert_int_equal(gt_trace_device(trace, &device), -EINVAL);
	op = make_kernel(9, 5000, 6000);
	op.device = 3; /* never heard of */
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("unknown GPU"), NULL), 0);
	finish(trace);
	load();
	assert_string_equal(find('X', GT_CAT_KERNEL, 0)->name, "early");
	assert_int_equal(find('X', GT_CAT_KERNEL, 0)->ts, 0);
	assert_int_equal(find('X', GT_CAT_KERNEL, 0)->dur, 50);
	assert_has(find('X', GT_CAT_KERNEL, 0)->args, "\"correlation\":4294967295}");
	assert_int_equal(find('X', GT_CAT_KERNEL, 1)->ts, 100);
	assert_int_equal(find('X', GT_CAT_KERNEL, 1)->dur, 0);
	assert_has(find('X', GT_CAT_KERNEL, 1)->args, "\"correlation\":4294967294}");
	assert_null(find('s', GT_CAT_LAUNCH_FLOW, 0)); /* a call without correlation */
	assert_lacks(find('X', GT_CAT_KERNEL, 2)->args, "per SM");
	assert_has(got.members.data, "{\"id\":3,\"name\":\"GPU 3\"}");
	assert_has(got.members.data, "\"bad_records\":2,");
	assert_has(got.members.data, "\"complete\":false");
	assert_has(got.members.data, "\"reason\":\"2 records could not be used\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_kernel),   cmocka_unit_test(test_copies),
		cmocka_unit_test(test_many_kernels), cmocka_unit_test(test_overlapping_work),
		cmocka_unit_test(test_graphs),       cmocka_unit_test(test_bad_input),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
