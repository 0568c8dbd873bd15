/*
 * trace_copy.h - writes a trace anew from members and events of another: one JSON object, strictly
 * JSON, whatever the other was.
 */
#ifndef GT_TRACE_COPY_H
#define GT_TRACE_COPY_H

#include "base.h"
#include "buf.h"
#include "err.h"
#include "str.h"

struct gt_trace_copy;

/* As gt_out_file_create(). */
int gt_trace_copy_create(struct gt_trace_copy **ret, const char *path, bool overwrite,
			 struct gt_err *err);

/*
 * The next member of the top level or event, in the order of the file; what is no JSON is left out
 * (gt_trace_copy_lost()), so is what the file calls traceEvents here. flaws (see json_clean.h) are
 * added to *flaws. 0 or -errno, which sticks.
 */
int gt_trace_copy_member(struct gt_trace_copy *copy, struct gt_str key, struct gt_str raw,
			 unsigned int *flaws);
int gt_trace_copy_event(struct gt_trace_copy *copy, struct gt_str raw, unsigned int *flaws);

uint64_t gt_trace_copy_events(const struct gt_trace_copy *copy);
uint64_t gt_trace_copy_lost(const struct gt_trace_copy *copy);

/*
 * Append what the object for gt_trace_copy_commit() says of a copy of a copy, ,"of": and the object
 * of that one; nothing when it is a copy of none. To be called behind the last member.
 */
void gt_trace_copy_put_origin(const struct gt_trace_copy *copy, struct gt_buf *out);

/*
 * Close the document, with a member "gtrace_copy" of this JSON object, and move the file to its
 * path.
 */
int gt_trace_copy_commit(struct gt_trace_copy *copy, struct gt_str about, struct gt_err *err);

/* Free it; without a commit nothing remains. copy may be NULL. */
void gt_trace_copy_close(struct gt_trace_copy *copy);

#endif
