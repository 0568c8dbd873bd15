#include "base.h"
#include "cmd.h"
#include "die.h"
#include "options.h"
#include "summary.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_WIDTH 80
#define DEFAULT_ROWS  20
#define LIMIT_MAX     UINT32_MAX
/* No limit was given. */
#define LIMIT_DEFAULT UINT64_MAX

static const char *const formats[] = { "table", "json", "csv", "markdown", NULL };
#define STACK_DEPTH_DEFAULT 5
#define STACK_DEPTH_MAX     1000

static int format = GT_SUMMARY_TABLE;
static const char *by;
static const char *sort;
static const char *filter;
static uint64_t limit = LIMIT_DEFAULT;
static uint64_t stack_depth = STACK_DEPTH_DEFAULT;

static const struct opt opts[] = {
	OPT_STRING(0, "by", &by, "KEYS",
		   "op, kernel, shape, stack, or several with commas\n"
		   "between (op,shape): one table, of operators, of\n"
		   "kernels, or of operators told apart by the shapes\n"
		   "of their inputs, or by their Python stacks"),
	OPT_UINT(0, "stack-depth", &stack_depth, "N", 1, STACK_DEPTH_MAX,
		 "frames of a stack that count, for --by stack (5)"),
	OPT_CHOICE(0, "format", &format, "FORMAT", formats,
		   "table, json, csv or markdown (table); json and\n"
		   "csv have names in full and times in microseconds"),
	OPT_STRING(0, "sort", &sort, "KEY",
		   "total, calls, mean, min, max or name: the order\n"
		   "of the rows (total); for operators also torch's\n"
		   "keys (self_cuda_time_total, cpu_memory_usage …),\n"
		   "shorter ones (self_cuda, cpu_mem …) and flops"),
	OPT_STRING(0, "filter", &filter, "REGEX",
		   "only rows in whose name this extended regular\n"
		   "expression is found"),
	OPT_UINT(0, "limit", &limit, "N", 0, LIMIT_MAX,
		 "rows of each table, 0: all (20; in json and csv\n"
		 "all)"),
};

static const struct opt_command self = {
	.name = "summary",
	.synopsis = "[options] FILE",
	.about = "Say where the time of a trace went. FILE is a Kineto or Chrome trace\n"
		 "by whatever tool, plain or gzip; '-' is standard input. The exit status\n"
		 "is 3 when the file is cut or damaged and only a part could be used",
	.opts = opts,
	.count = ARRAY_SIZE(opts),
};

static size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col)
		return DEFAULT_WIDTH;
	return size.ws_col;
}

/* Formats for programs have no place for them above the tables. */
static void warn_of_losses(const struct gt_summary *summary)
{
	struct gt_buf losses = { 0 };
	const char *at, *end;

	gt_summary_losses(summary, &losses);
	for (at = losses.data; at && at < losses.data + losses.len; at = end + 1) {
		end = memchr(at, '\n', (size_t)(losses.data + losses.len - at));
		warn("%s: %.*s", summary->path, (int)(end - at), at);
	}
	gt_buf_release(&losses);
}

/* ---- options --------------------------------------------------------------------------------- */

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(at, word, len);
}

static void read_by(struct gt_summary_style *style)
{
	const char *at = by;

	while (at) {
		size_t len = strcspn(at, ",");
		bool is_kernel = is_word(at, len, "kernel");

		style->by_shape |= is_word(at, len, "shape");
		style->by_stack |= is_word(at, len, "stack");
		if (!is_kernel && !is_word(at, len, "op") && !is_word(at, len, "shape") &&
		    !is_word(at, len, "stack"))
			die(STATUS_USAGE,
			    "--by takes op, kernel, shape or stack, not '%.*s'; see 'gtrace "
			    "summary -h'",
			    (int)len, at);
		if (style->by && (is_kernel || style->by == GT_SUMMARY_BY_KERNEL))
			die(STATUS_USAGE, "--by kernel stands alone; see 'gtrace summary -h'");
		style->by = is_kernel ? GT_SUMMARY_BY_KERNEL : GT_SUMMARY_BY_OP;
		at = at[len] ? at + len + 1 : NULL;
	}
}

