/*
 * test_trace_cpu.c - calls, ranges, operators and memory in a trace: their names, arguments, lanes.
 */
#include "base.h"
#include "trace_rig.h"

/* "Call stack" of a call, but not of its GPU work. */
static void test_call_with_stack(void **state)
{
	struct gt_trace_call call = make_call(7, 1000123);
	struct gt_gpu_op op = make_kernel(7, 1010000, 1014831);
	struct gt_trace *trace = create(NULL);

	(void)state;
	add_range(trace, "ProfilerStep#3", true, 12, 1000000, 2000000);
	call.calls = GT_STR("a \"b\".py(3): f;m.py(1): g;");
	assert_int_equal(gt_trace_call(trace, &call), 0);
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("k"), &call), 0);
	finish(trace);
	load();
	validate();
	assert_string_equal(find('X', GT_CAT_RUNTIME, 0)->args,
			    "{\"cbid\":211,\"correlation\":7,"
			    "\"Call stack\":\"a \\\"b\\\".py(3): f;m.py(1): g;\"}");
	assert_null(strstr(find('X', GT_CAT_KERNEL, 0)->args, "Call stack"));
}

/* Whatever the bytes of a name, they come back; what is no UTF-8 shows as such. */
static void test_names(void **state)
{
	static const char odd[] = "q\"b\\s/n\n\t!\x1b[31m \xc3\xa9\xf0\x9f\x98\x80 \x7f";
	struct gt_trace_call call = make_call(1, 1000);
	struct gt_gpu_op op = make_kernel(1, 10000, 20000);
	struct gt_trace *trace = create(NULL);
	static char large[65536];
	size_t named = 0;

	(void)state;
	memset(large, 'k', sizeof(large));
	memcpy(large + sizeof(large) - sizeof(odd), odd, sizeof(odd) - 1);
	call.name = gt_str_of(odd);
	assert_int_equal(gt_trace_call(trace, &call), 0);
	assert_int_equal(gt_trace_gpu(trace, &op, (struct gt_str){ large, sizeof(large) }, &call),
			 0);
	op = make_kernel(2, 30000, 40000);
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("bad \xff\xc3 name"), NULL), 0);
	op = make_kernel(3, 50000, 60000);
	assert_int_equal(gt_trace_gpu(trace, &op, (struct gt_str){ 0 }, NULL), 0);
	op = make_kernel(4, 70000, 80000);
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("_Znot mangled"), NULL), 0);
	op = make_kernel(5, 90000, 91000);
	assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("a\0b"), NULL), 0);
	assert_int_equal(gt_trace_mark(trace, THREAD, BASE + 5, GT_STR("a mark")), 0);
	assert_int_equal(gt_trace_thread_name(trace, THREAD, GT_STR("data \"loader\"\xff")), 0);
	add_range(trace, odd, false, 7, 500, 100000);
	add_range(trace, "ProfilerStep#0", true, 8, 0, 100000);
	finish(trace);
	load();
	validate();
	assert_string_equal(find('X', GT_CAT_RUNTIME, 0)->name, odd);
	assert_int_equal(find('X', GT_CAT_KERNEL, 0)->name_len, sizeof(large));
	assert_memory_equal(find('X', GT_CAT_KERNEL, 0)->name, large, sizeof(large));
	assert_string_equal(find('X', GT_CAT_KERNEL, 1)->name, "bad \xef\xbf\xbd\xef\xbf\xbd name");
	assert_string_equal(find('X', GT_CAT_KERNEL, 2)->name, "unknown kernel");
	assert_string_equal(find('X', GT_CAT_KERNEL, 3)->name, "_Znot mangled");
	assert_int_equal(find('X', GT_CAT_KERNEL, 4)->name_len, 3);
	assert_memory_equal(find('X', GT_CAT_KERNEL, 4)->name, "a\0b", 3);
	assert_string_equal(find('X', GT_CAT_ANNOTATION, 0)->name, odd);
	assert_string_equal(find('i', GT_CAT_ANNOTATION, 0)->name, "a mark");
	for (size_t i = 0; i < got.count; i++)
		named += !strcmp(got.events[i].args,
				 "{\"name\":\"thread 4322 (data \\\"loader\\\"\xef\xbf\xbd)\"}");
	assert_int_equal(named, 1);
}

/* Only steps are called ProfilerStep#N: readers abort on others, or count them. */
static void test_step_names(void **state)
{
	struct gt_trace *trace = create(NULL);

	(void)state;
	add_range(trace, "ProfilerStep#1", true, 1, 1000, 2000);
	add_range(trace, "ProfilerStep#1", false, 2, 1100, 1900);
	add_range(trace, "ProfilerStepper", false, 3, 1200, 1800);
	finish(trace);
	load();
	assert_string_equal(find('X', GT_CAT_ANNOTATION, 0)->name, "ProfilerStep#1");
	assert_string_equal(find('X', GT_CAT_ANNOTATION, 1)->name, " ProfilerStep#1");
	assert_string_equal(find('X', GT_CAT_ANNOTATION, 2)->name, " ProfilerStepper");
}

