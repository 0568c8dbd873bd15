/*
 * summary_print.c - the summary as tables for people, and as CSV.
 */
#include "base.h"
#include "summary.h"
#include "summary_priv.h"
#include "safe_text.h"
#include "text_table.h"

#include <stdlib.h>

#define PIECE_BYTES ((size_t)64 << 10)

struct gt_time_text gt_time_text(int64_t ns)
{
	struct gt_time_text ret;
	double value = (double)(ns < 0 ? -(double)ns : (double)ns);
	double unit = value >= GT_NSEC_PER_SEC    ? GT_NSEC_PER_SEC
		      : value >= GT_NSEC_PER_MSEC ? GT_NSEC_PER_MSEC
						  : GT_NSEC_PER_USEC;
	const char *name = unit == GT_NSEC_PER_SEC ? "s" : unit == GT_NSEC_PER_MSEC ? "ms" : "us";
	int decimals;

	value /= unit;
	decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
	snprintf(ret.text, sizeof(ret.text), "%s%.*f%s", ns < 0 ? "-" : "", decimals, value, name);
	return ret;
}

struct gt_time_text gt_time_text_of(uint64_t ns)
{
	return gt_time_text((int64_t)GT_MIN(ns, (uint64_t)INT64_MAX));
}

void gt_summary_put_us_of(struct gt_buf *out, uint64_t ns)
{
	gt_buf_printf(out, "%llu.%03u", (unsigned long long)(ns / 1000), (unsigned int)(ns % 1000));
}

void gt_summary_put_us(struct gt_buf *out, int64_t ns)
{
	if (ns < 0)
		gt_buf_byte(out, '-');
	gt_summary_put_us_of(out, ns < 0 ? -(uint64_t)ns : (uint64_t)ns);
}

void gt_summary_drain(const struct gt_summary_style *style, struct gt_buf *out)
{
	if (!style->sink || out->len < PIECE_BYTES || out->failed)
		return;
	style->sink->put(style->sink->context, gt_buf_str(out));
	out->len = 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct order {
	const struct gt_summary_table *table;
	enum gt_summary_sort sort;
};

static uint64_t sort_key(const struct gt_summary_stat *stat, enum gt_summary_sort sort)
{
	switch (sort) {
	case GT_SUMMARY_BY_CALLS:
		return stat->calls;
	case GT_SUMMARY_BY_MEAN:
		return gt_summary_mean_ns(stat);
	case GT_SUMMARY_BY_MIN:
		return stat->min_ns;
	case GT_SUMMARY_BY_MAX:
		return stat->max_ns;
	case GT_SUMMARY_BY_TOTAL:
	case GT_SUMMARY_BY_NAME:
		break;
	}
	return stat->total_ns;
}

/* Largest first, names ascending; equal rows in the order of their first event. */
static int compare_rows(const void *a, const void *b, void *context)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct order *order = context;
	const struct gt_summary_table *table = order->table;

	if (order->sort == GT_SUMMARY_BY_NAME) {
		struct gt_str l = gt_interned(&table->names, left);
		struct gt_str r = gt_interned(&table->names, right);
		int rc = memcmp(l.ptr, r.ptr, GT_MIN(l.len, r.len));

		return rc ? rc : (l.len > r.len) - (l.len < r.len);
	} else {
		uint64_t l = sort_key(&table->stats[left], order->sort);
		uint64_t r = sort_key(&table->stats[right], order->sort);

		return l != r ? (l < r) - (l > r) : (left > right) - (left < right);
	}
}

