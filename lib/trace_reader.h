/*
 * trace_reader.h - reads a Chrome or Kineto trace, by whomever it was written, as a stream of
 * events: an object with "traceEvents" or a bare array, whole, cut or damaged. Memory is bounded
 * by the largest event, and that by GT_TRACE_EVENT_MAX.
 */
#ifndef GT_TRACE_READER_H
#define GT_TRACE_READER_H

#include "base.h"
#include "err.h"
#include "gz_reader.h"
#include "str.h"
#include "trace_event.h"

/* A larger event is left out. */
#define GT_TRACE_EVENT_MAX ((size_t)64 << 20)
/* A larger top-level member is passed over. */
#define GT_TRACE_MEMBER_MAX ((size_t)4 << 20)

/* Each returns 0 to go on; anything else ends the reading and is what gt_trace_read() returns. */
struct gt_trace_hooks {
	void *context;
	int (*event)(void *context, const struct gt_trace_event *event);
	/* A member of the top-level object beside traceEvents; raw is its JSON value. May be NULL.
	 */
	int (*member)(void *context, struct gt_str key, struct gt_str raw);
};

struct gt_trace_stats {
	uint64_t events;     /* handed on */
	uint64_t repaired;   /* of these: from text that was not JSON, such as unescaped quotes */
	uint64_t skipped;    /* events, or what stands in their place, that could not be read */
	uint64_t bad_commas; /* between events or members: missing, or too many */
	uint64_t large_members; /* beside the events, larger than GT_TRACE_MEMBER_MAX */
	bool has_bom;           /* a byte order mark stands in front */
	bool is_array;          /* without a top-level object */
	bool repeated;          /* traceEvents is there twice; both were read */
	bool unclosed;          /* an array without ']' at the end, which the format allows */
	bool cut;               /* the text ends too early */
	bool trailing;          /* text after the end, ignored */
	bool second_document;   /* that text is JSON too */
	uint64_t bytes;         /* of JSON text */
};

/*
 * Read all of it. 0 also when parts were lost: *ret_stats and gt_gz_status() say so. -EBADMSG: not
 * a trace, err says what it looks like. -ENOMEM and what gt_gz_read() returns otherwise.
 */
int gt_trace_read(struct gt_gz_reader *gz, const struct gt_trace_hooks *hooks,
		  struct gt_trace_stats *ret_stats, struct gt_err *err);

/*
 * What data that is no trace looks like, to be put after "this is ": "a zip archive", "an HTML
 * page". NULL when it begins like a trace. head is the beginning of the file (inflated).
 */
const char *gt_trace_looks_like(struct gt_str head);

#endif
