/*
 * test_out_file.c - the new file is there whole or not at all, however its writer ends, and with or
 * without files that have no name.
 */
#include "base.h"
#include "out_file.h"
#include "remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/gtrace-test-XXXXXX";
static char path[sizeof(dir) + 16];
static bool no_nameless; /* as some file systems have it */
static bool no_links;    /* for those without a name */

/* The library's are these. */
int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	if (no_links) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int open(const char *name, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = (mode_t)va_arg(ap, int);
	va_end(ap);
	if (no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

/* The files that are there, of any name. */
static int count_files(void)
{
	DIR *files = opendir(dir);
	struct dirent *file;
	int count = 0;

	assert_non_null(files);
	while ((file = readdir(files)))
		count += file->d_name[0] != '.';
	closedir(files);
	return count;
}

static struct gt_out_file *begin(bool overwrite)
{
	struct gt_out_file *out;
	struct gt_err err;

	assert_int_equal(gt_out_file_create(&out, path, overwrite, &err), 0);
	assert_int_equal(gt_out_file_write(out, GT_STR("new")), 0);
	return out;
}

static void expect_content(const char *want)
{
	char got[16] = { 0 };
	FILE *file = fopen(path, "re");

	assert_non_null(file);
	assert_non_null(fgets(got, sizeof(got), file));
	fclose(file);
	assert_string_equal(got, want);
}

static void put(const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void check_commit(void)
{
	struct gt_out_file *out = begin(false);
	struct gt_err err;
	struct stat st;

	assert_int_equal(gt_out_file_commit(out, &err), 0);
	gt_out_file_close(out);
	assert_int_equal(count_files(), 1);
	expect_content("new");

	assert_int_equal(gt_out_file_create(&out, path, false, &err), -EEXIST);
	put("old");
	assert_int_equal(chmod(path, 0640), 0);
	out = begin(true);
	expect_content("old");
	assert_int_equal(gt_out_file_commit(out, &err), 0);
	gt_out_file_close(out);
	assert_int_equal(count_files(), 1);
	expect_content("new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);

	/* What came into being in between stays. */
	unlink(path);
	out = begin(false);
	put("other");
	assert_int_equal(gt_out_file_commit(out, &err), -EEXIST);
	gt_out_file_close(out);
	assert_int_equal(count_files(), 1);
	expect_content("other");

	unlink(path);
	gt_out_file_close(begin(false));
	assert_int_equal(count_files(), 0);
}

static void commit(void **state)
{
	(void)state;
	no_nameless = false;
	check_commit();
	no_links = true;
	check_commit();
	no_links = false;
	no_nameless = true;
	check_commit();
	no_nameless = false;
}

static void killed(void **state)
{
	int fd, status;
	pid_t child;

	(void)state;
	fd = gt_nameless_open(path);
	if (fd < 0)
		skip(); /* the file system of /tmp has none */
	close(fd);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		begin(false);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(count_files(), 0);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/out.json", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commit),
		cmocka_unit_test(killed),
	};

	return cmocka_run_group_tests_name("out_file", tests, make_dir, remove_dir);
}
