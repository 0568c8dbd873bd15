/*
 * gz_reader.h - bytes of a file or of standard input, inflated when they are gzip (by magic, never
 * by name). Streaming: memory does not depend on the input, so a bomb only costs time. What a cut
 * or damaged stream still holds is delivered; gt_gz_status() says what was wrong.
 */
#ifndef GT_GZ_READER_H
#define GT_GZ_READER_H

#include "base.h"
#include "err.h"

struct gt_gz_reader;

struct gt_gz_status {
	uint64_t in_bytes;  /* taken from the file so far */
	uint64_t out_bytes; /* delivered so far */
	uint64_t members;   /* gzip members begun; 0: not compressed */
	uint64_t damages;   /* places where the compressed data could not be followed */
	bool cut;           /* the input ended inside a member */
	bool bad_checksum;  /* CRC or length of a member differs from its trailer */
	bool trailing_junk; /* bytes other than zeros after the last member; they are ignored */
};

/* path "-" is standard input. *ret is the caller's, for gt_gz_close(). err does not name path. */
int gt_gz_open(struct gt_gz_reader **ret, const char *path, struct gt_err *err);

/* The same from memory, borrowed until gt_gz_close(). */
int gt_gz_open_mem(struct gt_gz_reader **ret, const void *data, size_t len_bytes);

/*
 * Fill buf with up to cap bytes (cap > 0). Returns the number of bytes, 0 at the end, -errno when
 * the file cannot be read. A single NUL stands where damaged data was left out, so that the text
 * before and after cannot be taken for one.
 */
ssize_t gt_gz_read(struct gt_gz_reader *reader, char *buf, size_t cap, struct gt_err *err);

const struct gt_gz_status *gt_gz_status(const struct gt_gz_reader *reader);

void gt_gz_close(struct gt_gz_reader *reader); /* may be NULL */

#endif
