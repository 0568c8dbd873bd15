/*
 * summary_ops_print.c - the operators of a summary as a table.
 */
#include "base.h"
#include "op_report.h"
#include "summary_priv.h"
#include "text_table.h"

/* From these widths on averages have a column, and all kinds of memory; up to NARROW only what a
 * row did itself, where there is more to show than times. */
#define WIDEST 180
#define WIDE   140
#define NARROW 100

enum column {
	CALLS,
	SELF_CPU,
	SELF_CPU_SHARE,
	CPU,
	CPU_MEAN,
	SELF_GPU,
	SELF_GPU_SHARE,
	GPU,
	GPU_MEAN,
	CPU_BYTES,
	SELF_CPU_BYTES,
	GPU_BYTES,
	SELF_GPU_BYTES,
	FLOPS,
	ESTIMATED_FLOPS,
	FLOP_RATE,
	PEAK_SHARE,
	NAME,
	COLUMN_MAX
};

_Static_assert(COLUMN_MAX <= GT_TEXT_COLUMNS_MAX, "a table has as many columns");

static const char *const titles[COLUMN_MAX] = {
	[CALLS] = "calls",
	[SELF_CPU] = "self CPU",
	[SELF_CPU_SHARE] = "share",
	[CPU] = "CPU total",
	[CPU_MEAN] = "CPU avg",
	[SELF_GPU] = "self GPU",
	[SELF_GPU_SHARE] = "share",
	[GPU] = "GPU total",
	[GPU_MEAN] = "GPU avg",
	[CPU_BYTES] = "CPU mem",
	[SELF_CPU_BYTES] = "self CPU mem",
	[GPU_BYTES] = "GPU mem",
	[SELF_GPU_BYTES] = "self GPU mem",
	[FLOPS] = "FLOPs",
	[ESTIMATED_FLOPS] = "est. FLOPs",
	[FLOP_RATE] = "FLOP/s",
	[PEAK_SHARE] = "of peak",
	[NAME] = "operator",
};

static bool has_column(const struct gt_summary *summary, const struct gt_summary_style *style,
		       const struct gt_op_report *report, enum column column)
{
	const struct gt_ops *ops = &summary->ops;
	bool on_gpu = summary->gpu_count != 0;
	bool wide = style->width >= WIDE || style->format == GT_SUMMARY_MARKDOWN;
	bool more = ops->has_memory || report->has_flops || report->has_estimates ||
		    style->by_shape || style->by_stack;
	bool all_bytes = wide && (style->width >= WIDEST || !ops->has_gpu_bytes ||
				  style->format == GT_SUMMARY_MARKDOWN);
	bool totals = wide || style->width > NARROW || !more;

	switch (column) {
	case CPU_MEAN:
		return wide;
	case SELF_CPU_SHARE:
		return wide || !on_gpu;
	case CPU:
		return totals;
	case SELF_GPU:
	case SELF_GPU_SHARE:
		return on_gpu;
	case GPU:
		return on_gpu && totals;
	case GPU_MEAN:
		return on_gpu && wide;
	case CPU_BYTES:
		return ops->has_memory && all_bytes;
	case SELF_CPU_BYTES:
		return ops->has_memory && (all_bytes || !ops->has_gpu_bytes);
	case GPU_BYTES:
		return ops->has_gpu_bytes && all_bytes;
	case SELF_GPU_BYTES:
		return ops->has_gpu_bytes;
	case FLOPS:
		return report->has_flops;
	case ESTIMATED_FLOPS:
		return report->has_estimates;
	case FLOP_RATE:
		return wide && (report->has_flops || report->has_estimates);
	case PEAK_SHARE:
		return wide && report->has_peak;
	default:
		return true;
	}
}

void gt_summary_put_bytes(struct gt_text_table *table, int64_t bytes)
{
	static const char *const units[] = { "KB", "MB", "GB" };
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (value > -1 && value < 1) {
		gt_text_cell(table, "%lldB", (long long)bytes);
		return;
	}
	while (unit + 1 < ARRAY_SIZE(units) && (value >= 1024 || value <= -1024)) {
		value /= 1024;
		unit++;
	}
	gt_text_cell(table, "%.2f%s", value, units[unit]);
}

static void put_flops(struct gt_text_table *table, uint64_t flops)
{
	static const char units[] = "kMGTPE";
	double value = (double)flops / 1000;
	size_t unit = 0;

	if (!flops || value < 1) {
		gt_text_cell(table, flops ? "%llu" : "-", (unsigned long long)flops);
		return;
	}
	for (; value >= 1000 && units[unit + 1]; unit++)
		value /= 1000;
	gt_text_cell(table, "%.*f%c", value < 10 ? 3 : value < 100 ? 2 : 1, value, units[unit]);
}

static void put_share(struct gt_text_table *table, int64_t part, int64_t whole)
{
	gt_text_cell(table, "%.1f%%", whole ? 100.0 * (double)part / (double)whole : 0);
}

/* Without the inputs at the end that are no tensors. */
static void put_shapes(struct gt_buf *text, struct gt_str shapes)
{
	static const char no_tensor[] = ", []";
	const size_t len = sizeof(no_tensor) - 1;
	size_t used = shapes.len - 1;

	while (used > len && !memcmp(shapes.ptr + used - len, no_tensor, len))
		used -= len;
	gt_buf_byte(text, ' ');
	gt_buf_append(text, shapes.ptr, used);
	gt_buf_byte(text, ']');
}

