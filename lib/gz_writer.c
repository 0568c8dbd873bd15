#include "gz_writer.h"
#include "out_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <isa-l/crc.h>

#define PAGE          4096 /* the smallest unit in which the kernel copies a write */
#define TRAILER_BYTES 8

static const uint8_t empty_block[] = { 0, 0, 0, 0xff, 0xff }; /* stored, of no bytes */

struct gt_gz_writer {
	int fd; /* -1 before the first commit */
	unsigned int flags;
	int error; /* -errno, sticks */
	char *path;
	struct gt_deflate *deflate;
	bool unflushed;     /* deflate holds data back */
	struct gt_buf out;  /* compressed and not on disk: data, then while committing the tail */
	struct gt_buf tail; /* what is on disk from data_end to file_end */
	uint64_t data_end;
	uint64_t file_end;
	uint32_t crc;        /* of all text appended */
	uint32_t text_bytes; /* modulo 2^32, as in the trailer */
};

static int open_file(struct gt_gz_writer *gz, struct gt_err *err)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct stat st;
	int fd, code = 0;

	fd = open(gz->path, flags | (gz->flags & GT_GZ_WRITER_OVERWRITE ? 0 : O_EXCL), 0666);
	if (fd < 0)
		return gt_err_sys(err, -errno, "cannot create '%s'", gz->path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		code = gt_err_set(err, -EINVAL, "cannot write '%s': not a regular file", gz->path);
	else if (ftruncate(fd, 0) < 0)
		code = gt_err_sys(err, -errno, "cannot empty '%s'", gz->path);
	if (code)
		close(fd);
	else
		gz->fd = fd;
	return code;
}

