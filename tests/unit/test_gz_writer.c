/*
 * test_gz_writer.c - the file is one complete gzip member after every commit, after every failed
 * write, and (but for bytes behind it) after SIGKILL at any moment.
 */
#include "base.h"
#include "gz_writer.h"
#include "random.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#define PAGE 4096

static char dir[] = "/tmp/gtrace-test-XXXXXX";
static char path[sizeof(dir) + 16];

/* ---- writes, watched and spoilt: the library's pwrite() is this one ---- */

static struct {
	int left;         /* writes until one fails; < 0: none will */
	int error;        /* how it fails; 0: it writes nothing */
	bool short_first; /* half of it is written before */
	bool for_good;    /* so do all later ones */
	unsigned int count;
	uint64_t last_offset;
	size_t last_len;
	bool named;   /* the last write was to a file that has its name */
	int no_names; /* how linkat() fails; 0: it does not */
} spoil = { .left = -1 };

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
	spoil.count++;
	spoil.last_offset = (uint64_t)offset;
	spoil.last_len = len;
	spoil.named = !access(path, F_OK);
	if (spoil.left == 0) {
		if (spoil.short_first && len > 1) {
			spoil.short_first = false;
			return syscall(SYS_pwrite64, fd, data, len / 2, offset);
		}
		if (!spoil.for_good)
			spoil.left = -1;
		errno = spoil.error;
		return spoil.error ? -1 : 0;
	}
	if (spoil.left > 0)
		spoil.left--;
	return syscall(SYS_pwrite64, fd, data, len, offset);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	if (!spoil.no_names)
		return (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
	errno = spoil.no_names;
	return -1;
}

/* ---- files ---- */

static uint64_t file_bytes(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

static void read_file(struct gt_buf *buf)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_non_null(gt_buf_reserve(buf, (size_t)st.st_size + 1));
	assert_int_equal(read(fd, buf->data, (size_t)st.st_size), st.st_size);
	buf->len = (size_t)st.st_size;
	close(fd);
}

/* The text of the first member; *ret_rest: bytes behind it. False: there is no complete one. */
static bool inflate_file(const struct gt_buf *file, struct gt_buf *text, size_t *ret_rest)
{
	z_stream z = { 0 };
	int rc;

	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (Bytef *)file->data;
	z.avail_in = (uInt)file->len;
	do {
		z.next_out = (Bytef *)gt_buf_reserve(text, 1 << 20);
		z.avail_out = 1 << 20;
		rc = inflate(&z, Z_NO_FLUSH);
		text->len += (1 << 20) - z.avail_out;
	} while (rc == Z_OK);
	*ret_rest = z.avail_in;
	inflateEnd(&z);
	return rc == Z_STREAM_END;
}

static void assert_file(const struct gt_buf *data, struct gt_str tail)
{
	struct gt_buf file = { 0 }, text = { 0 };
	size_t rest;

	read_file(&file);
	assert_true(inflate_file(&file, &text, &rest));
	assert_int_equal(rest, 0);
	assert_int_equal(text.len, data->len + tail.len);
	assert_memory_equal(text.data, data->data, data->len);
	assert_memory_equal(text.data + data->len, tail.ptr, tail.len);
	gt_buf_release(&file);
	gt_buf_release(&text);
}

static struct gt_gz_writer *create(void)
{
	struct gt_gz_writer *gz;
	struct gt_err err = { 0 };

	assert_int_equal(gt_gz_writer_create(&gz, path, GT_GZ_WRITER_OVERWRITE, &err), 0);
	return gz;
}

/* What the first commit to this path says. */
static int first_commit(const char *where, unsigned int flags, struct gt_err *err)
{
	struct gt_gz_writer *gz;
	int code;

	assert_int_equal(gt_gz_writer_create(&gz, where, flags, err), 0);
	code = gt_gz_writer_commit(gz, GT_STR("x"), err);
	assert_int_equal(gt_gz_writer_close(gz, NULL), 0);
	return code;
}

