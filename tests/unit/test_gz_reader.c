/*
 * test_gz_reader.c - whole, multi-member, cut and damaged streams, at every size of the reads.
 */
#include "base.h"
#include "gz_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

struct bytes {
	uint8_t *data;
	size_t len;
};

/* Lines that differ, so that a lost or doubled byte shows. */
static struct bytes make_text(size_t lines)
{
	struct bytes text = { malloc(lines * 32 + 1), 0 };

	assert_non_null(text.data);
	for (size_t i = 0; i < lines; i++)
		text.len += (size_t)snprintf((char *)text.data + text.len, 32, "line %zu of many\n",
					     i * 2654435761u % 1000003);
	return text;
}

/* One member; flush_every > 0: with a full flush after that many bytes. */
static struct bytes deflate_member(const uint8_t *data, size_t len, size_t flush_every)
{
	struct bytes out = { malloc(len + 65536), 0 };
	z_stream z = { 0 };
	size_t at = 0;

	assert_non_null(out.data);
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = out.data;
	z.avail_out = (uInt)(len + 65536);
	while (flush_every && len - at > flush_every) {
		z.next_in = (Bytef *)data + at;
		z.avail_in = (uInt)flush_every;
		assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
		at += flush_every;
	}
	z.next_in = (Bytef *)data + at;
	z.avail_in = (uInt)(len - at);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out.len = z.total_out;
	deflateEnd(&z);
	return out;
}

static struct bytes read_all(struct gt_gz_reader *reader, size_t step)
{
	struct bytes out = { malloc(1 << 22), 0 };
	struct gt_err err;
	ssize_t n;

	assert_non_null(out.data);
	do {
		assert_true(out.len + step <= 1 << 22);
		n = gt_gz_read(reader, (char *)out.data + out.len, step, &err);
		assert_true(n >= 0 && (size_t)n <= step);
		out.len += (size_t)n;
	} while (n);
	assert_int_equal(gt_gz_status(reader)->out_bytes, out.len);
	return out;
}

static struct bytes read_mem(const void *data, size_t len, size_t step, struct gt_gz_status *status)
{
	struct gt_gz_reader *reader;
	struct bytes out;

	assert_int_equal(gt_gz_open_mem(&reader, data, len), 0);
	out = read_all(reader, step);
	*status = *gt_gz_status(reader);
	gt_gz_close(reader);
	return out;
}

static void assert_clean(const struct gt_gz_status *status, uint64_t members)
{
	assert_int_equal(status->members, members);
	assert_int_equal(status->damages, 0);
	assert_false(status->cut);
	assert_false(status->bad_checksum);
	assert_false(status->trailing_junk);
}

static void test_plain(void **state)
{
	struct gt_gz_status status;
	struct bytes out = read_mem("{\"a\": 1}", 8, 3, &status);

	(void)state;
	assert_int_equal(out.len, 8);
	assert_memory_equal(out.data, "{\"a\": 1}", 8);
	assert_clean(&status, 0);
	free(out.data);
	out = read_mem("", 0, 16, &status);
	assert_int_equal(out.len, 0);
	free(out.data);
}

static void test_members_and_padding(void **state)
{
	static const size_t steps[] = { 2, 7, 4096, 1 << 20 };
	struct bytes text = make_text(3000);
	struct bytes one = deflate_member(text.data, text.len, 0);
	struct bytes none = deflate_member(text.data, 0, 0);
	struct bytes many = { malloc(one.len * 3 + none.len + 600), 0 };

	(void)state;
	memcpy(many.data, one.data, one.len);
	memcpy(many.data + one.len, none.data, none.len);
	memcpy(many.data + one.len + none.len, one.data, one.len);
	many.len = one.len * 2 + none.len;
	memset(many.data + many.len, 0, 512);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct gt_gz_status status;
		struct bytes out = read_mem(many.data, many.len + 512, steps[i], &status);

		assert_clean(&status, 3);
		assert_int_equal(out.len, text.len * 2);
		assert_memory_equal(out.data, text.data, text.len);
		assert_memory_equal(out.data + text.len, text.data, text.len);
		free(out.data);
	}
	free(text.data);
	free(one.data);
	free(none.data);
	free(many.data);
}

