/*
 * summary_steps_print.c - the steps as a table, and as CSV.
 */
#include "base.h"
#include "summary.h"
#include "summary_priv.h"
#include "text_table.h"

/* ---- phases ---------------------------------------------------------------------------------- */

/* In the order in which most programs run through them. */
static const struct {
	enum gt_torch_phase phase;
	const char *title;
} columns[] = {
	{ GT_TORCH_DATA, "data" },         { GT_TORCH_FORWARD, "forward" },
	{ GT_TORCH_BACKWARD, "backward" }, { GT_TORCH_OPTIMIZER, "optimizer" },
	{ GT_TORCH_OTHER, "other" },
};

static void put_phase_sums(const struct gt_summary_phases *phases, const char *line,
			   struct gt_buf *out)
{
	const char *comma = "";

	gt_buf_printf(out, "%sof all steps: ", line);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		uint64_t ns = phases->ns[columns[i].phase];

		if (!ns)
			continue;
		gt_buf_printf(out, "%s%s %.1f%%", comma, columns[i].title,
			      gt_percent(ns, phases->total_ns));
		comma = ", ";
	}
	gt_buf_byte(out, '\n');
}

void gt_summary_put_data_bound(const struct gt_summary *summary, const char *line,
			       struct gt_buf *out)
{
	struct gt_summary_phases phases = gt_summary_phases(summary);
	uint64_t data_ns = phases.ns[GT_TORCH_DATA];

	if (!gt_summary_is_data_bound(&phases))
		return;
	gt_buf_printf(out, "%sdata loading takes %.1f%% of the steps", line,
		      gt_percent(data_ns, phases.total_ns));
	if (summary->gpu_count)
		gt_buf_printf(out, ", and for %.1f%% of that the GPU%s idle",
			      gt_percent(data_ns - phases.data_gpu_busy_ns, data_ns),
			      summary->gpu_count == 1 ? " is" : "s are");
	gt_buf_text(out, ": more workers of the DataLoader may help\n");
}

void gt_summary_put_phases_json(const struct gt_summary_step *step, bool on_gpu, struct gt_buf *out)
{
	if (!step->has_phases)
		return;
	gt_buf_text(out, ",\"phases\":{");
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		gt_buf_printf(out, "%s\"%s_us\":", i ? "," : "", columns[i].title);
		gt_summary_put_us(out, (int64_t)step->phases.ns[columns[i].phase]);
	}
	if (on_gpu) {
		gt_buf_text(out, ",\"data_gpu_busy_us\":");
		gt_summary_put_us(out, (int64_t)step->data_gpu_busy_ns);
	}
	gt_buf_byte(out, '}');
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Below it there is no room for when steps start beside their phases. */
#define WIDTH_FOR_STARTS 92

struct layout {
	struct gt_summary_phases phases; /* .steps 0: none is shown */
	bool has_starts;
	bool has_gpu;
	const char *titles[GT_TEXT_COLUMNS_MAX];
	size_t columns;
};

static struct layout layout_of(const struct gt_summary *summary,
			       const struct gt_summary_style *style)
{
	struct layout ret = { .phases = gt_summary_phases(summary),
			      .has_gpu = summary->gpu_count != 0 };
	size_t n = 0;

	ret.has_starts = !ret.phases.steps || style->width >= WIDTH_FOR_STARTS ||
			 style->format == GT_SUMMARY_MARKDOWN;
	if (ret.has_starts)
		ret.titles[n++] = "starts at";
	ret.titles[n++] = "takes";
	for (size_t i = 0; ret.phases.steps && i < ARRAY_SIZE(columns); i++) {
		if (ret.phases.ns[columns[i].phase])
			ret.titles[n++] = columns[i].title;
	}
	if (ret.has_gpu && !ret.phases.steps)
		ret.titles[n++] = "GPU busy";
	if (ret.has_gpu)
		ret.titles[n++] = ret.phases.steps ? "GPU" : "share";
	ret.titles[n++] = "step";
	ret.columns = n;
	return ret;
}