static void append(struct gt_gz_writer *gz, struct gt_buf *data, size_t len)
{
	size_t from = data->len;

	for (size_t i = 0; i < len; i++)
		gt_buf_byte(data, (char)('a' + random_below(20)));
	assert_int_equal(gt_gz_writer_append(gz, data->data + from, 0, len, NULL, 0), 0);
}

/* Like that of a trace: text, more or less of it. */
static struct gt_str make_tail(char *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (char)('A' + random_below(20));
	return (struct gt_str){ buf, len };
}

static void test_grows(void **state)
{
	static const size_t tails[] = { 0, 1, 30, 700, 1500, 6000, 9000 };
	static char tail_buf[9000];
	struct gt_gz_writer *gz = create();
	struct gt_buf data = { 0 };
	struct gt_err err = { 0 };

	(void)state;
	for (int i = 0; i < 150; i++) {
		size_t tail_len = tails[random_below(ARRAY_SIZE(tails))];
		struct gt_str tail = make_tail(tail_buf, tail_len);

		for (size_t n = random_below(3); n; n--)
			append(gz, &data, random_below(i % 20 ? 3000 : 100000));
		assert_int_equal(gt_gz_writer_commit(gz, tail, &err), 0);
		assert_file(&data, tail);
	}
	assert_int_equal(gt_gz_writer_close(gz, &err), 0);
	gt_buf_release(&data);
}

/*
 * What replaces the old tail is one write, the last, within one page, so that SIGKILL cannot
 * tear it; everything else lies behind the old end.
 */
static void test_order_of_writes(void **state)
{
	static char tail_buf[3000];
	struct gt_gz_writer *gz = create();
	struct gt_buf data = { 0 };
	struct gt_err err = { 0 };

	(void)state;
	assert_int_equal(gt_gz_writer_commit(gz, make_tail(tail_buf, 500), &err), 0);
	for (int i = 0; i < 300; i++) {
		uint64_t old_end = file_bytes();

		append(gz, &data, random_below(20000));
		spoil.count = 0;
		assert_int_equal(
			gt_gz_writer_commit(gz, make_tail(tail_buf, 10 + random_below(2990)), &err),
			0);
		assert_true(spoil.count <= 2);
		assert_int_equal(spoil.last_offset + spoil.last_len, old_end);
		assert_int_equal(spoil.last_offset / PAGE, (old_end - 1) / PAGE);
		assert_true(file_bytes() >= old_end);
	}
	assert_int_equal(gt_gz_writer_close(gz, &err), 0);
	gt_buf_release(&data);
}

/* ---- failures ---- */

static void fail_at(int write, int error, bool short_first, bool for_good)
{
	struct gt_gz_writer *gz = create();
	struct gt_buf data = { 0 };
	char tail_buf[600];
	struct gt_str tail = make_tail(tail_buf, sizeof(tail_buf));
	struct gt_err err = { 0 };
	size_t good;

	append(gz, &data, 5000);
	assert_int_equal(gt_gz_writer_commit(gz, tail, &err), 0);
	good = data.len;
	append(gz, &data, 50000);
	spoil.left = write;
	spoil.error = error;
	spoil.short_first = short_first;
	spoil.for_good = for_good;
	assert_int_equal(gt_gz_writer_commit(gz, tail, &err), error ? -error : -EIO);
	spoil.left = -1;
	assert_non_null(strstr(err.msg, path));
	assert_non_null(strstr(err.msg, error ? strerror(error) : strerror(EIO)));
	data.len = good;
	assert_file(&data, tail);

	/* It sticks. */
	memset(&err, 0, sizeof(err));
	assert_int_not_equal(gt_gz_writer_append(gz, "more", 0, 4, NULL, 0), 0);
	assert_int_not_equal(gt_gz_writer_commit(gz, tail, &err), 0);
	assert_non_null(strstr(err.msg, path));
	assert_file(&data, tail);
	assert_int_equal(gt_gz_writer_close(gz, &err), 0);
	gt_buf_release(&data);
}

