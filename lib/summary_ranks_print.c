/*
 * summary_ranks_print.c - the ranks of a job as tables, CSV and JSON (gtrace-summary.1).
 */
#include "base.h"
#include "safe_text.h"
#include "summary_priv.h"
#include "summary_ranks.h"

#include <stdlib.h>

/* The figures of a row; shares are of the span. */
static const struct {
	const char *title;
	const char *column; /* the same, short; NULL: no column, idle says it */
	const char *key;    /* in CSV and JSON, without _us */
	size_t offset;      /* of a uint64_t in struct gt_rank_row */
	bool is_share;
} figures[] = {
	{ "step", "step", "step_median", offsetof(struct gt_rank_row, steps.median), false },
	{ "GPU span", "GPU span", "span", offsetof(struct gt_rank_row, gpu.span_ns), false },
	{ "busy", NULL, "busy", offsetof(struct gt_rank_row, gpu.busy_ns), true },
	{ "computation", "compute", "compute", offsetof(struct gt_rank_row, gpu.compute_ns), true },
	{ "exposed comm", "exp. comm", "exposed_comm",
	  offsetof(struct gt_rank_row, gpu.exposed_comm_ns), true },
	{ "exposed copies", "exp. copies", "exposed_memcpy",
	  offsetof(struct gt_rank_row, gpu.exposed_memcpy_ns), true },
	{ "idle", "idle", "idle", offsetof(struct gt_rank_row, gpu.idle_ns), true },
};

enum { STEP_FIGURE, SPAN_FIGURE };

static uint64_t value_of(const struct gt_rank_row *row, size_t figure)
{
	uint64_t value;

	memcpy(&value, (const char *)row + figures[figure].offset, sizeof(value));
	return value;
}

/* Without steps a file has no figure of them, without a GPU none of the rest. */
static bool has_value(const struct gt_rank_row *row, size_t figure)
{
	return figure == STEP_FIGURE ? row->steps.count > 0 : row->gpu_count > 0;
}

static struct gt_str file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return gt_str_of(slash ? slash + 1 : path);
}

/* What tells files apart, at the width of a terminal. */
static struct gt_str short_name(const char *path)
{
	static const char *const ends[] = { ".gz", ".json", ".trace", ".pt" };
	struct gt_str name = file_name(path);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t len = strlen(ends[i]);

		if (name.len > len && !memcmp(name.ptr + name.len - len, ends[i], len))
			name.len -= len;
	}
	return name;
}

/* ---- spread ---------------------------------------------------------------------------------- */

struct spread {
	struct gt_range range;
	const struct gt_rank_row *at_max;
};

/* Of the files that have the figure. values has room for all rows. There is at least one. */
static struct spread find_spread(const struct gt_summary_ranks *ranks, size_t figure,
				 uint64_t *values)
{
	struct spread ret = { .at_max = &ranks->rows[0] };
	size_t count = 0;

	for (size_t i = 0; i < ranks->readable; i++) {
		const struct gt_rank_row *row = &ranks->rows[i];

		if (!has_value(row, figure))
			continue;
		values[count++] = value_of(row, figure);
		if (value_of(row, figure) > value_of(ret.at_max, figure))
			ret.at_max = row;
	}
	ret.range = gt_range_of(values, count);
	return ret;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void put_rank_name(struct gt_buf *out, const struct gt_rank_row *row)
{
	if (row->rank >= 0)
		gt_buf_printf(out, "rank %lld", (long long)row->rank);
	else
		gt_safe_put(out, gt_str_of(row->path));
}

static void put_rows(const struct gt_summary_ranks *ranks, const struct gt_summary_style *style,
		     struct gt_buf *out)
{
	const char *titles[ARRAY_SIZE(figures) + 2] = { "rank" };
	struct gt_text_table table = { .titles = titles, .columns = 1 };
	size_t shown = gt_summary_rows(style, ranks->readable);

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		if (figures[i].column)
			titles[table.columns++] = figures[i].column;
	}
	titles[table.columns++] = "file";
	gt_summary_put_title(out, style, "Ranks", shown, ranks->readable);
	for (size_t i = 0; i < shown; i++) {
		const struct gt_rank_row *row = &ranks->rows[i];

		gt_text_cell(&table, row->rank < 0 ? "-" : "%lld", (long long)row->rank);
		for (size_t k = 0; k < ARRAY_SIZE(figures); k++) {
			uint64_t value = value_of(row, k);

			if (!figures[k].column)
				continue;
			if (!has_value(row, k))
				gt_text_cell(&table, "-");
			else if (!figures[k].is_share)
				gt_text_cell(&table, "%s", gt_time_text_of(value).text);
			else
				gt_text_cell(&table, "%.1f%%",
					     row->gpu.span_ns ? 100.0 * (double)value /
									(double)row->gpu.span_ns
							      : 0.0);
		}
		gt_text_cell_name(&table, style->format == GT_SUMMARY_MARKDOWN
						  ? file_name(row->path)
						  : short_name(row->path));
	}
	gt_summary_put_table(&table, style, out);
}

