/*
 * summary_kernels.c - the kernels with how they were launched: as a table for people, as CSV, and
 * what JSON says beside their times.
 */
#include "base.h"
#include "kernel_name.h"
#include "safe_text.h"
#include "summary.h"
#include "summary_priv.h"
#include "tensor_cores.h"
#include "text_table.h"

#include <stdlib.h>

/* From these widths on there is room for the mean and the grid, and for all else. */
#define MEDIUM 110
#define WIDE   180

/* What all other columns take together where there are all of them. A full name that does not fit
 * beside them is not cut but short: its ends say less than that and the operator do. */
#define OTHERS_WIDTH 132

/* A row of the table of kernels, with all that is known of it. */
struct line {
	struct gt_str name;
	const struct gt_summary_stat *times;
	struct gt_kernel_stat launch;
	struct gt_kernel_config config;
	struct gt_str op;
	enum gt_tensor_cores tensor_cores;
};

static struct line line_of(const struct gt_summary *summary, uint32_t number)
{
	const struct gt_kernel_stats *stats = &summary->kernel_stats;
	const struct gt_kernel_stat *launch = gt_kernel_stat_of(stats, number);
	struct line line = { .name = gt_interned(&summary->kernels.names, number),
			     .times = &summary->kernels.stats[number] };

	if (launch)
		line.launch = *launch;
	line.config = gt_kernel_config_of(stats, &line.launch);
	line.op = gt_kernel_op_of(stats, &line.launch);
	line.tensor_cores = gt_tensor_cores_of(line.name);
	return line;
}

static double occupancy(const struct line *line)
{
	return line->launch.occupancy_sum / line->launch.occupancy_ns;
}

static bool has_extent(const uint32_t extent[3])
{
	return extent[0] != GT_KERNEL_UNKNOWN;
}

/* ---- the table ------------------------------------------------------------------------------- */

enum column {
	CALLS,
	TOTAL,
	MEAN,
	MIN,
	MAX,
	SHARE,
	OCCUPANCY,
	TENSOR_CORES,
	GRID,
	BLOCK,
	REGISTERS,
	SHARED,
	OPERATOR,
	NAME,
	COLUMN_MAX
};

static const char *const titles[COLUMN_MAX] = {
	[CALLS] = "calls",       [TOTAL] = "total", [MEAN] = "mean",      [MIN] = "min",
	[MAX] = "max",           [SHARE] = "share", [OCCUPANCY] = "occ.", [TENSOR_CORES] = "TC",
	[GRID] = "grid",         [BLOCK] = "block", [REGISTERS] = "regs", [SHARED] = "shared",
	[OPERATOR] = "operator", [NAME] = "kernel",
};

struct table {
	struct gt_text_table text;
	const char *titles[COLUMN_MAX];
	enum column columns[COLUMN_MAX];
	uint64_t total_ns; /* of all kernels that the filter takes */
	size_t op_width;
	size_t full_width; /* up to which a name is full */
};

static size_t width_of(const struct gt_summary_style *style)
{
	return style->format == GT_SUMMARY_MARKDOWN ? SIZE_MAX : style->width;
}

/* Whether the line has something for a column that is not of its times. */
static bool fills(const struct line *line, enum column column)
{
	switch (column) {
	case OCCUPANCY:
		return line->launch.occupancy_ns > 0;
	case TENSOR_CORES:
		return line->tensor_cores != GT_TENSOR_CORES_UNKNOWN;
	case GRID:
		return has_extent(line->config.grid);
	case BLOCK:
		return has_extent(line->config.block);
	case REGISTERS:
		return line->config.registers != GT_KERNEL_UNKNOWN;
	case SHARED:
		return line->config.shared_bytes != GT_KERNEL_UNKNOWN;
	case OPERATOR:
		return line->op.len != 0;
	default:
		return true;
	}
}

static bool has_room(const struct gt_summary_style *style, enum column column)
{
	size_t width = width_of(style);

	switch (column) {
	case MEAN:
	case GRID:
	case BLOCK:
		return width >= MEDIUM;
	case MIN:
	case MAX:
	case REGISTERS:
	case SHARED:
		return width >= WIDE;
	default:
		return true;
	}
}

static void choose_columns(struct table *table, const struct gt_summary *summary,
			   const struct gt_summary_style *style, const uint32_t *rows, size_t shown)
{
	bool filled[COLUMN_MAX] = { false };
	size_t width = width_of(style);

	for (size_t i = 0; i < shown; i++) {
		struct line line = line_of(summary, rows[i]);

		for (size_t k = 0; k < COLUMN_MAX; k++)
			filled[k] |= fills(&line, (enum column)k);
	}
	for (size_t k = 0; k < COLUMN_MAX; k++) {
		if (!filled[k] || !has_room(style, (enum column)k))
			continue;
		table->columns[table->text.columns] = (enum column)k;
		table->titles[table->text.columns++] = titles[k];
	}
	table->text.titles = table->titles;
	table->full_width = width >= WIDE ? width - OTHERS_WIDTH : 0;
	table->op_width = width == SIZE_MAX ? width : width >= WIDE ? 32 : 18;
}

