/*
 * summary_priv.h - between the files of the summary.
 */
#ifndef GT_SUMMARY_PRIV_H
#define GT_SUMMARY_PRIV_H

#include "summary.h"
#include "text_table.h"

/* Take in a member of the top-level object. 0 or -ENOMEM. */
int gt_summary_member(struct gt_summary *summary, struct gt_str key, struct gt_str raw);

/* When all is read: who wrote the file? */
void gt_summary_name_producer(struct gt_summary *summary);

void gt_summary_put_json(const struct gt_summary *summary, const struct gt_summary_style *style,
			 struct gt_buf *out);

/* ---- what the outputs share ---- */

struct gt_time_text {
	char text[32];
};

/* "1.234ms": four digits are enough to read. */
struct gt_time_text gt_time_text(int64_t ns);

/* "1234.567": all of it. */
void gt_summary_put_us(struct gt_buf *out, int64_t ns);

void gt_summary_put_title(struct gt_buf *out, const struct gt_summary_style *style,
			  const char *title, size_t shown, size_t count);

void gt_summary_put_table(struct gt_text_table *table, const struct gt_summary_style *style,
			  struct gt_buf *out);

/* ,"text" */
void gt_summary_put_csv_text(struct gt_buf *out, struct gt_str text);

/* After a row: what is in out goes to the sink, if there is enough of it. */
void gt_summary_drain(const struct gt_summary_style *style, struct gt_buf *out);

/* ,"gpus":[…] */
void gt_summary_put_gpus_json(const struct gt_summary *summary, struct gt_buf *out);

/* ---- operators ---- */

void gt_summary_put_ops(const struct gt_summary *summary, const struct gt_summary_style *style,
			struct gt_buf *out);
void gt_summary_put_ops_csv(const struct gt_summary *summary, const struct gt_summary_style *style,
			    struct gt_buf *out);
/* ,"ops":[…] */
void gt_summary_put_ops_json(const struct gt_summary *summary, const struct gt_summary_style *style,
			     struct gt_buf *out);

#endif
