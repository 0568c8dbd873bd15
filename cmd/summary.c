#include "base.h"
#include "cmd.h"
#include "die.h"
#include "losses.h"
#include "options.h"
#include "summary.h"
#include "summary_ranks.h"
#include "trace_files.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_WIDTH 80
#define DEFAULT_ROWS  20
#define LIMIT_MAX     UINT32_MAX
/* No limit was given. */
#define LIMIT_DEFAULT UINT64_MAX
#define RANK_ANY      UINT64_MAX
#define RANK_MAX      INT32_MAX

static const char *const formats[] = { "table", "json", "csv", "markdown", NULL };
#define STACK_DEPTH_DEFAULT 5
#define STACK_DEPTH_MAX     1000

static int format = GT_SUMMARY_TABLE;
static const char *by;
static const char *sort;
static const char *filter;
static uint64_t limit = LIMIT_DEFAULT;
static uint64_t rank = RANK_ANY;
static uint64_t stack_depth = STACK_DEPTH_DEFAULT;

/* What the options say. */
static struct gt_summary_style style;
static regex_t regex;
static bool by_rank;

static const struct opt opts[] = {
	OPT_STRING(0, "by", &by, "KEYS",
		   "op, kernel, shape, stack, or several with commas\n"
		   "between (op,shape): one table, of operators, of\n"
		   "kernels, or of operators told apart by the shapes\n"
		   "of their inputs, or by their Python stacks; rank:\n"
		   "a row for each file, as for a directory"),
	OPT_UINT(0, "rank", &rank, "N", 0, RANK_MAX, "of several files the one of this rank"),
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
	.synopsis = "[options] [FILE | DIRECTORY]...",
	.about = "Say where the time of a trace went. FILE is a Kineto or Chrome trace\n"
		 "by whatever tool, plain or gzip; '-' is standard input. Without one it is\n"
		 "the newest trace in the current directory. Several files, and those of a\n"
		 "directory, are the ranks of a job: a row for each, and which is the\n"
		 "slowest. The exit status is 3 when a file is cut or damaged and only a\n"
		 "part could be used",
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

/* ---- options --------------------------------------------------------------------------------- */

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(at, word, len);
}

static void read_by(void)
{
	const char *at = by;

	by_rank = by && !strcmp(by, "rank");
	while (at && !by_rank) {
		size_t len = strcspn(at, ",");
		bool is_kernel = is_word(at, len, "kernel");

		style.by_shape |= is_word(at, len, "shape");
		style.by_stack |= is_word(at, len, "stack");
		if (!is_kernel && !is_word(at, len, "op") && !is_word(at, len, "shape") &&
		    !is_word(at, len, "stack"))
			die(STATUS_USAGE,
			    "--by takes op, kernel, shape, stack or rank, not '%.*s'; see 'gtrace "
			    "summary -h'",
			    (int)len, at);
		if (style.by && (is_kernel || style.by == GT_SUMMARY_BY_KERNEL))
			die(STATUS_USAGE, "--by kernel stands alone; see 'gtrace summary -h'");
		style.by = is_kernel ? GT_SUMMARY_BY_KERNEL : GT_SUMMARY_BY_OP;
		at = at[len] ? at + len + 1 : NULL;
	}
}

/* A key that only operators have orders the other tables by their nearest. */
static void read_sort(void)
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
	bool known = !sort || gt_op_sort_of(sort, &style.op_sort);

	for (size_t i = 0; sort && i < ARRAY_SIZE(keys); i++) {
		if (strcmp(sort, keys[i].key) != 0)
			continue;
		style.sort = keys[i].sort;
		known = true;
	}
	if (!known)
		die(STATUS_USAGE,
		    "--sort takes total, calls, mean, min, max, name or a key of torch's tables, "
		    "not '%s'; see 'gtrace summary -h'",
		    sort);
	if (style.op_sort == GT_OP_BY_CPU_MEAN || style.op_sort == GT_OP_BY_GPU_MEAN)
		style.sort = GT_SUMMARY_BY_MEAN;
}

static void read_filter(void)
{
	char why[128];
	int rc;

	if (!filter)
		return;
	rc = regcomp(&regex, filter, REG_EXTENDED);
	if (rc) {
		regerror(rc, &regex, why, sizeof(why));
		die(STATUS_USAGE, "--filter: '%s': %s; see 'gtrace summary -h'", filter, why);
	}
	style.filter = &regex;
}

static void read_style(void)
{
	style.format = (enum gt_summary_format)format;
	style.width = terminal_width();
	read_by();
	read_sort();
	read_filter();
}

static void print_piece(void *context, struct gt_str text)
{
	fwrite(text.ptr, 1, text.len, context);
}