static void put_row(const struct gt_summary *summary, const struct gt_summary_step *step,
		    const struct layout *layout, struct gt_text_table *table)
{
	if (layout->has_starts)
		gt_text_cell(table, "%s",
			     gt_time_text(step->start_ns - summary->steps[0].start_ns).text);
	gt_text_cell(table, "%s", gt_time_text_of(step->dur_ns).text);
	for (size_t i = 0; layout->phases.steps && i < ARRAY_SIZE(columns); i++) {
		enum gt_torch_phase phase = columns[i].phase;

		if (layout->phases.ns[phase] && step->has_phases)
			gt_text_cell(table, "%s", gt_time_text_of(step->phases.ns[phase]).text);
		else if (layout->phases.ns[phase])
			gt_text_cell(table, "-");
	}
	if (layout->has_gpu && !layout->phases.steps)
		gt_text_cell(table, "%s", gt_time_text_of(step->gpu_busy_ns).text);
	if (layout->has_gpu)
		gt_text_cell(table, "%.1f%%",
			     gt_percent(step->gpu_busy_ns, step->dur_ns) /
				     (double)summary->gpu_count);
	gt_text_cell_cut(table, gt_interned(&summary->step_names, step->name),
			 step->cut ? " (cut)" : "", SIZE_MAX);
}

/* ---- which of them --------------------------------------------------------------------------- */

static bool is_taken(const struct gt_summary *summary, const struct gt_summary_style *style,
		     size_t step)
{
	return gt_op_filter_takes(style->filter,
				  gt_interned(&summary->step_names, summary->steps[step].name));
}

size_t gt_summary_steps_shown(const struct gt_summary *summary,
			      const struct gt_summary_style *style, size_t *ret_taken)
{
	size_t taken = 0;

	for (size_t i = 0; i < summary->step_count; i++)
		taken += is_taken(summary, style, i);
	*ret_taken = taken;
	return gt_summary_rows(style, taken);
}

const struct gt_summary_step *gt_summary_next_step(const struct gt_summary *summary,
						   const struct gt_summary_style *style, size_t *at)
{
	while (!is_taken(summary, style, *at))
		++*at;
	return &summary->steps[(*at)++];
}

/* ---- all of it ------------------------------------------------------------------------------- */

void gt_summary_put_steps(const struct gt_summary *summary, const struct gt_summary_style *style,
			  struct gt_buf *out)
{
	const struct layout layout = layout_of(summary, style);
	struct gt_text_table table = { .titles = layout.titles, .columns = layout.columns };
	size_t taken, shown = gt_summary_steps_shown(summary, style, &taken), at = 0;

	if (!taken)
		return;
	gt_summary_put_title(out, style, "Steps", shown, taken);
	for (size_t i = 0; i < shown; i++)
		put_row(summary, gt_summary_next_step(summary, style, &at), &layout, &table);
	gt_summary_put_table(&table, style, out);
	if (layout.phases.steps)
		put_phase_sums(&layout.phases, style->format == GT_SUMMARY_MARKDOWN ? "\n" : "",
			       out);
}

void gt_summary_put_steps_csv(const struct gt_summary *summary,
			      const struct gt_summary_style *style, struct gt_buf *out)
{
	bool has_phases = gt_summary_phases(summary).steps != 0;
	bool has_cut = gt_summary_steps_cut(summary) != 0;
	size_t taken, shown = gt_summary_steps_shown(summary, style, &taken), at = 0;

	gt_buf_text(out, "start_us,dur_us,gpu_busy_us");
	for (size_t i = 0; has_phases && i < ARRAY_SIZE(columns); i++)
		gt_buf_printf(out, ",%s_us", columns[i].title);
	gt_buf_text(out, has_phases ? ",data_gpu_busy_us" : "");
	gt_buf_text(out, has_cut ? ",cut,name\n" : ",name\n");
	for (size_t i = 0; i < shown; i++) {
		const struct gt_summary_step *step = gt_summary_next_step(summary, style, &at);

		gt_summary_put_us(out, step->start_ns);
		gt_buf_byte(out, ',');
		gt_summary_put_us(out, (int64_t)step->dur_ns);
		gt_buf_byte(out, ',');
		gt_summary_put_us(out, (int64_t)step->gpu_busy_ns);
		for (size_t k = 0; has_phases && k < ARRAY_SIZE(columns); k++) {
			gt_buf_byte(out, ',');
			if (step->has_phases)
				gt_summary_put_us(out, (int64_t)step->phases.ns[columns[k].phase]);
		}
		if (has_phases) {
			gt_buf_byte(out, ',');
			gt_summary_put_us(out, (int64_t)step->data_gpu_busy_ns);
		}
		if (has_cut)
			gt_buf_text(out, step->cut ? ",true" : ",");
		gt_summary_put_csv_text(out, gt_interned(&summary->step_names, step->name));
		gt_buf_byte(out, '\n');
		gt_summary_drain(style, out);
	}
}