uint32_t *gt_summary_order(const struct gt_summary_table *table,
			   const struct gt_summary_style *style, bool marked, size_t *ret_count)
{
	struct order order = { table, style->sort };
	uint32_t *rows = malloc((table->names.count + (size_t)1) * sizeof(*rows));
	size_t count = 0;

	if (!rows)
		return NULL;
	for (uint32_t i = 0; i < table->names.count; i++) {
		if ((!marked || table->stats[i].marked) &&
		    gt_op_filter_takes(style->filter, gt_interned(&table->names, i)))
			rows[count++] = i;
	}
	qsort_r(rows, count, sizeof(*rows), compare_rows, &order);
	*ret_count = count;
	return rows;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void gt_summary_put_table(struct gt_text_table *table, const struct gt_summary_style *style,
			  struct gt_buf *out)
{
	if (style->format == GT_SUMMARY_MARKDOWN)
		gt_text_table_markdown(table, out);
	else
		gt_text_table_print(table, style->width, out);
}

void gt_summary_put_title(struct gt_buf *out, const struct gt_summary_style *style,
			  const char *title, size_t shown, size_t count)
{
	gt_buf_printf(out, style->format == GT_SUMMARY_MARKDOWN ? "\n### %s" : "\n%s", title);
	if (shown < count)
		gt_buf_printf(out, " (%zu of %zu)", shown, count);
	gt_buf_text(out, style->format == GT_SUMMARY_MARKDOWN ? "\n\n" : "\n");
}

static void put_stats(const struct gt_summary_table *stats, bool marked, const char *title,
		      const char *what, const struct gt_summary_style *style, struct gt_buf *out)
{
	const char *titles[] = { "calls", "total", "mean", "min", "max", "share", what };
	struct gt_text_table table = { .titles = titles, .columns = ARRAY_SIZE(titles) };
	size_t shown, count;
	uint32_t *rows = gt_summary_order(stats, style, marked, &count);
	uint64_t total = 0;

	if (!rows || !count) {
		out->failed |= !rows;
		free(rows);
		return;
	}
	for (size_t i = 0; i < count; i++)
		total = gt_summary_add_sat(total, stats->stats[rows[i]].total_ns);
	shown = gt_summary_rows(style, count);
	gt_summary_put_title(out, style, title, shown, count);
	for (size_t i = 0; i < shown; i++) {
		const struct gt_summary_stat *stat = &stats->stats[rows[i]];

		gt_text_cell(&table, "%llu", (unsigned long long)stat->calls);
		gt_text_cell(&table, "%s", gt_time_text_of(stat->total_ns).text);
		gt_text_cell(&table, "%s", gt_time_text_of(gt_summary_mean_ns(stat)).text);
		gt_text_cell(&table, "%s", gt_time_text_of(stat->min_ns).text);
		gt_text_cell(&table, "%s", gt_time_text_of(stat->max_ns).text);
		gt_text_cell(&table, "%.1f%%", gt_percent(stat->total_ns, total));
		gt_text_cell_name(&table, gt_interned(&stats->names, rows[i]));
	}
	free(rows);
	gt_summary_put_table(&table, style, out);
}

static void put_gpus(const struct gt_summary *summary, const struct gt_summary_style *style,
		     struct gt_buf *out)
{
	static const char *const titles[] = {
		"GPU",  "span",         "busy",           "computation",
		"idle", "exposed comm", "exposed copies", "overlap"
	};
	struct gt_text_table table = { .titles = titles, .columns = ARRAY_SIZE(titles) };

	if (!summary->gpu_count)
		return;
	gt_summary_put_title(out, style, "GPU time", 0, 0);
	for (size_t i = 0; i < summary->gpu_count; i++) {
		const struct gt_summary_gpu *gpu = &summary->gpus[i];

		gt_text_cell(&table, "%lld", (long long)gpu->device);
		gt_text_cell(&table, "%s", gt_time_text_of(gpu->time.span_ns).text);
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->time.busy_ns, gpu->time.span_ns));
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->time.compute_ns, gpu->time.span_ns));
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->time.idle_ns, gpu->time.span_ns));
		gt_text_cell(&table, "%.2f%%",
			     gt_percent(gpu->time.exposed_comm_ns, gpu->time.span_ns));
		gt_text_cell(&table, "%.2f%%",
			     gt_percent(gpu->time.exposed_memcpy_ns, gpu->time.span_ns));
		if (gpu->time.comm_ns)
			gt_text_cell(&table, "%.1f%%",
				     gt_percent(gpu->time.comm_ns - gpu->time.exposed_comm_ns,
						gpu->time.comm_ns));
		else
			gt_text_cell(&table, "-");
	}
	gt_summary_put_table(&table, style, out);
}

/* ---- what stands above the tables ------------------------------------------------------------ */

static void put_step_line(const struct gt_summary *summary, struct gt_buf *out)
{
	size_t cut = gt_summary_steps_cut(summary);
	struct gt_range range;

	if (gt_summary_step_range(summary, &range)) {
		out->failed = true;
		return;
	}
	if (range.count == 1)
		gt_buf_printf(out, "1 step: %s", gt_time_text_of(range.median).text);
	else
		gt_buf_printf(out, "%zu steps: %s min, %s median, %s max", range.count,
			      gt_time_text_of(range.min).text, gt_time_text_of(range.median).text,
			      gt_time_text_of(range.max).text);
	if (cut && range.count < summary->step_count)
		gt_buf_printf(out, "; %zu more %s", cut, cut == 1 ? "is" : "are");
	else if (cut)
		gt_buf_byte(out, ';');
	gt_buf_text(out, cut ? " cut by the end of the trace\n" : "\n");
}

