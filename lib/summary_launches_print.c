/*
 * summary_launches_print.c - why GPUs were idle and how they were fed, as tables and as JSON.
 */
#include "base.h"
#include "summary.h"
#include "summary_priv.h"
#include "text_table.h"

/* ---- tables ---------------------------------------------------------------------------------- */

/* Nothing is said where no launch is known. */
static bool is_known(const struct gt_summary_gpu *gpu)
{
	return gpu->launch.linked > 0;
}

static void put_idle(const struct gt_summary *summary, const struct gt_summary_style *style,
		     struct gt_buf *out)
{
	static const char *const titles[] = { "GPU",    "idle",      "host late",  "launch latency",
					      "queued", "comm wait", "dataloader", "unknown" };
	struct gt_text_table table = { .titles = titles, .columns = ARRAY_SIZE(titles) };

	gt_summary_put_title(out, style, "Idle time by cause", 0, 0);
	for (size_t i = 0; i < summary->gpu_count; i++) {
		const struct gt_summary_gpu *gpu = &summary->gpus[i];
		uint64_t span_ns = gpu->time.span_ns;

		if (!is_known(gpu))
			continue;
		gt_text_cell(&table, "%lld", (long long)gpu->device);
		gt_text_cell(&table, "%s", gt_time_text_of(gpu->time.idle_ns).text);
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->idle.host_late_ns, span_ns));
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->idle.launch_latency_ns, span_ns));
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->idle.queued_ns, span_ns));
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->idle.communication_ns, span_ns));
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->idle.data_loading_ns, span_ns));
		gt_text_cell(&table, "%.2f%%", gt_percent(gpu->idle.unknown_ns, span_ns));
	}
	gt_summary_put_table(&table, style, out);
}

static void put_delay(struct gt_text_table *table, const struct gt_launch_stats *stats,
		      uint64_t delay_ns)
{
	gt_text_cell(table, "%s", stats->launches ? gt_time_text_of(delay_ns).text : "-");
}

static void put_share(struct gt_text_table *table, uint64_t part, uint64_t whole)
{
	if (whole)
		gt_text_cell(table, "%.1f%%", gt_percent(part, whole));
	else
		gt_text_cell(table, "-");
}

static void put_stats(const struct gt_summary *summary, const struct gt_summary_style *style,
		      struct gt_buf *out)
{
	static const char *const titles[] = { "GPU",    "launches", "median delay", "p99",    "max",
					      "< 10us", "< call",   "queue",        "deepest" };
	struct gt_text_table table = { .titles = titles, .columns = ARRAY_SIZE(titles) };

	gt_summary_put_title(out, style, "Kernel launches", 0, 0);
	for (size_t i = 0; i < summary->gpu_count; i++) {
		const struct gt_launch_stats *stats = &summary->gpus[i].launch;

		if (!is_known(&summary->gpus[i]))
			continue;
		gt_text_cell(&table, "%lld", (long long)summary->gpus[i].device);
		gt_text_cell(&table, "%llu", (unsigned long long)stats->launches);
		put_delay(&table, stats, stats->delay_median_ns);
		put_delay(&table, stats, stats->delay_p99_ns);
		put_delay(&table, stats, stats->delay_max_ns);
		put_share(&table, stats->short_kernels, stats->kernels);
		put_share(&table, stats->shorter_than_call, stats->alone);
		gt_text_cell(&table, "%.2f", stats->queue_mean);
		gt_text_cell(&table, "%llu", (unsigned long long)stats->queue_max);
	}
	gt_summary_put_table(&table, style, out);
}

void gt_summary_put_launches(const struct gt_summary *summary, const struct gt_summary_style *style,
			     struct gt_buf *out)
{
	bool any_idle = false, any_known = false;

	for (size_t i = 0; i < summary->gpu_count; i++) {
		const struct gt_summary_gpu *gpu = &summary->gpus[i];

		any_known |= is_known(gpu);
		any_idle |= is_known(gpu) && gpu->time.idle_ns;
	}
	if (any_idle)
		put_idle(summary, style, out);
	if (any_known)
		put_stats(summary, style, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_idle_json(const struct gt_idle *idle, struct gt_buf *out)
{
	gt_buf_text(out, "{\"host_late_us\":");
	gt_summary_put_us(out, (int64_t)idle->host_late_ns);
	gt_buf_text(out, ",\"launch_latency_us\":");
	gt_summary_put_us(out, (int64_t)idle->launch_latency_ns);
	gt_buf_text(out, ",\"queued_us\":");
	gt_summary_put_us(out, (int64_t)idle->queued_ns);
	gt_buf_text(out, ",\"communication_us\":");
	gt_summary_put_us(out, (int64_t)idle->communication_ns);
	gt_buf_text(out, ",\"data_loading_us\":");
	gt_summary_put_us(out, (int64_t)idle->data_loading_ns);
	gt_buf_text(out, ",\"unknown_us\":");
	gt_summary_put_us(out, (int64_t)idle->unknown_ns);
	gt_buf_byte(out, '}');
}

static void put_stats_json(const struct gt_launch_stats *stats, struct gt_buf *out)
{
	gt_buf_printf(out, "{\"linked\":%llu,\"launches\":%llu,\"delay_median_us\":",
		      (unsigned long long)stats->linked, (unsigned long long)stats->launches);
	if (stats->launches) {
		gt_summary_put_us(out, (int64_t)stats->delay_median_ns);
		gt_buf_text(out, ",\"delay_p99_us\":");
		gt_summary_put_us(out, (int64_t)stats->delay_p99_ns);
		gt_buf_text(out, ",\"delay_max_us\":");
		gt_summary_put_us(out, (int64_t)stats->delay_max_ns);
	} else {
		gt_buf_text(out, "null,\"delay_p99_us\":null,\"delay_max_us\":null");
	}
	gt_buf_printf(out,
		      ",\"kernels\":%llu,\"short_kernels\":%llu,\"alone\":%llu"
		      ",\"shorter_than_call\":%llu,\"queue_mean\":%.4f,\"queue_max\":%llu}",
		      (unsigned long long)stats->kernels, (unsigned long long)stats->short_kernels,
		      (unsigned long long)stats->alone,
		      (unsigned long long)stats->shorter_than_call, stats->queue_mean,
		      (unsigned long long)stats->queue_max);
}

void gt_summary_put_launches_json(const struct gt_summary_gpu *gpu, struct gt_buf *out)
{
	if (!is_known(gpu)) {
		gt_buf_text(out, ",\"idle\":null,\"launch\":null");
		return;
	}
	gt_buf_text(out, ",\"idle\":");
	put_idle_json(&gpu->idle, out);
	gt_buf_text(out, ",\"launch\":");
	put_stats_json(&gpu->launch, out);
}