static void put_spreads(const struct gt_summary_ranks *ranks, const struct gt_summary_style *style,
			struct gt_buf *out)
{
	static const char *const titles[] = {
		"min", "median", "max", "max/median", "most", "figure"
	};
	struct gt_text_table table = { .titles = titles, .columns = ARRAY_SIZE(titles) };
	uint64_t *values = malloc((ranks->readable + 1) * sizeof(*values));

	if (!values) {
		out->failed = true;
		return;
	}
	gt_summary_put_title(out, style, "Spread", 0, 0);
	for (size_t k = 0; k < ARRAY_SIZE(figures); k++) {
		struct spread spread;

		spread = find_spread(ranks, k, values);
		if (!spread.range.max)
			continue;
		gt_text_cell(&table, "%s", gt_time_text_of(spread.range.min).text);
		gt_text_cell(&table, "%s", gt_time_text_of(spread.range.median).text);
		gt_text_cell(&table, "%s", gt_time_text_of(spread.range.max).text);
		if (spread.range.median)
			gt_text_cell(&table, "%.3f",
				     (double)spread.range.max / (double)spread.range.median);
		else
			gt_text_cell(&table, "-");
		if (spread.at_max->rank >= 0)
			gt_text_cell(&table, "rank %lld", (long long)spread.at_max->rank);
		else
			gt_text_cell(&table, "-");
		gt_text_cell(&table, "%s", figures[k].title);
	}
	free(values);
	gt_summary_put_table(&table, style, out);
}

static void put_slowest(const struct gt_summary_ranks *ranks, const char *line, struct gt_buf *out)
{
	const struct gt_rank_row *slowest = ranks->slowest;
	bool by_step = slowest->steps.count > 0;
	uint64_t *values = malloc((ranks->readable + 1) * sizeof(*values));
	struct spread spread;

	if (!values) {
		out->failed = true;
		return;
	}
	spread = find_spread(ranks, by_step ? STEP_FIGURE : SPAN_FIGURE, values);
	free(values);
	gt_buf_printf(out, "%sslowest: ", line);
	put_rank_name(out, slowest);
	gt_buf_printf(out, ", %s %s", by_step ? "whose median step takes" : "whose GPU work spans",
		      gt_time_text_of(spread.range.max).text);
	if (spread.range.median)
		gt_buf_printf(out, ", %.1f%% more than the median of all",
			      100.0 * (double)(spread.range.max - spread.range.median) /
				      (double)spread.range.median);
	gt_buf_byte(out, '\n');
}

