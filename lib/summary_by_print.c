/*
 * summary_by_print.c - tables that are printed alone: streams and threads, copies with their
 * bandwidth.
 */
#include "base.h"
#include "safe_text.h"
#include "summary.h"
#include "summary_priv.h"
#include "text_table.h"

#include <stdlib.h>

static void put_time(struct gt_text_table *table, uint64_t ns)
{
	gt_text_cell(table, "%s", gt_time_text_of(ns).text);
}

/* ---- streams and threads --------------------------------------------------------------------- */

struct kind { /* what the tracks are called */
	const char *title;
	const char *titles[3 + GT_TRACK_PARTS];
	size_t parts;                         /* that such tracks have */
	const char *key;                      /* of JSON */
	const char *keys[2 + GT_TRACK_PARTS]; /* of JSON and CSV */
};

static const struct kind streams = {
	.title = "Streams",
	.titles = { "work", "busy", "computation", "comm", "copies", "stream" },
	.parts = 3,
	.key = "streams",
	.keys = { "ops", "busy_us", "compute_us", "comm_us", "memcpy_us" },
};

static const struct kind threads = {
	.title = "Threads",
	.titles = { "slices", "busy", "calls", "blocking", "thread" },
	.parts = 2,
	.key = "threads",
	.keys = { "slices", "busy_us", "calls_us", "blocking_us" },
};

static const struct kind *kind_of(const struct gt_summary_style *style)
{
	return style->by == GT_SUMMARY_BY_STREAM ? &streams : &threads;
}

struct order {
	const struct gt_summary_tracks *tracks;
	enum gt_summary_sort sort;
};

/* Largest first, names ascending. */
static int compare(const void *a, const void *b, void *context)
{
	const struct order *order = context;
	const struct gt_summary_tracks *tracks = order->tracks;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct gt_summary_track *l = &tracks->rows[left], *r = &tracks->rows[right];
	struct gt_str left_name = gt_interned(&tracks->names, left);
	struct gt_str right_name = gt_interned(&tracks->names, right);
	int rc = 0;

	if (order->sort == GT_SUMMARY_BY_CALLS)
		rc = (l->slices < r->slices) - (l->slices > r->slices);
	else if (order->sort != GT_SUMMARY_BY_NAME)
		rc = (l->busy_ns < r->busy_ns) - (l->busy_ns > r->busy_ns);
	if (!rc)
		rc = memcmp(left_name.ptr, right_name.ptr, GT_MIN(left_name.len, right_name.len));
	return rc ? rc : (left_name.len > right_name.len) - (left_name.len < right_name.len);
}

/* The name of a track, with what the file calls it, into text, which is emptied first. */
static struct gt_str name_of(const struct gt_summary_tracks *tracks, uint32_t number,
			     struct gt_buf *text)
{
	struct gt_str name = gt_interned(&tracks->names, number);
	struct gt_str label = gt_buf_str(&tracks->rows[number].label);
	const char *id = memmem(name.ptr, name.len, " thread ", 8);

	text->len = 0;
	/* "thread 7" is often the beginning of what it is called. */
	if (id && gt_str_starts(label, GT_STR("thread ")))
		name.len = (size_t)(id - name.ptr);
	gt_buf_append(text, name.ptr, name.len);
	if (label.len) {
		gt_buf_byte(text, ' ');
		gt_buf_append(text, label.ptr, label.len);
	}
	return gt_buf_str(text);
}

/* The numbers of the tracks that are shown, in order; malloc'd. NULL: out of memory. */
static uint32_t *order_of(const struct gt_summary_tracks *tracks,
			  const struct gt_summary_style *style, size_t *ret_count)
{
	struct order order = { tracks, style->sort };
	uint32_t *rows = malloc((tracks->names.count + (size_t)1) * sizeof(*rows));
	struct gt_buf name = { 0 };
	size_t count = 0;

	for (uint32_t i = 0; rows && i < tracks->names.count; i++) {
		if (tracks->rows[i].slices &&
		    gt_op_filter_takes(style->filter, name_of(tracks, i, &name)))
			rows[count++] = i;
	}
	if (rows && !name.failed)
		qsort_r(rows, count, sizeof(*rows), compare, &order);
	gt_buf_release(&name);
	*ret_count = count;
	return rows;
}

static void put_row(struct gt_text_table *table, const struct gt_summary_track *track,
		    struct gt_str name, const struct kind *kind)
{
	gt_text_cell(table, "%llu", (unsigned long long)track->slices);
	put_time(table, track->busy_ns);
	for (size_t i = 0; i < kind->parts; i++)
		put_time(table, track->parts_ns[i]);
	gt_text_cell_name(table, name);
}

static void put_csv_title(struct gt_buf *out, const struct kind *kind)
{
	for (size_t i = 0; i < 2 + kind->parts; i++)
		gt_buf_printf(out, "%s,", kind->keys[i]);
	gt_buf_text(out, "name\n");
}

static void put_csv_row(struct gt_buf *out, const struct gt_summary_track *track,
			struct gt_str name, const struct kind *kind)
{
	gt_buf_printf(out, "%llu,", (unsigned long long)track->slices);
	gt_summary_put_us_of(out, track->busy_ns);
	for (size_t i = 0; i < kind->parts; i++) {
		gt_buf_byte(out, ',');
		gt_summary_put_us_of(out, track->parts_ns[i]);
	}
	gt_summary_put_csv_text(out, name);
	gt_buf_byte(out, '\n');
}

