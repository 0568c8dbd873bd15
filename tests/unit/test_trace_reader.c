/*
 * test_trace_reader.c - events of traces that arrive in pieces, cut, damaged, or are none.
 */
#include "base.h"
#include "buf.h"
#include "trace_reader.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* What the events and members of a trace were, as text to compare. */
struct seen {
	struct gt_buf text;
	struct gt_trace_stats stats;
	struct gt_err err;
	int rc;
};

static void put_id(struct gt_buf *out, const struct gt_trace_id *id)
{
	if (id->text.ptr)
		gt_buf_printf(out, "'%.*s' ", (int)id->text.len, id->text.ptr);
	else
		gt_buf_printf(out, "%lld ", (long long)id->number);
}

static int on_event(void *context, const struct gt_trace_event *event)
{
	static const struct gt_str keys[] = { GT_STR("stream"), GT_STR("correlation") };
	struct gt_str values[ARRAY_SIZE(keys)];
	struct gt_buf *out = context;

	gt_trace_event_args(event, keys, values, ARRAY_SIZE(keys));
	gt_buf_printf(out, "%c %d '%.*s' ", event->phase ? event->phase : '?', event->cat,
		      (int)event->name.len, event->name.ptr);
	put_id(out, &event->pid);
	put_id(out, &event->tid);
	if (event->has_ts)
		gt_buf_printf(out, "ts %lld ", (long long)event->ts_ns);
	if (event->has_dur)
		gt_buf_printf(out, "dur %lld ", (long long)event->dur_ns);
	gt_buf_printf(out, "%.*s %.*s\n", (int)values[0].len, values[0].ptr, (int)values[1].len,
		      values[1].ptr);
	return 0;
}

static int on_member(void *context, struct gt_str key, struct gt_str raw)
{
	gt_buf_printf(context, "%.*s = %.*s\n", (int)key.len, key.ptr, (int)raw.len, raw.ptr);
	return 0;
}

static void read_from(struct gt_gz_reader *gz, struct seen *seen)
{
	struct gt_trace_hooks hooks = { &seen->text, on_event, on_member };

	memset(seen, 0, sizeof(*seen));
	seen->rc = gt_trace_read(gz, &hooks, &seen->stats, &seen->err);
	gt_buf_byte(&seen->text, '\0');
}

static void read_text(const char *text, size_t len, struct seen *seen)
{
	struct gt_gz_reader *gz;

	assert_int_equal(gt_gz_open_mem(&gz, text, len), 0);
	read_from(gz, seen);
	gt_gz_close(gz);
}

static void assert_seen(const char *json, const char *want)
{
	struct seen seen;

	read_text(json, strlen(json), &seen);
	assert_int_equal(seen.rc, 0);
	assert_string_equal(seen.text.data, want);
	gt_buf_release(&seen.text);
}

/* Longer than any key that is looked for, with escapes for every byte. */
#define LONG_PART "................................................"
#define LONG      LONG_PART LONG_PART LONG_PART LONG_PART

static const char whole[] =
	"{\n \"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"A } B\"}],\n"
	" \"traceEvents\": [\n"
	"  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\\\"b\\u00e9\", \"pid\": 0, "
	"\"tid\": 7,\n"
	"    \"ts\": 4959420890416.119, \"dur\": 241.649,\n"
	"    \"args\": {\n      \"stream\": 7, \"correlation\": 12, \"grid\": [1, 2, 3]\n    }\n  "
	"},\n"
	"  {\"args\":{\"correlation\":\"x}\\\\\",\"stream\":[{}]},\"ts\":\"5\",\"tid\":\"stream "
	"7\",\"ph\":\"i\"},\n"
	"  {},\n  {\"ph\":\"E\",\"pid\":-1,\"tid\":\"\",\"ts\":1.5e1}\n"
	" ], \"traceName\": \"x\", \"baseTimeNanoseconds\": 12\n}\n";

static const char whole_seen[] = "schemaVersion = 1\n"
				 "deviceProperties = [{\"id\": 0, \"name\": \"A } B\"}]\n"
				 "X 5 'a\"b\xc3\xa9' 0 7 ts 4959420890416119 dur 241649 7 12\n"
				 "i 1 '' 0 'stream 7' ts 5000 [{}] \"x}\\\\\"\n"
				 "? 1 '' 0 0  \n"
				 "E 1 '' -1 '' ts 15000  \n"
				 "traceName = \"x\"\n"
				 "baseTimeNanoseconds = 12\n";

static void test_whole(void **state)
{
	(void)state;
	assert_int_equal(GT_CAT_KERNEL, 5);
	assert_seen(whole, whole_seen);
}

