/*
 * summary_json.c - the summary as JSON. gtrace-summary(1) documents the schema; keys are only
 * ever added to it.
 */
#include "base.h"
#include "summary.h"
#include "summary_priv.h"
#include "safe_text.h"

#include <stdlib.h>

static void put_key(struct gt_buf *out, const char *key)
{
	gt_buf_printf(out, "\"%s\":", key);
}

static void put_us(struct gt_buf *out, const char *key, int64_t ns)
{
	gt_buf_printf(out, ",\"%s\":", key);
	gt_summary_put_us(out, ns);
}

static void put_unsigned_us(struct gt_buf *out, const char *key, uint64_t ns)
{
	gt_buf_printf(out, ",\"%s\":", key);
	gt_summary_put_us_of(out, ns);
}

static void put_uint(struct gt_buf *out, const char *key, uint64_t value)
{
	gt_buf_printf(out, ",\"%s\":%llu", key, (unsigned long long)value);
}

static void put_bool(struct gt_buf *out, const char *key, bool value)
{
	gt_buf_printf(out, ",\"%s\":%s", key, value ? "true" : "false");
}

/* null when it is not known, that is below least. */
static void put_known(struct gt_buf *out, const char *key, int64_t value, int64_t least)
{
	if (value >= least)
		put_uint(out, key, (uint64_t)value);
	else
		gt_buf_printf(out, ",\"%s\":null", key);
}

static void put_text(struct gt_buf *out, const char *key, struct gt_str text)
{
	put_key(out, key);
	gt_safe_put_json(out, text);
}

static void put_steps(const struct gt_summary *summary, const struct gt_summary_style *style,
		      struct gt_buf *out)
{
	size_t taken, shown = gt_summary_steps_shown(summary, style, &taken), at = 0;

	gt_buf_text(out, ",\"steps\":[");
	for (size_t i = 0; i < shown; i++) {
		const struct gt_summary_step *step = gt_summary_next_step(summary, style, &at);

		gt_buf_text(out, i ? ",\n{" : "\n{");
		put_text(out, "name", gt_interned(&summary->step_names, step->name));
		put_us(out, "start_us", step->start_ns);
		put_unsigned_us(out, "dur_us", step->dur_ns);
		if (step->cut)
			put_bool(out, "cut", true);
		if (summary->gpu_count)
			put_unsigned_us(out, "gpu_busy_us", step->gpu_busy_ns);
		gt_summary_put_phases_json(step, summary->gpu_count != 0, out);
		gt_buf_byte(out, '}');
		gt_summary_drain(style, out);
	}
	gt_buf_byte(out, ']');
}

void gt_summary_put_gpus_json(const struct gt_summary *summary, struct gt_buf *out)
{
	gt_buf_text(out, ",\"gpus\":[");
	for (size_t i = 0; i < summary->gpu_count; i++) {
		const struct gt_summary_gpu *gpu = &summary->gpus[i];
		uint64_t hidden_ns = gpu->time.comm_ns - gpu->time.exposed_comm_ns;

		gt_buf_printf(out, "%s{\"device\":%lld", i ? ",\n" : "\n", (long long)gpu->device);
		put_unsigned_us(out, "span_us", gpu->time.span_ns);
		put_unsigned_us(out, "busy_us", gpu->time.busy_ns);
		put_unsigned_us(out, "compute_us", gpu->time.compute_ns);
		put_unsigned_us(out, "comm_us", gpu->time.comm_ns);
		put_unsigned_us(out, "exposed_comm_us", gpu->time.exposed_comm_ns);
		put_unsigned_us(out, "memcpy_us", gpu->time.memcpy_ns);
		put_unsigned_us(out, "exposed_memcpy_us", gpu->time.exposed_memcpy_ns);
		put_unsigned_us(out, "idle_us", gpu->time.idle_ns);
		if (gpu->time.comm_ns)
			gt_buf_printf(out, ",\"overlap_pct\":%.4f",
				      100.0 * (double)hidden_ns / (double)gpu->time.comm_ns);
		else
			gt_buf_text(out, ",\"overlap_pct\":null");
		put_uint(out, "ops", gpu->ops);
		gt_summary_put_launches_json(gpu, out);
		gt_buf_byte(out, '}');
	}
	gt_buf_byte(out, ']');
}

static void put_stats(const struct gt_summary *summary, const struct gt_summary_table *stats,
		      bool marked, const char *key, const struct gt_summary_style *style,
		      struct gt_buf *out)
{
	size_t shown;
	uint32_t *rows = gt_summary_order(stats, style, marked, &shown);

