/*
 * summary_priv.h - between the files of the summary.
 */
#ifndef GT_SUMMARY_PRIV_H
#define GT_SUMMARY_PRIV_H

#include "summary.h"
#include "text_table.h"

/* Take in a member of the top-level object. 0 or -ENOMEM. */
int gt_summary_member(struct gt_summary *summary, struct gt_str key, struct gt_str raw);

/* ,"copy":… where it is one. */
void gt_summary_put_copy_json(const struct gt_summary *summary, struct gt_buf *out);

/* When all is read: who wrote the file? */
void gt_summary_name_producer(struct gt_summary *summary);

void gt_summary_put_json(const struct gt_summary *summary, const struct gt_summary_style *style,
			 struct gt_buf *out);

/* Times beyond it (73 years in ns) are clamped: start, duration and end stay within 64 bits. */
#define GT_SUMMARY_TIME_MAX_NS (INT64_C(1) << 61)

static inline int64_t gt_summary_clamp(int64_t ns)
{
	return GT_MAX(GT_MIN(ns, GT_SUMMARY_TIME_MAX_NS), -GT_SUMMARY_TIME_MAX_NS);
}

/* The row of a name; *ret_new when this is its first call. NULL: out of memory. */
struct gt_summary_stat *gt_summary_row(struct gt_summary_table *table, struct gt_str name,
				       bool *ret_new);
void gt_summary_add_call(struct gt_summary_stat *row, uint64_t dur_ns);