struct sender {
	int fd;
	size_t first; /* bytes of the first piece */
	size_t step;  /* of the others */
};

static void *send_pieces(void *arg)
{
	const struct sender *sender = arg;
	size_t len = sizeof(whole) - 1;
	size_t piece = sender->first;

	for (size_t at = 0; at < len; at += piece, piece = sender->step) {
		piece = GT_MIN(piece, len - at);
		if (piece && send(sender->fd, whole + at, piece, MSG_NOSIGNAL) < 0)
			break;
	}
	close(sender->fd);
	return NULL;
}

/* A socket that keeps packets apart gives each read one piece. */
static void read_pieces(size_t first, size_t step)
{
	struct gt_gz_reader *gz;
	struct sender sender = { .first = first, .step = step };
	struct seen seen;
	pthread_t thread;
	int saved = dup(STDIN_FILENO);
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	sender.fd = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, send_pieces, &sender), 0);
	assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	close(fds[0]);
	assert_int_equal(gt_gz_open(&gz, "-", &seen.err), 0);
	read_from(gz, &seen);
	gt_gz_close(gz);
	assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
	close(saved);
	pthread_join(thread, NULL);
	assert_int_equal(seen.rc, 0);
	assert_false(seen.stats.cut);
	assert_string_equal(seen.text.data, whole_seen);
	gt_buf_release(&seen.text);
}

static void test_every_split(void **state)
{
	(void)state;
	for (size_t first = 1; first < sizeof(whole) - 1; first++)
		read_pieces(first, sizeof(whole));
	read_pieces(1, 1);
	read_pieces(3, 7);
}

/* Cut anywhere: what is read is a beginning of the whole, and the cut is said. */
static void test_every_cut(void **state)
{
	size_t events_at = (size_t)(strstr(whole, "\"traceEvents\"") - whole) + 13;
	size_t last = sizeof(whole) - 3; /* the '}' of the whole */

	(void)state;
	for (size_t len = 1; len <= last; len++) {
		struct seen seen;

		read_text(whole, len, &seen);
		if (len <= events_at + 2) {
			assert_int_equal(seen.rc, -EBADMSG);
		} else {
			assert_int_equal(seen.rc, 0);
			assert_true(seen.stats.cut);
			if (seen.stats.skipped)
				fail_msg("%.*s", (int)len, whole);
		}
		assert_memory_equal(seen.text.data, whole_seen, seen.text.len - 1);
		gt_buf_release(&seen.text);
	}
}

/* A byte of damage anywhere costs at most the event it is in, and what it may swallow of names. */
static void test_every_damage(void **state)
{
	static const char bytes[] = { 0, '"', '\\', '{', '}', '\n', 'x', (char)0xff };
	char broken[sizeof(whole)];

	(void)state;
	for (size_t at = 0; at < sizeof(whole) - 1; at++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			struct seen seen;

			memcpy(broken, whole, sizeof(whole));
			broken[at] = bytes[i];
			read_text(broken, sizeof(broken) - 1, &seen);
			assert_true(seen.rc == 0 || seen.rc == -EBADMSG);
			assert_true(seen.stats.events <= 5);
			gt_buf_release(&seen.text);
		}
	}
}

static void test_arrays(void **state)
{
	struct seen seen;

	(void)state;
	assert_seen("[{\"ph\":\"B\",\"name\":\"n\"},]", "B 1 'n' 0 0  \n");
	assert_seen("\xef\xbb\xbf [{\"ph\":\"B\"},\n", "B 1 '' 0 0  \n");
	read_text("[{\"ph\":\"B\"}", 11, &seen);
	assert_true(seen.stats.is_array && seen.stats.unclosed && !seen.stats.cut);
	gt_buf_release(&seen.text);
	read_text("[{\"ph\":\"B\"},{\"ph\"", 17, &seen);
	assert_true(seen.stats.cut);
	gt_buf_release(&seen.text);
}

/* Of keys that are there twice the last one counts. */
static void test_duplicates(void **state)
{
	(void)state;
	assert_seen(
		"{\"traceEvents\":[{\"ph\":\"M\",\"ph\":\"X\",\"ts\":1,\"ts\":2,\"name\":\"a\\n\","
		"\"name\":\"b\",\"args\":{\"stream\":1},\"args\":{\"stream\":7,\"stream\":20}}]}",
		"X 1 'b' 0 0 ts 2000 20 \n");
	/* … also when its value is of the wrong type */
	assert_seen(
		"{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"ts\":\"x\",\"args\":{},\"args\":[]}]}",
		"X 1 '' 0 0  \n");
}

