#include "base.h"
#include "cmd.h"
#include "die.h"
#include "options.h"
#include "summary_options.h"

#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_WIDTH 80
#define DEFAULT_ROWS  20
#define LIMIT_MAX     UINT32_MAX
/* An option was not given. */
#define NONE                UINT64_MAX
#define RANK_MAX            INT32_MAX
#define STACK_DEPTH_DEFAULT 5
#define STACK_DEPTH_MAX     1000

static const char *const formats[] = { "table", "json", "csv", "markdown", NULL };

static int format = GT_SUMMARY_TABLE;
static const char *by;
static const char *sort;
static const char *filter;
static const char *steps;
static const char *ncu;
static uint64_t limit = NONE;
static uint64_t rank = NONE;
static uint64_t device = NONE;
static uint64_t stream = NONE;
static uint64_t stack_depth = NONE;

static const struct opt opts[] = {
	OPT_STRING(0, "by", &by, "KEYS",
		   "one table: op, kernel (with operator, grid,\n"
		   "occupancy, tensor cores), category, step, stream,\n"
		   "thread, annotation, memcpy (with bandwidth),\n"
		   "blocking (calls that block the host, by operator)\n"
		   "or line (of source code, by Python stacks);\n"
		   "op, shape and stack may be joined by commas:\n"
		   "operators told apart by the shapes of their\n"
		   "inputs, or by their Python stacks; rank: a row for\n"
		   "each file, as for a directory"),
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
	OPT_STRING(0, "steps", &steps, "A:B",
		   "from ProfilerStep#A to ProfilerStep#B, which is\n"
		   "included, and the GPU work launched in them; A is\n"
		   "one step, A: and :B have one end"),
	OPT_STRING(0, "ncu", &ncu, "KERNEL",
		   "instead, print the command with which ncu, NVIDIA\n"
		   "Nsight Compute, profiles the kernel of this name,\n"
		   "or with this in its name; beside it only --steps\n"
		   "and --rank make sense"),
	OPT_UINT(0, "device", &device, "N", 0, DEVICE_MAX, "of GPU work that of GPU N alone"),
	OPT_UINT(0, "stream", &stream, "N", 0, UINT32_MAX, "of GPU work that of stream N alone"),
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

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(at, word, len);
}

static const struct {
	const char *key;
	enum gt_summary_by by;
} tables[] = {
	{ "op", GT_SUMMARY_BY_OP },
	{ "shape", GT_SUMMARY_BY_OP },
	{ "stack", GT_SUMMARY_BY_OP },
	{ "kernel", GT_SUMMARY_BY_KERNEL },
	{ "category", GT_SUMMARY_BY_CATEGORY },
	{ "step", GT_SUMMARY_BY_STEP },
	{ "stream", GT_SUMMARY_BY_STREAM },
	{ "thread", GT_SUMMARY_BY_THREAD },
	{ "annotation", GT_SUMMARY_BY_ANNOTATION },
	{ "memcpy", GT_SUMMARY_BY_MEMCPY },
	{ "blocking", GT_SUMMARY_BY_BLOCKING },
	{ "line", GT_SUMMARY_BY_LINE },
};

/* GT_SUMMARY_BY_ANY: there is no such key. */
static enum gt_summary_by key_of(const char *at, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (is_word(at, len, tables[i].key))
			return tables[i].by;
	}
	return GT_SUMMARY_BY_ANY;
}

static void read_by(struct summary_options *options)
{
	struct gt_summary_style *style = &options->style;
	const char *at = by;

	options->by_rank = by && !strcmp(by, "rank");
	while (at && !options->by_rank) {
		size_t len = strcspn(at, ",");
		enum gt_summary_by key = key_of(at, len);

		if (!key)
			die(STATUS_USAGE,
			    "summary: --by takes op, shape, stack, kernel, category, step, stream, "
			    "thread, annotation, memcpy, blocking, line or rank, not '%.*s'; see "
			    "'gtrace summary -h'",
			    (int)len, at);
		if (style->by && (key != GT_SUMMARY_BY_OP || style->by != GT_SUMMARY_BY_OP))
			die(STATUS_USAGE, "summary: --by joins op, shape and stack, all others "
					  "stand alone; see 'gtrace summary -h'");
		style->by_shape |= is_word(at, len, "shape");
		style->by_stack |= is_word(at, len, "stack");
		style->by = key;
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
		    "summary: --sort takes total, calls, mean, min, max, name or a key of torch's "
		    "tables, not '%s'; see 'gtrace summary -h'",
		    sort);
	if (style->op_sort == GT_OP_BY_CPU_MEAN || style->op_sort == GT_OP_BY_GPU_MEAN)
		style->sort = GT_SUMMARY_BY_MEAN;
}

static void read_filter(struct summary_options *options)
{
	char why[128];
	int rc;

	if (!filter)
		return;
	rc = regcomp(&options->regex, filter, REG_EXTENDED);
	if (rc) {
		regerror(rc, &options->regex, why, sizeof(why));
		die(STATUS_USAGE, "summary: --filter: '%s': %s; see 'gtrace summary -h'", filter,
		    why);
	}
	options->style.filter = &options->regex;
}

static void read_choice(struct summary_options *options)
{
	struct gt_choice *choice = &options->choice;

	options->has_choice = steps || device != NONE || stream != NONE;
	choice->device = device == NONE ? -1 : (int64_t)device;
	choice->has_stream = stream != NONE;
	choice->stream = (int64_t)stream;
	if (steps && !read_steps(steps, choice))
		die(STATUS_USAGE,
		    "summary: --steps takes a step or two in order, as in 3:4, not '%s'; see "
		    "'gtrace summary -h'",
		    steps);
}

/* ncu counts the launches of a process, on whatever GPU and stream, and all else is of tables. */
static void check_ncu(void)
{
	const struct {
		const char *name;
		bool given;
	} others[] = {
		{ "by", by != NULL },         { "format", format != GT_SUMMARY_TABLE },
		{ "sort", sort != NULL },     { "filter", filter != NULL },
		{ "limit", limit != NONE },   { "stack-depth", stack_depth != NONE },
		{ "device", device != NONE }, { "stream", stream != NONE },
	};

	for (size_t i = 0; ncu && i < ARRAY_SIZE(others); i++) {
		if (others[i].given)
			die(STATUS_USAGE,
			    "summary: --ncu and --%s exclude each other; see 'gtrace summary -h'",
			    others[i].name);
	}
}

int summary_options_parse(struct summary_options *ret, int argc, char **argv)
{
	struct gt_summary_style *style = &ret->style;
	int operand = opt_parse_any(&self, argc, argv);

	memset(ret, 0, sizeof(*ret));
	check_ncu();
	ret->by = by;
	ret->ncu = ncu;
	ret->rank = rank == NONE ? -1 : (int64_t)rank;
	style->format = (enum gt_summary_format)format;
	ret->for_programs = format == GT_SUMMARY_JSON || format == GT_SUMMARY_CSV;
	style->width = terminal_width();
	read_by(ret);
	read_sort(style);
	read_filter(ret);
	read_choice(ret);
	if (stack_depth != NONE && !style->by_stack)
		die(STATUS_USAGE,
		    "summary: --stack-depth goes with --by stack; see 'gtrace summary -h'");
	if (style->by_stack)
		ret->stack_depth = stack_depth == NONE ? STACK_DEPTH_DEFAULT : stack_depth;
	ret->has_sort = sort != NULL;
	ret->has_limit = limit != NONE;
	style->limit = ret->has_limit ? limit : ret->for_programs ? 0 : DEFAULT_ROWS;
	return operand;
}