/* The name; what else tells the line from others of that name stands behind it. */
static void put_name(struct gt_text_table *table, const struct gt_op_line *line)
{
	struct gt_buf text = { 0 };
	struct gt_str stack = line->stack;

	gt_buf_append(&text, line->name.ptr, line->name.len);
	if (line->sum.kind == GT_OP_GPU_RANGE)
		gt_buf_text(&text, " (on the GPU)");
	if (line->shapes.len)
		put_shapes(&text, line->shapes);
	while (stack.len) {
		const char *end = memchr(stack.ptr, '\n', stack.len);
		size_t len = end ? (size_t)(end - stack.ptr) : stack.len;

		gt_buf_text(&text, " < ");
		gt_buf_append(&text, stack.ptr, len);
		len += end != NULL;
		stack = (struct gt_str){ stack.ptr + len, stack.len - len };
	}
	table->text.failed |= text.failed;
	gt_text_cell_name(table, gt_buf_str(&text));
	gt_buf_release(&text);
}

static void put_cell(struct gt_text_table *table, const struct gt_op_report *report,
		     const struct gt_op_line *line, enum column column)
{
	const struct gt_op_row *sum = &line->sum;

	switch (column) {
	case CALLS:
		gt_text_cell(table, "%llu", (unsigned long long)sum->calls);
		break;
	case SELF_CPU:
		gt_text_cell(table, "%s", gt_time_text(sum->self_cpu_ns).text);
		break;
	case SELF_CPU_SHARE:
		put_share(table, sum->self_cpu_ns, report->self_cpu_ns);
		break;
	case CPU:
		gt_text_cell(table, "%s", gt_time_text(sum->cpu_ns).text);
		break;
	case CPU_MEAN:
		gt_text_cell(table, "%s",
			     gt_time_text(gt_op_mean_ns(sum->cpu_ns, sum->calls)).text);
		break;
	case SELF_GPU:
		gt_text_cell(table, "%s", gt_time_text(sum->self_gpu_ns).text);
		break;
	case SELF_GPU_SHARE:
		if (sum->kind == GT_OP_GPU_RANGE)
			gt_text_cell(table, "-");
		else
			put_share(table, sum->self_gpu_ns, report->self_gpu_ns);
		break;
	case GPU:
		gt_text_cell(table, "%s", gt_time_text(sum->gpu_ns).text);
		break;
	case GPU_MEAN:
		gt_text_cell(table, "%s",
			     gt_time_text(gt_op_mean_ns(sum->gpu_ns, sum->calls)).text);
		break;
	case CPU_BYTES:
		gt_summary_put_bytes(table, sum->cpu_bytes);
		break;
	case SELF_CPU_BYTES:
		gt_summary_put_bytes(table, sum->self_cpu_bytes);
		break;
	case GPU_BYTES:
		gt_summary_put_bytes(table, sum->gpu_bytes);
		break;
	case SELF_GPU_BYTES:
		gt_summary_put_bytes(table, sum->self_gpu_bytes);
		break;
	case FLOPS:
		put_flops(table, line->flops);
		break;
	case ESTIMATED_FLOPS:
		put_flops(table, line->estimated_flops);
		break;
	case FLOP_RATE:
		put_flops(table, gt_op_flop_rate(line));
		break;
	case PEAK_SHARE:
		if (line->peak_share > 0)
			gt_text_cell(table, "%.1f%% %s", 100 * line->peak_share,
				     gt_op_peak_name(line));
		else
			gt_text_cell(table, "-");
		break;
	case NAME:
	case COLUMN_MAX:
		put_name(table, line);
		break;
	}
}

static const char *title_of(const struct gt_summary_style *style)
{
	if (style->by_shape)
		return style->by_stack ? "Operators by shape and stack" : "Operators by shape";
	return style->by_stack ? "Operators by stack" : "Operators";
}

/* Why rows that were to be told apart are not. */
static void put_absent(const struct gt_op_report *report, const struct gt_summary_style *style,
		       struct gt_buf *out)
{
	bool has_shapes = false, has_stacks = false;

	for (size_t i = 0; i < report->count; i++) {
		has_shapes |= report->lines[i].shapes.len != 0;
		has_stacks |= report->lines[i].stack.len != 0;
	}
	if (style->by_shape && !has_shapes)
		gt_buf_text(out, "none of these has shapes ('gtrace run' records them unless "
				 "--no-shapes, torch.profiler with record_shapes=True)\n");
	if (style->by_stack && !has_stacks)
		gt_buf_text(out,
			    "none of these has a stack ('gtrace run --with-stack' records them, "
			    "torch.profiler with with_stack=True)\n");
}

void gt_summary_put_ops(const struct gt_summary *summary, const struct gt_summary_style *style,
			struct gt_buf *out)
{
	const char *shown_titles[COLUMN_MAX];
	enum column columns[COLUMN_MAX];
	struct gt_text_table table = { .titles = shown_titles };
	struct gt_op_report report;
	size_t shown;

	if (gt_summary_op_report(summary, style, &report) < 0) {
		out->failed = true;
		return;
	}
	if (!report.count) {
		gt_op_report_release(&report);
		return;
	}
	for (size_t i = 0; i < COLUMN_MAX; i++) {
		if (!has_column(summary, style, &report, (enum column)i))
			continue;
		columns[table.columns] = (enum column)i;
		shown_titles[table.columns++] = titles[i];
	}
	shown = gt_summary_rows(style, report.count);
	gt_summary_put_title(out, style, title_of(style), shown, report.count);
	for (size_t i = 0; i < shown; i++) {
		for (size_t k = 0; k < table.columns; k++)
			put_cell(&table, &report, &report.lines[i], columns[k]);
	}
	gt_summary_put_table(&table, style, out);
	put_absent(&report, style, out);
	gt_op_report_release(&report);
}
