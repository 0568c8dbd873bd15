#include "base.h"
#include "die.h"
#include "run_environment.h"
#include "run_explain.h"
#include "schedule.h"
#include "step_marks.h"

static const struct run_file *find_stepless(const struct run_report *report)
{
	for (size_t i = 0; i < report->file_count; i++) {
		if (report->files[i].stepless)
			return &report->files[i];
	}
	return NULL;
}

/* The trace would have been of the whole run. */
static bool was_whole(const struct run_report *report)
{
	const struct run_options *options = report->options;

	return !report->last_step && !options->schedule.capture && !options->schedule.on_demand &&
	       (options->step_source == RUN_STEP_AUTO || options->step_source == RUN_STEP_NONE);
}

/* What was asked for comes with a GPU alone; a program on the CPU can have a range, a step or a
 * trigger. */
static bool lacked_gpu(const struct run_report *report)
{
	return !report->gpu_clients &&
	       (!strstr(report->options->activities, "cpu") || was_whole(report));
}

/* No trace was written. */
static void explain_nothing(const struct run_report *report)
{
	const struct gt_schedule *sched = &report->options->schedule;
	struct gt_sched_pos first;
	char range[128], option;

	if (report->options->step_call && !report->last_step) {
		warn("nothing is traced: no process called %s of --step-call",
		     report->options->step_call);
		return;
	}
	if (!report->clients) {
		option = run_environment_python_option(report->options->command);
		if (option)
			warn("nothing is traced: no process used CUDA, and python -%c keeps out "
			     "what would see PyTorch on the CPU: leave -%c away",
			     option, option);
		else
			warn("nothing is traced: no traced process used CUDA or an operator of "
			     "PyTorch");
		return;
	}
	if (lacked_gpu(report)) {
		warn("nothing is traced: the program did not use a GPU");
		return;
	}
	if (was_whole(report)) {
		warn("nothing is traced: the program used CUDA, but did nothing that is recorded "
		     "(--activities %s)",
		     report->options->activities);
		return;
	}
	if (sched->capture) {
		run_capture_describe(report->options, range, sizeof(range));
		if (report->options->capture == RUN_CAPTURE_TIME)
			warn("nothing is traced: the program ended earlier than %s", range);
		else
			warn("nothing is traced: %s never came in a process that is traced", range);
		return;
	}
	if (!report->last_step) {
		warn("nothing is traced: no step was seen of --step-source %s; mark steps with "
		     "gtrace_step() of gtrace.h or NVTX and --step-range%s",
		     run_step_sources[report->options->step_source],
		     sched->on_demand ? "" : ", or use --step-source none");
		return;
	}
	if (sched->on_demand) {
		if (!report->options->quiet)
			say("nothing was traced: %s", report->triggered
							      ? "no window that was triggered had "
								"begun when tracing ended"
							      : "no window was triggered before "
								"the program ended");
		return;
	}
	gt_schedule_at(sched, 0, &first);
	if (report->last_step >= first.steps_to_active + sched->active) {
		warn("nothing is traced: the program did nothing that is recorded in %s, or was "
		     "first heard of later (see --skip-first, --wait)",
		     gt_steps_text(first.steps_to_active, first.steps_to_active + sched->active - 1)
			     .text);
		return;
	}
	warn("nothing is traced: tracing ended in step %u, the first window begins with step "
	     "%llu (see --skip-first, --wait, --warmup)",
	     report->last_step, (unsigned long long)first.steps_to_active);
}

/* Those that came have told of themselves. A triggered one has a number among them. */
static void explain_fewer(const struct run_report *report)
{
	const struct gt_schedule *sched = &report->options->schedule;
	uint64_t came = 0;

	for (size_t i = 0; i < report->file_count; i++)
		came = GT_MAX(came, report->files[i].cycle);
	if (report->options->quiet || report->triggered || !came || came >= sched->repeat)
		return;
	if (sched->capture)
		say("%llu of %llu ranges came until tracing ended", (unsigned long long)came,
		    (unsigned long long)sched->repeat);
	else
		say("%llu of %llu windows came: tracing ended in step %u", (unsigned long long)came,
		    (unsigned long long)sched->repeat, report->last_step);
}

void run_explain(const struct run_report *report, bool never_began)
{
	const struct run_file *stepless = find_stepless(report);

	if (!report->file_count && !report->said_failure && !report->said_left_out && !never_began)
		explain_nothing(report);
	else if (stepless &&
		 !report->last_step) /* or they came when it was full, and no window did */
		warn("no step was seen, so the trace is of %s: tried gtrace_step(), %s, "
		     "frameworks and PyTorch's optimizers; mark steps with gtrace_step() of "
		     "gtrace.h, or with NVTX and --step-range, or name a Python function with "
		     "--step-call",
		     stepless->bounded ? "the run's beginning" : "the whole run",
		     report->options->step_range ? "NVTX --step-range"
						 : "NVTX (no --step-range was given)");
	else if (report->options->step_range && report->step_source == GT_STEP_API)
		warn("steps are by %s, which goes before NVTX and --step-range '%s'",
		     gt_step_source_name(report->step_source), report->options->step_range);
	else if (report->options->step_range && report->step_source != GT_STEP_NONE &&
		 report->step_source < GT_STEP_NVTX)
		warn("no NVTX range or mark is called like --step-range '%s': steps are by %s",
		     report->options->step_range, gt_step_source_name(report->step_source));
	if (!stepless && !report->said_left_out)
		explain_fewer(report);
}
