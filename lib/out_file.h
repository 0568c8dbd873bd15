/*
 * out_file.h - a new file that is there whole or not at all: it is written beside its path and
 * moved there at the end. Compressed into one gzip member when the path ends in ".gz".
 */
#ifndef GT_OUT_FILE_H
#define GT_OUT_FILE_H

#include "base.h"
#include "err.h"
#include "str.h"

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