static void put_head(const struct gt_summary *summary, const struct gt_summary_style *style,
		     struct gt_buf *out)
{
	const char *line = style->format == GT_SUMMARY_MARKDOWN ? "- " : "";
	struct gt_buf losses = { 0 };
	const char *at, *end;

	gt_buf_text(out, style->format == GT_SUMMARY_MARKDOWN ? "## " : "");
	gt_safe_put(out, gt_str_of(summary->path));
	gt_buf_printf(out, style->format == GT_SUMMARY_MARKDOWN ? "\n\n%s" : "\n%s", line);
	gt_safe_put(out, gt_buf_str(&summary->producer));
	if (summary->devices.len) {
		gt_buf_text(out, ", ");
		gt_safe_put(out, gt_buf_str(&summary->devices));
	}
	if (summary->rank >= 0)
		gt_buf_printf(out, ", rank %lld", (long long)summary->rank);
	if (summary->rank >= 0 && summary->world_size > 0)
		gt_buf_printf(out, " of %lld", (long long)summary->world_size);
	gt_buf_printf(out, ", %llu event%s\n", (unsigned long long)summary->read.events,
		      summary->read.events == 1 ? "" : "s");
	if (summary->copy.kind)
		gt_buf_printf(out, "%s%s\n", line, summary->copy.about);
	if (summary->step_count) {
		gt_buf_text(out, line);
		put_step_line(summary, out);
	}
	gt_summary_put_data_bound(summary, line, out);
	if (!summary->gpu_count)
		gt_buf_printf(out, "%sno GPU work\n", line);
	if (summary->own.present && summary->own.complete && summary->copy.kind != GT_COPY_CUT)
		gt_buf_printf(out, "%scomplete: nothing was dropped%s\n", line,
			      summary->gpu_count ? ", every launch has its GPU work" : "");
	gt_summary_losses(summary, &losses);
	out->failed |= losses.failed;
	for (at = losses.data; at && at < losses.data + losses.len; at = end + 1) {
		end = memchr(at, '\n', (size_t)(losses.data + losses.len - at));
		gt_buf_printf(out, "%swarning: %.*s\n", line, (int)(end - at), at);
	}
	gt_buf_release(&losses);
}

static void put_all_tables(const struct gt_summary *summary, const struct gt_summary_style *style,
			   struct gt_buf *out)
{
	if (summary->ops.has_operators && !style->brief)
		gt_summary_put_ops(summary, style, out);
	put_stats(&summary->kernels, false, "Kernels", "kernel", style, out);
	if (style->brief)
		return;
	put_stats(&summary->copies, false, "Copies and sets", "operation", style, out);
	put_stats(&summary->calls, true, "Calls that block the host", "call", style, out);
	put_stats(&summary->ranges, false, "Ranges", "range", style, out);
	gt_summary_put_steps(summary, style, out);
}

static void put_tables(const struct gt_summary *summary, const struct gt_summary_style *style,
		       struct gt_buf *out)
{
	size_t head;

	if (!style->brief) {
		put_head(summary, style, out);
		put_gpus(summary, style, out);
		gt_summary_put_launches(summary, style, out);
	}
	head = out->len;
	switch (style->by) {
	case GT_SUMMARY_BY_ANY:
		put_all_tables(summary, style, out);
		break;
	case GT_SUMMARY_BY_OP:
		gt_summary_put_ops(summary, style, out);
		break;
	case GT_SUMMARY_BY_KERNEL:
		gt_summary_put_kernels(summary, style, out);
		break;
	case GT_SUMMARY_BY_CATEGORY:
		put_stats(&summary->categories, false, "Categories", "category", style, out);
		break;
	case GT_SUMMARY_BY_STEP:
		gt_summary_put_steps(summary, style, out);
		break;
	case GT_SUMMARY_BY_STREAM:
	case GT_SUMMARY_BY_THREAD:
		gt_summary_put_tracks(summary, style, out);
		break;
	case GT_SUMMARY_BY_ANNOTATION:
		put_stats(&summary->ranges, false, "Ranges", "range", style, out);
		break;
	case GT_SUMMARY_BY_MEMCPY:
		gt_summary_put_copies(summary, style, out);
		break;
	case GT_SUMMARY_BY_BLOCKING:
		put_stats(&summary->blocking, false, "Calls that block the host", "call < operator",
			  style, out);
		break;
	case GT_SUMMARY_BY_LINE:
		gt_summary_put_lines(summary, style, out);
		break;
	}
	if (style->by != GT_SUMMARY_BY_ANY && out->len == head)
		gt_buf_text(out, "\nno such row\n");
}

/* ---- CSV ------------------------------------------------------------------------------------- */