static void put_time(struct gt_text_table *text, uint64_t ns)
{
	gt_text_cell(text, "%s", gt_time_text_of(ns).text);
}

/* "128x1x1", of the grid with the number of other configurations. */
static void put_extent(struct gt_text_table *text, const uint32_t extent[3],
		       const struct gt_kernel_stat *launch)
{
	char more[32] = "";

	if (!has_extent(extent)) {
		gt_text_cell(text, "-");
		return;
	}
	if (launch && (launch->configs > 1 || launch->more_configs))
		snprintf(more, sizeof(more), " (+%llu%s)",
			 (unsigned long long)(launch->configs - 1),
			 launch->more_configs ? " or more" : "");
	gt_text_cell(text, "%ux%ux%u%s", extent[0], extent[1], extent[2], more);
}

static void put_op(const struct table *table, struct gt_text_table *text, const struct line *line)
{
	char more[32] = "";

	if (line->launch.ops > 1)
		snprintf(more, sizeof(more), " (+%llu)",
			 (unsigned long long)(line->launch.ops - 1));
	if (line->op.len)
		gt_text_cell_cut(text, line->op, more, table->op_width);
	else
		gt_text_cell(text, "-");
}

static void put_name(const struct table *table, struct gt_text_table *text, struct gt_str name)
{
	struct gt_buf short_name = { 0 };

	if (name.len <= table->full_width) {
		gt_text_cell_name(text, name);
		return;
	}
	gt_kernel_put_short_name(&short_name, name);
	text->text.failed |= short_name.failed;
	gt_text_cell_name(text, gt_buf_str(&short_name));
	gt_buf_release(&short_name);
}

static void put_cell(struct table *table, const struct line *line, enum column column)
{
	static const char *const tensor_cores[] = { [GT_TENSOR_CORES_UNKNOWN] = "-",
						    [GT_TENSOR_CORES_USED] = "yes",
						    [GT_TENSOR_CORES_NOT_USED] = "no" };
	struct gt_text_table *text = &table->text;

	switch (column) {
	case CALLS:
		gt_text_cell(text, "%llu", (unsigned long long)line->times->calls);
		break;
	case TOTAL:
		put_time(text, line->times->total_ns);
		break;
	case MEAN:
		put_time(text, gt_summary_mean_ns(line->times));
		break;
	case MIN:
		put_time(text, line->times->min_ns);
		break;
	case MAX:
		put_time(text, line->times->max_ns);
		break;
	case SHARE:
		gt_text_cell(text, "%.1f%%", gt_percent(line->times->total_ns, table->total_ns));
		break;
	case OCCUPANCY:
		if (fills(line, column))
			gt_text_cell(text, "%.0f%%", occupancy(line));
		else
			gt_text_cell(text, "-");
		break;
	case TENSOR_CORES:
		gt_text_cell(text, "%s", tensor_cores[line->tensor_cores]);
		break;
	case GRID:
		put_extent(text, line->config.grid, &line->launch);
		break;
	case BLOCK:
		put_extent(text, line->config.block, NULL);
		break;
	case REGISTERS:
		gt_text_cell(text, fills(line, column) ? "%u" : "-", line->config.registers);
		break;
	case SHARED:
		if (fills(line, column))
			gt_summary_put_bytes(text, line->config.shared_bytes);
		else
			gt_text_cell(text, "-");
		break;
	case OPERATOR:
		put_op(table, text, line);
		break;
	case NAME:
	case COLUMN_MAX:
		put_name(table, text, line->name);
		break;
	}
}

void gt_summary_put_kernels(const struct gt_summary *summary, const struct gt_summary_style *style,
			    struct gt_buf *out)
{
	struct table table = { 0 };
	size_t shown, count;
	uint32_t *rows = gt_summary_order(&summary->kernels, style, false, &count);

