/*
 * summary_priv.h - between the files of the summary.
 */
#ifndef GT_SUMMARY_PRIV_H
#define GT_SUMMARY_PRIV_H

#include "summary.h"

/* Take in a member of the top-level object. 0 or -ENOMEM. */
int gt_summary_member(struct gt_summary *summary, struct gt_str key, struct gt_str raw);

/* When all is read: who wrote the file? */
void gt_summary_name_producer(struct gt_summary *summary);

void gt_summary_put_json(const struct gt_summary *summary, const struct gt_summary_style *style,
			 struct gt_buf *out);

#endif
