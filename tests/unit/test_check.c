/*
 * test_check.c - each rule of the check breaks where it should, and none where nothing is wrong.
 */
#include "base.h"
#include "check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

#define SLICE(cat, name, pid, tid, ts, dur, args)                                              \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" pid ",\"tid\":" tid \
	",\"ts\":" ts ",\"dur\":" dur ",\"args\":{" args "}}"
#define KERNEL(ts, dur, args) \
	SLICE("kernel", "k", "0", "7", ts, dur, "\"device\":0,\"stream\":7" args)
#define LAUNCH(ts, args) SLICE("cuda_runtime", "cudaLaunchKernel", "9", "9", ts, "1", args)
#define FLOW(ph, place, ts, more)                                                                  \
	"{\"ph\":\"" ph "\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":5," place ",\"ts\":" ts more \
	"}"
#define FLOW6(ph, pid, tid, ts)                                                                    \
	"{\"ph\":\"" ph "\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":6,\"bp\":\"e\",\"pid\":" pid \
	",\"tid\":" tid ",\"ts\":" ts "}"
#define STEP(number, ts, dur) \
	SLICE("user_annotation", "ProfilerStep#" number, "9", "9", ts, dur, "")
#define CORR ",\"correlation\":5"

/* A sound trace; more stands between its events, head before them. */
#define TRACE_HEAD "{\"schemaVersion\":1,"
#define EVENTS                                                                                         \
	STEP("1", "0", "100")                                                                          \
	"," STEP("2", "100", "100") "," LAUNCH("10", "\"correlation\":5,\"External id\":3") "," SLICE( \
		"cpu_op", "aten::mm", "9", "9", "9", "5",                                              \
		"\"External id\":3") "," KERNEL("20", "5",                                             \
						CORR                                                   \
						",\"External id\":3") "," FLOW("s",                    \
									       "\"pid\":9,"            \
									       "\"tid\":9",            \
									       "10",                   \
									       "") "," FLOW("f",       \
											    "\"pi"     \
											    "d\":"     \
											    "0,"       \
											    "\"ti"     \
											    "d\":"     \
											    "7",       \
											    "20",      \
											    ",\"b"     \
											    "p\":"     \
											    "\"e"      \
											    "\"")
#define TRACE(head, more) TRACE_HEAD head "\"traceEvents\":[" EVENTS more "]}"

static struct gt_check *check_text(const void *text, size_t len, const char *path)
{
	struct gt_check *check;
	struct gt_gz_reader *gz;
	struct gt_err err;

	assert_int_equal(gt_gz_open_mem(&gz, text, len), 0);
	assert_int_equal(gt_check_read(&check, gz, path, NULL, &err), 0);
	gt_gz_close(gz);
	return check;
}

/* The findings as "CODE xCOUNT" lines. */
static char *findings(const struct gt_check *check)
{
	struct gt_buf all = { 0 }, out = { 0 };
	char *at, *save;

	assert_int_equal(gt_check_print(check, &all), 0);
	gt_buf_byte(&all, '\0');
	for (at = strtok_r(all.data, "\n", &save); at; at = strtok_r(NULL, "\n", &save)) {
		const char *colon = strchr(at, ':');

		if (!strncmp(at, "error ", 6) || !strncmp(at, "warning ", 8))
			gt_buf_printf(&out, "%s%.*s", out.len ? ", " : "", (int)(colon - at), at);
	}
	gt_buf_byte(&out, '\0');
	gt_buf_release(&all);
	return out.data;
}

static void assert_finds(const char *text, const char *want)
{
	struct gt_check *check = check_text(text, strlen(text), "a.pt.trace.json");
	char *got = findings(check);

	assert_string_equal(got, want);
	assert_int_equal(gt_check_is_sound(check), !strstr(want, "error"));
	free(got);
	gt_check_free(check);
}

