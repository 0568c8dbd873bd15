/*
 * decode.h - CUPTI activity records of 11.8 to 13.x, read from raw buffers by the size table of the
 * CUPTI that wrote them. From Kernel4 on every record struct only grew at its end or into padding,
 * so that a field is there when the record is long enough (offsets: cupti_activity.h, CUDA 13.0).
 */
#ifndef GT_DECODE_H
#define GT_DECODE_H

#include "base.h"
#include "gpu_op.h"
#include "wire.h"

#define GT_RECORD_MAX 512 /* bytes of the longest record a size table may name; CUPTI 13.0: 216 */

enum gt_record_type {
	GT_RECORD_GPU = 1, /* op */
	GT_RECORD_UNTIMED, /* op, but without times one can use: zero, or end before start */
	GT_RECORD_RUNNING, /* op, of work that had begun and not ended when it was read */
	GT_RECORD_API,     /* api */
	GT_RECORD_OTHER,   /* a kind that gtrace does not use */
};

struct gt_api_record { /* RUNTIME and DRIVER: the fall-back mode's calls */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t cbid;
	uint32_t pid;
	uint32_t tid;
	uint32_t correlation;
	uint32_t return_value; /* 0: success */
	bool runtime;          /* else driver */
};

struct gt_record {
	enum gt_record_type type;
	struct gt_gpu_op op;
	struct gt_api_record api;
};

struct gt_record_cursor {
	const unsigned char *pos; /* may lie in memory that changes */
	const unsigned char *end;
	const uint16_t *record_bytes; /* GT_KIND_MAX entries, from gt_record_sizes() */
};

/* A size table one can walk by: what is no size of a record becomes 0, an unknown kind. */
void gt_record_sizes(uint16_t ret[GT_KIND_MAX], const uint16_t from[GT_KIND_MAX]);

/*
 * The next record. 1: *ret is set; 0: the end, by kind 0 or because no whole record is left;
 * -EBADMSG: a kind of unknown size, nothing behind it can be read.
 */
int gt_record_next(struct gt_record_cursor *cur, struct gt_record *ret);

#endif
