/*
 * test_cut.c - which events a part of a trace has.
 */
#include "base.h"
#include "buf.h"
#include "cut.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define SLICE(cat, name, pid, ts, dur, args)                                   \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" pid \
	",\"tid\":1,\"ts\":" ts ",\"dur\":" dur ",\"args\":{" args "}},\n"
#define ARROW(ph, cat, name, id, pid, ts)                                                         \
	"{\"ph\":\"" ph "\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"id\":" id ",\"pid\":" pid \
	",\"tid\":1,\"ts\":" ts "},\n"
#define LAUNCH(name, id, ts) SLICE("cuda_runtime", name, "99", ts, "1", "\"correlation\":" id)
#define KERNEL(name, dev, id, ts) \
	SLICE("kernel", name, dev, ts, "5", "\"device\":" dev ",\"correlation\":" id)

/* Steps 1, 2, 3 from 10, 20, 30; GPU work runs a step behind its launch. */
static const char trace[] =
	"{\"schemaVersion\":1,\"traceEvents\":[\n"
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":99,\"args\":{\"name\":\"p\"}},\n"
	/* the GPU first: nothing is sorted */
	KERNEL("k1", "0", "1", "22") KERNEL("k2", "0", "2", "33") KERNEL("k2b", "1", "2", "34")
		KERNEL("k3", "1", "3", "45") KERNEL("unlinked", "0", "77", "24") SLICE(
			"gpu_user_annotation", "ProfilerStep#1", "0", "19.999", "8",
			"\"External id\":501") SLICE("gpu_user_annotation", "forward", "0", "33",
						     "2", "\"External id\":502")
			LAUNCH("l1", "1", "12") LAUNCH("l2", "2", "25") LAUNCH("l3", "3", "31")
				ARROW("s", "ac2g", "s1", "1", "99",
				      "12") ARROW("f", "ac2g", "f1", "1", "0",
						  "22") ARROW("s", "ac2g", "s2", "2", "99", "25")
					ARROW("f", "ac2g", "f2", "2", "0",
					      "33") ARROW("f", "ac2g", "f2b", "2", "1", "34")
						ARROW("s", "ac2g", "s3", "3", "99", "31")
							ARROW("f", "ac2g", "f3", "3", "1", "45")
	/* forward to backward: one within step 2, one that leaves it */
	ARROW("s", "fwdbwd", "in", "1", "99",
	      "21") ARROW("f", "fwdbwd", "in", "1", "99",
			  "28") ARROW("s", "fwdbwd", "out", "2", "99",
				      "15") ARROW("f", "fwdbwd", "out", "2", "99", "29")
		SLICE("cpu_op", "across", "99", "5", "50", "") SLICE(
			"cpu_op", "early", "99", "12",
			"8",
			"") SLICE("cpu_op", "in", "99", "24", "3",
				  "") SLICE("cpu_op", "at the end", "99", "30", "1",
					    "") SLICE("cpu_op", "empty", "99", "20", "0", "")
			SLICE("user_annotation", "forward", "99", "23", "4",
			      "\"External id\":502") "{\"ph\":\"i\",\"name\":\"mark\",\"pid\":99,"
						     "\"tid\":1,\"ts\":25,\"s\":\"t\"},\n"
						     "{\"ph\":\"i\",\"name\":\"late\",\"pid\":99,"
						     "\"tid\":1,\"ts\":30,\"s\":\"t\"},\n" SLICE(
							     "user_annotation", "ProfilerStep#1",
							     "99", "10", "10.001",
							     "\"External id\":501")
							     SLICE("user_annotation",
								   "ProfilerStep#3", "99", "30",
								   "10", "")
								     SLICE("user_annotation",
									   "ProfilerStep#2", "99",
									   "20", "10",
									   "") "{}],\"traceName\":"
									       "\"x\"}";

/* Slices of two events. */
#define SIDE(ph, name, tid, ts, more)                                                   \
	"{\"ph\":\"" ph "\",\"cat\":\"c\",\"name\":\"" name "\",\"pid\":9,\"tid\":" tid \
	",\"ts\":" ts more "},\n"
