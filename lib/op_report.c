/*
 * op_report.c - see op_report.h.
 */
#include "base.h"
#include "buf.h"
#include "flops.h"
#include "input_dims.h"
#include "op_report.h"
#include "ops_priv.h"

#include <stdlib.h>

/* Names are matched up to here: a longer one could keep a regex busy. */
#define FILTER_MAX 65536

/* ---- order ----------------------------------------------------------------------------------- */

static const struct {
	const char *key; /* "gpu" stands for cuda and the like */
	enum gt_op_sort sort;
} sorts[] = {
	{ "name", GT_OP_BY_NAME },
	{ "key", GT_OP_BY_NAME },
	{ "calls", GT_OP_BY_CALLS },
	{ "count", GT_OP_BY_CALLS },
	{ "total", GT_OP_BY_DEFAULT },
	{ "cpu_time", GT_OP_BY_CPU_MEAN },
	{ "cpu_mean", GT_OP_BY_CPU_MEAN },
	{ "cpu_time_total", GT_OP_BY_CPU },
	{ "cpu", GT_OP_BY_CPU },
	{ "self_cpu_time_total", GT_OP_BY_SELF_CPU },
	{ "self_cpu", GT_OP_BY_SELF_CPU },
	{ "gpu_time", GT_OP_BY_GPU_MEAN },
	{ "gpu_mean", GT_OP_BY_GPU_MEAN },
	{ "gpu_time_total", GT_OP_BY_GPU },
	{ "gpu", GT_OP_BY_GPU },
	{ "self_gpu_time_total", GT_OP_BY_SELF_GPU },
	{ "self_gpu", GT_OP_BY_SELF_GPU },
	{ "cpu_memory_usage", GT_OP_BY_CPU_BYTES },
	{ "cpu_mem", GT_OP_BY_CPU_BYTES },
	{ "self_cpu_memory_usage", GT_OP_BY_SELF_CPU_BYTES },
	{ "self_cpu_mem", GT_OP_BY_SELF_CPU_BYTES },
	{ "gpu_memory_usage", GT_OP_BY_GPU_BYTES },
	{ "gpu_mem", GT_OP_BY_GPU_BYTES },
	{ "self_gpu_memory_usage", GT_OP_BY_SELF_GPU_BYTES },
	{ "self_gpu_mem", GT_OP_BY_SELF_GPU_BYTES },
	{ "flops", GT_OP_BY_FLOPS },
};

/* Whether text is key, with the name of some device in place of "gpu". */
static bool is_key(const char *text, const char *key)
{
	static const char *const devices[] = {
		"gpu", "cuda", "device", "xpu", "hip", "privateuse1"
	};
	const char *gpu = strstr(key, "gpu");
	size_t before = gpu ? (size_t)(gpu - key) : 0;

	if (!gpu)
		return !strcmp(text, key);
	if (strncmp(text, key, before) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		size_t len = strlen(devices[i]);

		if (!strncmp(text + before, devices[i], len) &&
		    !strcmp(text + before + len, gpu + 3))
			return true;
	}
	return false;
}

bool gt_op_sort_of(const char *text, enum gt_op_sort *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(sorts); i++) {
		if (is_key(text, sorts[i].key)) {
			*ret = sorts[i].sort;
			return true;
		}
	}
	return false;
}

static int64_t sort_value(const struct gt_op_line *line, enum gt_op_sort sort)
{
	const struct gt_op_row *sum = &line->sum;

	switch (sort) {
	case GT_OP_BY_CALLS:
		return (int64_t)sum->calls;
	case GT_OP_BY_CPU_MEAN:
		return gt_op_mean_ns(sum->cpu_ns, sum->calls);
	case GT_OP_BY_CPU:
		return sum->cpu_ns;
	case GT_OP_BY_SELF_CPU:
		return sum->self_cpu_ns;
	case GT_OP_BY_GPU_MEAN:
		return gt_op_mean_ns(sum->gpu_ns, sum->calls);
	case GT_OP_BY_GPU:
		return sum->gpu_ns;
	case GT_OP_BY_SELF_GPU:
		return sum->self_gpu_ns;
	case GT_OP_BY_CPU_BYTES:
		return sum->cpu_bytes;
	case GT_OP_BY_SELF_CPU_BYTES:
		return sum->self_cpu_bytes;
	case GT_OP_BY_GPU_BYTES:
		return sum->gpu_bytes;
	case GT_OP_BY_SELF_GPU_BYTES:
		return sum->self_gpu_bytes;
	case GT_OP_BY_FLOPS:
		return (int64_t)GT_MIN(line->flops + line->estimated_flops, (uint64_t)INT64_MAX);
	case GT_OP_BY_DEFAULT:
	case GT_OP_BY_NAME:
		break;
	}
	return 0;
}

static int compare_text(struct gt_str a, struct gt_str b)
{
	int rc = a.len && b.len ? memcmp(a.ptr, b.ptr, GT_MIN(a.len, b.len)) : 0;

	return rc ? rc : (a.len > b.len) - (a.len < b.len);
}

