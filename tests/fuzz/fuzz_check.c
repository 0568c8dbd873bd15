/*
 * fuzz_check.c - a check, a repair and a cut of whatever bytes: what they write can be read again,
 * is sound as JSON, and no byte of the file steers a terminal.
 */
#include "base.h"
#include "check.h"
#include "cut.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const enum gt_check_rule text_rules[] = {
	GT_CHECK_C_TRUNC,  GT_CHECK_C_UTF8,  GT_CHECK_C_BOM,  GT_CHECK_J_SYNTAX, GT_CHECK_J_TAIL,
	GT_CHECK_J_CTRL,   GT_CHECK_J_CONST, GT_CHECK_J_HUGE, GT_CHECK_J_DEPTH,  GT_CHECK_J_OPEN,
	GT_CHECK_T_OBJECT, GT_CHECK_T_TWICE, GT_CHECK_J_SURR,
};

static char path[64];
static char copy_path[64];

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_safe(const struct gt_check *verdict)
{
	struct gt_buf out = { 0 };

	check(gt_check_print(verdict, &out) == 0);
	check(gt_check_print_json(verdict, &out) == 0);
	for (size_t i = 0; i < out.len; i++)
		check((unsigned char)out.data[i] >= 0x20 || out.data[i] == '\n');
	gt_buf_release(&out);
}

/* The copy has as many events as were written to it, and nothing is wrong with its text. */
static void check_copy(uint64_t events)
{
	struct gt_check *verdict;
	struct gt_gz_reader *gz;
	struct gt_err err;

	check(gt_gz_open(&gz, copy_path, &err) == 0);
	check(gt_check_read(&verdict, gz, copy_path, NULL, &err) == 0);
	check(verdict->read.events == events);
	for (size_t i = 0; i < ARRAY_SIZE(text_rules); i++)
		check(!verdict->findings[text_rules[i]].count);
	gt_check_free(verdict);
	gt_gz_close(gz);
}

static void repair(const uint8_t *data, size_t size)
{
	struct gt_trace_copy *copy;
	struct gt_check *verdict;
	struct gt_gz_reader *gz;
	struct gt_buf about = { 0 };
	struct gt_err err = { 0 };
	int rc;

	check(gt_gz_open_mem(&gz, data, size) == 0);
	check(gt_trace_copy_create(&copy, copy_path, true, &err) == 0);
	rc = gt_check_read(&verdict, gz, "fuzz", copy, &err);
	check(rc == 0 || (rc == -EBADMSG && err.msg[0]));
	if (!rc) {
		uint64_t events = gt_trace_copy_events(copy);

		check_safe(verdict);
		check(gt_check_print_about(verdict, copy, &about) == 0);
		check(gt_trace_copy_commit(copy, gt_buf_str(&about), &err) == 0);
		check_copy(events);
		gt_buf_release(&about);
		gt_check_free(verdict);
	}
	gt_trace_copy_close(copy);
	gt_gz_close(gz);
}

static void cut(const uint8_t *data, size_t size)
{
	const struct gt_choice choice = {
		.has_time = true,
		.to_ns = (int64_t)(size ? data[size - 1] : 1) * 1000,
		.device = size % 3 ? -1 : 0,
		.categories = size % 2 ? NULL : "kernel,cpu_op,cuda_runtime",
	};
	struct gt_trace_copy *copy;
	struct gt_cut_result result;
	struct gt_buf about = { 0 };
	struct gt_err err = { 0 };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
	check(gt_trace_copy_create(&copy, copy_path, true, &err) == 0);
	if (!gt_cut(path, &choice, copy, &result, &err)) {
		check(gt_cut_print_about(&choice, &result, copy, &about) == 0);
		check(gt_trace_copy_commit(copy, gt_buf_str(&about), &err) == 0);
		check_copy(result.kept);
		gt_buf_release(&about);
	} else {
		check(err.msg[0]);
	}
	gt_trace_copy_close(copy);
}

static void remove_files(void)
{
	unlink(path);
	unlink(copy_path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!path[0]) {
		snprintf(path, sizeof(path), "/tmp/gtrace-fuzz-%ld.json", (long)getpid());
		snprintf(copy_path, sizeof(copy_path), "/tmp/gtrace-fuzz-%ld.copy.json",
			 (long)getpid());
		atexit(remove_files);
	}
	repair(data, size);
	cut(data, size);
	return 0;
}
