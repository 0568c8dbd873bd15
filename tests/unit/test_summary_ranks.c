/*
 * test_summary_ranks.c - the traces of a job beside each other, and which files of a directory they
 * are.
 */
#include "base.h"
#include "summary_ranks.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/gtrace-ranks-XXXXXX";

static void path_of(const char *name, char *path, size_t len)
{
	snprintf(path, len, "%s/%s", directory, name);
}

static void write_file(const char *name, const char *text, time_t age_s)
{
	struct timespec times[2] = { { .tv_sec = 1000000 - age_s }, { .tv_sec = 1000000 - age_s } };
	char path[128];
	FILE *file;

	path_of(name, path, sizeof(path));
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A rank with a step of step_us and GPU work: 10 us, then comm_us of communication. */
static void write_rank(const char *name, int rank, int step_us, int comm_us)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"distributedInfo\":{\"rank\": %d,\"world_size\":8},\"traceEvents\":["
		 "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":9,"
		 "\"tid\":9,\"ts\":0,\"dur\":%d},"
		 "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":0,"
		 "\"dur\":10},"
		 "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclKernel\",\"pid\":0,\"tid\":7,"
		 "\"ts\":10,\"dur\":%d}]}",
		 rank, step_us, comm_us);
	write_file(name, text, 0);
}

static int setup(void **state)
{
	(void)state;
	memcpy(directory + sizeof(directory) - 7, "XXXXXX", 6);
	return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

static struct gt_summary_ranks *load(struct gt_trace_files *files, int64_t rank)
{
	struct gt_summary_ranks *ranks;
	struct gt_err err;

	assert_int_equal(gt_trace_files_add(files, directory, &err), 0);
	assert_int_equal(gt_summary_ranks_load(&ranks, files, rank, &err), 0);
	return ranks;
}

static void test_rows(void **state)
{
	struct gt_trace_files files = { 0 };
	struct gt_summary_ranks *ranks;

	(void)state;
	write_rank("c.trace.json", 0, 100, 30);
	write_rank("a.trace.json", 2, 120, 50);
	write_rank("b.trace.json", 1, 110, 20);
	ranks = load(&files, -1);
	assert_int_equal(ranks->count, 3);
	assert_int_equal(ranks->readable, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ranks->rows[i].rank, i);
		assert_int_equal(ranks->rows[i].world_size, 8);
		assert_int_equal(ranks->rows[i].steps.count, 1);
		assert_int_equal(ranks->rows[i].gpu_count, 1);
		assert_int_equal(ranks->rows[i].gpu.compute_ns, 10000);
	}
	assert_int_equal(ranks->rows[2].steps.median, 120000);
	assert_int_equal(ranks->rows[2].gpu.exposed_comm_ns, 50000);
	assert_int_equal(ranks->rows[2].gpu.span_ns, 60000);
	assert_ptr_equal(ranks->slowest, &ranks->rows[2]);
	assert_ptr_equal(ranks->waited_for, &ranks->rows[1]);
	assert_int_equal(ranks->missing, 5);
	assert_int_equal(ranks->first_missing, 3);
	assert_int_equal(ranks->twice, 0);
	assert_false(gt_summary_ranks_is_lossy(ranks));
	gt_summary_ranks_free(ranks);
	ranks = NULL;
	gt_trace_files_release(&files);
	ranks = load(&files, 1);
	assert_int_equal(ranks->count, 1);
	assert_non_null(strstr(ranks->rows[0].path, "/b.trace.json"));
	assert_int_equal(ranks->missing, 0);
	gt_summary_ranks_free(ranks);
	gt_trace_files_release(&files);
}

static void test_odd_files(void **state)
{
	struct gt_trace_files files = { 0 };
	struct gt_summary_ranks *ranks;

	(void)state;
	write_rank("a.trace.json", 3, 100, 30);
	write_rank("b.trace.json", 3, 110, 20);
	write_rank("c.trace.json", 3, 110, 20);
	write_file("d.trace.json", "<html>", 0);
	write_file("e.trace.json", "{\"traceEvents\":[{\"ph\":", 0);
	ranks = load(&files, -1);
	assert_int_equal(ranks->count, 5);
	assert_int_equal(ranks->readable, 4);
	assert_int_equal(ranks->rows[3].rank, -1);
	assert_true(ranks->rows[3].is_lossy);
	assert_int_equal(ranks->rows[4].rc, -EBADMSG);
	assert_non_null(strstr(ranks->rows[4].why, "HTML"));
	assert_null(ranks->waited_for); /* one does not communicate */
	assert_int_equal(ranks->twice, 2);
	assert_int_equal(ranks->first_twice, 3);
	assert_int_equal(ranks->missing, 7);
	assert_int_equal(ranks->first_missing, 0);
	assert_true(gt_summary_ranks_is_lossy(ranks));
	gt_summary_ranks_free(ranks);
	gt_trace_files_release(&files);
}

/* Threads share the files among them: each is read once. */
static void test_many(void **state)
{
	struct gt_trace_files files = { 0 };
	struct gt_summary_ranks *ranks;
	char name[32];

	(void)state;
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "r%d.trace.json", i);
		write_rank(name, i, 100 + i, 10);
	}
	ranks = load(&files, -1);
	assert_int_equal(ranks->readable, 200);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(ranks->rows[i].rank, i);
		assert_int_equal(ranks->rows[i].steps.median, (100 + i) * 1000);
	}
	assert_ptr_equal(ranks->slowest, &ranks->rows[199]);
	gt_summary_ranks_free(ranks);
	gt_trace_files_release(&files);
}

