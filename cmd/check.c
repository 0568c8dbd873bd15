#include "base.h"
#include "check.h"
#include "cmd.h"
#include "die.h"
#include "options.h"

enum { FORMAT_TEXT, FORMAT_JSON };
static const char *const formats[] = { "text", "json", NULL };

static int format = FORMAT_TEXT;
static const char *repair_path;
static bool force;

static const struct opt opts[] = {
	OPT_STRING(0, "repair", &repair_path, "OUT",
		   "write what is readable to OUT as a trace that\n"
		   "loads, compressed when OUT ends in .gz"),
	OPT_FLAG('f', "force", &force, "replace OUT when it is there"),
	OPT_CHOICE(0, "format", &format, "FORMAT", formats, "text or json (text)"),
};

static const struct opt_command self = {
	.name = "check",
	.synopsis = "[options] FILE",
	.about = "Say whether a trace is whole and sound, and what other tools will\n"
		 "stumble over. FILE is a Kineto or Chrome trace by whatever tool, plain or\n"
		 "gzip; '-' is standard input. The exit status is 0 when it is sound, 3\n"
		 "when it can be used but something is lost or wrong, 1 when it is no trace",
	.opts = opts,
	.count = ARRAY_SIZE(opts),
};

static void commit_repair(const struct gt_check *check, struct gt_trace_copy *copy)
{
	struct gt_buf about = { 0 };
	struct gt_err err;

	if (gt_check_print_about(check, copy, &about) < 0)
		die(STATUS_FAILURE, "out of memory");
	if (gt_trace_copy_commit(copy, gt_buf_str(&about), &err) < 0) {
		gt_trace_copy_close(copy);
		die(STATUS_FAILURE, "%s", err.msg);
	}
	gt_buf_release(&about);
	say("wrote %s: %llu event%s", repair_path, (unsigned long long)gt_trace_copy_events(copy),
	    gt_trace_copy_events(copy) == 1 ? "" : "s");
}

static int check_file(const char *path)
{
	struct gt_trace_copy *copy = NULL;
	struct gt_gz_reader *gz;
	struct gt_check *check;
	struct gt_buf text = { 0 };
	struct gt_err err;
	bool sound;
	int rc;

	if (gt_gz_open(&gz, path, &err) < 0)
		die(STATUS_FAILURE, "%s: %s", path, err.msg);
	if (repair_path && gt_trace_copy_create(&copy, repair_path, force, &err) < 0)
		die(STATUS_FAILURE, "%s%s", err.msg,
		    err.code == -EEXIST ? "; --force replaces it" : "");
	rc = gt_check_read(&check, gz, path, copy, &err);
	if (rc < 0) {
		gt_trace_copy_close(copy);
		die(STATUS_FAILURE, "%s: %s", path, err.msg);
	}
	gt_gz_close(gz);
	if (copy)
		commit_repair(check, copy);
	gt_trace_copy_close(copy);
	if ((format == FORMAT_JSON ? gt_check_print_json(check, &text)
				   : gt_check_print(check, &text)) < 0)
		die(STATUS_FAILURE, "out of memory");
	put_stdout(gt_buf_str(&text));
	gt_buf_release(&text);
	sound = gt_check_is_sound(check);
	gt_check_free(check);
	return sound ? 0 : STATUS_LOSSES;
}

int cmd_check(int argc, char **argv)
{
	const char *path = opt_parse_file(&self, argc, argv);

	if (force && !repair_path)
		die(STATUS_USAGE, "check: --force goes with --repair; see 'gtrace check -h'");
	return check_file(path);
}