static const char pairs_trace[] = "[" SIDE("B", "outer", "1", "0", "") SIDE(
	"B", "early", "1", "1", "") SIDE("B", "other", "2", "8", "")
	SIDE("E", "early", "1", "4", "") SIDE("B", "in", "1", "6", "") SIDE("E", "in", "1", "7", "")
		SIDE("E", "outer", "1", "20", "") SIDE("B", "late", "1", "21", "") SIDE(
			"E", "late", "1", "30", "") SIDE("E", "other", "2", "31", "")
			SIDE("E", "none", "3", "6", "") SIDE("B", "open", "4", "2", "") SIDE(
				"b", "a", "1", "0", ",\"id\":7") SIDE("b", "x", "1", "1",
								      ",\"id\":8")
				SIDE("n", "a", "1", "1", ",\"id\":7") SIDE("e", "x", "1", "3",
									   ",\"id\":8")
					SIDE("e", "a", "2", "9", ",\"id\":7") SIDE(
						"b", "y", "1", "12",
						",\"id\":8") SIDE("n", "y", "1", "13", ",\"id\":8")
						SIDE("e", "y", "1", "14",
						     ",\"id\":8") "{\"ph\":\"X\",\"cat\":\"d\","
								  "\"name\":\"whole\",\"pid\":1,"
								  "\"tid\":1,\"ts\":40,\"dur\":1},"
								  "{}]";

static uint64_t events = 34;

static char in[] = "/tmp/gtrace-cut-XXXXXX";
static char out[64];

static int setup(void **state)
{
	int fd = mkstemp(in);
	ssize_t n = write(fd, trace, sizeof(trace) - 1);

	(void)state;
	close(fd);
	snprintf(out, sizeof(out), "%s.out", in);
	return n != sizeof(trace) - 1;
}

static int teardown(void **state)
{
	(void)state;
	unlink(in);
	return 0;
}

static int put_name(void *context, const struct gt_trace_event *event)
{
	struct gt_buf *names = context;

	if (event->phase != 'M')
		gt_buf_printf(names, "%s%.*s", names->len ? " " : "", (int)event->name.len,
			      event->name.ptr);
	return 0;
}

static int cut(const struct gt_choice *choice, struct gt_cut_result *result, struct gt_err *err)
{
	struct gt_trace_copy *copy;
	int rc;

	assert_int_equal(gt_trace_copy_create(&copy, out, true, err), 0);
	rc = gt_cut(in, choice, copy, result, err);
	if (!rc)
		assert_int_equal(gt_trace_copy_commit(copy, GT_STR("{}"), err), 0);
	gt_trace_copy_close(copy);
	return rc;
}

static void assert_cut(struct gt_choice choice, const char *want)
{
	struct gt_buf names = { 0 };
	struct gt_trace_hooks hooks = { &names, put_name, NULL };
	struct gt_trace_stats stats;
	struct gt_cut_result result;
	struct gt_gz_reader *gz;
	struct gt_err err;

	assert_int_equal(cut(&choice, &result, &err), 0);
	assert_int_equal(gt_gz_open(&gz, out, &err), 0);
	assert_int_equal(gt_trace_read(gz, &hooks, &stats, &err), 0);
	gt_gz_close(gz);
	unlink(out);
	gt_buf_byte(&names, '\0');
	assert_string_equal(names.data, want);
	assert_int_equal(stats.events, result.kept);
	assert_int_equal(result.events, events);
	gt_buf_release(&names);
}

static void test_steps(void **state)
{
	(void)state;
	assert_cut(
		(struct gt_choice){
			.has_steps = true, .first_step = 2, .last_step = 2, .device = -1 },
		"k2 k2b unlinked forward l2 s2 f2 f2b in in across in empty forward mark "
		"ProfilerStep#2");
	assert_cut(
		(struct gt_choice){
			.has_steps = true, .first_step = 3, .last_step = INT64_MAX, .device = -1 },
		"k3 l3 s3 f3 across at the end late ProfilerStep#3");
}

