/*
 * test_summary_copy.c - what the summary says of a trace that gtrace cut or gtrace check --repair
 * wrote.
 */
#include "base.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct gt_summary *load(const char *text, size_t len)
{
	struct gt_summary *summary;
	struct gt_gz_reader *gz;
	struct gt_err err;

	assert_int_equal(gt_gz_open_mem(&gz, text, len), 0);
	assert_int_equal(gt_summary_read(&summary, gz, "file", NULL, &err), 0);
	gt_gz_close(gz);
	return summary;
}

static void print_text(const char *json, size_t len, struct gt_buf *out)
{
	const struct gt_summary_style style = { .width = 80 };
	struct gt_summary *summary = load(json, len);

	out->len = 0;
	assert_int_equal(gt_summary_print(summary, &style, out), 0);
	gt_buf_byte(out, '\0');
	gt_summary_free(summary);
}

static void assert_has(const struct gt_buf *text, const char *part)
{
	if (!strstr(text->data, part))
		fail_msg("no '%s' in:\n%s", part, text->data);
}

static void assert_lacks(const struct gt_buf *text, const char *part)
{
	if (strstr(text->data, part))
		fail_msg("'%s' in:\n%s", part, text->data);
}

static void print_copy(const char *copy, struct gt_buf *out)
{
	struct gt_buf text = { 0 };

	gt_buf_printf(&text, "{\"traceEvents\":[],\"gtrace_copy\":%s}", copy);
	print_text(text.data, text.len, out);
	gt_buf_release(&text);
}

static void assert_copy(const char *copy, const char *line)
{
	struct gt_buf out = { 0 };

	print_copy(copy, &out);
	assert_has(&out, line);
	gt_buf_release(&out);
}

/* So many repairs, one of another, of this one; text has them then. */
static enum gt_copy_kind kind_of_copies(struct gt_buf *text, size_t repairs, const char *innermost)
{
	struct gt_buf json = { 0 };
	struct gt_summary *summary;
	enum gt_copy_kind kind;

	text->len = 0;
	for (size_t i = 0; i < repairs; i++)
		gt_buf_text(text, "{\"what\":\"repair\",\"of\":");
	gt_buf_text(text, innermost);
	gt_buf_fill(text, '}', repairs);
	gt_buf_byte(text, '\0');
	gt_buf_printf(&json, "{\"traceEvents\":[],\"gtrace_copy\":%s}", text->data);
	summary = load(json.data, json.len);
	kind = summary->copy.kind;
	gt_summary_free(summary);
	gt_buf_release(&json);
	return kind;
}

/* What gtrace cut and gtrace check --repair write of what they did. */
static void test_copies(void **state)
{
	struct gt_buf out = { 0 }, many = { 0 };

	(void)state;
	assert_copy("{\"by\":\"gtrace 1\",\"what\":\"cut\",\"events\":1,\"of_events\":9,"
		    "\"steps\":[5,5]}",
		    "\npart of another trace: 1 of its 9 events, step 5\n");
	assert_copy("{\"what\":\"cut\",\"events\":2,\"of_events\":9,\"steps\":[0,6],"
		    "\"time_ns\":[1500000,9223372036854775807],\"device\":1,"
		    "\"categories\":\"kernel,\\u001b[1m\"}",
		    "\npart of another trace: 2 of its 9 events, steps 0 to 6, from 1.500ms on, "
		    "GPU 1, categories kernel,\\x1b[1m\n");
	assert_copy("{\"what\":\"cut\",\"steps\":[5,9223372036854775807],\"time_ns\":[0,20000]}",
		    "\npart of another trace: from step 5 on, from 0.000us to 20.00us\n");
	assert_copy("{\"what\":\"repair\",\"left_out\":1,\"errors\":[\"C-TRUNC x1: it ends "
		    "too early\",{},[[[]]],\"J-CTRL\\n\"]}",
		    "\nrepaired copy of a trace with errors: C-TRUNC x1: it ends too early; "
		    "J-CTRL\\x0a; 1 event or member was left out\n");
	assert_copy("{\"what\":\"repair\",\"left_out\":0,\"errors\":[]}",
		    "\nrepaired copy of a trace without errors\n");
	/* A copy of a copy. */
	assert_copy("{\"what\":\"repair\",\"left_out\":0,\"errors\":[],\"of\":{\"what\":\"cut\","
		    "\"steps\":[5,5],\"of\":{\"what\":\"repair\",\"errors\":[\"C-TRUNC\"]}}}",
		    "\nrepaired copy of a trace without errors; that one: part of another trace: "
		    "step 5; that one: repaired copy of a trace with errors: C-TRUNC\n");
	assert_int_equal(kind_of_copies(&many, 4, "{\"what\":\"repair\"}"), GT_COPY_REPAIR);
	print_copy(many.data, &out);
	assert_has(&out, "; that one: a copy, too\n");
	assert_int_equal(kind_of_copies(&many, 4, "{\"what\":\"mirror\"}"), GT_COPY_REPAIR);
	print_copy(many.data, &out);
	assert_lacks(&out, "a copy, too");
	/* However often it was repaired, a part is a part. */
	assert_int_equal(kind_of_copies(&many, 40, "{\"what\":\"cut\"}"), GT_COPY_CUT);
	assert_int_equal(kind_of_copies(&many, 100000, "{}"), GT_COPY_REPAIR);
	print_copy(many.data, &out);
	assert_true(out.len < 1000);
	many.len = 0;
	/* Of others, or of no use. */
	print_copy("[\"what\",\"cut\"]", &out);
	assert_lacks(&out, "part of");
	assert_copy("{\"what\":\"repair\",\"of\":{\"what\":\"mirror\"}}",
		    "\nrepaired copy of a trace without errors\n");
	print_copy("{\"what\":\"mirror\",\"steps\":[1,2]}", &out);
	assert_lacks(&out, "step 1");
	assert_copy("{\"what\":\"cut\",\"events\":-1,\"of_events\":\"x\",\"steps\":[1],"
		    "\"time_ns\":7,\"device\":-5,\"categories\":{}}",
		    "\npart of another trace\n");
	/* One line stays one. */
	gt_buf_text(&many, "{\"what\":\"repair\",\"errors\":[\"");
	gt_buf_fill(&many, 'x', 100000);
	gt_buf_byte(&many, '"');
	for (size_t i = 0; i < 1000; i++)
		gt_buf_text(&many, ",\"e\"");
	gt_buf_text(&many, "]}");
	gt_buf_byte(&many, '\0');
	print_copy(many.data, &out);
	assert_true(out.len < 1000);
	assert_has(&out, "; e; and 993 more\n");
	gt_buf_release(&many);
	gt_buf_release(&out);
}

