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
static const char *const sorts[] = { "total", "calls", "mean", "min", "max", "name", NULL };

static int format = GT_SUMMARY_TABLE;
static int sort = GT_SUMMARY_BY_TOTAL;
static uint64_t limit = LIMIT_DEFAULT;
static uint64_t rank = RANK_ANY;
static const char *by;

static const struct opt opts[] = {
	OPT_STRING(0, "by", &by, "KEY", "rank: a row for each file, as for a directory"),
	OPT_UINT(0, "rank", &rank, "N", 0, RANK_MAX, "of several files the one of this rank"),
	OPT_CHOICE(0, "format", &format, "FORMAT", formats,
		   "table, json, csv or markdown (table); json and\n"
		   "csv have names in full and times in microseconds"),
	OPT_CHOICE(0, "sort", &sort, "KEY", sorts,
		   "total, calls, mean, min, max or name: the order\n"
		   "of the rows (total)"),
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

static int summarize(const char *path)
{
	struct gt_summary_style style = { .format = format, .sort = sort };
	struct gt_summary *summary;
	struct gt_buf text = { 0 };
	struct gt_err err;
	bool lossy;

	if (gt_summary_load(&summary, path, &err) < 0)
		die(STATUS_FAILURE, "%s: %s", path, err.msg);
	style.width = terminal_width();
	style.limit = limit;
	if (limit == LIMIT_DEFAULT)
		style.limit = format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV ? 0
										    : DEFAULT_ROWS;
	if (gt_summary_print(summary, &style, &text) < 0)
		die(STATUS_FAILURE, "out of memory");
	fwrite(text.data, 1, text.len, stdout);
	/* Formats for programs have no place for them above the tables. */
	if (format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV)
		warn_of_losses(summary, path);
	lossy = gt_summary_is_lossy(summary);
	gt_buf_release(&text);
	gt_summary_free(summary);
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
	struct gt_summary_style style = { .format = format, .width = terminal_width() };
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

	collect(&files, count, paths);
	ranks = load_ranks(&files);
	snprintf(title, sizeof(title), "%zu files", files.count);
	if (rank == RANK_ANY || by)
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
	if (by && strcmp(by, "rank") != 0)
		die(STATUS_USAGE, "--by takes rank, not '%s'; see 'gtrace summary -h'", by);
	if (operand == argc && !by && rank == RANK_ANY)
		return summarize_newest();
	if (operand == argc) /* of the job whose traces lie here */
		return summarize_files(1, (const char *[]){ "." });
	if (operand + 1 == argc && !by && rank == RANK_ANY && !is_directory(argv[operand]))
		return summarize(argv[operand]);
	return summarize_files(argc - operand, (const char *const *)argv + operand);
}
