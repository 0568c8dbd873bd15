/*
 * summary_lines.c - source lines: the operators that were called there, the GPU work that they
 * launched, and what both cost in the backward pass.
 */
#include "base.h"
#include "ops_priv.h"
#include "safe_text.h"
#include "source_line.h"
#include "summary.h"
#include "summary_priv.h"
#include "text_table.h"

#include <stdlib.h>

/* Below it there is no room for the host's time of the backward pass beside the GPU's. */
#define WIDTH_FOR_ALL 100

/* What a column but the last takes at most, mostly less. */
#define COLUMN_WIDTH 9

#define NO_LINE      GT_STR("(no line)")

struct line {
	uint32_t text; /* in ops->texts; 0: what has no line */
	uint64_t calls;
	int64_t cpu_ns;
	int64_t backward_cpu_ns;
	int64_t gpu_ns;
	int64_t backward_gpu_ns;
};

struct lines {
	const struct gt_ops *ops;
	struct line *rows;
	size_t count;
	bool on_gpu;
	bool has_any;
	int64_t total_ns; /* of all, also of those that the filter took away */
	enum gt_summary_sort sort;
	bool by_cpu;
};

/* ---- collecting ------------------------------------------------------------------------------ */

static int64_t sum_of(int64_t a, int64_t b)
{
	gt_ops_sum(&a, b);
	return a;
}

static int64_t cpu_of(const struct line *line)
{
	return sum_of(line->cpu_ns, line->backward_cpu_ns);
}

static int64_t gpu_of(const struct line *line)
{
	return sum_of(line->gpu_ns, line->backward_gpu_ns);
}

static int64_t cost_of(const struct lines *lines, const struct line *line)
{
	return lines->on_gpu ? gpu_of(line) : cpu_of(line);
}

/* By the numbers of texts, all of them. */
static void add_rows(struct lines *lines)
{
	int64_t gpu_ns = 0, linked_ns = 0;

	for (uint32_t i = 0; i < gt_ops_row_count(lines->ops); i++) {
		const struct gt_op_row *row = &lines->ops->rows[i];
		struct line *line = &lines->rows[row->stack];

		if (row->kind == GT_OP_GPU)
			gt_ops_sum(&gpu_ns, row->self_gpu_ns);
		if (row->kind != GT_OP_HOST)
			continue;
		line->calls += row->is_backward ? 0 : row->line_calls;
		gt_ops_sum(row->is_backward ? &line->backward_cpu_ns : &line->cpu_ns,
			   row->self_cpu_ns);
		gt_ops_sum(row->is_backward ? &line->backward_gpu_ns : &line->gpu_ns,
			   row->self_gpu_ns);
		gt_ops_sum(&linked_ns, row->self_gpu_ns);
	}
	/* Of no call that is known. */
	if (gpu_ns > linked_ns)
		gt_ops_sum(&lines->rows[0].gpu_ns, sum_of(gpu_ns, -linked_ns));
}

/* The file, line and function; empty ones: it has none. */
static struct gt_source_line source_of(const struct lines *lines, const struct line *line)
{
	struct gt_source_line source = { 0 };

	if (line->text)
		gt_source_line_of(gt_interned(&lines->ops->texts, line->text), &source);
	return source;
}

/* "train.py:12 forward" into text, which is emptied first. */
static struct gt_str name_of(const struct lines *lines, const struct line *line,
			     struct gt_buf *text)
{
	struct gt_source_line source = source_of(lines, line);

	if (!line->text)
		return NO_LINE;
	text->len = 0;
	gt_buf_append(text, source.file.ptr, source.file.len);
	gt_buf_printf(text, ":%u ", source.number);
	gt_buf_append(text, source.function.ptr, source.function.len);
	return gt_buf_str(text);
}

/* Largest first, names ascending. */
static int compare(const void *a, const void *b, void *context)
{
	const struct line *l = a, *r = b;
	const struct lines *lines = context;
	int64_t left = cost_of(lines, l), right = cost_of(lines, r);
	int rc;

	if (lines->sort == GT_SUMMARY_BY_NAME) {
		struct gt_str x = gt_interned(&lines->ops->texts, l->text);
		struct gt_str y = gt_interned(&lines->ops->texts, r->text);

		rc = x.len && y.len ? memcmp(x.ptr, y.ptr, GT_MIN(x.len, y.len)) : 0;
		return rc ? rc : (x.len > y.len) - (x.len < y.len);
	}
	if (lines->sort == GT_SUMMARY_BY_CALLS && l->calls != r->calls)
		return l->calls < r->calls ? 1 : -1;
	if (lines->by_cpu || left == right) {
		left = cpu_of(l);
		right = cpu_of(r);
	}
	if (left != right)
		return left < right ? 1 : -1;
	return (l->text > r->text) - (l->text < r->text);
}