static void test_sound(void **state)
{
	struct gt_check *check;

	(void)state;
	assert_finds(TRACE("", ""), "");
	check = check_text(TRACE("", ""), sizeof(TRACE("", "")) - 1, "a.pt.trace.json");
	assert_int_equal(check->health.gpu_ops, 1);
	assert_int_equal(check->health.launches, 1);
	assert_int_equal(check->health.steps, 2);
	assert_int_equal(check->health.tracks, 2);
	assert_int_equal(check->health.span_ns, 200000);
	gt_check_free(check);
}

/* As that of gtrace cut --time. */
static void test_span_of_pairs(void **state)
{
	static const char text[] =
		"[{\"ph\":\"B\",\"name\":\"a\",\"ts\":5},"
		"{\"ph\":\"E\",\"ts\":9},{\"ph\":\"i\",\"name\":\"i\",\"ts\":20},"
		"{\"ph\":\"b\",\"name\":\"b\",\"id\":1,\"ts\":2}]";
	struct gt_check *check = check_text(text, sizeof(text) - 1, "a.pt.trace.json");

	(void)state;
	assert_int_equal(check->health.span_ns, 7000);
	gt_check_free(check);
}

static const struct {
	const char *text;
	const char *want;
} cases[] = {
	/* text */
	{ TRACE_HEAD "\"traceEvents\":[" EVENTS ",{\"ph\":", "error C-TRUNC x1" },
	{ "\xef\xbb\xbf" TRACE("", ""), "error C-BOM x1" },
	{ TRACE("\"\xff\":1,", ""), "error C-UTF8 x1" },
	{ TRACE("", ",3"), "error J-SYNTAX x1" },
	{ TRACE("\"x\":[1,],", ""), "error J-SYNTAX x1" },
	{ TRACE("", "") "x", "error J-TAIL x1" },
	{ TRACE("", ","), "error J-SYNTAX x1" },
	{ TRACE("", STEP("3", "200", "1")), "error J-SYNTAX x1" },
	{ TRACE("", ",," STEP("3", "200", "1")), "error J-SYNTAX x1" },
	{ TRACE_HEAD "\"traceEvents\":[," EVENTS "]}", "error J-SYNTAX x1" },
	{ TRACE_HEAD ",\"traceEvents\":[" EVENTS "]}", "error J-SYNTAX x1" },
	{ TRACE_HEAD "\"traceEvents\":[" EVENTS "],}", "error J-SYNTAX x1" },
	{ TRACE("\"x\":NaN,\"y\":1e999,", ""), "error J-CONST x1, error J-HUGE x1" },
	{ TRACE("\"x\":\"\\ud800\",", ""), "warning J-SURR x1" },
	{ TRACE("", ",{\"ph\":\"i\",\"ts\":1,\"ts\":2,\"s\":\"g\"}"), "warning J-DUP x1" },
	{ TRACE("", "," SLICE("cpu_op", "a", "9", "9", "300", "1", "\"k\":1,\"l\":1,\"k\":1")),
	  "warning J-DUP x1" },
	/* top level */
	{ "[" EVENTS "]", "warning T-OBJECT x1" },
	{ "[" EVENTS ",", "warning J-OPEN x1, warning T-OBJECT x1" },
	{ TRACE_HEAD "\"traceEvents\":[" EVENTS "],\"traceEvents\":[]}", "error T-TWICE x1" },
	{ TRACE("\"displayTimeUnit\":\"s\",", ""), "warning T-UNIT x1" },
	{ TRACE("\"distributedInfo\":{\"rank\": 8,\"world_size\":8},", ""), "error T-DIST x1" },
	{ TRACE("\"distributedInfo\":{\"rank\": \"1\"},", ""), "error T-DIST x1" },
	{ TRACE("\"distributedInfo\":[],", ""), "error T-DIST x1" },
	{ TRACE("\"distributedInfo\":{\"rank\":1,\"world_size\":8},", ""), "warning T-RANK x1" },
	{ TRACE("\"deviceProperties\":[{\"id\":1,\"name\":\"x\"}],", ""), "warning T-DEVICE x1" },
	{ TRACE("\"deviceProperties\":[{\"id\":0,\"name\":\"x\"},{\"id\":0,\"name\":\"x\"},{}],",
		""),
	  "warning T-DEVICE x2" },
	{ TRACE("\"gtrace\":[],", ""), "error T-GTRACE x1" },
	{ TRACE("\"gtrace\":{\"complete\":false,\"reason\":\"r\",\"dropped\":{\"ring\":2},"
		"\"warnings\":[\"w\"]},",
		""),
	  "error T-LOST x1, error T-DROP x2, warning T-DOUBT x1" },
	{ TRACE("\"gtrace\":{\"complete\":true,\"dropped\":{\"a\":9223372036854775807,"
		"\"b\":9223372036854775807,\"c\":2},\"bad_records\":1},",
		""),
	  "error T-DROP x18446744073709551615" },
	/* escapes */
	{ TRACE("\"displayTimeUnit\":\"\\u006ds\",", ""), "" },
	{ TRACE("\"displayTime\\u0055nit\":\"s\",\"gtr\\u0061ce\":{\"c\\u006fmplete\":false,"
		"\"dr\\u006fpped\":{\"ring\":2}},",
		""),
	  "warning T-UNIT x1, error T-LOST x1, error T-DROP x2" },
	{ TRACE("", ",{\"\\u0070h\":\"X\",\"c\\u0061t\":\"cpu_op\",\"n\\u0061me\":\"a\","
		    "\"p\\u0069d\":9,"
		    "\"t\\u0069d\":9,\"t\\u0073\":300,\"d\\u0075r\":1,\"\\u0061rgs\":{}}"),
	  "" },
	/* events */
	{ TRACE("", ",{}"), "warning E-OBJECT x1" },
	{ TRACE("", ",{\"ph\":\"B\",\"ts\":1}"), "warning E-PH x1" },
	{ TRACE("", ",{\"ph\":\"i\",\"name\":\"\\u001b\"}"), "error E-TS x1, warning E-ESC x1" },
	{ TRACE("", ",{\"ph\":\"X\",\"ts\":300,\"args\":1}"),
	  "warning E-NAME x1, warning E-CAT x1, error E-DUR x1, warning E-ARGS x1, "
	  "warning E-PID x1, warning E-TID x1" },
	{ TRACE("", ",{\"ph\":\"X\",\"cat\":\"Operator\",\"name\":\"n\",\"pid\":-1,\"tid\":\"x\","
		    "\"ts\":\"-3\",\"dur\":\"1\"}"),
	  "warning E-CATOLD x1, warning E-STR x1, warning E-RANGE x1, warning E-NOARGS x1, "
	  "warning E-PID x1" },
	{ TRACE("", ",{\"ph\":\"M\",\"name\":\"n\"},{\"ph\":\"M\",\"name\":\"thread_name\","
		    "\"pid\":1,\"args\":{\"name\":1}}"),
	  "warning M-NAME x1, warning M-ARGS x1" },
	{ TRACE("", ",{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"args\":{\"name\":\"a\"}}"),
	  "warning M-ARGS x1" },
	{ TRACE("", ",{\"ph\":\"C\",\"name\":\"n\",\"ts\":1,\"args\":{\"n\":1}},"
		    "{\"ph\":\"C\",\"name\":\"n\",\"ts\":1,\"args\":{}},{\"ph\":\"C\",\"name\":"
		    "\"n\",\"ts\":1}"),
	  "warning E-INST x2" },
	{ TRACE("", "," SLICE("cpu_op", "a", "9", "0", "300", "1", "")), "warning E-TID0 x1" },
	{ TRACE("", "," SLICE("cpu_op", "a", "9", "1", "8796093022207", "1", "")),
	  "warning E-RANGE x1" },
	/* GPU work and launches */
	{ TRACE("", "," SLICE("gpu_memset", "m", "0", "7", "30", "1", "\"warps per SM\":\"1\"")),
	  "warning G-PID x1, warning G-TID x1, warning G-CORR x1, warning G-NUM x1" },
	{ TRACE("", "," KERNEL("30", "1", ",\"correlation\":6")), "warning L-KERNEL x1" },
	{ TRACE("", "," LAUNCH("30", "\"correlation\":6") "," LAUNCH("40", "")),
	  "warning L-LAUNCH x2, warning L-CORR x1" },
	{ TRACE("", "," LAUNCH("30", "\"correlation\":5")), "error L-MULTI x1" },
	{ TRACE("", "," KERNEL("30", "1", CORR)), "warning L-FAN x1" },
	{ TRACE("",
		"," LAUNCH("30", "\"correlation\":6") "," KERNEL("29", "1", ",\"correlation\":6")),
	  "warning L-TIME x1, warning F-MISS x1" },
	{ TRACE("", "," LAUNCH("30", "\"correlation\":6,\"External id\":6") "," KERNEL(
			    "40", "1", ",\"correlation\":6,\"External id\":7")),
	  "warning F-MISS x1, error X-DIFF x1, warning X-CORR x1" },
	{ TRACE("", "," LAUNCH("30", "\"correlation\":6,\"External id\":8") "," KERNEL(
			    "40", "1", ",\"correlation\":6,\"External id\":0")),
	  "warning F-MISS x1, warning X-ZERO x1, warning X-SIDES x1, warning X-REF x1" },
	{ TRACE("", "," SLICE("cpu_op", "a", "0", "1", "300", "1", "")), "warning G-PIDMIX x1" },
	{ TRACE("", "," SLICE("cuda_runtime", "cudaLaunchCooperativeKernel", "9", "9", "30", "1",
			      "\"correlation\":6") "," KERNEL("40", "1", ",\"correlation\":6")),
	  "warning L-NAME x1, warning F-MISS x1" },
	{ TRACE("", "," LAUNCH("30", "\"correlation\":6,\"External id\":3") "," KERNEL(
			    "40", "1", ",\"correlation\":6,\"External id\":3")),
	  "warning F-MISS x1, warning X-REF x1" },
	/* flows */
	{ TRACE("", ",{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":9,\"pid\":9,\"tid\":"
		    "9,\"ts\":900}"),
	  "warning F-BP x1, warning F-DANGLE x1, warning F-END x1" },
	{ TRACE("", ",{\"ph\":\"f\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":9,\"pid\":9,\"tid\":"
		    "9,\"ts\":900,\"bp\":\"\\u0065\"}"),
	  "warning F-DANGLE x1, warning F-END x1" },
	{ TRACE("", ",{\"ph\":\"s\",\"cat\":\"c\",\"ts\":1}"), "warning F-FORM x1" },
	{ TRACE("", "," LAUNCH("30", "\"correlation\":6") "," KERNEL(
			    "40", "1", ",\"correlation\":6") "," FLOW6("s", "9", "9",
								       "11") "," FLOW6("f", "0",
										       "7", "40")),
	  "warning F-CORR x1" },
	{ TRACE("", "," LAUNCH("30", "\"correlation\":6") "," KERNEL(
			    "40", "1", ",\"correlation\":6") "," FLOW6("s", "9", "9",
								       "30") "," FLOW6("f", "0",
										       "7", "21")),
	  "warning F-CORR x1" },
	{ TRACE("", ",{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":1,\"pid\":9,"
		    "\"tid\":9,"
		    "\"ts\":10}"),
	  "warning F-DANGLE x1" },
	{ TRACE("",
		"," SLICE("cuda_runtime", "cudaGraphLaunch", "9", "9", "30", "1", "\"correlation\":6") "," KERNEL(
			"40", "1",
			",\"correlation\":6") "," FLOW6("s", "9", "9",
							"30") "," FLOW6("f", "0", "7",
									"40") "," FLOW6("f", "0",
											"7", "41")),
	  "warning F-DUP x1" },
	{ TRACE("", "," FLOW("s", "\"pid\":9,\"tid\":9", "10", "")), "warning F-DUP x1" },
	/* slices and steps */
	{ TRACE("", "," SLICE("cpu_op", "a", "9", "9", "195", "10", "")), "warning S-NEST x1" },
	{ TRACE("", "," SLICE("cpu_op", "a", "9", "9", "195", "5.001", "")), "" },
	{ TRACE("", "," KERNEL("24", "5", CORR)), "warning L-FAN x1, warning S-GPU x1" },
	{ TRACE("", "," STEP("x", "300", "1")), "warning P-NAME x1" },
	{ TRACE("", "," SLICE("cpu_op", "ProfilerStep#3", "9", "9", "300", "1", "")),
	  "warning P-CAT x1" },
	{ TRACE("", "," STEP("2", "200", "1")), "error P-ORDER x1" },
	{ TRACE("", "," STEP("3", "150", "50")), "error P-OVERLAP x1" },
	{ TRACE_HEAD "\"traceEvents\":[]}",
	  "warning T-EVENTS x1, warning G-NONE x1, warning P-NONE x1" },
	/* by no PyTorch: HTA and its like are no measure */
	{ "{\"traceEvents\":[{\"ph\":\"B\",\"name\":\"a\",\"pid\":1,\"ts\":1}]}", "" },
};

