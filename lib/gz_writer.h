/*
 * gz_writer.h - appends to one gzip member that is complete on disk after every commit.
 *
 * Behind the data on disk stands a tail: the text that closes the document, a final deflate block
 * and the gzip trailer. A commit first writes what lies behind the old tail and then, in one
 * pwrite(), what replaces it. The tail is placed so that it crosses no page (if it fits one), and
 * the kernel stops a write for SIGKILL only between pages. So a killed writer leaves the old
 * member, the new one, or the old one with bytes behind it, which strict readers refuse;
 * 'gtrace check --repair' leaves those out.
 */
#ifndef GT_GZ_WRITER_H
#define GT_GZ_WRITER_H

#include "base.h"
#include "deflate.h"
#include "err.h"
#include "str.h"

struct gt_gz_writer;

#define GT_GZ_WRITER_OVERWRITE 1u /* replace an existing regular file; otherwise it is -EEXIST */

/*
 * A writer of path, which the first commit makes: with its content in it where the file system can
 * do that, so that who is killed leaves no empty file, and not at all when it cannot be written.
 * *ret is owned by the caller. 0 or -ENOMEM.
 */
int gt_gz_writer_create(struct gt_gz_writer **ret, const char *path, unsigned int flags,
			struct gt_err *err);

/*
 * Compress text[from..to); nothing reaches the file yet. In front of from must stand what was
 * appended before, as gt_deflate_text() wants it. 0, -ENOMEM, or the error that stuck.
 */
int gt_gz_writer_append(struct gt_gz_writer *gz, const char *text, size_t from, size_t to,
			const struct gt_deflate_hint *hints, size_t hint_count);

/*
 * Bring what was appended to the file, with tail closing the document for now. What is appended
 * next starts without history. On an error the file becomes what it was before, as far as the
 * system lets us, and the error sticks: every later call returns it. Beyond RLIMIT_FSIZE that is
 * -EFBIG without a write, so that SIGXFSZ only comes when the limit is lowered in that moment.
 */
int gt_gz_writer_commit(struct gt_gz_writer *gz, struct gt_str tail, struct gt_err *err);

/*
 * Close and free, without a commit. gz may be NULL. -ENOENT when the file is no longer at its path.
 */
int gt_gz_writer_close(struct gt_gz_writer *gz, struct gt_err *err);

#endif