static int summarize(const char *path)
{
	const struct gt_summary_sink sink = { print_piece, stdout };
	struct gt_summary_options options = { 0 };
	struct gt_summary *summary;
	struct gt_buf text = { 0 };
	struct gt_err err;
	bool lossy;

	if (style.by_stack)
		options.stack_depth = stack_depth;
	if (gt_summary_load(&summary, path, &options, &err) < 0)
		die(STATUS_FAILURE, "%s: %s", path, err.msg);
	style.limit = limit;
	if (limit == LIMIT_DEFAULT)
		style.limit = format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV ? 0
										    : DEFAULT_ROWS;
	style.sink = &sink;
	if (gt_summary_print(summary, &style, &text) < 0)
		die(STATUS_FAILURE, "out of memory");
	fwrite(text.data, 1, text.len, stdout);
	/* Formats for programs have no place for them above the tables. */
	if (format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV)
		warn_of_losses(summary, path);
	lossy = gt_summary_is_lossy(summary);
	gt_buf_release(&text);
	gt_summary_free(summary);
	if (style.filter)
		regfree(&regex);
	return lossy ? STATUS_LOSSES : 0;
}

/* ---- several files --------------------------------------------------------------------------- */

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void add_directory(struct gt_trace_files *files, const char *path)
{
	struct gt_err err;

	if (gt_trace_files_add(files, path, &err) < 0)
		die(STATUS_FAILURE, "%s", err.msg);
}

static void collect(struct gt_trace_files *files, int count, const char *const *paths)
{
	for (int i = 0; i < count; i++) {
		if (is_directory(paths[i]))
			add_directory(files, paths[i]);
		else if (gt_trace_files_add_path(files, paths[i]) < 0)
			die(STATUS_FAILURE, "out of memory");
	}
}

static struct gt_summary_ranks *load_ranks(const struct gt_trace_files *files)
{
	struct gt_summary_ranks *ranks;
	struct gt_err err;

	if (gt_summary_ranks_load(&ranks, files, rank == RANK_ANY ? -1 : (int64_t)rank, &err) < 0)
		die(STATUS_FAILURE, "%s", err.msg);
	if (!ranks->readable && rank != RANK_ANY)
		die(STATUS_FAILURE, "no file has rank %llu", (unsigned long long)rank);
	if (!ranks->readable)
		die(STATUS_FAILURE, "%s: %s", ranks->rows[0].path, ranks->rows[0].why);
	return ranks;
}

/* What stands above the table in the other formats. */
static void warn_of_ranks(const struct gt_summary_ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++) {
		const struct gt_rank_row *row = &ranks->rows[i];

		if (row->rc || row->is_lossy)
			warn("%s: %s", row->path,
			     row->rc ? row->why : "cut or damaged, only a part was used");
	}
}

static int print_ranks(const struct gt_summary_ranks *ranks, const char *title)
{
	struct gt_buf text = { 0 };

	style.limit = limit == LIMIT_DEFAULT ? 0 : limit;
	if (gt_summary_ranks_print(ranks, title, &style, &text) < 0)
		die(STATUS_FAILURE, "out of memory");
	fwrite(text.data, 1, text.len, stdout);
	gt_buf_release(&text);
	if (format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV)
		warn_of_ranks(ranks);
	return gt_summary_ranks_is_lossy(ranks) ? STATUS_LOSSES : 0;
}

static int summarize_files(int count, const char *const *paths)
{
	struct gt_trace_files files = { 0 };
	struct gt_summary_ranks *ranks;
	char title[32];
	int status;

	if (by && !by_rank && rank == RANK_ANY)
		die(STATUS_USAGE, "--by %s takes one file, or --rank; see 'gtrace summary -h'", by);
	collect(&files, count, paths);
	ranks = load_ranks(&files);
	snprintf(title, sizeof(title), "%zu files", files.count);
	if (rank == RANK_ANY || by_rank)
		status = print_ranks(ranks, count == 1 ? paths[0] : title);
	else if (ranks->readable == 1)
		status = summarize(ranks->rows[0].path);
	else
		die(STATUS_FAILURE, "rank %llu has more than one file: %s, %s",
		    (unsigned long long)rank, ranks->rows[0].path, ranks->rows[1].path);
	gt_summary_ranks_free(ranks);
	gt_trace_files_release(&files);
	return status;
}

static int summarize_newest(void)
{
	struct gt_trace_files files = { 0 };
	const char *newest;
	int status;

	add_directory(&files, ".");
	newest = gt_trace_files_newest(&files);
	if (!newest)
		die(STATUS_FAILURE, "no trace in the current directory");
	status = summarize(newest);
	gt_trace_files_release(&files);
	return status;
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
	read_style();
	if (operand == argc && !by_rank && rank == RANK_ANY)
		return summarize_newest();
	if (operand == argc) /* of the job whose traces lie here */
		return summarize_files(1, (const char *[]){ "." });
	if (operand + 1 == argc && !by_rank && rank == RANK_ANY && !is_directory(argv[operand]))
		return summarize(argv[operand]);
	return summarize_files(argc - operand, (const char *const *)argv + operand);
}
