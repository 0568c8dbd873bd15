/*
 * trace_files.h - which files of a directory are traces, by their names.
 *
 * Those that end in trace.json or trace.json.gz, as profilers write them; where there are none,
 * those that end in .json or .json.gz. Hidden files and directories are passed over.
 */
#ifndef GT_TRACE_FILES_H
#define GT_TRACE_FILES_H

#include "base.h"
#include "err.h"

struct gt_trace_files { /* { 0 } is empty */
	char **paths;
	size_t count;
	size_t cap;
};

/* Append the traces in directory, by name. -ENODATA: there are none. err names the directory. */
int gt_trace_files_add(struct gt_trace_files *files, const char *directory, struct gt_err *err);

/* Append this path. 0 or -ENOMEM. */
int gt_trace_files_add_path(struct gt_trace_files *files, const char *path);

/* The one of the paths that was written last; the first of them when they are the same age. */
const char *gt_trace_files_newest(const struct gt_trace_files *files);

void gt_trace_files_release(struct gt_trace_files *files);

#endif
