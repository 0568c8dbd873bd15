/*
 * test_phases.c - the phases of steps, from small traces.
 */
#include "base.h"
#include "buf.h"
#include "phases.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAIN   "9"
#define ENGINE "10"

#define ON(thread, cat, name, ts, dur)                                                      \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":9,\"tid\":" thread \
	",\"ts\":" #ts ",\"dur\":" #dur "},\n"
#define RANGE(name, ts, dur) ON(MAIN, "user_annotation", name, ts, dur)
#define OP(name, ts, dur)    ON(MAIN, "cpu_op", name, ts, dur)
#define STEP(ts, dur)        RANGE("ProfilerStep#1", ts, dur)
#define DATA(ts, dur)        RANGE("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", ts, dur)
#define ZERO_GRAD(ts, dur)   RANGE("Optimizer.zero_grad#SGD.zero_grad", ts, dur)
#define OPTIMIZER(ts, dur)   RANGE("Optimizer.step#SGD.step", ts, dur)
#define NODE                 "autograd::engine::evaluate_function: MmBackward0"
#define GPU(ts, dur)                                                                      \
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":" #ts \
	",\"dur\":" #dur ",\"args\":{\"stream\":7,\"device\":0}},\n"
#define END "{\"ph\":\"M\"}]}"

static struct gt_summary *load(const char *head, const char *events)
{
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;
	char *text;
	int len = asprintf(&text, "{%s\"traceEvents\":[%s" END, head, events);

	assert_true(len > 0);
	assert_int_equal(gt_gz_open_mem(&gz, text, (size_t)len), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "file", NULL, &err), 0);
	gt_gz_close(gz);
	free(text);
	return summary;
}

/* Microseconds. */
struct times {
	uint64_t data, forward, backward, optimizer, other;
};

static void assert_step(const struct gt_summary_step *step, struct times times)
{
	const uint64_t *ns = step->phases.ns;

	assert_true(step->has_phases);
	assert_int_equal(ns[GT_TORCH_DATA], times.data * 1000);
	assert_int_equal(ns[GT_TORCH_FORWARD], times.forward * 1000);
	assert_int_equal(ns[GT_TORCH_BACKWARD], times.backward * 1000);
	assert_int_equal(ns[GT_TORCH_OPTIMIZER], times.optimizer * 1000);
	assert_int_equal(ns[GT_TORCH_OTHER], times.other * 1000);
}

static void assert_phases(const char *events, struct times times)
{
	struct gt_summary *summary = load("", events);

	assert_int_equal(summary->step_count, 1);
	assert_step(&summary->steps[0], times);
	gt_summary_free(summary);
}

static void assert_none(const char *events)
{
	struct gt_summary *summary = load("", events);

	for (size_t i = 0; i < summary->step_count; i++)
		assert_false(summary->steps[i].has_phases);
	gt_summary_free(summary);
}

/* Everything on one thread, as without a GPU. */
static void test_one_thread(void **state)
{
	(void)state;
	assert_phases(
		STEP(0, 100) DATA(2, 20) OP("aten::randn", 5, 10) OP("aten::linear", 30, 10)
			OP("aten::mm", 32, 5) OP("aten::relu", 44, 6) ZERO_GRAD(52, 2)
				OP(NODE, 60, 10) OP("MmBackward0", 61, 8) OP(NODE, 72, 8)
					OPTIMIZER(82, 10) OP("aten::add_", 84, 4),
		(struct times){
			.data = 20, .forward = 20, .backward = 20, .optimizer = 12, .other = 28 });
}

