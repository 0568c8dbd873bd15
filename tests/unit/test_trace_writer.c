/*
 * test_trace_writer.c - a trace as a file: whole after each flush and each failure, and what it
 * says of itself.
 */
#include "base.h"
#include "trace_priv.h"
#include "trace_rig.h"

/* After each flush the file is whole and holds what was written before it. */
static void test_flushes(void **state)
{
	struct gt_trace *trace = create(NULL);
	struct gt_err err = { 0 };
	uint32_t correlation = 1;

	(void)state;
	load();
	assert_true(got.count > 0);
	for (int i = 0; i < 30; i++) {
		for (uint64_t n = random_below(i % 10 ? 50 : 3000); n; n--, correlation++) {
			struct gt_trace_call call = make_call(correlation, correlation * 10000);
			struct gt_gpu_op op = make_kernel(correlation, correlation * 10000 + 6000,
							  correlation * 10000 + 9000);

			assert_int_equal(gt_trace_call(trace, &call), 0);
			assert_int_equal(gt_trace_gpu(trace, &op, GT_STR("kernel"), &call), 0);
			assert_true(gt_trace_pending_bytes(trace) > 0);
		}
		assert_int_equal(gt_trace_flush(trace, &healthy, &err), 0);
		assert_int_equal(gt_trace_pending_bytes(trace), 0);
		load();
		assert_int_equal(got.count, gt_trace_event_count(trace));
	}
	add_range(trace, "ProfilerStep#0", true, 1, 0, correlation * 10000);
	finish(trace);
	load();
	validate();
}

/* What is written while compression waits is all there in the end, and memory has a bound. */
static void test_held(void **state)
{
	enum { EVENTS = 60000 };
	struct gt_trace *trace = create(NULL);
	struct gt_err err = { 0 };
	uint32_t correlation = 1;
	size_t most = 0;

	(void)state;
	gt_trace_hold(trace, true);
	for (; correlation <= EVENTS; correlation++) {
		struct gt_trace_call call = make_call(correlation, correlation * 10000);

		assert_int_equal(gt_trace_call(trace, &call), 0);
		most = GT_MAX(most, trace->main.text.len);
	}
	assert_in_range(most, 7 << 20, 9 << 20);
	gt_trace_hold(trace, false);
	for (; correlation <= 2 * EVENTS; correlation++) {
		struct gt_trace_call call = make_call(correlation, correlation * 10000);

		assert_int_equal(gt_trace_call(trace, &call), 0);
	}
	assert_in_range(trace->main.text.len, 1, 3 << 20);
	assert_int_equal(gt_trace_flush(trace, &healthy, &err), 0);
	load();
	assert_int_equal(got.count, gt_trace_event_count(trace));
	finish(trace);
	load();
	/* each with the beginning of an arrow; and names of processes and threads */
	assert_in_range(got.count, 2 * (2 * EVENTS), 2 * (2 * EVENTS) + 16);
}

static void test_head_and_health(void **state)
{
	static const char *const environment[] = { "CUDA_LAUNCH_BLOCKING=1", NULL };
	static const char *const warnings[] = { "one", "two \"2\"", NULL };
	const struct gt_trace_meta meta = {
		.pid = PID,
		.rank = 3,
		.world_size = 2, /* cannot be: left out */
		.cycle = 7,
		.rank_source = "SLURM_PROCID",
		.step_source = "optimizer",
		.comm = "python3",
		.command = "python3 \"rank\": 9",
		.torch = "2.11.0+cu130",
		.host = "node1",
		.cupti_version = 130001,
		.driver_version = 13000,
		.environment = environment,
	};
	struct gt_trace_health health = {
		.fallback = true,
		.dropped_cupti = 1,
		.dropped_arena = 2,
		.dropped_ring = 3,
		.dropped_names = 4,
		.bad_records = 5,
		.launches_without_gpu = 6,
		.gpu_without_launch = 7,
		.captured_launches = 8,
		.step_before_ms = 10,
		.step_active_ms = 13,
		.step_after_ms = NAN,
		.clock_residue_ns = -9,
		.reason = "6 launches have no GPU record",
		.warnings = warnings,
	};
	struct gt_trace *trace = create(&meta);
	struct gt_err err = { 0 };

	(void)state;
	assert_int_equal(gt_trace_device(trace, &h100), 0);
	assert_int_equal(gt_trace_close(trace, &health, &err), 0);
	load();
	assert_has(got.members.data, "schemaVersion=1\ndistributedInfo={\"rank\": 3}\n");
	assert_has(got.members.data, "\ncuda_driver_version=13000\ncupti_version=130001\n");
	assert_lacks(got.members.data, "cuda_runtime_version");
	assert_has(got.members.data, "\nhost_name=\"node1\"\n");
	assert_has(got.members.data, "\ndisplayTimeUnit=\"ms\"\n");
	assert_has(got.members.data, "\nbaseTimeNanoseconds=1790857026000000000\n");
	assert_has(got.members.data,
		   "\ndeviceProperties=[{\"id\":0,\"name\":\"NVIDIA H100 80GB HBM3\","
		   "\"totalGlobalMem\":85017493504,\"computeMajor\":9,");
	assert_has(got.members.data,
		   "\ngtrace={\"version\":\"" GT_VERSION "\",\"step_source\":\"optimizer\","
		   "\"rank_source\":\"SLURM_PROCID\",\"cycle\":7,\"pid\":4321,"
		   "\"comm\":\"python3\",\"command\":\"python3 \\\"rank\\\": 9\","
		   "\"torch\":\"2.11.0+cu130\",\"environment\":[\"CUDA_LAUNCH_BLOCKING=1\"],"
		   "\"fallback\":true,\"complete\":false,\"dropped\":{\"cupti\":1,\"arena\":2,"
		   "\"ring\":3,\"names\":4},"
		   "\"bad_records\":5,\"launches_without_gpu\":6,\"gpu_without_launch\":7,"
		   "\"captured_launches\":8,"
		   "\"step_ms\":{\"before\":10.000,\"active\":13.000,\"after\":null},"
		   "\"clock_residue_ns\":-9,\"events\":3,"
		   "\"reason\":\"6 launches have no GPU record\","
		   "\"warnings\":[\"one\",\"two \\\"2\\\"\",\"active steps took 13.000 ms, those "
		   "before 10.000 ms: ");
}

