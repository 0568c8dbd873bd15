/*
 * gz_reader.c - see gz_reader.h. The format is RFC 1952 (gzip) around RFC 1951 (deflate).
 */
#include "base.h"
#include "gz_reader.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <isa-l/igzip_lib.h>

#define INPUT_BYTES   (256 * 1024)
#define TRAILER_BYTES 8
/* Longest pattern that resume_at() looks for: what must be kept when the input moves on. */
#define MARK_BYTES 4

enum gz_state {
	GZ_SNIFF,
	GZ_PLAIN,
	GZ_HEADER, /* of a member; the input may end in it */
	GZ_BODY,
	GZ_TRAILER, /* of a member that was resumed in its middle: passed over */
	GZ_BETWEEN, /* members */
	GZ_DRAIN,   /* damaged: the inflater still holds text from before the damage */
	GZ_LOST,    /* looking for a place from where inflation is possible again */
	GZ_END
};

struct gt_gz_reader {
	int fd; /* -1: memory */
	bool owns_fd;
	bool input_ended;
	bool resumed; /* inside a member without its beginning: nothing to check the trailer with */
	enum gz_state state;
	size_t trailer_left;
	uint8_t *input; /* INPUT_BYTES, NULL for memory */
	const uint8_t *next;
	size_t avail;
	struct gt_gz_status status;
	struct isal_gzip_header header;
	struct inflate_state inflate;
};

static int open_source(struct gt_gz_reader **ret, int fd, bool owns_fd, const void *data,
		       size_t len_bytes)
{
	struct gt_gz_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	if (!data) {
		reader->input = malloc(INPUT_BYTES);
		if (!reader->input) {
			free(reader);
			return -ENOMEM;
		}
	}
	reader->fd = fd;
	reader->owns_fd = owns_fd;
	reader->next = data ? data : reader->input;
	reader->avail = len_bytes;
	reader->input_ended = data != NULL;
	reader->status.in_bytes = len_bytes;
	*ret = reader;
	return 0;
}

int gt_gz_open(struct gt_gz_reader **ret, const char *path, struct gt_err *err)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int rc;

	if (fd < 0)
		return gt_err_sys(err, -errno, "cannot open");
	rc = open_source(ret, fd, !is_stdin, NULL, 0);
	if (rc) {
		if (!is_stdin)
			close(fd);
		return gt_err_set(err, rc, "out of memory");
	}
	return 0;
}

int gt_gz_open_mem(struct gt_gz_reader **ret, const void *data, size_t len_bytes)
{
	return open_source(ret, -1, false, data ? data : "", len_bytes);
}

void gt_gz_close(struct gt_gz_reader *reader)
{
	if (!reader)
		return;
	if (reader->owns_fd)
		close(reader->fd);
	free(reader->input);
	free(reader);
}

const struct gt_gz_status *gt_gz_status(const struct gt_gz_reader *reader)
{
	return &reader->status;
}