static void test_rules(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_finds(cases[i].text, cases[i].want);
}

static size_t pack(const char *text, unsigned char *out, size_t cap)
{
	z_stream z = { .next_in = (unsigned char *)text,
		       .avail_in = (unsigned int)strlen(text),
		       .next_out = out,
		       .avail_out = (unsigned int)cap };

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static void assert_packed(const unsigned char *data, size_t len, const char *path, const char *want)
{
	struct gt_check *check = check_text(data, len, path);
	char *got = findings(check);

	assert_string_equal(got, want);
	free(got);
	gt_check_free(check);
}

static void test_container(void **state)
{
	unsigned char data[8192];
	size_t len = pack(TRACE("", ""), data, sizeof(data) / 2);

	(void)state;
	assert_packed(data, len, "a.pt.trace.json.gz", "");
	assert_packed(data, len, "-", "");
	assert_packed(data, len, "a.json", "warning C-NAME x1, warning C-PTNAME x1");
	memcpy(data + len, "junk", 4);
	assert_packed(data, len + 4, "-", "error C-TAIL x1");
	assert_packed(data, len - 4, "-", "error C-TRUNC x1");
	data[len - 8] ^= 1;
	assert_packed(data, len, "-", "error C-CRC x1");
	data[len - 8] ^= 1;
	len += pack(" ", data + len, sizeof(data) / 2);
	assert_packed(data, len, "-", "warning C-MEMBER x2");
}

/* What the first breach was, and the verdict, as they are printed. */
static void test_print(void **state)
{
	static const char text[] =
		TRACE("", "," KERNEL("30", "1",
				     ",\"correlation\":6") ",{\"ph\":\"X\",\"cat\":"
							   "\"x\\u0007\",\"name\":\"\\u001b[1m\"}");
	struct gt_check *check = check_text(text, sizeof(text) - 1, "a\x1b.pt.trace.json");
	struct gt_buf out = { 0 };

	(void)state;
	assert_int_equal(gt_check_print(check, &out), 0);
	gt_buf_byte(&out, '\0');
	assert_non_null(strstr(out.data, "a\\x1b.pt.trace.json: usable, with losses (2 errors, "));
	assert_non_null(strstr(out.data, "[first: event 7: correlation 6]\n"));
	assert_non_null(strstr(out.data, "[first: event 8 X x\\x07 \"\\x1b[1m\"]\n"));
	assert_non_null(strstr(out.data, "2 pieces of GPU work, 1 without a launch\n"));
	assert_null(strchr(out.data, '\x1b'));
	out.len = 0;
	assert_int_equal(gt_check_print_json(check, &out), 0);
	gt_buf_byte(&out, '\0');
	assert_non_null(strstr(out.data, "\"sound\":false"));
	assert_non_null(
		strstr(out.data, "{\"rule\":\"L-KERNEL\",\"severity\":\"warning\",\"count\":1,"));
	gt_buf_release(&out);
	gt_check_free(check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound), cmocka_unit_test(test_span_of_pairs),
		cmocka_unit_test(test_rules), cmocka_unit_test(test_container),
		cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
