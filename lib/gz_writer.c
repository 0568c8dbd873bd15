#include "gz_writer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#define LEVEL       1
#define LEVEL_BUF   ISAL_DEF_LVL1_EXTRA_LARGE
#define PAGE        4096 /* the smallest unit in which the kernel copies a write */
#define TRAILER     8
#define EMPTY_BLOCK "\0\0\0\xff\xff" /* a stored deflate block of no bytes */
#define EMPTY_BYTES 5

struct gt_gz_writer {
	int fd;
	int error; /* -errno, sticks */
	char *path;
	struct isal_zstream stream; /* of the data */
	struct isal_zstream tail_stream;
	uint8_t *level_buf;
	bool unflushed; /* the stream holds data back */

	uint8_t *out; /* compressed and not on disk: data, and while committing the tail */
	size_t out_len;
	size_t out_cap;
	uint8_t *tail; /* what is on disk from data_end to file_end */
	size_t tail_cap;
	uint64_t data_end;
	uint64_t file_end;
	uint32_t crc;        /* of all text appended */
	uint32_t text_bytes; /* modulo 2^32, as in the trailer */
};

static int gz_reserve(struct gt_gz_writer *gz, size_t bytes)
{
	size_t cap = gz->out_cap ? gz->out_cap : 1 << 16;
	uint8_t *out;

	if (gz->out_cap - gz->out_len >= bytes)
		return 0;
	while (cap - gz->out_len < bytes)
		cap *= 2;
	out = realloc(gz->out, cap);
	if (!out)
		return -ENOMEM;
	gz->out = out;
	gz->out_cap = cap;
	return 0;
}

static int gz_open(const char *path, unsigned int flags, struct gt_err *err)
{
	int open_flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	struct stat st;
	int fd, code;

	fd = open(path, open_flags | (flags & GT_GZ_WRITER_OVERWRITE ? 0 : O_EXCL), 0666);
	if (fd < 0)
		return gt_err_sys(err, -errno, "cannot create '%s'", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return gt_err_set(err, -EINVAL, "cannot write '%s': not a regular file", path);
	}
	if (ftruncate(fd, 0) < 0) {
		code = gt_err_sys(err, -errno, "cannot empty '%s'", path);
		close(fd);
		return code;
	}
	return fd;
}

int gt_gz_writer_create(struct gt_gz_writer **ret, const char *path, unsigned int flags,
			struct gt_err *err)
{
	/* deflate, no name, no time: the same input gives the same file; from Unix */
	static const uint8_t header[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
	struct gt_gz_writer *gz = calloc(1, sizeof(*gz));
	int code;

	if (!gz)
		return gt_err_sys(err, -ENOMEM, "cannot write '%s'", path);
	gz->fd = -1;
	gz->path = strdup(path);
	gz->level_buf = malloc(LEVEL_BUF);
	if (!gz->path || !gz->level_buf || gz_reserve(gz, sizeof(header))) {
		gt_gz_writer_close(gz, NULL);
		return gt_err_sys(err, -ENOMEM, "cannot write '%s'", path);
	}
	code = gz_open(path, flags, err);
	if (code < 0) {
		gt_gz_writer_close(gz, NULL);
		return code;
	}
	gz->fd = code;
	isal_deflate_init(&gz->stream);
	gz->stream.level = LEVEL;
	gz->stream.level_buf = gz->level_buf;
	gz->stream.level_buf_size = LEVEL_BUF;
	memcpy(gz->out, header, sizeof(header));
	gz->out_len = sizeof(header);
	*ret = gz;
	return 0;
}

static int gz_deflate(struct gt_gz_writer *gz, const char *text, size_t len, uint16_t flush)
{
	struct isal_zstream *stream = &gz->stream;

	stream->next_in = (uint8_t *)(uintptr_t)text;
	stream->avail_in = (uint32_t)len;
	stream->flush = flush;
	do {
		if (gz_reserve(gz, (size_t)1 << 16))
			return -ENOMEM;
		stream->next_out = gz->out + gz->out_len;
		stream->avail_out = (uint32_t)GT_MIN(gz->out_cap - gz->out_len, UINT32_MAX);
		isal_deflate(stream);
		gz->out_len = (size_t)(stream->next_out - gz->out);
	} while (stream->avail_in || !stream->avail_out);
	return 0;
}

int gt_gz_writer_append(struct gt_gz_writer *gz, const char *text, size_t len)
{
	while (len && !gz->error) {
		size_t part = GT_MIN(len, (size_t)1 << 30);

		gz->crc = crc32_gzip_refl(gz->crc, (const uint8_t *)text, part);
		gz->text_bytes += (uint32_t)part;
		gz->unflushed = true;
		gz->error = gz_deflate(gz, text, part, NO_FLUSH);
		text += part;
		len -= part;
	}
	return gz->error;
}

static uint8_t *put_le32(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)value;
	p[1] = (uint8_t)(value >> 8);
	p[2] = (uint8_t)(value >> 16);
	p[3] = (uint8_t)(value >> 24);
	return p + 4;
}