/* Escapes say the same in keys, categories and phases, whatever they hide. */
static void test_escapes(void **state)
{
	(void)state;
	assert_seen("{\"trace\\u0045vents\":[{\"\\u0070h\":\"\\u0058\",\"c\\u0061t\":"
		    "\"kern\\u0065l\",\"n\\u0061me\":\"\\u0061\",\"\\u0070id\":1,\"ti\\u0064\":2,"
		    "\"t\\u0073\":3,\"\\u0064ur\":4,\"arg\\u0073\":{\"stream\":7}}]}",
		    "X 5 'a' 1 2 ts 3000 dur 4000 7 \n");
	assert_seen("{\"traceEvents\":[{\"\\u0070\\u0068\":\"X\",\"cat\":\"\\u006b\\u0065\\u0072"
		    "\\u006e\\u0065\\u006c\"}]}",
		    "X 5 '' 0 0  \n");
	/* the last one counts, with escapes or without */
	assert_seen(
		"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kern\\u0065l\",\"cat\":\"cpu_op\","
		"\"dur\":1,\"\\u0064ur\":2},{\"ph\":\"X\",\"cat\":\"kern\\u0065l\",\"cat\":1}]}",
		"X 2 '' 0 0 dur 2000  \nX 1 '' 0 0  \n");
	/* what only begins like a key, is none, or is too long for one */
	assert_seen("{\"traceEvents\":[{\"ph\":\"i\",\"ts\\u0022\":1,\"\\u0074s\\\"\":1,"
		    "\"\\u0074s\\u0000\":1,\"\\ts\":1,\"\\u007\":1,\"t\\\\\":1,\"t\\u0073" LONG
		    "\":1,\"\\" LONG "\":1}]}",
		    "i 1 '' 0 0  \n");
	assert_seen("{\"traceEvents\":[{\"ph\":\"\\u0058X\"},{\"ph\":\"\\u0058" LONG
		    "\",\"cat\":\"kern\\u0065l" LONG "\"},{\"ph\":\"i\"}]}",
		    "? 1 '' 0 0  \n? 0 '' 0 0  \ni 1 '' 0 0  \n");
}

static struct gt_trace_event with_args(const char *args)
{
	static char text[512]; /* padded */

	snprintf(text, sizeof(text), "%s", args);
	return (struct gt_trace_event){ .args = gt_str_of(text) };
}

/* The same in args, by whichever way they are looked up. */
static void test_escaped_args(void **state)
{
	static const struct gt_str keys[] = { GT_STR("correlation"), GT_STR("bytes") };
	struct gt_trace_event event =
		with_args("{\"c\\u006frrelation\":5,\"str\\u0065am\": 7,\"\\u0064evice\":\"1\"}");
	struct gt_str values[2];

	(void)state;
	gt_trace_event_args(&event, keys, values, 2);
	assert_int_equal(values[0].len, 1);
	assert_int_equal(values[1].len, 0);
	assert_int_equal(gt_trace_event_id(&event, GT_STR("\"correlation\"")), 5);
	assert_int_equal(gt_trace_event_id(&event, GT_STR("\"bytes\"")), 0);
	assert_int_equal(gt_trace_event_stream(&event), 7);
	assert_int_equal(gt_trace_event_device(&event), 1);
	event = with_args("{\"name\":\"C:\\\\corr\",\"correlation\":5}");
	assert_int_equal(gt_trace_event_id(&event, GT_STR("\"correlation\"")), 5);
	assert_int_equal(gt_trace_event_arg(&event, GT_STR("\"stream\"")).len, 0);
}

static void test_damaged_events(void **state)
{
	static const char text[] =
		"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"f(\"a\", \"b\")\n\",\"ts\":1},"
		"{\"ph\":\"X\",name\":\"c\",\"ts\":2},"
		"{\"ph\":\"X\",\"name\":*},{\"ph\":\"X\",\"name\":\"d\",\"args\":{\"name\":\"e\"}},"
		"5,[{}],{\"ph\":\"X\",\"name\":{\"ph\":\"Y\"} x}],\"traceName\":1}";
	struct seen seen;

	(void)state;
	read_text(text, sizeof(text) - 1, &seen);
	assert_string_equal(seen.text.data, "X 1 'f(\"a\", \"b\")\n' 0 0 ts 1000  \n"
					    "X 1 'c' 0 0 ts 2000  \n"
					    "X 1 'd' 0 0  \n"
					    "traceName = 1\n");
	assert_int_equal(seen.stats.repaired, 2);
	assert_int_equal(seen.stats.skipped, 4);
	assert_false(seen.stats.cut);
	gt_buf_release(&seen.text);
}

/* The last event is damaged: the file is not cut for that. */
static void test_damaged_last(void **state)
{
	static const char *const texts[] = {
		"{\"traceEvents\":[{\"ph\":\"X\"},{\"ph\":*} ] }\n",
		"{\"traceEvents\":[{\"ph\":\"X\"},{\"ph\":*}],\"gtrace\":1}",
		"[{\"ph\":\"X\"},{\"ph\":*}] "
	};
	struct seen seen;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		read_text(texts[i], strlen(texts[i]), &seen);
		assert_int_equal(seen.rc, 0);
		assert_int_equal(seen.stats.events, 1);
		assert_int_equal(seen.stats.skipped, 1);
		assert_false(seen.stats.cut);
		gt_buf_release(&seen.text);
	}
}

