/*
 * test_trace_copy.c - a trace written anew, and the file it goes to.
 */
#include "base.h"
#include "json_clean.h"
#include "json_reader.h"
#include "trace_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char directory[] = "/tmp/gtrace-copy-XXXXXX";
static char path[64];

static int setup(void **state)
{
	(void)state;
	memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/out.json", directory);
	return 0;
}

/* Only path may remain. */
static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

static struct gt_trace_copy *create(bool overwrite)
{
	struct gt_trace_copy *copy;
	struct gt_err err;

	assert_int_equal(gt_trace_copy_create(&copy, path, overwrite, &err), 0);
	return copy;
}

/* The texts stand between quotes that belong to the key, and in front of padding. */
static void put(struct gt_trace_copy *copy, const char *key, const char *raw)
{
	struct gt_buf text = { 0 };
	size_t key_len = key ? strlen(key) : 0;
	unsigned int flaws = 0;

	gt_buf_printf(&text, "\"%s\"%s", key ? key : "", raw);
	gt_buf_fill(&text, '"', GT_JSON_PAD);
	if (key)
		assert_int_equal(gt_trace_copy_member(
					 copy, (struct gt_str){ text.data + 1, key_len },
					 (struct gt_str){ text.data + key_len + 2, strlen(raw) },
					 &flaws),
				 0);
	else
		assert_int_equal(gt_trace_copy_event(copy,
						     (struct gt_str){ text.data + 2, strlen(raw) },
						     &flaws),
				 0);
	gt_buf_release(&text);
}

static void commit(struct gt_trace_copy *copy)
{
	struct gt_err err;

	assert_int_equal(gt_trace_copy_commit(copy, GT_STR("{}"), &err), 0);
	gt_trace_copy_close(copy);
}

/* gzread() reads plain files as well. */
static void assert_file(const char *want)
{
	char got[1024];
	gzFile file = gzopen(path, "rb");
	int len;

	assert_non_null(file);
	len = gzread(file, got, sizeof(got) - 1);
	assert_true(len >= 0);
	gzclose(file);
	got[len] = '\0';
	assert_string_equal(got, want);
}

static const char whole[] = "{\n\"a\": {\"rank\": 1},\n\"traceEvents\": [\n{\"ph\":\"X\"},\n"
			    "{\"ph\":\"i\"}\n],\n\"b\": 2,\n\"gtrace_copy\": {}}\n";

static void put_whole(struct gt_trace_copy *copy)
{
	put(copy, "a", "{\"rank\": 1}");
	put(copy, NULL, "{\"ph\":\"X\"}");
	put(copy, "b", "2");
	put(copy, "traceEvents", "null");
	put(copy, "trace\\u0045vents", "null");
	put(copy, "gtrace_copy", "{\"old\":1}");
	put(copy, "gtrace\\u005fcopy", "{\"old\":1}");
	put(copy, NULL, "{\"ph\":\"i\"}");
	assert_int_equal(gt_trace_copy_events(copy), 2);
	assert_int_equal(gt_trace_copy_lost(copy), 0);
}

static void test_plain(void **state)
{
	struct gt_trace_copy *copy = create(false);

	(void)state;
	put_whole(copy);
	assert_int_equal(access(path, F_OK), -1); /* not before it is whole */
	commit(copy);
	assert_file(whole);
}

/* What is said of a copy names what that was a copy of. */
static void test_of_a_copy(void **state)
{
	struct gt_trace_copy *copy = create(false);
	struct gt_buf about = { 0 };

	(void)state;
	gt_trace_copy_put_origin(copy, &about);
	assert_int_equal(about.len, 0);
	put(copy, "gtrace_copy", "[}");
	assert_int_equal(gt_trace_copy_lost(copy), 1);
	gt_trace_copy_put_origin(copy, &about);
	assert_int_equal(about.len, 0);
	put(copy, "gtrace_copy", "{\"what\":\"cut\",}");
	gt_trace_copy_put_origin(copy, &about);
	gt_buf_byte(&about, '\0');
	assert_string_equal(about.data, ",\"of\": {\"what\":\"cut\"}");
	gt_buf_release(&about);
	commit(copy);
}

static void test_gzip(void **state)
{
	unsigned char magic[2];
	struct gt_trace_copy *copy;
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/out.json.gz", directory);
	copy = create(false);
	put_whole(copy);
	commit(copy);
	assert_file(whole);
	file = fopen(path, "rb");
	assert_int_equal(fread(magic, 1, 2, file), 2);
	fclose(file);
	assert_memory_equal(magic, "\x1f\x8b", 2);
}

static void test_nothing(void **state)
{
	(void)state;
	commit(create(false));
	assert_file("{\n\"traceEvents\": [\n\n],\n\"gtrace_copy\": {}}\n");
}

static void test_what_is_no_json(void **state)
{
	struct gt_trace_copy *copy = create(false);

	(void)state;
	put(copy, "a", "[}");
	put(copy, NULL, "{\"ph\"}");
	put(copy, NULL, "{\"ph\":\"i\"}");
	put(copy, "b", "{]");
	put(copy, NULL, "{{}");
	put(copy, NULL, "{\"ph\":\"C\"}");
	assert_int_equal(gt_trace_copy_events(copy), 2);
	assert_int_equal(gt_trace_copy_lost(copy), 4);
	commit(copy);
	assert_file("{\n\"traceEvents\": [\n{\"ph\":\"i\"},\n{\"ph\":\"C\"}\n],\n"
		    "\"gtrace_copy\": {}}\n");
}

static void test_abandoned(void **state)
{
	struct gt_trace_copy *copy = create(false);

	(void)state;
	put_whole(copy);
	gt_trace_copy_close(copy); /* teardown finds nothing */
}

static void test_overwrite(void **state)
{
	struct gt_trace_copy *copy;
	struct gt_err err;

	(void)state;
	commit(create(false));
	assert_int_equal(gt_trace_copy_create(&copy, path, false, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "out.json"));
	copy = create(true);
	put_whole(copy);
	commit(copy);
	assert_file(whole);
	assert_int_equal(gt_trace_copy_create(&copy, directory, true, &err), -EINVAL);
}

/* Somebody else made the file in between: it is theirs. */
static void test_late_file(void **state)
{
	struct gt_trace_copy *copy = create(false);
	struct gt_err err;
	FILE *file = fopen(path, "w");

	(void)state;
	fputs("theirs", file);
	fclose(file);
	assert_int_equal(gt_trace_copy_commit(copy, GT_STR("{}"), &err), -EEXIST);
	gt_trace_copy_close(copy);
	assert_file("theirs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_a_copy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gzip, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_json, setup, teardown),
		cmocka_unit_test_setup_teardown(test_abandoned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overwrite, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_file, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