static void test_through_a_pipe(void **state)
{
	struct bytes text = make_text(20);
	struct bytes one = deflate_member(text.data, text.len, 0);
	struct gt_gz_reader *reader;
	struct bytes out;
	struct gt_err err;
	int saved = dup(STDIN_FILENO);
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], one.data, one.len), (ssize_t)one.len);
	assert_int_equal(close(fds[1]), 0);
	assert_int_equal(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(gt_gz_open(&reader, "-", &err), 0);
	out = read_all(reader, 100);
	assert_clean(gt_gz_status(reader), 1);
	gt_gz_close(reader);
	assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
	close(saved);
	close(fds[0]);
	assert_int_equal(out.len, text.len);
	assert_memory_equal(out.data, text.data, text.len);
	free(out.data);
	free(one.data);
	free(text.data);
}

/* Cut anywhere: a prefix of the text, and said to be cut. */
static void test_cut_anywhere(void **state)
{
	struct bytes text = make_text(60);
	struct bytes one = deflate_member(text.data, text.len, 300);

	(void)state;
	for (size_t cut = 4; cut < one.len; cut++) {
		struct gt_gz_status status;
		struct bytes out = read_mem(one.data, cut, 1000, &status);

		assert_true(status.cut);
		assert_int_equal(status.damages, 0);
		assert_true(out.len <= text.len);
		assert_memory_equal(out.data, text.data, out.len);
		if (cut >= one.len - 8)
			assert_int_equal(out.len, text.len);
		free(out.data);
	}
	free(one.data);
	free(text.data);
}

/* What follows the next full-flush point is read again, and a NUL stands for what is lost. */
static void test_damage_resumes_at_flush(void **state)
{
	struct bytes text = make_text(8000);
	struct bytes one = deflate_member(text.data, text.len, 20000);
	struct gt_gz_status status;
	struct bytes out;
	uint8_t *mark = memmem(one.data + one.len / 2, one.len / 2, "\x00\x00\xff\xff", 4);
	const uint8_t *hole;
	size_t after;

	(void)state;
	assert_non_null(mark);
	mark[2] = 0; /* an empty stored block whose lengths contradict each other */
	out = read_mem(one.data, one.len, 4096, &status);
	assert_true(status.damages > 0);
	assert_false(status.cut);
	hole = memchr(out.data, 0, out.len);
	assert_non_null(hole);
	assert_true((size_t)(hole - out.data) > text.len / 3);
	while (memchr(hole + 1, 0, (size_t)(out.data + out.len - hole - 1)))
		hole = memchr(hole + 1, 0, (size_t)(out.data + out.len - hole - 1));
	after = (size_t)(out.data + out.len - hole - 1);
	assert_true(after > text.len / 4);
	assert_memory_equal(hole + 1, text.data + text.len - after, after);
	free(out.data);
	free(one.data);
	free(text.data);
}

static void test_checksum_and_junk(void **state)
{
	struct bytes text = make_text(100);
	struct bytes one = deflate_member(text.data, text.len, 0);
	struct gt_gz_status status;
	struct bytes out;

	(void)state;
	one.data[one.len - 1] ^= 1;
	out = read_mem(one.data, one.len, 4096, &status);
	assert_true(status.bad_checksum);
	assert_int_equal(out.len, text.len);
	free(out.data);
	one.data[one.len - 1] ^= 1;
	memcpy(one.data + one.len, "junk", 4);
	out = read_mem(one.data, one.len + 4, 4096, &status);
	assert_false(status.bad_checksum);
	assert_true(status.trailing_junk);
	assert_int_equal(out.len, text.len);
	free(out.data);
	free(one.data);
	free(text.data);
}

static void test_errors(void **state)
{
	struct gt_gz_reader *reader;
	struct gt_err err;
	char buf[16];

	(void)state;
	assert_int_equal(gt_gz_open(&reader, "/nonexistent/file", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "No such file"));
	assert_int_equal(gt_gz_open(&reader, "/", &err), 0);
	assert_int_equal(gt_gz_read(reader, buf, sizeof(buf), &err), -EISDIR);
	gt_gz_close(reader);
	gt_gz_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_members_and_padding),
		cmocka_unit_test(test_through_a_pipe),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_damage_resumes_at_flush),
		cmocka_unit_test(test_checksum_and_junk),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