static void test_cut_step(void **state)
{
	struct gt_trace *trace = create(NULL);
	struct gt_trace_range range = {
		.tid = THREAD,
		.is_step = true,
		.start_ns = BASE + 1000,
		.end_ns = BASE + 2000,
		.name = GT_STR("ProfilerStep#1"),
		.external_id = 1,
	};

	(void)state;
	assert_int_equal(gt_trace_range(trace, &range), 0);
	range.cut = true;
	range.start_ns = BASE + 2000;
	range.external_id = 2;
	assert_int_equal(gt_trace_range(trace, &range), 0);
	finish(trace);
	load();
	assert_string_equal(find('X', GT_CAT_ANNOTATION, 0)->args, "{\"External id\":1}");
	assert_string_equal(find('X', GT_CAT_ANNOTATION, 1)->args,
			    "{\"External id\":2,\"cut\":true}");
}

/* Ranges that cross, steps across ranges, calls outside of any order: all on lanes where they nest.
 */
static void test_crossing_ranges(void **state)
{
	struct gt_trace *trace = create(NULL);

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		uint64_t at = 10000 * (1 + random_below(300));
		struct gt_trace_range range = {
			.tid = THREAD + i % 2,
			.process_range = i % 3 == 0,
			.start_ns = BASE + at,
			.end_ns = BASE + at + random_below(300000),
			.name = GT_STR("range"),
			.domain = GT_STR("a domain"),
			.external_id = 100 + i,
		};
		struct gt_trace_gpu_range span = {
			.tid = THREAD + i % 2,
			.device = 0,
			.stream = 7,
			.is_step = i % 5 == 0,
			.start_ns = BASE + at + 5000,
			.end_ns = BASE + at + 5000 + random_below(300000),
			.name = GT_STR("ProfilerStep#1"),
			.external_id = 100 + i,
		};
		struct gt_trace_call call = make_call(1 + i, i * 10007);

		assert_int_equal(gt_trace_range(trace, &range), 0);
		assert_int_equal(gt_trace_gpu_range(trace, &span), 0);
		call.launches = false;
		assert_int_equal(gt_trace_call(trace, &call), 0);
	}
	finish(trace);
	load();
	assert_nests();
	assert_has(find('X', GT_CAT_ANNOTATION, 0)->args, "\"domain\":\"a domain\"");
	for (size_t i = 0; i < got.count; i++) {
		const struct event *event = &got.events[i];

		/* Each lane of a GPU is for streams, for ranges or for steps. */
		if (event->cat == GT_CAT_GPU_ANNOTATION) {
			assert_true(event->tid >= 1000000 && event->tid < 2000000);
			assert_lacks(event->args, "stream");
		}
	}
}

/* In a container the program may be process 1, which would look like a GPU. */
static void test_small_pid(void **state)
{
	const struct gt_trace_meta meta = { .pid = 1, .cycle = 1, .comm = "init" };
	struct gt_trace *trace = create(&meta);
	struct gt_trace_call call = make_call(1, 1000);

	(void)state;
	call.tid = 1;
	call.launches = false;
	assert_int_equal(gt_trace_call(trace, &call), 0);
	finish(trace);
	load();
	assert_int_equal(find('X', GT_CAT_RUNTIME, 0)->pid, 4194305);
	assert_int_equal(find('X', GT_CAT_RUNTIME, 0)->tid, 1);
	assert_has(got.members.data, "\"pid\":1,");
}