void gt_summary_put_csv_text(struct gt_buf *out, struct gt_str text)
{
	struct gt_buf safe = { 0 };

	gt_safe_put(&safe, text);
	gt_buf_text(out, ",\"");
	for (size_t i = 0; i < safe.len; i++) {
		if (safe.data[i] == '"')
			gt_buf_byte(out, '"');
		gt_buf_byte(out, safe.data[i]);
	}
	gt_buf_byte(out, '"');
	out->failed |= safe.failed;
	gt_buf_release(&safe);
}

static void put_csv_us(uint64_t ns, struct gt_buf *out)
{
	gt_buf_byte(out, ',');
	gt_summary_put_us_of(out, ns);
}

static void put_csv_row(const char *kind, const struct gt_summary_stat *stat, struct gt_str name,
			struct gt_buf *out)
{
	gt_buf_printf(out, "%s,%llu", kind, (unsigned long long)stat->calls);
	put_csv_us(stat->total_ns, out);
	put_csv_us(gt_summary_mean_ns(stat), out);
	put_csv_us(stat->min_ns, out);
	put_csv_us(stat->max_ns, out);
	gt_summary_put_csv_text(out, name);
	gt_buf_byte(out, '\n');
}

static void put_csv_stats(const struct gt_summary_table *stats, bool marked, const char *kind,
			  const struct gt_summary_style *style, struct gt_buf *out)
{
	size_t count;
	uint32_t *rows = gt_summary_order(stats, style, marked, &count);

	if (!rows) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < gt_summary_rows(style, count); i++) {
		put_csv_row(kind, &stats->stats[rows[i]], gt_interned(&stats->names, rows[i]), out);
		gt_summary_drain(style, out);
	}
	free(rows);
}

static void put_csv_steps(const struct gt_summary *summary, const struct gt_summary_style *style,
			  struct gt_buf *out)
{
	size_t taken, shown = gt_summary_steps_shown(summary, style, &taken), at = 0;

	for (size_t i = 0; i < shown; i++) {
		const struct gt_summary_step *step = gt_summary_next_step(summary, style, &at);
		struct gt_summary_stat stat = { .calls = 1,
						.total_ns = step->dur_ns,
						.min_ns = step->dur_ns,
						.max_ns = step->dur_ns };

		put_csv_row("step", &stat, gt_interned(&summary->step_names, step->name), out);
	}
}

static void put_csv(const struct gt_summary *summary, const struct gt_summary_style *style,
		    struct gt_buf *out)
{
	bool all = style->by == GT_SUMMARY_BY_ANY;

	switch (style->by) {
	case GT_SUMMARY_BY_OP:
		gt_summary_put_ops_csv(summary, style, out);
		return;
	case GT_SUMMARY_BY_STREAM:
	case GT_SUMMARY_BY_THREAD:
		gt_summary_put_tracks(summary, style, out);
		return;
	case GT_SUMMARY_BY_MEMCPY:
		gt_summary_put_copies(summary, style, out);
		return;
	case GT_SUMMARY_BY_LINE:
		gt_summary_put_lines(summary, style, out);
		return;
	case GT_SUMMARY_BY_KERNEL:
		gt_summary_put_kernels_csv(summary, style, out);
		return;
	case GT_SUMMARY_BY_STEP:
		gt_summary_put_steps_csv(summary, style, out);
		return;
	default:
		break;
	}
	gt_buf_text(out, "table,calls,total_us,mean_us,min_us,max_us,name\n");
	if (all)
		put_csv_stats(&summary->kernels, false, "kernel", style, out);
	if (all && style->brief)
		return;
	if (all) {
		put_csv_stats(&summary->copies, false, "copy", style, out);
		put_csv_stats(&summary->calls, true, "blocking", style, out);
	}
	if (style->by == GT_SUMMARY_BY_CATEGORY)
		put_csv_stats(&summary->categories, false, "category", style, out);
	if (style->by == GT_SUMMARY_BY_BLOCKING)
		put_csv_stats(&summary->blocking, false, "blocking", style, out);
	if (all || style->by == GT_SUMMARY_BY_ANNOTATION)
		put_csv_stats(&summary->ranges, false, "range", style, out);
	if (all)
		put_csv_steps(summary, style, out);
}

int gt_summary_print(const struct gt_summary *summary, const struct gt_summary_style *style,
		     struct gt_buf *out)
{
	switch (style->format) {
	case GT_SUMMARY_JSON:
		gt_summary_put_json(summary, style, out);
		break;
	case GT_SUMMARY_CSV:
		put_csv(summary, style, out);
		break;
	case GT_SUMMARY_TABLE:
	case GT_SUMMARY_MARKDOWN:
		put_tables(summary, style, out);
		break;
	}
	return out->failed ? -ENOMEM : 0;
}