static void test_trailing(void **state)
{
	struct seen seen;

	(void)state;
	read_text("{\"traceEvents\":[]} \n\0\0", 22, &seen);
	assert_false(seen.stats.trailing);
	gt_buf_release(&seen.text);
	read_text("{\"traceEvents\":[]}}", 19, &seen);
	assert_true(seen.stats.trailing && !seen.stats.second_document);
	gt_buf_release(&seen.text);
	read_text("{\"traceEvents\":[]}\n{}", 21, &seen);
	assert_true(seen.stats.trailing && seen.stats.second_document);
	gt_buf_release(&seen.text);
}

static void test_not_a_trace(void **state)
{
	static const struct {
		const char *text;
		const char *words;
	} cases[] = {
		{ "", "an empty file" },
		{ " \n", "an empty file" },
		{ "{}", "without traceEvents" },
		{ "{\"nodes\": [1]}", "without traceEvents" },
		{ "{\"traceEvents\": null}", "no array" },
		{ "{\"traceEvents\": {\"a\": 1}}", "an object" },
		{ "{\"schemaVersion\": 1", "ends before" },
		{ "[]", "without events" },
		{ "[1, {}]", "without events" },
		{ "<html>", "HTML" },
		{ "hello", "not JSON" },
		{ "{hello", "not JSON" },
		{ "{'a': 1}", "Python" },
		{ "[{'a': 1}]", "Python" },
		{ "PK\x03\x04", "zip" },
		{ "\x01\x02\x03", "binary" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct seen seen;

		read_text(cases[i].text, strlen(cases[i].text), &seen);
		assert_int_equal(seen.rc, -EBADMSG);
		if (!strstr(seen.err.msg, cases[i].words))
			fail_msg("%s", seen.err.msg);
		gt_buf_release(&seen.text);
	}
}

static int stop_at_once(void *context, const struct gt_trace_event *event)
{
	(void)event;
	++*(int *)context;
	return -ECANCELED;
}

static void test_hook_stops(void **state)
{
	int calls = 0;
	struct gt_trace_hooks hooks = { &calls, stop_at_once, NULL };
	struct gt_trace_stats stats;
	struct gt_gz_reader *gz;
	struct gt_err err;

	(void)state;
	assert_int_equal(gt_gz_open_mem(&gz, whole, sizeof(whole) - 1), 0);
	assert_int_equal(gt_trace_read(gz, &hooks, &stats, &err), -ECANCELED);
	assert_int_equal(calls, 1);
	gt_gz_close(gz);
}

static void test_categories(void **state)
{
	(void)state;
	assert_int_equal(gt_trace_cat_of(GT_STR("Kernel")), GT_CAT_KERNEL);
	assert_int_equal(gt_trace_cat_of(GT_STR("gpu_memcpy")), GT_CAT_MEMCPY);
	assert_int_equal(gt_trace_cat_of(GT_STR("gpu_user_Annotation")), GT_CAT_GPU_ANNOTATION);
	assert_int_equal(gt_trace_cat_of(GT_STR("")), GT_CAT_NONE);
	assert_int_equal(gt_trace_cat_of(GT_STR("renderer")), GT_CAT_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),          cmocka_unit_test(test_every_split),
		cmocka_unit_test(test_every_cut),      cmocka_unit_test(test_every_damage),
		cmocka_unit_test(test_arrays),         cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_damaged_events), cmocka_unit_test(test_damaged_last),
		cmocka_unit_test(test_trailing),       cmocka_unit_test(test_not_a_trace),
		cmocka_unit_test(test_hook_stops),     cmocka_unit_test(test_categories),
		cmocka_unit_test(test_escapes),        cmocka_unit_test(test_escaped_args),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
