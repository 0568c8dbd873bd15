#include "base.h"
#include "cmd.h"
#include "die.h"
#include "losses.h"
#include "ncu.h"
#include "summary.h"
#include "summary_options.h"
#include "summary_ranks.h"
#include "trace_files.h"

#include <sys/stat.h>

static struct summary_options options;

static void print_piece(void *context, struct gt_str text)
{
	(void)context;
	put_stdout(text);
}

/* GPU work goes with its launch, which may stand anywhere: that is a reading of its own. */
static void select_part(struct gt_selection *selection, const char *path)
{
	struct gt_err err;

	gt_selection_init(selection, &options.choice);
	if (!options.choice.has_steps)
		return;
	if (!strcmp(path, "-"))
		die(STATUS_USAGE,
		    "summary: standard input cannot be read twice; --steps takes a file");
	if (gt_selection_find(selection, path, &err) < 0)
		die(STATUS_FAILURE, "%s: %s", path, err.msg);
}

static void print_ncu(const struct gt_summary *summary, const char *path)
{
	struct gt_str kernel = gt_str_of(options.ncu);
	struct gt_buf text = { 0 };
	int rc = gt_ncu_put(summary, kernel, &text);

	if (rc == -ENOENT)
		die(STATUS_FAILURE, "%s: no kernel with '%s' in its name", path, options.ncu);
	if (rc)
		die(STATUS_FAILURE, "out of memory");
	put_stdout(gt_buf_str(&text));
	gt_buf_release(&text);
}

static int summarize(const char *path)
{
	const struct gt_summary_sink sink = { print_piece, NULL };
	struct gt_summary_options wanted = { .stack_depth = options.stack_depth,
					     .by = options.style.by,
					     .with_launches = options.style.format ==
							      GT_SUMMARY_JSON };
	struct gt_summary_style *style = &options.style;
	struct gt_selection selection = { 0 };
	struct gt_summary *summary;
	struct gt_buf text = { 0 };
	struct gt_err err;
	bool lossy;

	if (options.has_choice) {
		select_part(&selection, path);
		wanted.selection = &selection;
	}
	if (gt_summary_load(&summary, path, &wanted, &err) < 0)
		die(STATUS_FAILURE, "%s: %s", path, err.msg);
	gt_selection_release(&selection);
	style->sink = &sink;
	if (options.ncu)
		print_ncu(summary, path);
	else if (gt_summary_print(summary, style, &text) < 0)
		die(STATUS_FAILURE, "out of memory");
	if (text.len)
		put_stdout(gt_buf_str(&text));
	/* Formats for programs have no place for them above the tables. */
	if (options.for_programs || options.ncu)
		warn_of_losses(summary, path);
	lossy = gt_summary_is_lossy(summary);
	gt_buf_release(&text);
	gt_summary_free(summary);
	if (style->filter)
		regfree(&options.regex);
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

	if (gt_summary_ranks_load(&ranks, files, options.rank, &err) < 0)
		die(STATUS_FAILURE, "%s", err.msg);
	if (!ranks->readable && options.rank >= 0)
		die(STATUS_FAILURE, "no file has rank %lld", (long long)options.rank);
	if (!ranks->readable)
		die(STATUS_FAILURE, "%s: %s", ranks->rows[0].path, ranks->rows[0].why);
	return ranks;
}

/* What stands above the table in the other formats. */
static void warn_of_ranks(const struct gt_summary_ranks *ranks)
{
	for (size_t i = 0; i < ranks->count; i++) {
		const char *problem = gt_rank_row_problem(&ranks->rows[i]);

		if (problem)
			warn("%s: %s", ranks->rows[i].path, problem);
	}
}

static int print_ranks(const struct gt_summary_ranks *ranks, const char *title)
{
	struct gt_buf text = { 0 };

	if (!options.has_limit)
		options.style.limit = 0;
	if (gt_summary_ranks_print(ranks, title, &options.style, &text) < 0)
		die(STATUS_FAILURE, "out of memory");
	put_stdout(gt_buf_str(&text));
	gt_buf_release(&text);
	if (options.for_programs)
		warn_of_ranks(ranks);
	return gt_summary_ranks_is_lossy(ranks) ? STATUS_LOSSES : 0;
}

static int summarize_files(int count, const char *const *paths)
{
	struct gt_trace_files files = { 0 };
	struct gt_summary_ranks *ranks;
	char title[32];
	int status;

	if (options.by && !options.by_rank && options.rank < 0)
		die(STATUS_USAGE,
		    "summary: --by %s takes one file, or --rank; see 'gtrace summary -h'",
		    options.by);
	if ((options.has_sort || options.style.filter) && (options.by_rank || options.rank < 0))
		die(STATUS_USAGE, "summary: --sort and --filter take one file, or --rank; see "
				  "'gtrace summary -h'");
	if (options.ncu && (options.by_rank || options.rank < 0))
		die(STATUS_USAGE,
		    "summary: --ncu takes one file, or --rank; see 'gtrace summary -h'");
	if (options.has_choice && (options.by_rank || options.rank < 0))
		die(STATUS_USAGE,
		    "summary: --steps, --device and --stream take one file, or --rank; see "
		    "'gtrace summary -h'");
	collect(&files, count, paths);
	ranks = load_ranks(&files);
	snprintf(title, sizeof(title), "%zu files", files.count);
	if (options.rank < 0 || options.by_rank)
		status = print_ranks(ranks, count == 1 ? paths[0] : title);
	else if (ranks->readable == 1)
		status = summarize(ranks->rows[0].path);
	else
		die(STATUS_FAILURE, "rank %lld has more than one file: %s, %s",
		    (long long)options.rank, ranks->rows[0].path, ranks->rows[1].path);
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
	bool is_job;
	int operand;

	operand = summary_options_parse(&options, argc, argv);
	is_job = options.by_rank || options.rank >= 0;
	if (operand == argc && !is_job)
		return summarize_newest();
	if (operand == argc) /* of the job whose traces lie here */
		return summarize_files(1, (const char *[]){ "." });
	if (operand + 1 == argc && !is_job && !is_directory(argv[operand]))
		return summarize(argv[operand]);
	return summarize_files(argc - operand, (const char *const *)argv + operand);
}