static void test_operators(void **state)
{
	struct gt_trace_op op = {
		.tid = THREAD,
		.sequence = 24,
		.start_ns = BASE + 1000123,
		.end_ns = BASE + 1005000,
		.name = GT_STR("aten::t"),
		.external_id = 12,
	};
	const struct gt_input inputs[] = { { .tag = GT_INPUT_TENSOR, .item = 6 },
					   { .tag = GT_INPUT_BOOL, .item = 1 } };
	const struct gt_trace_range range = {
		.tid = THREAD + 1,
		.start_ns = BASE + 1012000,
		.end_ns = BASE + 1013000,
		.name = GT_STR("nccl:all_reduce"),
		.inputs = { (const char *)inputs, sizeof(inputs) },
		.external_id = 20,
	};
	struct gt_trace_link link = { .id = 3, .from_ns = BASE + 1000123, .to_ns = BASE + 1004000 };
	struct gt_trace *trace = create(NULL);
	struct event *event;
	uint32_t last_lane;

	(void)state;
	assert_int_equal(gt_trace_op(trace, &op, &link.from_lane), 0);
	assert_int_equal(link.from_lane, THREAD);
	op.name = GT_STR("TBackward0");
	op.start_ns = BASE + 1004000; /* crosses the one before, which is never so: another lane */
	op.end_ns = BASE + 1011000;
	op.fwd_thread = 1;
	op.external_id = 13;
	assert_int_equal(gt_trace_op(trace, &op, &link.to_lane), 0);
	assert_int_not_equal(link.to_lane, THREAD);
	op.name = GT_STR("ProfilerStep of my own");
	op.sequence = -1;
	op.start_ns = op.end_ns = BASE + 1012000;
	op.external_id = 14;
	assert_int_equal(gt_trace_op(trace, &op, &last_lane), 0);
	op.inputs = range.inputs;
	for (op.external_id = 15; op.external_id <= 17; op.external_id++) {
		op.start_ns = op.end_ns += 1000;
		op.inputs.len -= op.external_id == 17; /* this is none */
		assert_int_equal(gt_trace_op(trace, &op, &last_lane), 0);
	}
	assert_int_equal(gt_trace_range(trace, &range), 0);
	assert_int_equal(gt_trace_link(trace, &link), 0);
	finish(trace);
	load();
	assert_nests();
	event = find('X', GT_CAT_CPU_OP, 0);
	assert_string_equal(event->name, "aten::t");
	assert_string_equal(event->args,
			    "{\"External id\":12,\"Record function id\":0,"
			    "\"Sequence number\":24,\"Fwd thread id\":0,\"Ev Idx\":11}");
	assert_int_equal(event->pid, PID);
	assert_int_equal(event->tid, THREAD);
	assert_int_equal(event->ts, 1000123);
	assert_int_equal(event->dur, 4877);
	event = find('X', GT_CAT_CPU_OP, 1);
	assert_has(event->args, "\"Fwd thread id\":1,");
	assert_int_equal(event->tid, link.to_lane);
	event = find('X', GT_CAT_CPU_OP, 2);
	assert_string_equal(event->name, " ProfilerStep of my own");
	assert_string_equal(event->args,
			    "{\"External id\":14,\"Record function id\":0,\"Ev Idx\":13}");
#define INPUTS                                                        \
	",\"Input Dims\":[[], []],\"Input Strides\":[[], []],"        \
	"\"Input type\":[\"float\", \"Scalar\"],\"Concrete Inputs\":" \
	"[\"\", \"True\"]}"
	assert_string_equal(find('X', GT_CAT_CPU_OP, 3)->args,
			    "{\"External id\":15,\"Record function id\":0,\"Ev Idx\":14" INPUTS);
	assert_string_equal(find('X', GT_CAT_CPU_OP, 4)->args,
			    "{\"External id\":16,\"Record function id\":0,\"Ev Idx\":15" INPUTS);
	assert_string_equal(find('X', GT_CAT_CPU_OP, 5)->args,
			    "{\"External id\":17,\"Record function id\":0,\"Ev Idx\":16}");
	assert_string_equal(find('X', GT_CAT_ANNOTATION, 0)->args, "{\"External id\":20" INPUTS);
	event = find('s', GT_CAT_OTHER, 0);
	assert_has(event->text, "\"cat\":\"fwdbwd\"");
	assert_has(event->text, "\"id\":3,");
	assert_int_equal(event->tid, link.from_lane);
	assert_int_equal(event->ts, 1000123);
	event = find('f', GT_CAT_OTHER, 0);
	assert_has(event->text, "\"bp\":\"e\"");
	assert_int_equal(event->tid, link.to_lane);
	assert_int_equal(event->ts, 1004000);
}

static void test_memory(void **state)
{
	struct gt_trace_memory memory = {
		.tid = THREAD,
		.device_type = 1,
		.device = 3,
		.time_ns = BASE + 5001,
		.address = UINT64_MAX,
		.bytes = -512,
		.allocated = 4096,
		.reserved = UINT64_C(1) << 33,
		.index = 7,
	};
	struct gt_trace *trace = create(NULL);
	struct event *event;

	(void)state;
	assert_int_equal(gt_trace_memory(trace, &memory), 0);
	memory.device_type = 0;
	memory.device = -1;
	memory.bytes = INT64_MIN;
	memory.failed = true;
	memory.index = 8;
	assert_int_equal(gt_trace_memory(trace, &memory), 0);
	finish(trace);
	load();
	event = find('i', GT_CAT_OTHER, 0);
	assert_string_equal(event->name, "[memory]");
	assert_has(event->text, "\"s\":\"t\",\"cat\":\"cpu_instant_event\"");
	/* Key by key as PyTorch 2.11. */
	assert_string_equal(event->args, "{\"Total Reserved\":8589934592,\"Total Allocated\":4096,"
					 "\"Bytes\":-512,\"Device Id\":3,\"Device Type\":1,"
					 "\"Addr\":18446744073709551615,\"Ev Idx\":7}");
	assert_int_equal(event->pid, PID);
	assert_int_equal(event->tid, THREAD);
	assert_int_equal(event->ts, 5001);
	event = find('i', GT_CAT_OTHER, 1);
	assert_string_equal(event->name, "[OutOfMemory]");
	assert_string_equal(event->args, "{\"Total Reserved\":8589934592,\"Total Allocated\":4096,"
					 "\"Bytes\":-9223372036854775808,\"Device Id\":-1,"
					 "\"Device Type\":0,\"Ev Idx\":8}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call_with_stack), cmocka_unit_test(test_names),
		cmocka_unit_test(test_step_names),      cmocka_unit_test(test_cut_step),
		cmocka_unit_test(test_crossing_ranges), cmocka_unit_test(test_small_pid),
		cmocka_unit_test(test_operators),       cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