int gt_gz_writer_create(struct gt_gz_writer **ret, const char *path, unsigned int flags,
			struct gt_err *err)
{
	/* deflate, no name, no time: the same input gives the same file; from Unix */
	static const uint8_t header[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
	struct gt_gz_writer *gz = calloc(1, sizeof(*gz));

	if (!gz)
		return gt_err_sys(err, -ENOMEM, "cannot write '%s'", path);
	gz->fd = -1;
	gz->flags = flags;
	gz->path = strdup(path);
	gt_buf_append(&gz->out, header, sizeof(header));
	if (!gz->path || gz->out.failed || gt_deflate_new(&gz->deflate)) {
		gt_gz_writer_close(gz, NULL);
		return gt_err_sys(err, -ENOMEM, "cannot write '%s'", path);
	}
	*ret = gz;
	return 0;
}

static uint32_t crc32(uint32_t crc, const char *text, size_t len)
{
	return crc32_gzip_refl(crc, (const unsigned char *)text, len);
}

int gt_gz_writer_append(struct gt_gz_writer *gz, const char *text, size_t from, size_t to,
			const struct gt_deflate_hint *hints, size_t hint_count)
{
	if (gz->error || from == to)
		return gz->error;
	gz->crc = crc32(gz->crc, text + from, to - from);
	gz->text_bytes += (uint32_t)(to - from);
	gz->unflushed = true;
	gt_deflate_text(gz->deflate, text, from, to, hints, hint_count, &gz->out);
	if (gz->out.failed)
		gz->error = -ENOMEM;
	return gz->error;
}

static void add_empty_blocks(struct gt_buf *out, uint64_t bytes)
{
	for (; bytes; bytes -= GT_MIN(bytes, sizeof(empty_block)))
		gt_buf_append(out, empty_block, sizeof(empty_block));
}

static void add_le32(struct gt_buf *out, uint32_t value)
{
	int i;

	for (i = 0; i < 4; i++)
		gt_buf_byte(out, (char)(value >> 8 * i));
}

static void encode_tail(struct gt_gz_writer *gz, struct gt_str text, struct gt_buf *tail)
{
	gt_deflate_text(gz->deflate, text.ptr, 0, text.len, NULL, 0, tail);
	gt_deflate_flush(gz->deflate, true, tail);
	add_le32(tail, crc32(gz->crc, text.ptr, text.len));
	add_le32(tail, gz->text_bytes + (uint32_t)text.len);
}

/*
 * Complete out with the data's end and the tail, as it will stand in the file from data_end on.
 * Empty blocks make room: before the tail so that it crosses no page, and in it so that the file
 * never gets shorter, which would take one more step. *ret_data: where the tail begins in out.
 */
static int finish_out(struct gt_gz_writer *gz, struct gt_str text, size_t *ret_data)
{
	struct gt_buf tail = { 0 };
	uint64_t page_left, end;

	if (gz->unflushed)
		gt_deflate_flush(gz->deflate, false, &gz->out);
	gz->unflushed = false;
	encode_tail(gz, text, &tail);
	page_left = PAGE - (gz->data_end + gz->out.len) % PAGE;
	if (tail.len > page_left && tail.len + sizeof(empty_block) <= PAGE)
		add_empty_blocks(&gz->out, page_left);
	*ret_data = gz->out.len;
	end = gz->data_end + gz->out.len + tail.len;
	if (end < gz->file_end)
		add_empty_blocks(&gz->out, gz->file_end - end);
	gt_buf_append(&gz->out, tail.data, tail.len);
	if (tail.failed)
		gz->out.failed = true;
	gt_buf_release(&tail);
	return gz->out.failed ? -ENOMEM : 0;
}

static int write_at(int fd, const char *data, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pwrite(fd, data, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* Write out, which belongs at data_end, over the old tail; on failure undo that. */
static int write_out(struct gt_gz_writer *gz)
{
	size_t over = (size_t)(gz->file_end - gz->data_end);
	struct rlimit limit;
	int code;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    gz->data_end + gz->out.len > limit.rlim_cur)
		return -EFBIG;
	code = write_at(gz->fd, gz->out.data + over, gz->out.len - over, gz->file_end);
	if (!code)
		code = write_at(gz->fd, gz->out.data, over, gz->data_end);
	if (code) { /* The error is reported anyway, so a failure of this is not. */
		(void)write_at(gz->fd, gz->tail.data, over, gz->data_end);
		(void)!ftruncate(gz->fd, (off_t)gz->file_end);
	}
	return code;
}

/*
 * The same in a file that gets its name when it is there: who is killed before leaves no empty
 * file. -errno: -EEXIST, or something in the way of that, as a file system without such files.
 */
static int write_nameless(struct gt_gz_writer *gz)
{
	int code;

	gz->fd = gt_nameless_open(gz->path);
	if (gz->fd < 0)
		return gz->fd;
	code = write_out(gz);
	return code ? code : gt_nameless_link(gz->fd, gz->path);
}

/* write_out() to a file that is not there yet, or is to be replaced. */
static int write_first(struct gt_gz_writer *gz, struct gt_err *err)
{
	int code = gz->flags & GT_GZ_WRITER_OVERWRITE ? -EEXIST : write_nameless(gz);

	if (!code)
		return 0;
	if (gz->fd >= 0)
		close(gz->fd);
	gz->fd = -1;
	code = open_file(gz, err);
	if (code)
		return code;
	code = write_out(gz);
	if (code)
		unlink(gz->path); /* nothing of use is in it */
	return code ? gt_err_sys(err, code, "cannot write '%s'", gz->path) : 0;
}

static int commit(struct gt_gz_writer *gz, struct gt_str text, struct gt_err *err)
{
	size_t data;
	int code = finish_out(gz, text, &data);

	/* The copy of the tail must not fail when it is on disk. */
	if (!code && !gt_buf_reserve(&gz->tail, gz->out.len - data))
		code = -ENOMEM;
	if (code)
		return gt_err_sys(err, code, "cannot write '%s'", gz->path);
	if (gz->fd < 0) {
		code = write_first(gz, err);
	} else {
		code = write_out(gz);
		if (code)
			gt_err_sys(err, code, "cannot write '%s'", gz->path);
	}
	if (code)
		return code;
	gz->tail.len = 0;
	gt_buf_append(&gz->tail, gz->out.data + data, gz->out.len - data);
	gz->file_end = gz->data_end + gz->out.len;
	gz->data_end += data;
	gz->out.len = 0;
	return 0;
}

int gt_gz_writer_commit(struct gt_gz_writer *gz, struct gt_str tail, struct gt_err *err)
{
	if (gz->error)
		return gt_err_sys(err, gz->error, "cannot write '%s'", gz->path);
	gz->error = commit(gz, tail, err);
	return gz->error;
}

/* Whoever looks for the file where we said it is must find it. */
static int check_place(const struct gt_gz_writer *gz, struct gt_err *err)
{
	struct stat ours, there;

	if (fstat(gz->fd, &ours) < 0)
		return gt_err_sys(err, -errno, "cannot write '%s'", gz->path);
	if (!stat(gz->path, &there) && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino)
		return 0;
	return gt_err_set(err, -ENOENT,
			  "'%s' is not there any more: it was deleted or moved while "
			  "it was written",
			  gz->path);
}

int gt_gz_writer_close(struct gt_gz_writer *gz, struct gt_err *err)
{
	int code = 0;

	if (!gz)
		return 0;
	if (gz->fd >= 0) {
		code = gz->error ? 0 : check_place(gz, err);
		if (close(gz->fd) < 0 && !code)
			code = gt_err_sys(err, -errno, "cannot write '%s'", gz->path);
	}
	gt_deflate_free(gz->deflate);
	gt_buf_release(&gz->out);
	gt_buf_release(&gz->tail);
	free(gz->path);
	free(gz);
	return code;
}
