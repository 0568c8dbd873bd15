#include "base.h"
#include "choice.h"
#include "cmd.h"
#include "cut.h"
#include "die.h"
#include "json_reader.h"
#include "losses.h"
#include "options.h"
#include "summary.h"

#include <stdlib.h>

#define ALL_DEVICES UINT64_MAX

static const char *steps;
static const char *span;
static const char *category;
static const char *output;
static uint64_t device = ALL_DEVICES;
static bool force;

static const struct opt opts[] = {
	OPT_STRING('o', "output", &output, "OUT", "the new trace, compressed when OUT ends in .gz"),
	OPT_FLAG('f', "force", &force, "replace OUT when it is there"),
	OPT_STRING(0, "steps", &steps, "A:B",
		   "from ProfilerStep#A to ProfilerStep#B, which is\n"
		   "included; A is one step, A: and :B have one end"),
	OPT_STRING(0, "time", &span, "A:B",
		   "from A to B, counted from the first slice, in\n"
		   "milliseconds or as 1.5s, 20ms, 300us, 400ns"),
	OPT_UINT(0, "device", &device, "N", 0, DEVICE_MAX, "the work of GPU N alone"),
	OPT_STRING(0, "category", &category, "NAMES",
		   "these categories alone: kernel,cuda_runtime"),
};

static const struct opt_command self = {
	.name = "cut",
	.synopsis = "[options] -o OUT FILE",
	.about = "Write a part of a trace as a trace of its own, for viewers that large\n"
		 "files are too much for. GPU work goes with its launch. FILE is a Kineto\n"
		 "or Chrome trace by whatever tool, plain or gzip. The exit status is 3\n"
		 "when it is cut or damaged and only a part could be used",
	.opts = opts,
	.count = ARRAY_SIZE(opts),
};

/* ---- A:B ------------------------------------------------------------------------------------- */

static void bad_range(const char *name, const char *text, const char *what)
{
	die(STATUS_USAGE, "cut: --%s takes %s, not '%s'; see 'gtrace cut -h'", name, what, text);
}

static bool read_time(struct gt_str side, int64_t *ret)
{
	static const struct {
		struct gt_str unit;
		int decimals; /* of nanoseconds */
	} units[] = {
		{ GT_STR("ms"), 6 }, { GT_STR("us"), 3 }, { GT_STR("ns"), 0 },
		{ GT_STR("s"), 9 },  { GT_STR(""), 6 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		struct gt_str number = { side.ptr, side.len - units[i].unit.len };

		if (side.len < units[i].unit.len ||
		    memcmp(side.ptr + number.len, units[i].unit.ptr, units[i].unit.len) != 0)
			continue;
		return number.len && gt_is_digit(*number.ptr) &&
		       gt_json_scaled(number, units[i].decimals, ret);
	}
	return false;
}

static void read_choice(struct gt_choice *choice)
{
	*choice = (struct gt_choice){
		.has_time = span != NULL,
		.to_ns = INT64_MAX,
		.device = device == ALL_DEVICES ? -1 : (int64_t)device,
		.categories = category,
	};
	if (!steps && !span && !category && device == ALL_DEVICES)
		die(STATUS_USAGE, "cut: which part? see 'gtrace cut -h'");
	if (steps && !read_steps(steps, choice))
		bad_range("steps", steps, "a step or two in order, as in 3:4");
	if (span &&
	    (!strchr(span, ':') || !read_sides(span, read_time, &choice->from_ns, &choice->to_ns)))
		bad_range("time", span, "two times in order, as in 1.5ms:20ms");
}

/* ---- the cut --------------------------------------------------------------------------------- */

static int cut_file(const char *path)
{
	struct gt_choice choice;
	struct gt_cut_result result;
	struct gt_summary losses = { 0 };
	struct gt_trace_copy *copy;
	struct gt_buf about = { 0 };
	struct gt_err err;
	uint64_t lost;

	read_choice(&choice);
	if (gt_trace_copy_create(&copy, output, force, &err) < 0)
		die(STATUS_FAILURE, "%s%s", err.msg,
		    err.code == -EEXIST ? "; --force replaces it" : "");
	if (gt_cut(path, &choice, copy, &result, &err) < 0) {
		gt_trace_copy_close(copy);
		die(STATUS_FAILURE, "%s: %s", path, err.msg);
	}
	if (gt_cut_print_about(&choice, &result, copy, &about) < 0 ||
	    gt_trace_copy_commit(copy, gt_buf_str(&about), &err) < 0) {
		gt_trace_copy_close(copy);
		die(STATUS_FAILURE, "%s", about.failed ? "out of memory" : err.msg);
	}
	lost = gt_trace_copy_lost(copy);
	gt_trace_copy_close(copy);
	gt_buf_release(&about);
	say("wrote %s: %llu of %llu event%s", output, (unsigned long long)result.kept,
	    (unsigned long long)result.events, result.events == 1 ? "" : "s");
	if (lost)
		warn("%s: %llu %s left out", path, (unsigned long long)lost,
		     lost == 1 ? "event is no JSON and was" : "events are no JSON and were");
	losses.read = result.read;
	losses.gz = result.gz;
	warn_of_losses(&losses, path);
	return lost || gt_summary_is_lossy(&losses) ? STATUS_LOSSES : 0;
}

int cmd_cut(int argc, char **argv)
{
	const char *path = opt_parse_file(&self, argc, argv);

	if (!strcmp(path, "-"))
		die(STATUS_USAGE, "cut: standard input cannot be read twice; cut takes a file");
	if (!output)
		die(STATUS_USAGE, "cut: where to? -o OUT; see 'gtrace cut -h'");
	return cut_file(path);
}
