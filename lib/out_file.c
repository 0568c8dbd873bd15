/*
 * out_file.c - see out_file.h.
 */
#include "base.h"
#include "out_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <isa-l/igzip_lib.h>

#define BUF_BYTES (256 * 1024)
#define SELF_FDS  "/proc/self/fd"

struct gt_out_file {
	int fd;
	int error; /* -errno, sticks */
	bool overwrite;
	bool compress;
	bool named; /* as temporary */
	char *path;
	char *temporary;
	size_t len; /* bytes in buf */
	uint8_t *buf;
	uint8_t *level;
	struct isal_zstream stream;
};

int gt_nameless_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int fd;

	if (access(SELF_FDS, X_OK) < 0) /* it could not be named */
		return -errno;
	dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	if (!dir)
		return -ENOMEM;
	fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
	if (fd < 0)
		fd = -errno;
	free(dir);
	return fd;
}

int gt_nameless_link(int fd, const char *path)
{
	char self[sizeof(SELF_FDS) + 12];

	snprintf(self, sizeof(self), SELF_FDS "/%d", fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

static int check_path(const char *path, bool overwrite, struct gt_err *err)
{
	struct stat st;

	/* It is written beside and renamed: a file named "-" is not what was meant. */
	if (!strcmp(path, "-"))
		return gt_err_set(err, -EINVAL, "cannot write to standard output; name a file");
	if (stat(path, &st) < 0)
		return 0;
	if (!S_ISREG(st.st_mode))
		return gt_err_set(err, -EINVAL, "'%s' is no regular file", path);
	if (!overwrite)
		return gt_err_set(err, -EEXIST, "'%s' is there already", path);
	return 0;
}

static int allocate(struct gt_out_file *out, const char *path)
{
	out->path = strdup(path);
	if (asprintf(&out->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
		out->temporary = NULL;
	out->buf = malloc(BUF_BYTES);
	out->compress = gt_text_ends(path, ".gz");
	if (!out->path || !out->temporary || !out->buf)
		return -ENOMEM;
	if (!out->compress)
		return 0;
	out->level = malloc(ISAL_DEF_LVL3_DEFAULT);
	if (!out->level)
		return -ENOMEM;
	isal_deflate_init(&out->stream);
	out->stream.gzip_flag = IGZIP_GZIP;
	out->stream.level = 3;
	out->stream.level_buf = out->level;
	out->stream.level_buf_size = ISAL_DEF_LVL3_DEFAULT;
	return 0;
}

/* What replaces a file is readable to the same people as it. */
static void keep_mode(int fd, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		(void)fchmod(fd, st.st_mode & 0777); /* some file systems have no modes */
}

static int open_temporary(const struct gt_out_file *out)
{
	int fd = open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);

	return fd < 0 ? -errno : fd;
}

int gt_out_file_create(struct gt_out_file **ret, const char *path, bool overwrite,
		       struct gt_err *err)
{
	struct gt_out_file *out;
	int rc = check_path(path, overwrite, err);

	if (rc)
		return rc;
	out = calloc(1, sizeof(*out));
	if (!out)
		return gt_err_set(err, -ENOMEM, "out of memory");
	out->fd = -1;
	out->overwrite = overwrite;
	if (allocate(out, path)) {
		gt_out_file_close(out);
		return gt_err_set(err, -ENOMEM, "out of memory");
	}
	out->fd = gt_nameless_open(path);
	if (out->fd < 0) {
		out->fd = open_temporary(out);
		out->named = out->fd >= 0;
	}
	if (out->fd < 0) {
		rc = gt_err_sys(err, out->fd, "cannot create '%s'", path);
		gt_out_file_close(out);
		return rc;
	}
	keep_mode(out->fd, path);
	*ret = out;
	return 0;
}

static void write_all(struct gt_out_file *out, const void *data, size_t len)
{
	const char *at = data;

	while (len && !out->error) {
		ssize_t n = write(out->fd, at, len);

		if (n < 0 && errno != EINTR)
			out->error = -errno;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
}

static void deflate_text(struct gt_out_file *out, struct gt_str text, bool last)
{
	struct isal_zstream *stream = &out->stream;

	stream->next_in = (uint8_t *)text.ptr;
	stream->avail_in = (uint32_t)text.len;
	stream->end_of_stream = last;
	do {
		stream->next_out = out->buf;
		stream->avail_out = BUF_BYTES;
		if (isal_deflate(stream) != COMP_OK)
			out->error = -EIO;
		write_all(out, out->buf, BUF_BYTES - stream->avail_out);
	} while (!out->error && !stream->avail_out);
}

int gt_out_file_write(struct gt_out_file *out, struct gt_str text)
{
	while (text.len && !out->error) {
		size_t len =
			GT_MIN(text.len, out->compress ? (size_t)1 << 30 : BUF_BYTES - out->len);

		if (out->compress) {
			deflate_text(out, (struct gt_str){ text.ptr, len }, false);
		} else {
			memcpy(out->buf + out->len, text.ptr, len);
			out->len += len;
		}
		if (out->len == BUF_BYTES) {
			write_all(out, out->buf, out->len);
			out->len = 0;
		}
		text.ptr += len;
		text.len -= len;
	}
	return out->error;
}

/* The file that has no name cannot get one here: copy it into one that has. 0 or -errno. */
static int copy_nameless(struct gt_out_file *out)
{
	int fd = open_temporary(out), rc = 0;
	off_t pos = 0, size;
	ssize_t n;

	if (fd < 0)
		return fd;
	out->named = true;
	keep_mode(fd, out->path);
	size = lseek(out->fd, 0, SEEK_END);
	if (size < 0)
		rc = -errno;
	while (!rc && pos < size) {
		n = sendfile(fd, out->fd, &pos, (size_t)(size - pos));
		if (n <= 0)
			rc = n < 0 ? -errno : -EIO;
	}
	if (close(fd) < 0 && !rc)
		rc = -errno;
	return rc;
}

/* 0 or -errno. */
static int take_name(struct gt_out_file *out, struct gt_err *err)
{
	int rc;

	if (!out->named) {
		/* Only what has a name can replace. */
		if (out->overwrite)
			unlink(out->temporary);
		rc = gt_nameless_link(out->fd, out->overwrite ? out->temporary : out->path);
		if (rc == -EEXIST || (!rc && !out->overwrite))
			return rc;
		if (rc)
			rc = copy_nameless(out);
		if (rc)
			return rc;
		out->named = true;
	}
	/* Without overwrite, what came into being in between stays: link() does not replace. */
	if (!out->overwrite) {
		if (!link(out->temporary, out->path))
			return 0;
		if (errno != EPERM) /* a file system without links */
			return -errno;
		rc = check_path(out->path, false, err);
		if (rc)
			return rc;
	}
	return rename(out->temporary, out->path) < 0 ? -errno : 0;
}

int gt_out_file_commit(struct gt_out_file *out, struct gt_err *err)
{
	if (out->compress)
		deflate_text(out, GT_STR(""), true);
	else
		write_all(out, out->buf, out->len);
	/* As late as that some file systems say that the disk is full; without a name it has to be
	 * open. */
	if (out->named) {
		if (close(out->fd) < 0 && !out->error)
			out->error = -errno;
		out->fd = -1;
	}
	if (!out->error)
		out->error = take_name(out, err);
	if (out->error)
		return gt_err_sys(err, out->error, "cannot write '%s'", out->path);
	return 0;
}

void gt_out_file_close(struct gt_out_file *out)
{
	if (!out)
		return;
	if (out->fd >= 0)
		close(out->fd);
	if (out->named)
		unlink(out->temporary); /* the second name, or all of it */
	free(out->level);
	free(out->buf);
	free(out->temporary);
	free(out->path);
	free(out);
}