static void put_verdict(const struct gt_summary_ranks *ranks, const char *line, struct gt_buf *out)
{
	const struct gt_rank_row *waited_for = ranks->waited_for;

	if (ranks->slowest)
		put_slowest(ranks, line, out);
	if (waited_for) {
		gt_buf_printf(out, "%sleast exposed communication: ", line);
		put_rank_name(out, waited_for);
		gt_buf_printf(out, ", %s: where ranks wait for each other, they wait for it\n",
			      gt_time_text_of(waited_for->gpu.exposed_comm_ns).text);
	}
	if (ranks->missing)
		gt_buf_printf(
			out, "%swarning: no file here for %llu of the ranks, the first is %lld\n",
			line, (unsigned long long)ranks->missing, (long long)ranks->first_missing);
	if (ranks->twice)
		gt_buf_printf(
			out,
			"%swarning: %llu %s of a rank that another file has, too, the first of "
			"rank "
			"%lld: files of several programs or runs are to be summarised apart\n",
			line, (unsigned long long)ranks->twice,
			ranks->twice == 1 ? "file is" : "files are", (long long)ranks->first_twice);
}

static void put_tables(const struct gt_summary_ranks *ranks, const char *title,
		       const struct gt_summary_style *style, struct gt_buf *out)
{
	bool is_markdown = style->format == GT_SUMMARY_MARKDOWN;
	const char *line = is_markdown ? "- " : "";
	uint64_t events = 0;

	for (size_t i = 0; i < ranks->readable; i++)
		events += ranks->rows[i].events;
	gt_buf_text(out, is_markdown ? "## " : "");
	gt_safe_put(out, gt_str_of(title));
	gt_buf_printf(out, is_markdown ? "\n\n%s" : "\n%s", line);
	gt_buf_printf(out, "%zu trace%s, %llu event%s\n", ranks->readable,
		      ranks->readable == 1 ? "" : "s", (unsigned long long)events,
		      events == 1 ? "" : "s");
	put_verdict(ranks, line, out);
	for (size_t i = 0; i < ranks->count; i++) {
		const char *problem = gt_rank_row_problem(&ranks->rows[i]);

		if (!problem)
			continue;
		gt_buf_printf(out, "%swarning: ", line);
		gt_safe_put(out, gt_str_of(ranks->rows[i].path));
		gt_buf_text(out, ": ");
		gt_safe_put(out, gt_str_of(problem));
		gt_buf_byte(out, '\n');
	}
	if (!ranks->readable)
		return;
	if (ranks->readable > 1)
		put_spreads(ranks, style, out);
	put_rows(ranks, style, out);
}

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

static void put_csv(const struct gt_summary_ranks *ranks, struct gt_buf *out)
{
	gt_buf_text(out, "rank,events,steps");
	for (size_t k = 0; k < ARRAY_SIZE(figures); k++)
		gt_buf_printf(out, ",%s_us", figures[k].key);
	gt_buf_text(out, ",file\n");
	for (size_t i = 0; i < ranks->readable; i++) {
		const struct gt_rank_row *row = &ranks->rows[i];

		if (row->rank >= 0)
			gt_buf_printf(out, "%lld", (long long)row->rank);
		gt_buf_printf(out, ",%llu,%zu", (unsigned long long)row->events, row->steps.count);
		for (size_t k = 0; k < ARRAY_SIZE(figures); k++) {
			gt_buf_byte(out, ',');
			if (has_value(row, k))
				gt_summary_put_us_of(out, value_of(row, k));
		}
		gt_summary_put_csv_text(out, gt_str_of(row->path));
		gt_buf_byte(out, '\n');
	}
}

static void put_known(struct gt_buf *out, const char *key, int64_t value, int64_t least)
{
	if (value >= least)
		gt_buf_printf(out, ",\"%s\":%lld", key, (long long)value);
	else
		gt_buf_printf(out, ",\"%s\":null", key);
}