static void test_failed_writes(void **state)
{
	static const int errors[] = { ENOSPC, EDQUOT, EFBIG, EIO, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		for (int write = 0; write < 2; write++) {
			fail_at(write, errors[i], false, false);
			fail_at(write, errors[i], true, false);
		}
		fail_at(0, errors[i], true, true); /* nothing can be undone, nor need it */
	}
}

static void test_interrupted_and_short(void **state)
{
	struct gt_gz_writer *gz = create();
	struct gt_buf data = { 0 };
	struct gt_err err = { 0 };

	(void)state;
	for (int write = 0; write < 2; write++) {
		append(gz, &data, 20000);
		spoil.left = write;
		spoil.error = EINTR;
		spoil.for_good = false;
		spoil.short_first = true;
		assert_int_equal(gt_gz_writer_commit(gz, GT_STR("tail"), &err), 0);
		assert_int_equal(spoil.left, -1);
		assert_file(&data, GT_STR("tail"));
	}
	assert_int_equal(gt_gz_writer_close(gz, &err), 0);
	gt_buf_release(&data);
}

/* A limit is an error like others, and no signal: SIGXFSZ would end this test. */
static void test_file_size_limit(void **state)
{
	struct gt_gz_writer *gz = create();
	struct gt_buf data = { 0 };
	struct gt_err err = { 0 };
	struct rlimit old, limit;
	size_t good;

	(void)state;
	append(gz, &data, 100);
	assert_int_equal(gt_gz_writer_commit(gz, GT_STR("tail"), &err), 0);
	good = data.len;
	append(gz, &data, 100000);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 20000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(gt_gz_writer_commit(gz, GT_STR("tail"), &err), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	data.len = good;
	assert_file(&data, GT_STR("tail"));
	assert_int_equal(gt_gz_writer_close(gz, &err), 0);
	gt_buf_release(&data);
}

static void test_full_disk(void **state)
{
	struct gt_err err = { 0 };

	(void)state;
	/* /dev/full is no regular file, as little as a pipe is; nothing waits for a reader. */
	assert_int_equal(first_commit("/dev/full", GT_GZ_WRITER_OVERWRITE, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "not a regular file"));
}

static void test_names(void **state)
{
	struct gt_gz_writer *gz;
	struct gt_err err = { 0 };

	(void)state;
	unlink(path);
	assert_int_equal(gt_gz_writer_create(&gz, path, 0, &err), 0);
	assert_int_equal(access(path, F_OK), -1); /* a kill now leaves no empty file */
	assert_int_equal(gt_gz_writer_commit(gz, GT_STR("first"), &err), 0);
	assert_int_equal(gt_gz_writer_close(gz, &err), 0);
	assert_int_equal(first_commit(path, 0, &err), -EEXIST);
	assert_non_null(strstr(err.msg, path));
	assert_file(&(struct gt_buf){ 0 }, GT_STR("first"));
	gz = create();
	assert_int_equal(gt_gz_writer_commit(gz, GT_STR("2"), &err), 0);
	assert_int_equal(gt_gz_writer_close(gz, &err), 0);
	assert_file(&(struct gt_buf){ 0 }, GT_STR("2"));
	assert_int_equal(first_commit("/nowhere/x.gz", 0, &err), -ENOENT);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(first_commit(path, GT_GZ_WRITER_OVERWRITE, &err) < 0);
	unlink(path);
	assert_int_equal(gt_gz_writer_close(NULL, &err), 0);
}

/* Who is killed at any moment leaves no empty file, where the file system lets us. */
static void test_name_comes_last(void **state)
{
	int fd = open(dir, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	mode_t mask = umask(027);
	struct gt_err err = { 0 };
	struct stat st;

	(void)state;
	if (fd < 0) {
		umask(mask);
		skip();
	}
	close(fd);
	unlink(path);
	assert_int_equal(first_commit(path, 0, &err), 0);
	umask(mask);
	assert_false(spoil.named);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_file(&(struct gt_buf){ 0 }, GT_STR("x"));
	assert_int_equal(first_commit(path, 0, &err), -EEXIST);
	unlink(path);
}

static void test_name_comes_first(void **state)
{
	struct gt_err err = { 0 };

	(void)state;
	spoil.no_names = ENOENT; /* there is no /proc */
	assert_int_equal(first_commit(path, 0, &err), 0);
	assert_true(spoil.named);
	assert_file(&(struct gt_buf){ 0 }, GT_STR("x"));
	assert_int_equal(first_commit(path, 0, &err), -EEXIST);
	spoil.no_names = 0;
	unlink(path);
}

static void test_no_room(void **state)
{
	struct gt_err err = { 0 };

	(void)state;
	spoil.left = 0;
	spoil.error = ENOSPC;
	spoil.for_good = true;
	assert_int_equal(first_commit(path, 0, &err), -ENOSPC);
	spoil.left = -1;
	spoil.for_good = false;
	assert_int_equal(access(path, F_OK), -1);
}

static void test_deleted(void **state)
{
	struct gt_gz_writer *gz = create();
	struct gt_err err = { 0 };

	(void)state;
	assert_int_equal(gt_gz_writer_commit(gz, GT_STR("x"), &err), 0);
	unlink(path);
	assert_int_equal(gt_gz_writer_close(gz, &err), -ENOENT);
	assert_non_null(strstr(err.msg, path));
	gz = create();
	assert_int_equal(gt_gz_writer_commit(gz, GT_STR("x"), &err), 0);
	unlink(path);
	assert_int_equal(first_commit(path, 0, &err), 0); /* another one in its place */
	assert_int_equal(gt_gz_writer_close(gz, &err), -ENOENT);
}

/* ---- SIGKILL ---- */

#define KILLED_BLOCK 200000 /* bytes of text a commit: a large one, to be hit often */

/* Commit without end; one byte to fd before each. */
static void write_until_killed(int fd)
{
	struct gt_gz_writer *gz = create();
	struct gt_buf data = { 0 };

	for (;;) {
		append(gz, &data, KILLED_BLOCK);
		data.len = 0;
		if (write(fd, "x", 1) != 1 || gt_gz_writer_commit(gz, GT_STR("tail"), NULL))
			_exit(1);
	}
}

static void test_killed(void **state)
{
	const char *wanted = getenv("GTRACE_KILLS");
	int kills = wanted ? atoi(wanted) : 10, with_rest = 0;

	(void)state;
	for (int i = 0; i < kills; i++) {
		struct gt_buf file = { 0 }, text = { 0 };
		int fds[2], status;
		size_t rest;
		char byte;
		pid_t pid;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			close(fds[0]);
			write_until_killed(fds[1]);
		}
		close(fds[1]);
		for (size_t n = 2 + random_below(4); n; n--)
			assert_int_equal(read(fds[0], &byte, 1), 1);
		for (volatile size_t spin = random_below(200000); spin; spin--)
			;
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		close(fds[0]);

		/* Whole blocks and their tail; at most there is something behind. */
		read_file(&file);
		assert_true(inflate_file(&file, &text, &rest));
		assert_int_equal(text.len % KILLED_BLOCK, 4);
		assert_true(text.len > KILLED_BLOCK);
		assert_memory_equal(text.data + text.len - 4, "tail", 4);
		with_rest += rest > 0;
		gt_buf_release(&file);
		gt_buf_release(&text);
	}
	if (wanted)
		print_message("%d of %d files have bytes behind the member\n", with_rest, kills);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/trace.json.gz", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_order_of_writes),
		cmocka_unit_test(test_failed_writes),
		cmocka_unit_test(test_interrupted_and_short),
		cmocka_unit_test(test_file_size_limit),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_name_comes_last),
		cmocka_unit_test(test_name_comes_first),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