static void test_print(void **state)
{
	struct gt_summary_style style = { .format = GT_SUMMARY_CSV, .width = 200 };
	struct gt_trace_files files = { 0 };
	struct gt_summary_ranks *ranks;
	struct gt_buf out = { 0 };

	(void)state;
	write_rank("a\x1b.trace.json", 0, 100, 30);
	write_rank("b.trace.json", 1, 150, 20);
	ranks = load(&files, -1);
	assert_int_equal(gt_summary_ranks_print(ranks, "title", &style, &out), 0);
	gt_buf_byte(&out, '\0');
	assert_non_null(
		strstr(out.data, "\n1,3,1,150.000,30.000,30.000,10.000,20.000,0.000,0.000,\""));
	style.format = GT_SUMMARY_TABLE;
	out.len = 0;
	assert_int_equal(gt_summary_ranks_print(ranks, "ti\x1btle", &style, &out), 0);
	gt_buf_byte(&out, '\0');
	assert_null(strchr(out.data, '\x1b'));
	assert_non_null(strstr(out.data, "ti\\x1btle\n2 traces, 6 events\n"));
	assert_non_null(
		strstr(out.data, "slowest: rank 1, whose median step takes 150.0us, 20.0% more"));
	assert_non_null(strstr(out.data, "least exposed communication: rank 1, 20.00us"));
	assert_non_null(strstr(out.data, "no file here for 6 of the ranks, the first is 2"));
	gt_buf_release(&out);
	gt_summary_ranks_free(ranks);
	gt_trace_files_release(&files);
}

/* The names, with blanks between. */
static void assert_names(const struct gt_trace_files *files, const char *want)
{
	struct gt_buf names = { 0 };

	for (size_t i = 0; i < files->count; i++)
		gt_buf_printf(&names, "%s%s", i ? " " : "", strrchr(files->paths[i], '/') + 1);
	gt_buf_byte(&names, '\0');
	assert_string_equal(names.data, want);
	gt_buf_release(&names);
}

/* What a file has no figure for is not 0, the least of all. */
static void test_no_figures(void **state)
{
	struct gt_summary_style style = { .format = GT_SUMMARY_JSON, .width = 200 };
	struct gt_trace_files files = { 0 };
	struct gt_summary_ranks *ranks;
	struct gt_buf out = { 0 };

	(void)state;
	write_rank("a.trace.json", 0, 100, 20);
	write_rank("b.trace.json", 1, 300, 20);
	write_file("c.trace.json",
		   "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\","
		   "\"pid\":9,\"tid\":9,\"ts\":0,\"dur\":5}]}",
		   0);
	ranks = load(&files, -1);
	assert_int_equal(gt_summary_ranks_print(ranks, "job", &style, &out), 0);
	gt_buf_byte(&out, '\0');
	assert_non_null(
		strstr(out.data, "\"step_median\":{\"min_us\":100.000,\"median_us\":200.000,"));
	assert_non_null(strstr(out.data, "\"span\":{\"min_us\":30.000,\"median_us\":30.000,"));
	style.format = GT_SUMMARY_TABLE;
	out.len = 0;
	assert_int_equal(gt_summary_ranks_print(ranks, "job", &style, &out), 0);
	gt_buf_byte(&out, '\0');
	assert_non_null(
		strstr(out.data, "\n100.0us  200.0us  300.0us       1.500  rank 1  step\n"));
	assert_null(strstr(out.data, "0.0%  c.trace.json"));
	gt_buf_release(&out);
	gt_summary_ranks_free(ranks);
	gt_trace_files_release(&files);
}

static void test_names(void **state)
{
	struct gt_trace_files files = { 0 };
	struct gt_err err;
	char path[128];

	(void)state;
	assert_int_equal(gt_trace_files_add(&files, directory, &err), -ENODATA);
	write_file("config.json", "", 0);
	write_file("other.json.gz", "", 1);
	write_file("notes.txt", "", 0);
	assert_int_equal(gt_trace_files_add(&files, directory, &err), 0);
	assert_names(&files, "config.json other.json.gz");
	gt_trace_files_release(&files);
	write_file("r10.pt.trace.json", "", 3);
	write_file("r9.pt.trace.json.gz", "", 2);
	write_file("trace.json", "", 4);
	write_file(".hidden.trace.json", "", 0);
	write_file("r1.trace.json.9.tmp", "", 0);
	path_of("dir.trace.json", path, sizeof(path));
	assert_int_equal(mkdir(path, 0777), 0);
	assert_int_equal(gt_trace_files_add(&files, directory, &err), 0);
	assert_names(&files, "r9.pt.trace.json.gz r10.pt.trace.json trace.json");
	assert_string_equal(strrchr(gt_trace_files_newest(&files), '/'), "/r9.pt.trace.json.gz");
	gt_trace_files_release(&files);
	assert_null(gt_trace_files_newest(&files));
	path_of("no", path, sizeof(path));
	assert_int_equal(gt_trace_files_add(&files, path, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_odd_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_print, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_figures, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