static void put_json_row(const struct gt_rank_row *row, struct gt_buf *out)
{
	gt_buf_text(out, "{\"path\":");
	gt_safe_put_json(out, gt_str_of(row->path));
	if (row->rc) {
		gt_buf_text(out, ",\"error\":");
		gt_safe_put_json(out, gt_str_of(row->why));
		gt_buf_byte(out, '}');
		return;
	}
	put_known(out, "rank", row->rank, 0);
	put_known(out, "world_size", row->world_size, 1);
	gt_buf_printf(out, ",\"step_times\":{\"count\":%zu,\"min_us\":", row->steps.count);
	gt_summary_put_us_of(out, row->steps.min);
	gt_buf_text(out, ",\"median_us\":");
	gt_summary_put_us_of(out, row->steps.median);
	gt_buf_text(out, ",\"max_us\":");
	gt_summary_put_us_of(out, row->steps.max);
	gt_buf_byte(out, '}');
	gt_buf_append(out, row->gpus.data, row->gpus.len);
	gt_buf_printf(out, ",\"health\":{\"salvaged\":%s,\"events\":%llu",
		      row->is_lossy ? "true" : "false", (unsigned long long)row->events);
	if (row->is_own)
		gt_buf_printf(out, ",\"complete\":%s", row->why ? "false" : "true");
	gt_buf_text(out, "}}");
}

static void put_json_spreads(const struct gt_summary_ranks *ranks, struct gt_buf *out)
{
	uint64_t *values = malloc((ranks->readable + 1) * sizeof(*values));

	if (!values) {
		out->failed = true;
		return;
	}
	for (size_t k = 0; ranks->readable && k < ARRAY_SIZE(figures); k++) {
		struct spread spread;

		spread = find_spread(ranks, k, values);
		gt_buf_printf(out, "%s\n\"%s\":{\"min_us\":", k ? "," : "", figures[k].key);
		gt_summary_put_us_of(out, spread.range.min);
		gt_buf_text(out, ",\"median_us\":");
		gt_summary_put_us_of(out, spread.range.median);
		gt_buf_text(out, ",\"max_us\":");
		gt_summary_put_us_of(out, spread.range.max);
		gt_buf_text(out, ",\"max_path\":");
		gt_safe_put_json(out, gt_str_of(spread.at_max->path));
		gt_buf_byte(out, '}');
	}
	free(values);
}

static void put_json_path(struct gt_buf *out, const char *key, const struct gt_rank_row *row)
{
	gt_buf_printf(out, ",\"%s\":", key);
	if (row)
		gt_safe_put_json(out, gt_str_of(row->path));
	else
		gt_buf_text(out, "null");
}

static void put_json(const struct gt_summary_ranks *ranks, struct gt_buf *out)
{
	gt_buf_text(out, "{\"files\":[");
	for (size_t i = 0; i < ranks->count; i++) {
		gt_buf_text(out, i ? ",\n" : "\n");
		put_json_row(&ranks->rows[i], out);
	}
	gt_buf_text(out, "],\"spread\":{");
	put_json_spreads(ranks, out);
	gt_buf_byte(out, '}');
	put_json_path(out, "slowest", ranks->slowest);
	put_json_path(out, "least_exposed_comm", ranks->waited_for);
	gt_buf_printf(out, ",\"missing_ranks\":%llu,\"repeated_ranks\":%llu}\n",
		      (unsigned long long)ranks->missing, (unsigned long long)ranks->twice);
}

int gt_summary_ranks_print(const struct gt_summary_ranks *ranks, const char *title,
			   const struct gt_summary_style *style, struct gt_buf *out)
{
	switch (style->format) {
	case GT_SUMMARY_JSON:
		put_json(ranks, out);
		break;
	case GT_SUMMARY_CSV:
		put_csv(ranks, out);
		break;
	case GT_SUMMARY_TABLE:
	case GT_SUMMARY_MARKDOWN:
		put_tables(ranks, title, style, out);
		break;
	}
	return out->failed ? -ENOMEM : 0;
}