struct order {
	enum gt_op_sort sort;
	bool ranges_last;
};

/* Largest first; equal ones by name, so that the order never depends on the file's. */
static int compare_lines(const void *a, const void *b, void *context)
{
	const struct gt_op_line *left = a, *right = b;
	const struct order *order = context;
	int64_t l = sort_value(left, order->sort), r = sort_value(right, order->sort);
	int rc = 0;

	if (order->ranges_last)
		rc = (left->sum.kind == GT_OP_GPU_RANGE) - (right->sum.kind == GT_OP_GPU_RANGE);
	if (!rc)
		rc = (l < r) - (l > r);

	if (!rc)
		rc = compare_text(left->name, right->name);
	if (!rc)
		rc = (left->sum.kind > right->sum.kind) - (left->sum.kind < right->sum.kind);
	if (!rc)
		rc = compare_text(left->shapes, right->shapes);
	return rc ? rc : compare_text(left->stack, right->stack);
}

/* ---- groups ---------------------------------------------------------------------------------- */

bool gt_op_filter_takes(const regex_t *filter, struct gt_str name)
{
	regmatch_t range = { 0, (regoff_t)GT_MIN(name.len, (size_t)FILTER_MAX) };

	return !filter || !regexec(filter, name.ptr ? name.ptr : "", 1, &range, REG_STARTEND);
}

/* What tells lines apart: the name is in names of ops, the texts in those of the report. */
struct group_key {
	uint32_t name;
	uint32_t kind;
	uint32_t shapes;
	uint32_t stack;
};

struct groups {
	const struct gt_ops *ops;
	const struct gt_op_grouping *grouping;
	struct gt_op_report *report;
	struct gt_interner *texts;
	struct gt_interner keys;
	size_t cap;
};

static uint32_t final_shapes(struct groups *groups, const struct gt_op_row *row)
{
	struct gt_buf shapes = { 0 };
	uint32_t number;

	if (!groups->grouping->by_shape)
		return 0;
	gt_dims_put(&shapes, gt_interned(&groups->ops->texts, row->dims));
	number = shapes.failed ? GT_INTERN_FAILED : gt_intern(groups->texts, gt_buf_str(&shapes));
	gt_buf_release(&shapes);
	return number;
}

/* The line of a row, made at first sight; NULL: out of memory. */
static struct gt_op_line *find_line(struct groups *groups, const struct gt_op_row *row)
{
	struct gt_op_report *report = groups->report;
	const struct gt_ops *ops = groups->ops;
	struct group_key key = {
		.name = row->name,
		.kind = row->kind,
		.shapes = final_shapes(groups, row),
		.stack = groups->grouping->by_stack
				 ? gt_intern(groups->texts, gt_interned(&ops->texts, row->stack))
				 : 0,
	};
	uint32_t number;

	if (key.shapes == GT_INTERN_FAILED || key.stack == GT_INTERN_FAILED)
		return NULL;
	number = gt_intern(&groups->keys, (struct gt_str){ (const char *)&key, sizeof(key) });
	if (number == GT_INTERN_FAILED)
		return NULL;
	if (number == groups->cap) {
		size_t cap = groups->cap ? groups->cap * 2 : 64;
		struct gt_op_line *lines = realloc(report->lines, cap * sizeof(*lines));

		if (!lines)
			return NULL;
		report->lines = lines;
		groups->cap = cap;
	}
	if (number == report->count) {
		report->lines[report->count++] = (struct gt_op_line){
			.sum.kind = row->kind,
			.name = gt_interned(&ops->names, key.name),
			.shapes = gt_interned(groups->texts, key.shapes),
			.stack = gt_interned(groups->texts, key.stack),
		};
	}
	return &report->lines[number];
}

/* In which type a row's FLOPs are done. */
static enum gt_dtype dtype_of(const struct gt_op_row *row)
{
	enum gt_dtype dtype = (enum gt_dtype)row->dtype;

	if (row->inner_calls)
		dtype = row->inner_calls == row->calls ? (enum gt_dtype)row->inner_dtype
						       : GT_DTYPE_NONE;
	return dtype == GT_DTYPE_FP32 && row->has_tf32 ? GT_DTYPE_TF32 : dtype;
}

static void add_peak(const struct gt_gpu_peak *peak, const struct gt_op_row *row, double flops,
		     struct gt_op_line *line)
{
	enum gt_dtype dtype = dtype_of(row);

	if (!peak || !(peak->tera_ops[dtype] > 0)) {
		line->without_peak = true;
		return;
	}
	if (line->peak_dtype && line->peak_dtype != dtype)
		line->peak_dtype = GT_DTYPE_MAX;
	else
		line->peak_dtype = dtype;
	line->least_ns += flops / (peak->tera_ops[dtype] * 1000);
}