static void put_json_row(struct gt_buf *out, const struct gt_summary_track *track,
			 struct gt_str name, const struct kind *kind)
{
	gt_buf_text(out, "{\"name\":");
	gt_safe_put_json(out, name);
	gt_buf_printf(out, ",\"%s\":%llu,\"%s\":", kind->keys[0], (unsigned long long)track->slices,
		      kind->keys[1]);
	gt_summary_put_us_of(out, track->busy_ns);
	for (size_t i = 0; i < kind->parts; i++) {
		gt_buf_printf(out, ",\"%s\":", kind->keys[2 + i]);
		gt_summary_put_us_of(out, track->parts_ns[i]);
	}
	gt_buf_byte(out, '}');
}

void gt_summary_put_tracks(const struct gt_summary *summary, const struct gt_summary_style *style,
			   struct gt_buf *out)
{
	const struct gt_summary_tracks *tracks = &summary->tracks;
	const struct kind *kind = kind_of(style);
	struct gt_text_table table = { .titles = kind->titles, .columns = 3 + kind->parts };
	struct gt_buf name = { 0 };
	size_t count, shown;
	uint32_t *rows = order_of(tracks, style, &count);

	shown = rows ? gt_summary_rows(style, count) : 0;
	out->failed |= !rows;
	if (style->format == GT_SUMMARY_JSON)
		gt_buf_printf(out, ",\"%s\":[", kind->key);
	else if (style->format == GT_SUMMARY_CSV)
		put_csv_title(out, kind);
	else if (shown)
		gt_summary_put_title(out, style, kind->title, shown, count);
	for (size_t i = 0; i < shown; i++) {
		const struct gt_summary_track *track = &tracks->rows[rows[i]];
		struct gt_str text = name_of(tracks, rows[i], &name);

		if (style->format == GT_SUMMARY_JSON) {
			gt_buf_text(out, i ? ",\n" : "\n");
			put_json_row(out, track, text, kind);
		} else if (style->format == GT_SUMMARY_CSV) {
			put_csv_row(out, track, text, kind);
		} else {
			put_row(&table, track, text, kind);
		}
		gt_summary_drain(style, out);
	}
	if (style->format == GT_SUMMARY_JSON)
		gt_buf_byte(out, ']');
	else if (style->format != GT_SUMMARY_CSV && shown)
		gt_summary_put_table(&table, style, out);
	out->failed |= name.failed;
	gt_buf_release(&name);
	free(rows);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Bytes per ns are GB/s. */
static double bandwidth(const struct gt_summary_stat *stat)
{
	return stat->total_ns ? (double)stat->bytes / (double)stat->total_ns : 0;
}

void gt_summary_put_copies(const struct gt_summary *summary, const struct gt_summary_style *style,
			   struct gt_buf *out)
{
	static const char *const titles[] = { "calls", "total", "mean", "min",
					      "max",   "bytes", "GB/s", "operation" };
	struct gt_text_table table = { .titles = titles, .columns = ARRAY_SIZE(titles) };
	const struct gt_summary_table *copies = &summary->copies;
	size_t count, shown;
	uint32_t *rows = gt_summary_order(copies, style, false, &count);
	bool csv = style->format == GT_SUMMARY_CSV;

	shown = rows ? gt_summary_rows(style, count) : 0;
	out->failed |= !rows;
	if (csv)
		gt_buf_text(out, "calls,total_us,mean_us,min_us,max_us,bytes,name\n");
	else if (shown)
		gt_summary_put_title(out, style, "Copies and sets", shown, count);
	for (size_t i = 0; i < shown; i++) {
		const struct gt_summary_stat *stat = &copies->stats[rows[i]];
		const uint64_t times_ns[] = { stat->total_ns, gt_summary_mean_ns(stat),
					      stat->min_ns, stat->max_ns };
		struct gt_str name = gt_interned(&copies->names, rows[i]);

		if (csv) {
			gt_buf_printf(out, "%llu", (unsigned long long)stat->calls);
			for (size_t k = 0; k < ARRAY_SIZE(times_ns); k++) {
				gt_buf_byte(out, ',');
				gt_summary_put_us_of(out, times_ns[k]);
			}
			gt_buf_printf(out, ",%llu", (unsigned long long)stat->bytes);
			gt_summary_put_csv_text(out, name);
			gt_buf_byte(out, '\n');
			continue;
		}
		gt_text_cell(&table, "%llu", (unsigned long long)stat->calls);
		for (size_t k = 0; k < ARRAY_SIZE(times_ns); k++)
			put_time(&table, times_ns[k]);
		gt_summary_put_bytes(&table, (int64_t)GT_MIN(stat->bytes, (uint64_t)INT64_MAX));
		gt_text_cell(&table, stat->bytes ? "%.2f" : "-", bandwidth(stat));
		gt_text_cell_name(&table, name);
	}
	if (!csv && shown)
		gt_summary_put_table(&table, style, out);
	free(rows);
}