static void step_warning_is(double before, double active, double after, bool wanted)
{
	struct gt_trace_health health = healthy;
	struct gt_trace *trace = create(NULL);

	health.step_before_ms = before;
	health.step_active_ms = active;
	health.step_after_ms = after;
	assert_int_equal(gt_trace_close(trace, &health, NULL), 0);
	load();
	assert_int_equal(strstr(got.members.data, "active steps took") != NULL, wanted);
}

static void test_step_times(void **state)
{
	(void)state;
	step_warning_is(10, 11.9, 10, false);
	step_warning_is(10, 12.1, 10, true);
	step_warning_is(10, 7.9, 10, true);
	step_warning_is(NAN, 12.1, 10, true);
	step_warning_is(10, 12.1, NAN, true);
	step_warning_is(8, 11, 12, false);
	step_warning_is(NAN, 12.1, NAN, false);
	step_warning_is(10, NAN, 10, false);
	step_warning_is(0, 0, 0, false);
}

/* What fails to be written is said with each call from then on; what was flushed stays. */
static void test_write_error(void **state)
{
	struct gt_trace *trace = create(NULL);
	struct gt_trace_call call = make_call(1, 1000);
	struct gt_err err = { 0 };
	struct rlimit old, limit;
	size_t good;

	(void)state;
	call.launches = false;
	assert_int_equal(gt_trace_call(trace, &call), 0);
	assert_int_equal(gt_trace_flush(trace, &healthy, &err), 0);
	load();
	good = got.count;
	for (uint32_t i = 0; i < 20000; i++) {
		call.start_ns += 10000 + random_below(1000);
		call.end_ns = call.start_ns + random_below(5000);
		assert_int_equal(gt_trace_call(trace, &call), 0);
	}
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 10000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(gt_trace_flush(trace, &healthy, &err), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_has(err.msg, path);
	assert_has(err.msg, strerror(EFBIG));
	assert_int_equal(gt_trace_call(trace, &call), -EFBIG);
	memset(&err, 0, sizeof(err));
	assert_int_equal(gt_trace_close(trace, &healthy, &err), -EFBIG);
	assert_has(err.msg, path);
	load();
	assert_int_equal(got.count, good);
}

static void test_files(void **state)
{
	const struct gt_trace_meta meta = { .pid = PID };
	struct gt_trace *trace;
	struct gt_err err = { 0 };
	struct stat st;

	(void)state;
	finish(create(NULL));
	assert_int_equal(gt_trace_create(&trace, path, 0, BASE, &meta, &err), -EEXIST);
	assert_has(err.msg, path);
	assert_int_equal(gt_trace_create(&trace, "/nowhere/t.json.gz", 0, BASE, &meta, &err),
			 -ENOENT);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(gt_trace_close(NULL, &healthy, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flushes),     cmocka_unit_test(test_head_and_health),
		cmocka_unit_test(test_held),        cmocka_unit_test(test_step_times),
		cmocka_unit_test(test_write_error), cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