#define SLICE(cat, name, pid, ts, args)                                        \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" pid \
	",\"tid\":7,\"ts\":" ts ",\"dur\":1,\"args\":{" args "}},"
#define CALL(name, ts, correlation) \
	SLICE("cuda_runtime", name, "99", ts, "\"cbid\":211,\"correlation\":" correlation)
#define KERNEL(ts, correlation) \
	SLICE("kernel", "k", "0", ts, "\"device\":0,\"correlation\":" correlation)

/* Two launches and a piece of work are alone; what has no work of its own does not count. */
#define EVENTS                                                    \
	CALL("cudaLaunchKernel", "1", "1")                        \
	CALL("cudaLaunchKernel", "2", "2")                        \
	CALL("cudaMemcpyAsync", "3", "3")                         \
	CALL("cudaGraphLaunch", "4", "4")                         \
	CALL("cudaStreamSynchronize", "5", "5")                   \
	SLICE("cuda_runtime", "cudaLaunchKernel", "99", "6",      \
	      "\"cbid\":211,\"captured\":true,\"correlation\":6") \
	KERNEL("11", "1") KERNEL("12", "9")

#define OWN(health) ",\"gtrace\":{\"version\":\"9\"," health "}"
#define FAILING                                                                                \
	"\"complete\":false,\"launches_without_gpu\":58,\"gpu_without_launch\":70,\"reason\":" \
	"\"58 launches have no GPU record\",\"warnings\":[\"it was stopped\"]"

static void print_events(const char *events, const char *members, struct gt_buf *out)
{
	struct gt_buf text = { 0 };

	gt_buf_printf(&text, "{\"traceEvents\":[%s{\"ph\":\"M\"}]%s}", events, members);
	print_text(text.data, text.len, out);
	gt_buf_release(&text);
}

/* The health that a cut has with it is of the whole trace. */
static void test_health_of_a_cut(void **state)
{
	static const char steps[] = ",\"gtrace_copy\":{\"what\":\"cut\",\"steps\":[5,6]}";
	static const char kernels[] =
		",\"gtrace_copy\":{\"what\":\"cut\",\"categories\":\"kernel\"}";
	static const char repaired[] = ",\"gtrace_copy\":{\"what\":\"repair\",\"of\":{\"what\":"
				       "\"cut\",\"categories\":\"kernel\"}}";
	struct gt_buf out = { 0 }, members = { 0 };

	(void)state;
	print_events(EVENTS, OWN(FAILING), &out);
	assert_has(&out, "warning: the trace is not complete: 58 launches have no GPU record\n"
			 "warning: 58 launches have no GPU work in the trace\n"
			 "warning: 70 pieces of GPU work have no launch in the trace\n"
			 "warning: it was stopped\n");
	gt_buf_printf(&members, "%s%s", OWN(FAILING), steps);
	gt_buf_byte(&members, '\0');
	print_events(EVENTS, members.data, &out);
	assert_has(&out,
		   "warning: the whole trace is not complete: 58 launches have no GPU record\n"
		   "warning: 2 launches have no GPU work in the trace\n"
		   "warning: 1 piece of GPU work has no launch in the trace\n"
		   "warning: of the whole trace: it was stopped\n");
	/* A choice of categories takes them apart. */
	members.len = 0;
	gt_buf_printf(&members, "%s%s", OWN(FAILING), kernels);
	gt_buf_byte(&members, '\0');
	print_events(EVENTS, members.data, &out);
	assert_lacks(&out, "no GPU work in");
	assert_lacks(&out, "no launch in");
	/* Also when something was done to it since then. */
	members.len = 0;
	gt_buf_printf(&members, "%s%s", OWN(FAILING), repaired);
	gt_buf_byte(&members, '\0');
	print_events(EVENTS, members.data, &out);
	assert_has(&out, "warning: the whole trace is not complete");
	assert_lacks(&out, "no GPU work in");
	/* Nothing is known to be complete of a part. */
	members.len = 0;
	gt_buf_printf(&members, "%s%s", OWN("\"complete\":true"), steps);
	gt_buf_byte(&members, '\0');
	print_events(CALL("cudaLaunchKernel", "1", "1") KERNEL("2", "1"), members.data, &out);
	assert_lacks(&out, "complete");
	assert_lacks(&out, "warning");
	gt_buf_release(&members);
	gt_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_health_of_a_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
