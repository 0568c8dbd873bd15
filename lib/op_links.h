/*
 * op_links.h - GPU time by the number that links it to the host: an External id or a correlation.
 */
#ifndef GT_OP_LINKS_H
#define GT_OP_LINKS_H

#include "base.h"

struct gt_op_links { /* { 0 } is empty */
	struct gt_op_link {
		int64_t id; /* 0: a free slot */
		int64_t gpu_ns;
	} * slots;
	size_t slot_count; /* a power of 2 */
	size_t count;
};

/* id is not 0. 0 or -ENOMEM. */
int gt_op_links_add(struct gt_op_links *links, int64_t id, int64_t gpu_ns);

/* The sum of what was added; false: nothing was. */
bool gt_op_links_get(const struct gt_op_links *links, int64_t id, int64_t *ret_gpu_ns);

void gt_op_links_release(struct gt_op_links *links);

#endif