	if (!rows || !count) {
		out->failed |= !rows;
		free(rows);
		return;
	}
	for (size_t i = 0; i < count; i++)
		table.total_ns = gt_summary_add_sat(table.total_ns,
						    summary->kernels.stats[rows[i]].total_ns);
	shown = gt_summary_rows(style, count);
	choose_columns(&table, summary, style, rows, shown);
	gt_summary_put_title(out, style, "Kernels", shown, count);
	for (size_t i = 0; i < shown; i++) {
		struct line line = line_of(summary, rows[i]);

		for (size_t k = 0; k < table.text.columns; k++)
			put_cell(&table, &line, table.columns[k]);
	}
	free(rows);
	gt_summary_put_table(&table.text, style, out);
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

static void put_csv_count(struct gt_buf *out, uint32_t value)
{
	gt_buf_printf(out, value == GT_KERNEL_UNKNOWN ? "," : ",%u", value);
}

static void put_csv_extent(struct gt_buf *out, const uint32_t extent[3])
{
	gt_buf_printf(out, has_extent(extent) ? ",%ux%ux%u" : ",", extent[0], extent[1], extent[2]);
}

static void put_csv_line(const struct line *line, struct gt_buf *out)
{
	static const char *const tensor_cores[] = { [GT_TENSOR_CORES_UNKNOWN] = "",
						    [GT_TENSOR_CORES_USED] = "true",
						    [GT_TENSOR_CORES_NOT_USED] = "false" };
	const uint64_t times_ns[] = { line->times->total_ns, gt_summary_mean_ns(line->times),
				      line->times->min_ns, line->times->max_ns };
	struct gt_buf short_name = { 0 };

	gt_buf_printf(out, "kernel,%llu", (unsigned long long)line->times->calls);
	for (size_t i = 0; i < ARRAY_SIZE(times_ns); i++) {
		gt_buf_byte(out, ',');
		gt_summary_put_us_of(out, times_ns[i]);
	}
	gt_summary_put_csv_text(out, line->op);
	gt_buf_printf(out, ",%llu", (unsigned long long)line->launch.ops);
	put_csv_extent(out, line->config.grid);
	put_csv_extent(out, line->config.block);
	put_csv_count(out, line->config.registers);
	put_csv_count(out, line->config.shared_bytes);
	gt_buf_printf(out, ",%llu", (unsigned long long)line->launch.configs);
	if (line->launch.occupancy_ns > 0)
		gt_buf_printf(out, ",%.3f", occupancy(line));
	else
		gt_buf_byte(out, ',');
	gt_buf_printf(out, ",%s", tensor_cores[line->tensor_cores]);
	gt_kernel_put_short_name(&short_name, line->name);
	gt_summary_put_csv_text(out, gt_buf_str(&short_name));
	gt_summary_put_csv_text(out, line->name);
	gt_buf_byte(out, '\n');
	out->failed |= short_name.failed;
	gt_buf_release(&short_name);
}

void gt_summary_put_kernels_csv(const struct gt_summary *summary,
				const struct gt_summary_style *style, struct gt_buf *out)
{
	size_t count;
	uint32_t *rows = gt_summary_order(&summary->kernels, style, false, &count);

	if (!rows) {
		out->failed = true;
		return;
	}
	gt_buf_text(out, "table,calls,total_us,mean_us,min_us,max_us,op,ops,grid,block,"
			 "registers,shared_memory,configs,occupancy_pct,tensor_cores,short_name,"
			 "name\n");
	for (size_t i = 0; i < gt_summary_rows(style, count); i++) {
		struct line line = line_of(summary, rows[i]);

		put_csv_line(&line, out);
		gt_summary_drain(style, out);
	}
	free(rows);
}

static void put_json_count(struct gt_buf *out, const char *key, uint32_t value)
{
	gt_buf_printf(out, value == GT_KERNEL_UNKNOWN ? ",\"%s\":null" : ",\"%s\":%u", key, value);
}

static void put_json_extent(struct gt_buf *out, const char *key, const uint32_t extent[3])
{
	gt_buf_printf(out, has_extent(extent) ? ",\"%s\":[%u,%u,%u]" : ",\"%s\":null", key,
		      extent[0], extent[1], extent[2]);
}

void gt_summary_put_kernel_json(const struct gt_summary *summary, uint32_t number,
				struct gt_buf *out)
{
	static const char *const tensor_cores[] = { [GT_TENSOR_CORES_UNKNOWN] = "null",
						    [GT_TENSOR_CORES_USED] = "true",
						    [GT_TENSOR_CORES_NOT_USED] = "false" };
	struct line line = line_of(summary, number);
	struct gt_buf short_name = { 0 };

	gt_buf_text(out, ",\"op\":");
	if (line.op.len)
		gt_safe_put_json(out, line.op);
	else
		gt_buf_text(out, "null");
	gt_buf_printf(out, ",\"ops\":%llu", (unsigned long long)line.launch.ops);
	put_json_extent(out, "grid", line.config.grid);
	put_json_extent(out, "block", line.config.block);
	put_json_count(out, "registers", line.config.registers);
	put_json_count(out, "shared_memory", line.config.shared_bytes);
	gt_buf_printf(out, ",\"configs\":%llu", (unsigned long long)line.launch.configs);
	if (line.launch.occupancy_ns > 0)
		gt_buf_printf(out, ",\"occupancy_pct\":%.3f", occupancy(&line));
	else
		gt_buf_text(out, ",\"occupancy_pct\":null");
	gt_buf_printf(out, ",\"tensor_cores\":%s,\"short_name\":", tensor_cores[line.tensor_cores]);
	gt_kernel_put_short_name(&short_name, line.name);
	gt_safe_put_json(out, gt_buf_str(&short_name));
	out->failed |= short_name.failed;
	gt_buf_release(&short_name);
}
