/*
 * summary_ops.c - the operators of a summary, and as CSV and JSON.
 */
#include "base.h"
#include "op_report.h"
#include "safe_text.h"
#include "summary_priv.h"

int gt_summary_op_report(const struct gt_summary *summary, const struct gt_summary_style *style,
			 struct gt_op_report *ret)
{
	struct gt_op_grouping grouping = {
		.by_shape = style->by_shape,
		.by_stack = style->by_stack,
		.with_flops = summary->with_flops,
		.on_gpu = summary->gpu_count != 0,
		.peak = gt_gpu_peak_of(gt_buf_str(&summary->devices)),
		.filter = style->filter,
		.sort = style->op_sort,
	};

	return gt_op_report(&summary->ops, &grouping, ret);
}

static bool is_on_gpu(const struct gt_op_line *line)
{
	return line->sum.kind == GT_OP_GPU || line->sum.kind == GT_OP_GPU_RANGE;
}

static bool is_range(const struct gt_op_line *line)
{
	return line->sum.kind == GT_OP_RANGE || line->sum.kind == GT_OP_GPU_RANGE;
}

static void put_csv_us(struct gt_buf *out, int64_t ns)
{
	gt_buf_byte(out, ',');
	gt_summary_put_us(out, ns);
}

static void put_csv_line(const struct gt_op_line *line, bool memory, struct gt_buf *out)
{
	const struct gt_op_row *sum = &line->sum;

	gt_buf_printf(out, "%s,%d,%llu", is_on_gpu(line) ? "CUDA" : "CPU", is_range(line),
		      (unsigned long long)sum->calls);
	put_csv_us(out, sum->self_cpu_ns);
	put_csv_us(out, sum->cpu_ns);
	put_csv_us(out, sum->self_gpu_ns);
	put_csv_us(out, sum->gpu_ns);
	gt_buf_printf(out, ",%llu,%llu,", (unsigned long long)line->flops,
		      (unsigned long long)line->estimated_flops);
	if (line->flops_per_s > 0)
		gt_buf_printf(out, "%llu", (unsigned long long)gt_op_flop_rate(line));
	if (line->peak_share > 0)
		gt_buf_printf(out, ",%.6f,%s", line->peak_share, gt_op_peak_name(line));
	else
		gt_buf_text(out, ",,");
	if (memory)
		gt_buf_printf(out, ",%lld,%lld,%lld,%lld", (long long)sum->self_cpu_bytes,
			      (long long)sum->cpu_bytes, (long long)sum->self_gpu_bytes,
			      (long long)sum->gpu_bytes);
}

void gt_summary_put_ops_csv(const struct gt_summary *summary, const struct gt_summary_style *style,
			    struct gt_buf *out)
{
	bool memory = summary->ops.has_memory;
	struct gt_op_report report;

	if (gt_summary_op_report(summary, style, &report) < 0) {
		out->failed = true;
		return;
	}
	gt_buf_printf(out,
		      "device,user_annotation,calls,self_cpu_us,cpu_us,self_cuda_us,cuda_us,flops,"
		      "estimated_flops,flops_per_s,peak_share,peak_dtype%s%s%s,name\n",
		      memory ? ",self_cpu_mem,cpu_mem,self_cuda_mem,cuda_mem" : "",
		      style->by_shape ? ",input_shapes" : "", style->by_stack ? ",stack" : "");
	for (size_t i = 0; i < gt_summary_rows(style, report.count); i++) {
		const struct gt_op_line *line = &report.lines[i];

		put_csv_line(line, memory, out);
		if (style->by_shape)
			gt_summary_put_csv_text(out, line->shapes);
		if (style->by_stack)
			gt_summary_put_csv_text(out, line->stack);
		gt_summary_put_csv_text(out, line->name);
		gt_buf_byte(out, '\n');
		gt_summary_drain(style, out);
	}
	gt_op_report_release(&report);
}

static void put_json_us(struct gt_buf *out, const char *key, int64_t ns)
{
	gt_buf_printf(out, ",\"%s\":", key);
	gt_summary_put_us(out, ns);
}

static void put_json_stack(struct gt_buf *out, struct gt_str stack)
{
	const char *separator = "";

	gt_buf_text(out, ",\"stack\":[");
	while (stack.len) {
		const char *end = memchr(stack.ptr, '\n', stack.len);
		size_t len = end ? (size_t)(end - stack.ptr) : stack.len;

		gt_buf_text(out, separator);
		gt_safe_put_json(out, (struct gt_str){ stack.ptr, len });
		separator = ",";
		len += end != NULL;
		stack = (struct gt_str){ stack.ptr + len, stack.len - len };
	}
	gt_buf_byte(out, ']');
}

static void put_json_line(const struct gt_op_line *line, bool memory,
			  const struct gt_summary_style *style, struct gt_buf *out)
{
	const struct gt_op_row *sum = &line->sum;

	gt_buf_text(out, "{\"name\":");
	gt_safe_put_json(out, line->name);
	gt_buf_printf(out, ",\"calls\":%llu", (unsigned long long)sum->calls);
	put_json_us(out, "self_cpu_us", sum->self_cpu_ns);
	put_json_us(out, "cpu_us", sum->cpu_ns);
	put_json_us(out, "self_cuda_us", sum->self_gpu_ns);
	put_json_us(out, "cuda_us", sum->gpu_ns);
	gt_buf_printf(out, ",\"flops\":%llu,\"estimated_flops\":%llu",
		      (unsigned long long)line->flops, (unsigned long long)line->estimated_flops);
	if (line->flops_per_s > 0)
		gt_buf_printf(out, ",\"flops_per_s\":%llu",
			      (unsigned long long)gt_op_flop_rate(line));
	if (line->peak_share > 0)
		gt_buf_printf(out, ",\"peak_share\":%.6f,\"peak_dtype\":\"%s\"", line->peak_share,
			      gt_op_peak_name(line));
	if (memory)
		gt_buf_printf(out,
			      ",\"self_cpu_mem\":%lld,\"cpu_mem\":%lld,\"self_cuda_mem\":%lld,"
			      "\"cuda_mem\":%lld",
			      (long long)sum->self_cpu_bytes, (long long)sum->cpu_bytes,
			      (long long)sum->self_gpu_bytes, (long long)sum->gpu_bytes);
	gt_buf_printf(out, ",\"device\":\"%s\",\"user_annotation\":%s",
		      is_on_gpu(line) ? "CUDA" : "CPU", is_range(line) ? "true" : "false");
	if (style->by_shape) {
		gt_buf_text(out, ",\"input_shapes\":");
		if (line->shapes.len)
			gt_safe_put_json(out, line->shapes);
		else
			gt_buf_text(out, "null");
	}
	if (style->by_stack)
		put_json_stack(out, line->stack);
	gt_buf_byte(out, '}');
}

void gt_summary_put_ops_json(const struct gt_summary *summary, const struct gt_summary_style *style,
			     struct gt_buf *out)
{
	struct gt_op_report report;

	if (gt_summary_op_report(summary, style, &report) < 0) {
		out->failed = true;
		return;
	}
	gt_buf_text(out, ",\"ops\":[");
	for (size_t i = 0; i < gt_summary_rows(style, report.count); i++) {
		gt_buf_text(out, i ? ",\n" : "\n");
		put_json_line(&report.lines[i], summary->ops.has_memory, style, out);
		gt_summary_drain(style, out);
	}
	gt_buf_byte(out, ']');
	gt_op_report_release(&report);
}