static bool is_sorted_by_cpu(const struct gt_summary_style *style)
{
	return style->op_sort == GT_OP_BY_CPU || style->op_sort == GT_OP_BY_SELF_CPU ||
	       style->op_sort == GT_OP_BY_CPU_MEAN;
}

/* 0 or -ENOMEM. */
static int collect(const struct gt_summary *summary, const struct gt_summary_style *style,
		   struct lines *ret)
{
	const struct gt_ops *ops = &summary->ops;
	struct gt_buf name = { 0 };
	size_t kept = 0;

	*ret = (struct lines){ .ops = ops,
			       .rows = calloc(ops->texts.count + (size_t)1, sizeof(*ret->rows)),
			       .on_gpu = summary->gpu_count != 0,
			       .sort = style->sort,
			       .by_cpu = is_sorted_by_cpu(style) };
	if (!ret->rows)
		return -ENOMEM;
	add_rows(ret);
	for (uint32_t i = 0; i < ops->texts.count; i++) {
		struct line *line = &ret->rows[kept];

		*line = ret->rows[i];
		line->text = i;
		if (!line->calls && !cpu_of(line) && !gpu_of(line))
			continue;
		ret->has_any |= i != 0;
		gt_ops_sum(&ret->total_ns, cost_of(ret, line));
		kept += gt_op_filter_takes(style->filter, name_of(ret, line, &name));
	}
	ret->count = kept;
	qsort_r(ret->rows, kept, sizeof(*ret->rows), compare, ret);
	gt_buf_release(&name);
	return 0;
}

/* ---- the table ----------------------------------------------------------------------------------
 */

/* Where it is too long: without the first directories, which tell least, and without the end of the
 * function. */
static struct gt_str cut_name(struct gt_str name, size_t width, struct gt_buf *text)
{
	const size_t dots = 3;
	const char *from = name.ptr, *end = name.ptr + name.len, *slash;
	size_t len;

	if (name.len <= width)
		return name;
	while ((slash = memchr(from + 1, '/', (size_t)(end - from - 1)))) {
		from = slash;
		if ((size_t)(end - from) + dots <= width)
			break;
	}
	text->len = 0;
	gt_buf_text(text, from > name.ptr ? "..." : "");
	len = (size_t)(end - from);
	if (text->len + len > width) {
		len = width - text->len - dots;
		while (len && ((unsigned char)from[len] & 0xc0) == 0x80)
			len--;
		gt_buf_append(text, from, len);
		from = "...";
		len = dots;
	}
	gt_buf_append(text, from, len);
	return gt_buf_str(text);
}

static void put_time(struct gt_text_table *table, int64_t ns)
{
	gt_text_cell(table, "%s", gt_time_text(ns).text);
}

static void put_table(const struct lines *lines, const struct gt_summary_style *style,
		      struct gt_buf *out)
{
	bool all = style->format == GT_SUMMARY_MARKDOWN || style->width >= WIDTH_FOR_ALL;
	bool has_backward = !lines->on_gpu || all;
	const char *titles[8];
	struct gt_text_table table = { .titles = titles };
	size_t shown = gt_summary_rows(style, lines->count);
	struct gt_buf name = { 0 }, shorter = { 0 };
	size_t width;

