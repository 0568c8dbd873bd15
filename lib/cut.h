/*
 * cut.h - a part of a trace, as selection.h tells it, as a trace of its own.
 */
#ifndef GT_CUT_H
#define GT_CUT_H

#include "base.h"
#include "buf.h"
#include "err.h"
#include "gz_reader.h"
#include "selection.h"
#include "trace_copy.h"
#include "trace_reader.h"

struct gt_cut_result {
	uint64_t events; /* of the file */
	uint64_t kept;
	uint64_t span_ns; /* of time; 0: all of it */
	struct gt_trace_stats read;
	struct gt_gz_status gz;
};

/*
 * Copy what is chosen from the trace at path, which is read up to three times, to copy, which is
 * the caller's to commit. -EBADMSG: not a trace; -ENODATA: it has no such step or time; otherwise
 * as gt_gz_open() and gt_trace_copy_*(). err does not name path.
 */
int gt_cut(const char *path, const struct gt_choice *choice, struct gt_trace_copy *copy,
	   struct gt_cut_result *ret, struct gt_err *err);

/* Append the object for gt_trace_copy_commit(): what was chosen for copy. 0 or -ENOMEM. */
int gt_cut_print_about(const struct gt_choice *choice, const struct gt_cut_result *result,
		       const struct gt_trace_copy *copy, struct gt_buf *out);

#endif
