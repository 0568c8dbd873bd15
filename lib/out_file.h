/*
 * out_file.h - a new file that is there whole or not at all: it gets its name at the end.
 * Compressed into one gzip member when the path ends in ".gz".
 */
#ifndef GT_OUT_FILE_H
#define GT_OUT_FILE_H

#include "base.h"
#include "err.h"
#include "str.h"

/*
 * A file without a name, to become path, for writing: of it nothing remains when its writer is
 * killed. Its descriptor, or -errno where the file system or the system has none.
 */
int gt_nameless_open(const char *path);
/* Give it that name. 0 or -errno: -EEXIST when there is one of that name. */
int gt_nameless_link(int fd, const char *path);

struct gt_out_file;

/*
 * -EEXIST when path is there and overwrite is false, -EINVAL when it is no regular file. *ret is
 * the caller's, for gt_out_file_close(). Messages name the path.
 */
int gt_out_file_create(struct gt_out_file **ret, const char *path, bool overwrite,
		       struct gt_err *err);

/* 0 or the error that stuck. */
int gt_out_file_write(struct gt_out_file *out, struct gt_str text);

/* Write what is held back and move the file to its path. 0 or the error that stuck. */
int gt_out_file_commit(struct gt_out_file *out, struct gt_err *err);

/* Free it; without a commit nothing remains. out may be NULL. */
void gt_out_file_close(struct gt_out_file *out);

#endif