	if (!rows) {
		out->failed = true;
		return;
	}
	if (style->limit)
		shown = GT_MIN(shown, style->limit);
	gt_buf_printf(out, ",\"%s\":[", key);
	for (size_t i = 0; i < shown; i++) {
		const struct gt_summary_stat *stat = &stats->stats[rows[i]];

		gt_buf_text(out, i ? ",\n{" : "\n{");
		put_text(out, "name", gt_interned(&stats->names, rows[i]));
		put_uint(out, "calls", stat->calls);
		put_unsigned_us(out, "total_us", stat->total_ns);
		put_unsigned_us(out, "min_us", stat->min_ns);
		put_unsigned_us(out, "max_us", stat->max_ns);
		if (stat->bytes)
			put_uint(out, "bytes", stat->bytes);
		if (stats == &summary->kernels && summary->with_launches)
			gt_summary_put_kernel_json(summary, rows[i], out);
		gt_buf_byte(out, '}');
		gt_summary_drain(style, out);
	}
	gt_buf_byte(out, ']');
	free(rows);
}

static void put_own(const struct gt_summary_own *own, struct gt_buf *out)
{
	gt_buf_text(out, ",\"gtrace\":{");
	put_text(out, "version", gt_buf_str(&own->version));
	gt_buf_byte(out, ',');
	put_text(out, "step_source", gt_buf_str(&own->step_source));
	put_bool(out, "complete", own->complete);
	put_uint(out, "dropped", own->dropped);
	put_uint(out, "bad_records", own->bad_records);
	put_uint(out, "launches_without_gpu", own->launches_without_gpu);
	put_uint(out, "gpu_without_launch", own->gpu_without_launch);
	put_uint(out, "captured_launches", own->captured_launches);
	gt_buf_byte(out, '}');
}

static void put_warnings(const struct gt_summary *summary, struct gt_buf *out)
{
	struct gt_buf losses = { 0 };
	const char *at, *end;

	gt_buf_text(out, ",\"warnings\":[");
	gt_summary_losses(summary, &losses);
	out->failed |= losses.failed;
	for (at = losses.data; at && at < losses.data + losses.len; at = end + 1) {
		end = memchr(at, '\n', (size_t)(losses.data + losses.len - at));
		if (at != losses.data)
			gt_buf_byte(out, ',');
		gt_safe_put_json(out, (struct gt_str){ at, (size_t)(end - at) });
	}
	gt_buf_release(&losses);
	gt_buf_byte(out, ']');
}

static void put_health(const struct gt_summary *summary, struct gt_buf *out)
{
	gt_buf_printf(out, ",\"health\":{\"salvaged\":%s",
		      gt_summary_is_lossy(summary) ? "true" : "false");
	put_uint(out, "events", summary->read.events);
	put_uint(out, "skipped", summary->read.skipped + summary->without_dur);
	put_uint(out, "repaired", summary->read.repaired);
	put_bool(out, "cut", summary->read.cut || summary->gz.cut);
	put_uint(out, "damaged_places", summary->gz.damages);
	put_bool(out, "bad_checksum", summary->gz.bad_checksum);
	put_bool(out, "trailing", summary->read.trailing || summary->gz.trailing_junk);
	put_uint(out, "negative_durations", summary->negative);
	put_warnings(summary, out);
	if (summary->own.present)
		put_own(&summary->own, out);
	gt_buf_byte(out, '}');
}

void gt_summary_put_json(const struct gt_summary *summary, const struct gt_summary_style *style,
			 struct gt_buf *out)
{
	gt_buf_text(out, "{\"files\":[{");
	put_text(out, "path", gt_str_of(summary->path));
	put_known(out, "rank", summary->rank, 0);
	put_known(out, "world_size", summary->world_size, 1);
	gt_buf_byte(out, ',');
	put_text(out, "producer", gt_buf_str(&summary->producer));
	gt_buf_byte(out, ',');
	put_text(out, "devices", gt_buf_str(&summary->devices));
	gt_summary_put_copy_json(summary, out);
	put_steps(summary, style, out);
	gt_summary_put_gpus_json(summary, out);
	gt_summary_put_ops_json(summary, style, out);
	if (style->by == GT_SUMMARY_BY_STREAM || style->by == GT_SUMMARY_BY_THREAD)
		gt_summary_put_tracks(summary, style, out);
	if (style->by == GT_SUMMARY_BY_LINE)
		gt_summary_put_lines(summary, style, out);
	if (style->by == GT_SUMMARY_BY_CATEGORY)
		put_stats(summary, &summary->categories, false, "categories", style, out);
	if (style->by == GT_SUMMARY_BY_BLOCKING)
		put_stats(summary, &summary->blocking, false, "blocking_by_op", style, out);
	put_stats(summary, &summary->kernels, false, "kernels", style, out);
	put_stats(summary, &summary->copies, false, "copies", style, out);
	put_stats(summary, &summary->calls, true, "blocking", style, out);
	put_stats(summary, &summary->ranges, false, "ranges", style, out);
	put_health(summary, out);
	gt_buf_text(out, "}]}\n");
}
