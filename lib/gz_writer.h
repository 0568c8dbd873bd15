/*
 * gz_writer.h - appends to one gzip member that is complete on disk after every commit.
 *
 * Behind the data on disk stands a tail: the text that closes the document, a final deflate block
 * and the gzip trailer. A commit first writes what lies behind the old tail and then, in one
 * pwrite(), what replaces it; the tail is placed so that it crosses no page (when it is not larger
 * than one), and the kernel stops a write for SIGKILL only between pages. So a killed writer leaves
 * either the old member, or the new one, or the old one with bytes behind it, which readers that
 * are strict refuse; gt_gz_repair() cuts them off.
 */
#ifndef GT_GZ_WRITER_H
#define GT_GZ_WRITER_H

#include "base.h"
#include "err.h"

struct gt_gz_writer;

#define GT_GZ_WRITER_OVERWRITE 1u /* replace an existing regular file; otherwise it is -EEXIST */

/* Create path, empty. *ret is owned by the caller. */
int gt_gz_writer_create(struct gt_gz_writer **ret, const char *path, unsigned int flags,
			struct gt_err *err);

/* Compress text; nothing reaches the file yet. 0, -ENOMEM, or the error that stuck. */
int gt_gz_writer_append(struct gt_gz_writer *gz, const char *text, size_t len);

/*
 * Bring what was appended to the file, with tail closing the document for now. On an error the
 * file is what it was before, as far as the system lets us, and the error sticks: every later
 * call returns it. Needs no signal handling by the caller: beyond RLIMIT_FSIZE it is -EFBIG
 * without a write (but SIGXFSZ comes when the limit is lowered in that very moment).
 */
int gt_gz_writer_commit(struct gt_gz_writer *gz, const char *tail, size_t len, struct gt_err *err);

/* Bytes of the file as of the last commit. */
uint64_t gt_gz_writer_file_bytes(const struct gt_gz_writer *gz);

/* Close and free, without a commit. gz may be NULL. */
int gt_gz_writer_close(struct gt_gz_writer *gz, struct gt_err *err);

#endif