/* A key that only operators have orders the other tables by their nearest. */
static void read_sort(struct gt_summary_style *style)
{
	static const struct {
		const char *key;
		enum gt_summary_sort sort;
	} keys[] = {
		{ "total", GT_SUMMARY_BY_TOTAL }, { "calls", GT_SUMMARY_BY_CALLS },
		{ "count", GT_SUMMARY_BY_CALLS }, { "mean", GT_SUMMARY_BY_MEAN },
		{ "min", GT_SUMMARY_BY_MIN },     { "max", GT_SUMMARY_BY_MAX },
		{ "name", GT_SUMMARY_BY_NAME },
	};
	bool known = !sort || gt_op_sort_of(sort, &style->op_sort);

	for (size_t i = 0; sort && i < ARRAY_SIZE(keys); i++) {
		if (strcmp(sort, keys[i].key) != 0)
			continue;
		style->sort = keys[i].sort;
		known = true;
	}
	if (!known)
		die(STATUS_USAGE,
		    "--sort takes total, calls, mean, min, max, name or a key of torch's tables, "
		    "not '%s'; see 'gtrace summary -h'",
		    sort);
	if (style->op_sort == GT_OP_BY_CPU_MEAN || style->op_sort == GT_OP_BY_GPU_MEAN)
		style->sort = GT_SUMMARY_BY_MEAN;
}

static void read_filter(struct gt_summary_style *style, regex_t *regex)
{
	char why[128];
	int rc;

	if (!filter)
		return;
	rc = regcomp(regex, filter, REG_EXTENDED);
	if (rc) {
		regerror(rc, regex, why, sizeof(why));
		die(STATUS_USAGE, "--filter: '%s': %s; see 'gtrace summary -h'", filter, why);
	}
	style->filter = regex;
}

static int summarize(const char *path)
{
	struct gt_summary_style style = { .format = format };
	struct gt_summary_options options = { 0 };
	struct gt_summary *summary;
	struct gt_buf text = { 0 };
	struct gt_err err;
	regex_t regex;
	bool lossy;

	read_by(&style);
	read_sort(&style);
	read_filter(&style, &regex);
	if (style.by_stack)
		options.stack_depth = stack_depth;
	if (gt_summary_load(&summary, path, &options, &err) < 0)
		die(STATUS_FAILURE, "%s: %s", path, err.msg);
	style.width = terminal_width();
	style.limit = limit;
	if (limit == LIMIT_DEFAULT)
		style.limit = format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV ? 0
										    : DEFAULT_ROWS;
	if (gt_summary_print(summary, &style, &text) < 0)
		die(STATUS_FAILURE, "out of memory");
	fwrite(text.data, 1, text.len, stdout);
	if (format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV)
		warn_of_losses(summary);
	lossy = gt_summary_is_lossy(summary);
	gt_buf_release(&text);
	gt_summary_free(summary);
	if (style.filter)
		regfree(&regex);
	return lossy ? STATUS_LOSSES : 0;
}

int cmd_summary(int argc, char **argv)
{
	struct gt_err err;
	int operand;
	int rc = opt_parse(&self, argc, argv, &operand, &err);

	if (rc < 0)
		die(STATUS_USAGE, "%s; see 'gtrace summary -h'", err.msg);
	if (rc > 0) {
		opt_print_help(&self, stdout);
		return 0;
	}
	if (operand == argc)
		die(STATUS_USAGE, "which file? see 'gtrace summary -h'");
	if (operand + 1 < argc)
		die(STATUS_USAGE, "one file at a time; see 'gtrace summary -h'");
	return summarize(argv[operand]);
}
