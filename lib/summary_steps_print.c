/*
 * summary_steps_print.c - the steps as a table, and as CSV.
 */
#include "base.h"
#include "summary.h"
#include "summary_priv.h"
#include "text_table.h"

static size_t rows_shown(const struct gt_summary *summary, const struct gt_summary_style *style)
{
	return style->limit ? GT_MIN(style->limit, summary->step_count) : summary->step_count;
}

void gt_summary_put_steps(const struct gt_summary *summary, const struct gt_summary_style *style,
			  struct gt_buf *out)
{
	static const char *const with_gpu[] = { "starts at", "takes", "GPU busy", "share", "step" };
	static const char *const without[] = { "starts at", "takes", "step" };
	bool on_gpu = summary->gpu_count != 0;
	struct gt_text_table table = { .titles = on_gpu ? with_gpu : without,
				       .columns = on_gpu ? ARRAY_SIZE(with_gpu)
							 : ARRAY_SIZE(without) };
	size_t shown = rows_shown(summary, style);

	if (!summary->step_count)
		return;
	gt_summary_put_title(out, style, "Steps", shown, summary->step_count);
	for (size_t i = 0; i < shown; i++) {
		const struct gt_summary_step *step = &summary->steps[i];

		gt_text_cell(&table, "%s",
			     gt_time_text(step->start_ns - summary->steps[0].start_ns).text);
		gt_text_cell(&table, "%s", gt_time_text((int64_t)step->dur_ns).text);
		if (on_gpu) {
			gt_text_cell(&table, "%s", gt_time_text((int64_t)step->gpu_busy_ns).text);
			gt_text_cell(&table, "%.1f%%",
				     gt_percent(step->gpu_busy_ns, step->dur_ns) /
					     (double)summary->gpu_count);
		}
		gt_text_cell_name(&table, gt_interned(&summary->step_names, step->name));
	}
	gt_summary_put_table(&table, style, out);
}

void gt_summary_put_steps_csv(const struct gt_summary *summary,
			      const struct gt_summary_style *style, struct gt_buf *out)
{
	gt_buf_text(out, "start_us,dur_us,gpu_busy_us,name\n");
	for (size_t i = 0; i < rows_shown(summary, style); i++) {
		const struct gt_summary_step *step = &summary->steps[i];

		gt_summary_put_us(out, step->start_ns);
		gt_buf_byte(out, ',');
		gt_summary_put_us(out, (int64_t)step->dur_ns);
		gt_buf_byte(out, ',');
		gt_summary_put_us(out, (int64_t)step->gpu_busy_ns);
		gt_summary_put_csv_text(out, gt_interned(&summary->step_names, step->name));
		gt_buf_byte(out, '\n');
		gt_summary_drain(style, out);
	}
}
