/*
 * cut.h - a part of a trace as a trace of its own: some steps, a span of time, a GPU, categories.
 *
 * Slices of the host are taken whole when they reach into the span. GPU work belongs to the span of
 * its launch, wherever it ran, and arrows to their ends: what is linked in the trace stays linked,
 * and no arrow loses an end.
 */
#ifndef GT_CUT_H
#define GT_CUT_H

#include "base.h"
#include "buf.h"
#include "err.h"
#include "gz_reader.h"
#include "trace_copy.h"
#include "trace_reader.h"

struct gt_cut_choice { /* { 0 } but for device is everything */
	bool has_steps;
	int64_t first_step; /* ProfilerStep#N */
	int64_t last_step;  /* included */
	bool has_time;
	int64_t from_ns; /* since the first slice of the trace */
	int64_t to_ns;
	int64_t device;         /* -1: all */
	const char *categories; /* "kernel,cuda_runtime"; NULL: all */
};

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
int gt_cut(const char *path, const struct gt_cut_choice *choice, struct gt_trace_copy *copy,
	   struct gt_cut_result *ret, struct gt_err *err);

/* Append the object for gt_trace_copy_commit(): what was chosen. 0 or -ENOMEM. */
int gt_cut_print_about(const struct gt_cut_choice *choice, const struct gt_cut_result *result,
		       struct gt_buf *out);

#endif