/* Also what runs on the engine's thread and is no node, and before PyTorch 1.8. */
static void test_engine_thread(void **state)
{
	(void)state;
	assert_phases(
		STEP(0, 100) OP("aten::linear", 10, 10) ON(ENGINE, "Operator", "MmBackward", 30, 10)
			ON(ENGINE, "cpu_op", "c10d::allreduce_", 41, 3)
				ON(ENGINE, "Operator", "torch::autograd::AccumulateGrad", 45, 5)
					ON(MAIN, "Operator", "Optimizer.step#Adam.step", 60, 30),
		(struct times){ .forward = 10, .backward = 20, .optimizer = 30, .other = 40 });
	/* of another process */
	assert_phases(STEP(0, 100) OP("aten::linear", 10,
				      10) "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" NODE
					  "\",\"pid\":8,\"tid\":8,\"ts\":30,\"dur\":10},",
		      (struct times){ .forward = 10, .other = 90 });
}

static void test_operators_elsewhere(void **state)
{
	(void)state;
	/* of the step before, as where a step ends with its optimizer, and of clipping */
	assert_phases(
		STEP(0, 100) OP("aten::item", 0, 30) DATA(30, 10) OP("aten::linear", 40, 1)
			OP("aten::relu", 42, 8) OP(NODE, 50, 10) OP("aten::norm", 62, 3)
				OPTIMIZER(70, 10) OP("aten::item", 85, 5),
		(struct times){
			.data = 10, .forward = 10, .backward = 10, .optimizer = 10, .other = 60 });
	/* data that are loaded in advance, in the midst of the forward pass */
	assert_phases(STEP(0, 100) OP("aten::linear", 0, 10) OP("aten::relu", 12, 8) DATA(20, 10)
			      OP("aten::mul", 30, 2) OP(NODE, 50, 10),
		      (struct times){ .data = 10, .forward = 20, .backward = 10, .other = 60 });
	/* nothing but a forward pass */
	assert_phases(STEP(0, 100) OP("aten::linear", 0, 10) DATA(20, 10) OP("aten::mul", 30, 2)
			      RANGE("loss", 40, 50),
		      (struct times){ .data = 10, .forward = 12, .other = 78 });
}

static void test_accumulation(void **state)
{
	(void)state;
	assert_phases(
		STEP(0, 100) OP("aten::linear", 0, 10) OP(NODE, 10, 10) OP("aten::linear", 20, 10)
			OP(NODE, 30, 10) OPTIMIZER(50, 10),
		(struct times){ .forward = 20, .backward = 20, .optimizer = 10, .other = 50 });
}

static void test_closure(void **state)
{
	(void)state;
	assert_phases(
		STEP(0, 100) OPTIMIZER(10, 80) OP("aten::linear", 20, 20) OP(NODE, 50, 10)
			OP("aten::add_", 65, 5),
		(struct times){ .forward = 20, .backward = 10, .optimizer = 30, .other = 40 });
}

static void test_ranges_by_name(void **state)
{
	(void)state;
	assert_phases(STEP(0, 100) OP("aten::linear", 0, 10) RANGE("## load_data ##", 10, 10)
			      OP("aten::linear", 20, 10) OP("aten::relu", 30, 1)
				      RANGE("## Backward ##", 40, 30) OP(NODE, 42, 3),
		      (struct times){ .data = 10, .forward = 11, .backward = 30, .other = 49 });
	assert_int_equal(gt_phase_of(GT_STR("LinearBackward12")), GT_TORCH_BACKWARD);
	assert_int_equal(gt_phase_of(GT_STR("aten::linear_backward")), GT_TORCH_FORWARD);
	assert_int_equal(gt_phase_of(GT_STR("backward_hook")), GT_TORCH_FORWARD);
	assert_int_equal(gt_phase_of(GT_STR("12")), GT_TORCH_FORWARD);
	assert_int_equal(gt_phase_of(GT_STR("")), GT_TORCH_FORWARD);
}

/* A range or an operator reaches over the ends of steps. */
static void test_across_steps(void **state)
{
	struct gt_summary *summary = load("", RANGE("ProfilerStep#2", 50, 50) STEP(0, 50)
						      OP("aten::linear", 40, 20) DATA(70, 50));

	(void)state;
	assert_int_equal(summary->step_count, 2);
	assert_step(&summary->steps[0], (struct times){ .forward = 10, .other = 40 });
	assert_step(&summary->steps[1], (struct times){ .data = 30, .forward = 10, .other = 10 });
	gt_summary_free(summary);
}