/* Append to the input, moving what is left of it to the front. Sets input_ended at its end. */
static int more_input(struct gt_gz_reader *reader, struct gt_err *err)
{
	ssize_t n;

	if (reader->input_ended)
		return 0;
	if (reader->avail && reader->next != reader->input)
		memmove(reader->input, reader->next, reader->avail);
	reader->next = reader->input;
	do {
		n = read(reader->fd, reader->input + reader->avail, INPUT_BYTES - reader->avail);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return gt_err_sys(err, -errno, "cannot read");
	if (!n)
		reader->input_ended = true;
	reader->avail += (size_t)n;
	reader->status.in_bytes += (uint64_t)n;
	return 0;
}

/* At least want bytes of input, fewer only at its end. */
static int need_input(struct gt_gz_reader *reader, size_t want, struct gt_err *err)
{
	int rc = 0;

	while (!rc && reader->avail < want && !reader->input_ended)
		rc = more_input(reader, err);
	return rc;
}

static void take(struct gt_gz_reader *reader, size_t len_bytes)
{
	reader->next += len_bytes;
	reader->avail -= len_bytes;
}

/* Magic, deflate, no reserved flag. */
static bool is_member(const uint8_t *data)
{
	return data[0] == 0x1f && data[1] == 0x8b && data[2] == 8 && !(data[3] & 0xe0);
}

static void begin_member(struct gt_gz_reader *reader)
{
	isal_inflate_init(&reader->inflate);
	isal_gzip_header_init(&reader->header);
	reader->status.members++;
	reader->resumed = false;
	reader->state = GZ_HEADER;
}

static void begin_damage(struct gt_gz_reader *reader)
{
	reader->status.damages++;
	reader->state = GZ_DRAIN;
}

/* The inflater keeps a few bytes of its own: it is lent the input and gives it back. */
static void lend_input(struct gt_gz_reader *reader)
{
	reader->inflate.next_in = (uint8_t *)reader->next;
	reader->inflate.avail_in = (uint32_t)GT_MIN(reader->avail, (size_t)UINT32_MAX);
}

static void return_input(struct gt_gz_reader *reader)
{
	take(reader, (size_t)(reader->inflate.next_in - reader->next));
}

static int read_header(struct gt_gz_reader *reader, struct gt_err *err)
{
	int got;
	int rc = need_input(reader, 1, err);

	if (rc)
		return rc;
	if (!reader->avail) {
		reader->status.cut = true;
		reader->state = GZ_END;
		return 0;
	}
	lend_input(reader);
	got = isal_read_gzip_header(&reader->inflate, &reader->header);
	return_input(reader);
	if (got == ISAL_DECOMP_OK) {
		reader->inflate.crc_flag = ISAL_GZIP_NO_HDR_VER;
		reader->state = GZ_BODY;
	} else if (got != ISAL_END_INPUT) {
		begin_damage(reader);
	}
	return 0;
}

/* Returns the bytes put into buf; none and an unchanged state when more input is wanted. */
static size_t inflate_body(struct gt_gz_reader *reader, char *buf, size_t cap)
{
	uint32_t room = (uint32_t)GT_MIN(cap, (size_t)1 << 30);
	int got;

	lend_input(reader);
	reader->inflate.next_out = (uint8_t *)buf;
	reader->inflate.avail_out = room;
	got = isal_inflate(&reader->inflate);
	return_input(reader);
	if (got == ISAL_INCORRECT_CHECKSUM) {
		reader->status.bad_checksum = true;
		reader->state = GZ_BETWEEN;
	} else if (got < 0 || got == ISAL_NEED_DICT) {
		begin_damage(reader);
	} else if (reader->inflate.block_state == ISAL_BLOCK_FINISH) {
		reader->trailer_left = TRAILER_BYTES;
		reader->state = reader->resumed ? GZ_TRAILER : GZ_BETWEEN;
	}
	return room - reader->inflate.avail_out;
}

static size_t drain(struct gt_gz_reader *reader, char *buf, size_t cap)
{
	struct inflate_state *inflate = &reader->inflate;
	size_t held = (size_t)(inflate->tmp_out_valid - inflate->tmp_out_processed);
	size_t len = GT_MIN(held, cap);

	if (!held) {
		buf[0] = '\0';
		reader->state = GZ_LOST;
		return 1;
	}
	memcpy(buf, inflate->tmp_out_buffer + inflate->tmp_out_processed, len);
	inflate->tmp_out_processed += (int)len;
	return len;
}

/*
 * After damage inflation can begin again behind a full-flush point (an empty stored block, which
 * ends in 00 00 ff ff; nothing after a full flush refers to what stands before it) and at the next
 * member. A false mark only leads to the next damage.
 */
static int look_for_mark(struct gt_gz_reader *reader, struct gt_err *err)
{
	static const uint8_t flush[MARK_BYTES] = { 0x00, 0x00, 0xff, 0xff };

	while (reader->avail >= MARK_BYTES) {
		if (!memcmp(reader->next, flush, MARK_BYTES)) {
			take(reader, MARK_BYTES);
			isal_inflate_init(&reader->inflate);
			reader->inflate.crc_flag = ISAL_DEFLATE;
			reader->resumed = true;
			reader->state = GZ_BODY;
			return 0;
		}
		if (is_member(reader->next)) {
			begin_member(reader);
			return 0;
		}
		take(reader, 1);
	}
	if (reader->input_ended)
		reader->state = GZ_END;
	return more_input(reader, err);
}

static int after_member(struct gt_gz_reader *reader, struct gt_err *err)
{
	int rc = need_input(reader, MARK_BYTES, err);

	if (rc)
		return rc;
	if (reader->avail >= MARK_BYTES && is_member(reader->next)) {
		begin_member(reader);
	} else if (reader->avail && !reader->next[0]) {
		take(reader, 1); /* tapes and block devices pad with zeros */
	} else {
		reader->status.trailing_junk = reader->avail > 0;
		reader->state = GZ_END;
	}
	return 0;
}

static int sniff(struct gt_gz_reader *reader, struct gt_err *err)
{
	int rc = need_input(reader, MARK_BYTES, err);

	if (rc)
		return rc;
	if (reader->avail >= MARK_BYTES && is_member(reader->next))
		begin_member(reader);
	else
		reader->state = GZ_PLAIN;
	return 0;
}

static ssize_t read_plain(struct gt_gz_reader *reader, char *buf, size_t cap, struct gt_err *err)
{
	size_t len_bytes = GT_MIN(reader->avail, cap);
	ssize_t n;

	if (len_bytes) {
		memcpy(buf, reader->next, len_bytes);
		take(reader, len_bytes);
		return (ssize_t)len_bytes;
	}
	if (reader->input_ended)
		return 0;
	do {
		n = read(reader->fd, buf, cap);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return gt_err_sys(err, -errno, "cannot read");
	reader->input_ended = n == 0;
	reader->status.in_bytes += (uint64_t)n;
	return n;
}

static ssize_t read_body(struct gt_gz_reader *reader, char *buf, size_t cap, struct gt_err *err)
{
	size_t n = inflate_body(reader, buf, cap);
	int rc = 0;

	if (!n && reader->state == GZ_BODY) {
		if (reader->input_ended) {
			reader->status.cut = true;
			reader->state = GZ_END;
		} else {
			rc = more_input(reader, err);
		}
	}
	return rc ? rc : (ssize_t)n;
}

ssize_t gt_gz_read(struct gt_gz_reader *reader, char *buf, size_t cap, struct gt_err *err)
{
	ssize_t n = 0;
	int rc = 0;

	while (!rc && !n && reader->state != GZ_END) {
		switch (reader->state) {
		case GZ_SNIFF:
			rc = sniff(reader, err);
			break;
		case GZ_PLAIN:
			n = read_plain(reader, buf, cap, err);
			if (!n)
				reader->state = GZ_END;
			break;
		case GZ_HEADER:
			rc = read_header(reader, err);
			break;
		case GZ_BODY:
			n = read_body(reader, buf, cap, err);
			break;
		case GZ_TRAILER:
			rc = need_input(reader, 1, err);
			if (!reader->avail || !reader->trailer_left) {
				reader->state = GZ_BETWEEN;
				break;
			}
			take(reader, 1);
			reader->trailer_left--;
			break;
		case GZ_BETWEEN:
			rc = after_member(reader, err);
			break;
		case GZ_DRAIN:
			n = (ssize_t)drain(reader, buf, cap);
			break;
		case GZ_LOST:
			rc = look_for_mark(reader, err);
			break;
		case GZ_END:
			break;
		}
	}
	if (rc)
		return rc;
	if (n > 0)
		reader->status.out_bytes += (uint64_t)n;
	return n;
}