/* Put the tail behind the data in out; *ret_data is where it begins there. */
static int gz_add_tail(struct gt_gz_writer *gz, const char *text, size_t len, size_t *ret_data)
{
	struct isal_zstream *stream = &gz->tail_stream;
	size_t bound = len + len / 16 + 512, pad = 0, size;
	uint64_t at, shrink;

	/* Room for the longest padding: a page, or what the tail on disk is longer by. */
	if (gz_reserve(gz, bound + TRAILER + 2 * PAGE + (gz->file_end - gz->data_end)))
		return -ENOMEM;
	isal_deflate_stateless_init(stream);
	stream->next_in = (uint8_t *)(uintptr_t)text;
	stream->avail_in = (uint32_t)len;
	stream->end_of_stream = 1;
	stream->next_out = gz->out + gz->out_len;
	stream->avail_out = (uint32_t)bound;
	if (isal_deflate_stateless(stream) != COMP_OK)
		return -EIO;
	size = (size_t)(stream->next_out - gz->out) - gz->out_len + TRAILER;

	at = gz->data_end + gz->out_len;
	if (size <= PAGE && at % PAGE + size > PAGE) {
		pad = (PAGE - at % PAGE + EMPTY_BYTES - 1) / EMPTY_BYTES * EMPTY_BYTES;
		/* The last empty block may reach into the page and leave too little of it. */
		if ((at + pad) % PAGE + size > PAGE)
			pad = 0;
	}
	shrink = at + pad + size < gz->file_end ? gz->file_end - (at + pad + size) : 0;
	memmove(gz->out + gz->out_len + pad, gz->out + gz->out_len, size);
	for (; pad; pad -= EMPTY_BYTES) {
		memcpy(gz->out + gz->out_len, EMPTY_BLOCK, EMPTY_BYTES);
		gz->out_len += EMPTY_BYTES;
	}
	*ret_data = gz->out_len;
	/* The file never becomes shorter: empty blocks before the final one make up for it. */
	shrink = (shrink + EMPTY_BYTES - 1) / EMPTY_BYTES * EMPTY_BYTES;
	memmove(gz->out + gz->out_len + shrink, gz->out + gz->out_len, size);
	for (; shrink; shrink -= EMPTY_BYTES) {
		memcpy(gz->out + gz->out_len, EMPTY_BLOCK, EMPTY_BYTES);
		gz->out_len += EMPTY_BYTES;
	}
	gz->out_len += size - TRAILER;
	put_le32(put_le32(gz->out + gz->out_len,
			  crc32_gzip_refl(gz->crc, (const uint8_t *)text, len)),
		 gz->text_bytes + (uint32_t)len);
	gz->out_len += TRAILER;
	return 0;
}

static int write_at(int fd, const uint8_t *data, size_t len, uint64_t offset)
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
static int gz_write(struct gt_gz_writer *gz)
{
	uint64_t end = gz->data_end + gz->out_len;
	size_t over = (size_t)(gz->file_end - gz->data_end);
	struct rlimit limit;
	int code;

	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    end > limit.rlim_cur)
		return -EFBIG;
	code = write_at(gz->fd, gz->out + over, gz->out_len - over, gz->file_end);
	if (!code)
		code = write_at(gz->fd, gz->out, over, gz->data_end);
	if (code) {
		/* Nothing more can be done when this fails, too: the error is reported anyway. */
		(void)write_at(gz->fd, gz->tail, over, gz->data_end);
		(void)!ftruncate(gz->fd, (off_t)gz->file_end);
	}
	return code;
}

static int gz_commit(struct gt_gz_writer *gz, const char *text, size_t len)
{
	size_t data, size;
	int code;

	if (gz->unflushed) {
		code = gz_deflate(gz, NULL, 0, FULL_FLUSH);
		if (code)
			return code;
		gz->unflushed = false;
	}
	code = gz_add_tail(gz, text, len, &data);
	if (code)
		return code;
	size = gz->out_len - data;
	if (size > gz->tail_cap) {
		uint8_t *tail = realloc(gz->tail, size);

		if (!tail)
			return -ENOMEM;
		gz->tail = tail;
		gz->tail_cap = size;
	}
	code = gz_write(gz);
	if (code)
		return code;
	memcpy(gz->tail, gz->out + data, size);
	gz->file_end = gz->data_end + gz->out_len;
	gz->data_end += data;
	gz->out_len = 0;
	return 0;
}

int gt_gz_writer_commit(struct gt_gz_writer *gz, const char *tail, size_t len, struct gt_err *err)
{
	if (!gz->error)
		gz->error = gz_commit(gz, tail, len);
	if (gz->error)
		return gt_err_sys(err, gz->error, "cannot write '%s'", gz->path);
	return 0;
}

uint64_t gt_gz_writer_file_bytes(const struct gt_gz_writer *gz)
{
	return gz->file_end;
}

int gt_gz_writer_close(struct gt_gz_writer *gz, struct gt_err *err)
{
	int code = 0;

	if (!gz)
		return 0;
	if (gz->fd >= 0 && close(gz->fd) < 0)
		code = gt_err_sys(err, -errno, "cannot write '%s'", gz->path);
	free(gz->path);
	free(gz->level_buf);
	free(gz->out);
	free(gz->tail);
	free(gz);
	return code;
}