static void test_time(void **state)
{
	(void)state;
	/* from the beginning of "across" on */
	assert_cut(
		(struct gt_choice){
			.has_time = true, .from_ns = 6000, .to_ns = 8000, .device = -1 },
		"k1 ProfilerStep#1 l1 s1 f1 across early ProfilerStep#1");
	/* both: what they have in common */
	assert_cut((struct gt_choice){ .has_steps = true,
				       .first_step = 2,
				       .last_step = 2,
				       .has_time = true,
				       .from_ns = 23000,
				       .to_ns = 90000,
				       .device = -1 },
		   "unlinked across ProfilerStep#2");
}

static void test_device(void **state)
{
	(void)state;
	assert_cut(
		(struct gt_choice){
			.has_steps = true, .first_step = 2, .last_step = 3, .device = 1 },
		"k2b k3 l2 l3 s2 f2b s3 f3 in in across in at the end empty forward mark late "
		"ProfilerStep#3 ProfilerStep#2");
}

static void test_categories(void **state)
{
	(void)state;
	assert_cut((struct gt_choice){ .device = -1, .categories = "Kernel" },
		   "k1 k2 k2b k3 unlinked");
	assert_cut((struct gt_choice){ .device = -1, .categories = "cuda_runtime,kernel" },
		   "k1 k2 k2b k3 unlinked l1 l2 l3 s1 f1 s2 f2 f2b s3 f3");
	assert_cut((struct gt_choice){ .device = -1, .categories = "kernel,gpu_memset" },
		   "k1 k2 k2b k3 unlinked");
}

/* Both events or none, whatever the time of each. */
static void test_pairs(void **state)
{
	int fd = open(in, O_WRONLY | O_TRUNC);

	(void)state;
	assert_int_equal(write(fd, pairs_trace, sizeof(pairs_trace) - 1), sizeof(pairs_trace) - 1);
	events = 22;
	assert_cut(
		(struct gt_choice){
			.has_time = true, .from_ns = 5000, .to_ns = 10000, .device = -1 },
		"outer other in in outer other none open a a a");
	assert_cut(
		(struct gt_choice){
			.has_time = true, .from_ns = 11000, .to_ns = 20000, .device = -1 },
		"outer other outer other open y y y");
	assert_cut((struct gt_choice){ .device = -1, .categories = "d" }, "whole");
	assert_cut((struct gt_choice){ .device = -1, .categories = "c" },
		   "outer early other early in in outer late late other none open a x a x a y y y");
	close(fd);
}

static void test_not_there(void **state)
{
	static const struct {
		struct gt_choice choice;
		const char *why;
	} cases[] = {
		{ { .has_steps = true, .first_step = 4, .last_step = 9, .device = -1 },
		  "its steps are 1 to 3" },
		{ { .has_time = true, .from_ns = 50001, .to_ns = INT64_MAX, .device = -1 },
		  "it ends before that time" },
		{ { .has_steps = true,
		    .first_step = 1,
		    .last_step = 1,
		    .has_time = true,
		    .from_ns = 20000,
		    .to_ns = 30000,
		    .device = -1 },
		  "the steps are not within that time" },
		{ { .device = 2 }, "it has no work of GPU 2" },
		{ { .device = -1, .categories = "kernel, kernle" },
		  "it has no event of category 'kernle', but of cpu_op, cuda_runtime, kernel, "
		  "user_annotation, gpu_user_annotation, ac2g" },
		{ { .device = -1, .categories = "gpu_memset" },
		  "it has no event of category 'gpu_memset', but of cpu_op, cuda_runtime, kernel, "
		  "user_annotation, gpu_user_annotation, ac2g" },
	};
	struct gt_cut_result result;
	struct gt_err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(cut(&cases[i].choice, &result, &err), -ENODATA);
		assert_string_equal(err.msg, cases[i].why);
		assert_int_equal(access(out, F_OK), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),     cmocka_unit_test(test_time),
		cmocka_unit_test(test_device),    cmocka_unit_test(test_categories),
		cmocka_unit_test(test_not_there), cmocka_unit_test(test_pairs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