	titles[table.columns++] = "calls";
	titles[table.columns++] = "self CPU";
	if (has_backward)
		titles[table.columns++] = "bwd CPU";
	if (lines->on_gpu) {
		titles[table.columns++] = "CUDA";
		titles[table.columns++] = "bwd CUDA";
	}
	titles[table.columns++] = "share";
	titles[table.columns++] = "line";
	gt_summary_put_title(out, style, "Lines", shown, lines->count);
	width = style->width > COLUMN_WIDTH * table.columns
			? style->width - COLUMN_WIDTH * (table.columns - 1)
			: COLUMN_WIDTH;
	for (size_t i = 0; i < shown; i++) {
		const struct line *line = &lines->rows[i];

		gt_text_cell(&table, "%llu", (unsigned long long)line->calls);
		put_time(&table, line->cpu_ns);
		if (has_backward)
			put_time(&table, line->backward_cpu_ns);
		if (lines->on_gpu) {
			put_time(&table, line->gpu_ns);
			put_time(&table, line->backward_gpu_ns);
		}
		gt_text_cell(&table, "%.1f%%",
			     lines->total_ns ? 100.0 * (double)cost_of(lines, line) /
						       (double)lines->total_ns
					     : 0);
		if (style->format == GT_SUMMARY_MARKDOWN)
			gt_text_cell_name(&table, name_of(lines, line, &name));
		else
			gt_text_cell_name(&table,
					  cut_name(name_of(lines, line, &name), width, &shorter));
	}
	gt_summary_put_table(&table, style, out);
	out->failed |= name.failed || shorter.failed;
	gt_buf_release(&name);
	gt_buf_release(&shorter);
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

static void put_csv_row(const struct lines *lines, const struct line *line, struct gt_buf *out)
{
	const int64_t times_ns[] = { line->cpu_ns, line->backward_cpu_ns, line->gpu_ns,
				     line->backward_gpu_ns };
	struct gt_source_line source = source_of(lines, line);

	gt_buf_printf(out, "%llu", (unsigned long long)line->calls);
	for (size_t i = 0; i < ARRAY_SIZE(times_ns); i++) {
		gt_buf_byte(out, ',');
		gt_summary_put_us(out, times_ns[i]);
	}
	gt_summary_put_csv_text(out, source.file);
	gt_buf_byte(out, ',');
	if (line->text)
		gt_buf_printf(out, "%u", source.number);
	gt_summary_put_csv_text(out, source.function);
	gt_buf_byte(out, '\n');
}

static void put_json_us(struct gt_buf *out, const char *key, int64_t ns)
{
	gt_buf_printf(out, ",\"%s\":", key);
	gt_summary_put_us(out, ns);
}

static void put_json_row(const struct lines *lines, const struct line *line, struct gt_buf *out)
{
	struct gt_source_line source = source_of(lines, line);

	if (line->text) {
		gt_buf_text(out, "{\"file\":");
		gt_safe_put_json(out, source.file);
		gt_buf_printf(out, ",\"line\":%u,\"function\":", source.number);
		gt_safe_put_json(out, source.function);
	} else {
		gt_buf_text(out, "{\"file\":null,\"line\":null,\"function\":null");
	}
	gt_buf_printf(out, ",\"calls\":%llu", (unsigned long long)line->calls);
	put_json_us(out, "self_cpu_us", line->cpu_ns);
	put_json_us(out, "backward_cpu_us", line->backward_cpu_ns);
	put_json_us(out, "cuda_us", line->gpu_ns);
	put_json_us(out, "backward_cuda_us", line->backward_gpu_ns);
	gt_buf_byte(out, '}');
}

static void put_rows(const struct lines *lines, const struct gt_summary_style *style,
		     struct gt_buf *out)
{
	bool is_json = style->format == GT_SUMMARY_JSON;
	size_t shown = gt_summary_rows(style, lines->count);

	gt_buf_text(out, is_json ? ",\"lines\":["
				 : "calls,self_cpu_us,backward_cpu_us,cuda_us,backward_cuda_us,"
				   "file,line,function\n");
	for (size_t i = 0; i < shown; i++) {
		if (is_json) {
			gt_buf_text(out, i ? ",\n" : "\n");
			put_json_row(lines, &lines->rows[i], out);
		} else {
			put_csv_row(lines, &lines->rows[i], out);
		}
		gt_summary_drain(style, out);
	}
	if (is_json)
		gt_buf_byte(out, ']');
}

void gt_summary_put_lines(const struct gt_summary *summary, const struct gt_summary_style *style,
			  struct gt_buf *out)
{
	struct lines lines;

	if (collect(summary, style, &lines) < 0) {
		out->failed = true;
		return;
	}
	if (style->format == GT_SUMMARY_JSON || style->format == GT_SUMMARY_CSV) {
		put_rows(&lines, style, out);
	} else if (!lines.has_any) {
		gt_buf_text(out, "\nno lines: the file has no Python stacks ('gtrace run "
				 "--with-stack' records them, torch.profiler with "
				 "with_stack=True)\n");
	} else if (lines.count) {
		put_table(&lines, style, out);
		if (summary->ops.has_functions)
			gt_buf_text(out, "lines are those where functions begin: the file's "
					 "python_function events have no others\n");
	}
	free(lines.rows);
}
