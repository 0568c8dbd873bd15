/*
 * recorder_rig.h - a recorder between an arena that the test fills and a trace writer that keeps
 * what it is given. The schedule is: step 0 idle, 1 warm-up, 2 and 3 active (unless changed).
 */
#ifndef RECORDER_RIG_H
#define RECORDER_RIG_H

#include "arena_builder.h"
#include "fake_trace.h"
#include "recorder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define MAIN AB_PID /* main thread */

static struct arena_builder ab;
static struct gt_recorder *rec;
static struct gt_recorder_config config;
static struct gt_recorder_report report;
static struct gt_err err;
static int path_rc; /* what path_for() returns */
static int path_calls;
static bool path_changes; /* from its first call to the second */
static bool rig_overwrite;

static int rig_path(void *ctx, const struct gt_msg_hello *hello, uint64_t cycle, char *buf,
		    size_t len, bool *overwrite, struct gt_err *why)
{
	(void)ctx;
	assert_int_equal(hello->pid, AB_PID);
	path_calls++;
	if (path_rc)
		return gt_err_set(why, path_rc, "no path");
	snprintf(buf, len, "cycle%llu%s", (unsigned long long)cycle,
		 path_changes && path_calls > 1 ? "-2" : "");
	*overwrite = rig_overwrite;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	fake_reset();
	path_rc = 0;
	path_changes = false;
	path_calls = 0;
	rig_overwrite = false;
	rec = NULL;
	config = (struct gt_recorder_config){
		.schedule = { .skip_first = 1, .warmup = 1, .active = 2, .repeat = 1 },
		.command = "python train.py",
		.host = "here",
		.path_for = rig_path,
	};
	ab_init(&ab, GT_MODE_STEPS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gt_recorder_free(rec);
	ab_release(&ab);
	fake_reset();
	return 0;
}

static void start(void)
{
	assert_int_equal(gt_recorder_new(&rec, ab_fd(&ab), &ab.hello, &config, &err), 0);
	ab_string(&ab, MAIN, 1, "kernel_one");
	ab_string(&ab, MAIN, 2, "cudaLaunchKernel");
}

/* How many files failed. */
static inline size_t failures(void)
{
	size_t count = 0;

	for (size_t i = 0; i < report.closed_count; i++)
		count += report.closed[i].err.code != 0;
	return count;
}

static inline void launch_graph(uint32_t number, uint32_t correlation, uint32_t stream, double ms)
{
	ab_call(&ab, (struct ab_call){ .tid = MAIN,
				       .step = number,
				       .correlation = correlation,
				       .klass = GT_CALL_GRAPH,
				       .stream = stream,
				       .start_ns = AB_MS(ms) });
}

static inline void drain(double ms)
{
	gt_recorder_look(rec);
	gt_recorder_drain(rec, AB_MS(ms), false, &report);
}

static inline void finish(bool died, double ms)
{
	gt_recorder_finish(rec, died, AB_MS(ms), &report);
	assert_int_equal(failures(), 0);
}

static inline void phase(uint32_t what, uint64_t cycle, uint64_t value, double ms)
{
	struct gt_msg_phase msg = {
		.what = what, .cycle = cycle, .value = value, .time_ns = AB_MS(ms)
	};

	gt_recorder_phase(rec, &msg);
}

/* The steps of the schedule begin at 10, 20, 30, 40 ms, on the main thread. */
static void step(uint32_t number)
{
	ab_step(&ab, MAIN, number, AB_MS(10 * number));
}

static inline void steps_to(uint32_t last)
{
	uint32_t number;

	for (number = atomic_load(&ab.hdr->step) + 1; number <= last; number++)
		step(number);
}

/* A kernel that runs half a millisecond after its launch. */
static inline void launch_and_kernel(uint32_t number, uint32_t correlation, double ms)
{
	ab_launch(&ab, MAIN, number, correlation, AB_MS(ms));
	ab_kernel(&ab, correlation, AB_MS(ms + 0.5));
}

/* The target says that cycle 0 has closed (at 40 ms), and two drains later all is read. */
static inline void close_cycle(double ms)
{
	phase(GT_WHAT_CLOSE, 0, 4, 40);
	drain(ms);
	assert_int_equal(failures(), 0);
	drain(ms + 10);
	assert_int_equal(failures(), 0);
}

static inline const struct gt_trace *only_trace(void)
{
	assert_int_equal(fake_count, 1);
	return &fake_traces[0];
}

static inline const struct fake_call *call_of(const struct gt_trace *trace, uint32_t correlation)
{
	const struct fake_call *found = NULL;
	size_t i;

	for (i = 0; i < trace->call_count; i++) {
		if (trace->calls[i].call.correlation != correlation)
			continue;
		assert_null(found); /* one event a launch */
		found = &trace->calls[i];
	}
	return found;
}

static inline const struct fake_gpu *gpu_of(const struct gt_trace *trace, uint32_t correlation)
{
	size_t i;

	for (i = 0; i < trace->gpu_count; i++)
		if (trace->gpus[i].op.correlation == correlation)
			return &trace->gpus[i];
	return NULL;
}

static inline const struct fake_range *range_of(const struct gt_trace *trace, const char *name)
{
	const struct fake_range *found = NULL;
	size_t i;

	for (i = 0; i < trace->range_count; i++) {
		if (strcmp(trace->ranges[i].name, name) != 0)
			continue;
		assert_null(found);
		found = &trace->ranges[i];
	}
	return found;
}

static inline const struct fake_span *span_of(const struct gt_trace *trace, const char *name,
					      uint32_t stream)
{
	const struct fake_span *found = NULL;
	size_t i;

	for (i = 0; i < trace->span_count; i++) {
		if (strcmp(trace->spans[i].name, name) != 0 ||
		    trace->spans[i].span.stream != stream)
			continue;
		assert_null(found);
		found = &trace->spans[i];
	}
	return found;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
