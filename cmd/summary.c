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
static const char *const sorts[] = { "total", "calls", "mean", "min", "max", "name", NULL };

static int format = GT_SUMMARY_TABLE;
static int sort = GT_SUMMARY_BY_TOTAL;
static uint64_t limit = LIMIT_DEFAULT;

static const struct opt opts[] = {
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
	if (format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV)
		warn_of_losses(summary);
	lossy = gt_summary_is_lossy(summary);
	gt_buf_release(&text);
	gt_summary_free(summary);
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