static inline uint64_t gt_summary_add_sat(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

bool gt_summary_is_communication(struct gt_str name);

/* ---- steps ---- */

int gt_summary_add_step(struct gt_summary *summary, const struct gt_trace_event *event,
			uint64_t dur_ns);
/* How many go on behind the end of the trace. */
size_t gt_summary_steps_cut(const struct gt_summary *summary);
/* After the GPUs. 0 or -ENOMEM. */
int gt_summary_finish_steps(struct gt_summary *summary);
/* Before and after the operators are finished. */
void gt_summary_begin_phases(struct gt_summary *summary);
/* 0 or -ENOMEM. */
int gt_summary_finish_phases(struct gt_summary *summary);

/* Of all steps whose phases are known. */
struct gt_summary_phases {
	size_t steps; /* 0: nothing is known */
	uint64_t total_ns;
	uint64_t ns[GT_TORCH_MAX];
	uint64_t data_gpu_busy_ns; /* the mean of the GPUs: of data loading, while they worked */
};

struct gt_summary_phases gt_summary_phases(const struct gt_summary *summary);

/* Whether faster data loading would save at least a tenth of the time: less is what steps differ
 * by. While a GPU works the host may well wait: that costs nothing. */
bool gt_summary_is_data_bound(const struct gt_summary_phases *phases);

/* "data loading takes 63.0% of the steps …\n", or nothing. */
void gt_summary_put_data_bound(const struct gt_summary *summary, const char *line,
			       struct gt_buf *out);
/* ,"phases":{…} */
void gt_summary_put_phases_json(const struct gt_summary_step *step, bool on_gpu,
				struct gt_buf *out);

/* How many steps are printed: all that the filter takes, or fewer. *ret_taken: how many it takes.
 */
size_t gt_summary_steps_shown(const struct gt_summary *summary,
			      const struct gt_summary_style *style, size_t *ret_taken);
/* The next of them; *at is 0 at first. */
const struct gt_summary_step *gt_summary_next_step(const struct gt_summary *summary,
						   const struct gt_summary_style *style,
						   size_t *at);
void gt_summary_put_steps(const struct gt_summary *summary, const struct gt_summary_style *style,
			  struct gt_buf *out);
void gt_summary_put_steps_csv(const struct gt_summary *summary,
			      const struct gt_summary_style *style, struct gt_buf *out);

/* ---- what launches tell ---- */

/* Take in a call into CUDA or HIP with its correlation, 0: none. 0 or -ENOMEM. */
int gt_summary_add_launch(struct gt_summary *summary, const struct gt_trace_event *event,
			  uint64_t dur_ns, int64_t correlation);
/* Take in an operator or range by its name, which may be GT_WAIT_NONE. 0 or -ENOMEM. */
int gt_summary_add_wait(struct gt_summary *summary, const struct gt_trace_event *event,
			uint64_t dur_ns, enum gt_host_wait wait);
/* For each GPU, why it was idle and how it was fed. 0 or -ENOMEM. */
int gt_summary_finish_launches(struct gt_summary *summary);
void gt_summary_release_launches(struct gt_summary *summary);

/* Two tables, of what there is. */
void gt_summary_put_launches(const struct gt_summary *summary, const struct gt_summary_style *style,
			     struct gt_buf *out);
/* ,"idle":{…},"launch":{…} */
void gt_summary_put_launches_json(const struct gt_summary_gpu *gpu, struct gt_buf *out);

/* ---- one table ---- */

/* Take in what the table wants of an event of any phase and time. 0 or -ENOMEM. */
int gt_summary_add_by(struct gt_summary *summary, const struct gt_trace_event *event);
/* As ops->called, for a summary. */
int gt_summary_add_blocking(void *context, const struct gt_op_slice *slice, int64_t op);
void gt_summary_finish_by(struct gt_summary *summary);
void gt_summary_release_by(struct gt_summary *summary);

/* ---- what the outputs share ---- */

static inline double gt_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

struct gt_time_text {
	char text[32];
};

/* "1.234ms": four digits are enough to read. */
struct gt_time_text gt_time_text(int64_t ns);
/* The same of a time that is not negative; what is no int64_t is as good as its largest. */
struct gt_time_text gt_time_text_of(uint64_t ns);

/* How many of so many rows are printed. */
static inline size_t gt_summary_rows(const struct gt_summary_style *style, size_t count)
{
	return style->limit ? GT_MIN(style->limit, count) : count;
}

/* "1234.567": all of it. */
void gt_summary_put_us(struct gt_buf *out, int64_t ns);
/* The same of a time that is not negative. */
void gt_summary_put_us_of(struct gt_buf *out, uint64_t ns);

void gt_summary_put_title(struct gt_buf *out, const struct gt_summary_style *style,
			  const char *title, size_t shown, size_t count);

void gt_summary_put_table(struct gt_text_table *table, const struct gt_summary_style *style,
			  struct gt_buf *out);

/* A cell: 1024-based, as torch prints it. */
void gt_summary_put_bytes(struct gt_text_table *table, int64_t bytes);

/* ,"text" */
void gt_summary_put_csv_text(struct gt_buf *out, struct gt_str text);

/* After a row: what is in out goes to the sink, if there is enough of it. */
void gt_summary_drain(const struct gt_summary_style *style, struct gt_buf *out);

/* ,"gpus":[…] */
void gt_summary_put_gpus_json(const struct gt_summary *summary, struct gt_buf *out);

/* ---- tables that are printed alone ---- */

/* Streams or threads, in any format; in JSON as ,"streams":[…]. */
void gt_summary_put_tracks(const struct gt_summary *summary, const struct gt_summary_style *style,
			   struct gt_buf *out);
/* Copies with their bytes, but not as JSON. */
void gt_summary_put_copies(const struct gt_summary *summary, const struct gt_summary_style *style,
			   struct gt_buf *out);

/* ---- source lines ---- */

/* In any format; in JSON as ,"lines":[…]. */
void gt_summary_put_lines(const struct gt_summary *summary, const struct gt_summary_style *style,
			  struct gt_buf *out);

/* ---- kernels with how they were launched ---- */

void gt_summary_put_kernels(const struct gt_summary *summary, const struct gt_summary_style *style,
			    struct gt_buf *out);
void gt_summary_put_kernels_csv(const struct gt_summary *summary,
				const struct gt_summary_style *style, struct gt_buf *out);
/* ,"op":… to be put behind the times of the kernel of this number */
void gt_summary_put_kernel_json(const struct gt_summary *summary, uint32_t number,
				struct gt_buf *out);

/* ---- operators ---- */

/* Those that style asks for; as gt_op_report(). */
int gt_summary_op_report(const struct gt_summary *summary, const struct gt_summary_style *style,
			 struct gt_op_report *ret);
void gt_summary_put_ops(const struct gt_summary *summary, const struct gt_summary_style *style,
			struct gt_buf *out);
void gt_summary_put_ops_csv(const struct gt_summary *summary, const struct gt_summary_style *style,
			    struct gt_buf *out);
/* ,"ops":[…] */
void gt_summary_put_ops_json(const struct gt_summary *summary, const struct gt_summary_style *style,
			     struct gt_buf *out);

#endif