static void add_flops(struct groups *groups, const struct gt_op_row *row, struct gt_op_line *line)
{
	const struct gt_ops *ops = groups->ops;
	struct gt_str name = gt_interned(&ops->names, row->name);
	struct gt_str dims = gt_interned(&ops->texts, row->dims);
	uint64_t flops, estimated;

	if (row->kind != GT_OP_HOST || !dims.len || row->dtype == GT_DTYPE_NO_TENSOR)
		return;
	flops = gt_flops(name, dims, gt_interned(&ops->texts, row->values)) * row->calls;
	if (groups->grouping->with_flops)
		line->flops += flops;
	else
		line->estimated_flops += flops;
	estimated = gt_flops_estimated(name, dims) * row->calls;
	line->estimated_flops += estimated;
	if (flops || estimated)
		add_peak(groups->grouping->peak, row, (double)flops + (double)estimated, line);
	groups->report->has_flops |= line->flops != 0;
	groups->report->has_estimates |= line->estimated_flops != 0;
}

static void add_row(struct gt_op_report *report, const struct gt_op_row *row,
		    struct gt_op_line *line)
{
	struct gt_op_row *sum = &line->sum;

	sum->calls += row->calls;
	gt_ops_sum(&sum->self_cpu_ns, row->self_cpu_ns);
	gt_ops_sum(&sum->cpu_ns, row->cpu_ns);
	gt_ops_sum(&sum->self_gpu_ns, row->self_gpu_ns);
	gt_ops_sum(&sum->gpu_ns, row->gpu_ns);
	gt_ops_sum(&sum->self_cpu_bytes, row->self_cpu_bytes);
	gt_ops_sum(&sum->cpu_bytes, row->cpu_bytes);
	gt_ops_sum(&sum->self_gpu_bytes, row->self_gpu_bytes);
	gt_ops_sum(&sum->gpu_bytes, row->gpu_bytes);
	gt_ops_sum(&report->self_cpu_ns, row->self_cpu_ns);
	if (row->kind == GT_OP_GPU)
		gt_ops_sum(&report->self_gpu_ns, row->self_gpu_ns);
}

static int add_rows(struct groups *groups)
{
	const struct gt_ops *ops = groups->ops;

	/* Number 0 is the empty text. */
	if (gt_intern(groups->texts, (struct gt_str){ NULL, 0 }))
		return -ENOMEM;
	for (uint32_t i = 0; i < gt_ops_row_count(ops); i++) {
		const struct gt_op_row *row = &ops->rows[i];
		struct gt_op_line *line;

		if (!row->calls)
			continue;
		line = find_line(groups, row);
		if (!line)
			return -ENOMEM;
		add_row(groups->report, row, line);
		add_flops(groups, row, line);
	}
	return 0;
}

/* FLOPs are done while the work that the operator and those inside it launched runs on the GPU. */
static void finish_line(const struct gt_op_grouping *grouping, struct gt_op_line *line)
{
	int64_t ns = grouping->on_gpu ? line->sum.gpu_ns : line->sum.cpu_ns;

	if (ns <= 0)
		return;
	line->flops_per_s = ((double)line->flops + (double)line->estimated_flops) *
			    GT_NSEC_PER_SEC / (double)ns;
	if (grouping->on_gpu && !line->without_peak)
		line->peak_share = line->least_ns / (double)ns;
}

int gt_op_report(const struct gt_ops *ops, const struct gt_op_grouping *grouping,
		 struct gt_op_report *ret)
{
	struct gt_op_report report = { 0 };
	struct groups groups = {
		.ops = ops, .grouping = grouping, .report = &report, .texts = &report.texts
	};
	struct order order = { grouping->sort, grouping->sort == GT_OP_BY_DEFAULT };
	size_t taken = 0;
	int rc = add_rows(&groups);

	gt_interner_release(&groups.keys);
	if (rc) {
		gt_op_report_release(&report);
		return rc;
	}
	for (size_t i = 0; i < report.count; i++) {
		finish_line(grouping, &report.lines[i]);
		report.has_peak |= report.lines[i].peak_share > 0;
		if (gt_op_filter_takes(grouping->filter, report.lines[i].name))
			report.lines[taken++] = report.lines[i];
	}
	report.count = taken;
	if (order.sort == GT_OP_BY_DEFAULT)
		order.sort = report.self_gpu_ns ? GT_OP_BY_SELF_GPU : GT_OP_BY_SELF_CPU;
	if (taken)
		qsort_r(report.lines, taken, sizeof(*report.lines), compare_lines, &order);
	*ret = report;
	return 0;
}

void gt_op_report_release(struct gt_op_report *report)
{
	free(report->lines);
	gt_interner_release(&report->texts);
	memset(report, 0, sizeof(*report));
}

uint64_t gt_op_flop_rate(const struct gt_op_line *line)
{
	return (uint64_t)GT_MIN(line->flops_per_s, 1e18);
}

const char *gt_op_peak_name(const struct gt_op_line *line)
{
	return line->peak_dtype == GT_DTYPE_MAX ? "mixed"
						: gt_dtype_name((enum gt_dtype)line->peak_dtype);
}