static void test_not_known(void **state)
{
	struct gt_summary *summary;

	(void)state;
	/* without operators */
	assert_none(STEP(0, 100) DATA(0, 50));
	/* steps that overlap; steps of a second thread */
	summary = load("", STEP(0, 100) STEP(50, 100) ON("11", "user_annotation", "ProfilerStep#1",
							 200, 10) OP("aten::mm", 0, 200));
	assert_true(summary->steps[0].has_phases);
	assert_false(summary->steps[1].has_phases);
	assert_false(summary->steps[2].has_phases);
	gt_summary_free(summary);
}

/* In traces of gtrace ranges that cross others are on another lane. */
static void test_lanes(void **state)
{
	static const char events[] = STEP(0, 100) OP("aten::mm", 10, 10)
		ON("20000009", "user_annotation", "enumerate(DataLoader)#x.__next__", 5, 10);
	struct gt_summary *summary = load("\"gtrace\":{\"version\":\"1\"},", events);

	(void)state;
	assert_step(&summary->steps[0], (struct times){ .data = 10, .forward = 5, .other = 85 });
	gt_summary_free(summary);
	assert_phases(events, (struct times){ .forward = 10, .other = 90 });
}

/* ---- what bounds the run --------------------------------------------------------------------- */

static bool says(const char *events, const char *line)
{
	struct gt_summary_style style = { .by = GT_SUMMARY_BY_STEP, .width = 120 };
	struct gt_summary *summary = load("", events);
	struct gt_buf out = { 0 };
	bool found;

	assert_int_equal(gt_summary_print(summary, &style, &out), 0);
	found = gt_str_has(gt_buf_str(&out), gt_str_of(line));
	gt_buf_release(&out);
	gt_summary_free(summary);
	return found;
}

static void test_data_bound(void **state)
{
	(void)state;
	assert_true(says(STEP(0, 100) DATA(0, 50) OP("aten::mm", 50, 50),
			 "\ndata loading takes 50.0% of the steps: "));
	assert_true(
		says(STEP(0, 100) DATA(0, 50) OP("aten::mm", 50, 50) GPU(40, 20),
		     "\ndata loading takes 50.0% of the steps, and for 80.0% of that the GPU is "
		     "idle: "));
	/* the GPU is fed */
	assert_false(says(STEP(0, 100) DATA(0, 50) OP("aten::mm", 50, 50) GPU(0, 41),
			  "data loading takes"));
	assert_false(says(STEP(0, 100) DATA(0, 9) OP("aten::mm", 50, 50), "data loading takes"));
	assert_true(says(STEP(0, 100) DATA(0, 10) OP("aten::mm", 50, 50), "data loading takes"));
}

static void test_table(void **state)
{
	(void)state;
	assert_true(says(STEP(0, 100) DATA(0, 5) OP("aten::mm", 50, 50) GPU(40, 20),
			 "starts at    takes     data  forward    other    GPU  step\n"
			 "  0.000us  100.0us  5.000us  50.00us  45.00us  20.0%  ProfilerStep#1\n"
			 "of all steps: data 5.0%, forward 50.0%, other 45.0%\n"));
	assert_true(says(STEP(0, 100) GPU(40, 20),
			 "starts at    takes  GPU busy  share  step\n"
			 "  0.000us  100.0us   20.00us  20.0%  ProfilerStep#1\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),
		cmocka_unit_test(test_engine_thread),
		cmocka_unit_test(test_operators_elsewhere),
		cmocka_unit_test(test_accumulation),
		cmocka_unit_test(test_closure),
		cmocka_unit_test(test_ranges_by_name),
		cmocka_unit_test(test_across_steps),
		cmocka_unit_test(test_not_known),
		cmocka_unit_test(test_lanes),
		cmocka_unit_test(test_data_bound),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
