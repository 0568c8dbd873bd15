#include "base.h"
#include "clock.h"
#include "die.h"
#include "rank.h"
#include "run_explain.h"
#include "run_report.h"
#include "step_marks.h"
#include "summary.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WAIT_FOR_STEP_NS (2 * GT_NSEC_PER_SEC)
#define FILES_LISTED     8
#define TOP_ROWS         5

/* For people: "./x" is x. */
static const char *shown_path(const char *path)
{
	return path[0] == '.' && path[1] == '/' ? path + 2 : path;
}

/* "python (pid 4711, rank 3 of 8)" */
static void describe(const struct gt_client_info *client, char *buf, size_t len)
{
	const struct gt_msg_hello *hello = &client->hello;
	char rank[64] = "";

	if (hello->rank_source != GT_RANK_NONE && hello->world_size)
		snprintf(rank, sizeof(rank), ", rank %u of %u", hello->rank, hello->world_size);
	else if (hello->rank_source != GT_RANK_NONE)
		snprintf(rank, sizeof(rank), ", rank %u", hello->rank);
	snprintf(buf, len, "%s (pid %u%s)", *hello->comm ? hello->comm : "a process", hello->pid,
		 rank);
}

static void describe_steps(const struct run_report *report, enum gt_step_source seen, char *buf,
			   size_t len)
{
	char range[128];

	run_capture_describe(report->options, range, sizeof(range));
	switch (seen) {
	case GT_STEP_NONE:
		snprintf(buf, len, "%s%s",
			 report->options->schedule.capture ? "waiting for "
			 : report->options->step_source == RUN_STEP_NONE
				 ? "the whole run as one step"
				 : "waiting for the first step",
			 report->options->schedule.capture ? range : "");
		return;
	case GT_STEP_CAPTURE:
		snprintf(buf, len, "from %s on", range);
		return;
	case GT_STEP_API:
		snprintf(buf, len, "steps by gtrace_step()");
		return;
	case GT_STEP_CALL:
		snprintf(buf, len, "steps by %s()", report->options->step_call);
		return;
	case GT_STEP_NVTX:
		snprintf(buf, len, "steps by NVTX");
		return;
	case GT_STEP_OPTIMIZER:
		snprintf(buf, len, "steps by the optimizer");
		return;
	default:
		snprintf(buf, len, "steps by %s", gt_step_source_name(seen));
	}
}

static bool used_gpu(const struct gt_client_info *client)
{
	return client->hello.door == GT_DOOR_CUDA || client->hello.cupti_version;
}

/* The first of the three lines: once something is known of each of its three parts. */
static void say_attached(struct run_report *report, const struct gt_client_info *client)
{
	char who[128], steps[256];

	if (report->said_attached || report->options->quiet)
		return;
	report->said_attached = true;
	describe(client, who, sizeof(who));
	describe_steps(report, client->step_source, steps, sizeof(steps));
	say("tracing %s%s%s, %s", who, client->device_count ? " on " : "",
	    client->device_count ? client->device.name : "", steps);
}

/* Is this line, once said for one process and cycle, to be said again for others? */
static bool is_due(const struct run_report *report, bool *said)
{
	if (report->options->quiet || (*said && !report->options->verbose))
		return false;
	*said = true;
	return true;
}

/* Do captured ranges rule, be it by their option or not? */
static bool is_captured(const struct run_report *report, const struct gt_client_info *client)
{
	return report->options->schedule.capture || client->step_source == GT_STEP_CAPTURE;
}

/* The plan of a window that was triggered; NULL: it is none, or not agreed on yet. */
static const struct gt_plan *find_plan(const struct gt_client_info *client,
				       const struct gt_msg_phase *open)
{
	for (size_t i = 0; i < GT_PLANS_KEPT; i++) {
		const struct gt_plan *plan = &client->plans.list[i];

		if (plan->active && plan->cycle == open->cycle &&
		    open->value - plan->first_step < plan->active)
			return plan;
	}
	return NULL;
}

static void say_open(struct run_report *report, const struct gt_client_info *client,
		     const struct gt_msg_phase *open)
{
	const struct gt_plan *plan = find_plan(client, open);
	uint64_t steps = plan ? plan->active : report->options->schedule.active;
	char who[128] = "", number[32] = "";

	say_attached(report, client);
	/* While it is not agreed on it may come to nothing. */
	if (!plan && report->options->schedule.on_demand) {
		report->open_client = client->id;
		report->open = *open;
		return;
	}
	if (!is_due(report, &report->said_open))
		return;
	if (report->options->verbose)
		describe(client, who, sizeof(who));
	if (report->options->schedule.repeat != 1 || report->options->schedule.on_demand ||
	    open->cycle)
		snprintf(number, sizeof(number), " %llu", (unsigned long long)open->cycle + 1);
	if (is_captured(report, client)) {
		say("captured range%s begins%s%s", number, *who ? " in " : "", who);
		return;
	}
	if (report->options->step_source == RUN_STEP_NONE) {
		say("window open from start to end%s%s", *who ? " of " : "", who);
		return;
	}
	say("window%s open at step %llu, for %llu step%s%s%s", number,
	    (unsigned long long)open->value, (unsigned long long)steps, steps == 1 ? "" : "s",
	    *who ? " of " : "", who);
}

/* In a short program the window may open before the GPU's properties have come. */
static void say_waiting_open(struct run_report *report, const struct gt_client_info *client)
{
	if (report->open_client != client->id)
		return;
	report->open_client = 0;
	say_open(report, client, &report->open);
}

/* A window began while the program's own profiler had the GPU. */
static void say_left_out(struct run_report *report, const struct gt_client_info *client,
			 const struct gt_msg_phase *phase)
{
	char who[128] = "";

	if (report->said_left_out && !report->options->verbose)
		return;
	report->said_left_out = true;
	if (report->options->verbose)
		describe(client, who, sizeof(who));
	warn("the window at step %llu%s%s is left out: the program's own torch.profiler has the "
	     "GPU; --skip-first and --repeat choose other steps",
	     (unsigned long long)phase->value, *who ? " of " : "", who);
}

void run_report_phase(struct run_report *report, const struct gt_client_info *client,
		      const struct gt_msg_phase *phase)
{
	if (phase->what == GT_WHAT_LEFT_OUT)
		say_left_out(report, client, phase);
	if (phase->what != GT_WHAT_OPEN)
		return;
	/* From the start on, CUDA may be yet to come. */
	if (report->said_attached || client->device_count || (phase->value && !used_gpu(client))) {
		say_waiting_open(report, client);
		say_open(report, client, phase);
	} else if (!report->open_client) {
		report->open_client = client->id;
		report->open = *phase;
	}
}

void run_report_drained(struct run_report *report, const struct gt_client_info *client)
{
	report->last_step = GT_MAX(report->last_step, client->step);
	if (!client->device_count && (used_gpu(client) || client->step_source == GT_STEP_NONE))
		return;
	if (client->device_count || report->said_attached)
		say_waiting_open(report, client);
	if (report->said_attached)
		return;
	if (!report->quiet_since_ns)
		report->quiet_since_ns = gt_clock_ns(CLOCK_MONOTONIC);
	if (client->step_source != GT_STEP_NONE || report->options->step_source == RUN_STEP_NONE ||
	    gt_clock_ns(CLOCK_MONOTONIC) - report->quiet_since_ns > WAIT_FOR_STEP_NS)
		say_attached(report, client);
}

static void describe_part(const struct gt_recorder_closed *closed, char *buf, size_t len)
{
	if (closed->whole_run)
		snprintf(buf, len, closed->bounded ? "the run's beginning" : "the whole run");
	else if (closed->captured && !closed->last_step)
		snprintf(buf, len, "a captured range");
	else
		snprintf(buf, len, "%s", gt_steps_text(closed->first_step, closed->last_step).text);
}

/* A window that opens after the recording without steps has ended takes its file. */
static void add_file(struct run_report *report, const struct gt_client_info *client,
		     const struct gt_recorder_closed *closed, bool stepless)
{
	struct run_file *files;

	for (size_t i = 0; i < report->file_count; i++) {
		if (strcmp(report->files[i].path, closed->path))
			continue;
		report->files[i].stepless = stepless;
		return;
	}
	files = realloc(report->files, (report->file_count + 1) * sizeof(*files));
	if (!files)
		return;
	report->files = files;
	files[report->file_count] = (struct run_file){
		.path = strdup(closed->path),
		.rank = client->hello.rank,
		.cycle = closed->cycle,
		.stepless = stepless,
		.bounded = closed->bounded,
	};
	report->file_count += files[report->file_count].path != NULL;
}

/* The first one of its window that is shorter than asked for. */
static bool is_cut_first(struct run_report *report, const struct gt_recorder_closed *closed)
{
	if (report->options->quiet || !*closed->why || closed->cycle == report->said_cut)
		return false;
	report->said_cut = closed->cycle;
	return true;
}

void run_report_closed(struct run_report *report, const struct gt_client_info *client,
		       const struct gt_recorder_closed *closed)
{
	const struct gt_msg_phase open = { .cycle = closed->cycle - 1,
					   .value = closed->first_step };
	bool stepless = closed->whole_run && report->options->step_source != RUN_STEP_NONE;
	bool cut = closed->complete && is_cut_first(report, closed);
	const char *path = shown_path(closed->path);
	char part[64];

	run_absent_closed(&report->absent, closed->cycle);
	add_file(report, client, closed, stepless);
	describe_part(closed, part, sizeof(part));
	say_waiting_open(report, client);
	if (!stepless && !report->said_open) /* a program too short to tell */
		say_open(report, client, &open);
	say_attached(report, client);
	if (!closed->complete)
		warn("%s is not complete: %s, %llu event%s, %llu lost; %s", path, part,
		     (unsigned long long)closed->events, closed->events == 1 ? "" : "s",
		     (unsigned long long)closed->losses, closed->why);
	else if (is_due(report, &report->said_complete) || cut)
		say("%s is complete: %s, %llu event%s%s%s", path, part,
		    (unsigned long long)closed->events, closed->events == 1 ? "" : "s",
		    *closed->why ? "; " : "", closed->why);
	report->said_complete = true;
}

void run_report_log(struct run_report *report, const struct gt_client_info *client,
		    enum gt_log_level level, const char *text, size_t len)
{
	char who[128];

	if (level <= GT_LOG_INFO && !report->options->verbose)
		return;
	describe(client, who, sizeof(who));
	if (level <= GT_LOG_INFO)
		say("%s: %.*s", who, (int)len, text);
	else
		warn("%s: %.*s", who, (int)len, text);
}

void run_report_gone(struct run_report *report, const struct gt_client_info *client)
{
	char who[128];

	report->last_step = GT_MAX(report->last_step, client->step);
	report->step_source = GT_MAX(report->step_source, client->step_source);
	run_absent_gone(&report->absent, client);
	if (client->has_hello)
		report->clients++;
	if (used_gpu(client))
		report->gpu_clients++;
	describe(client, who, sizeof(who));
	if (client->late_calls)
		warn("%s: %llu CUDA call%s lasted longer than the window, whose file lacks %s", who,
		     (unsigned long long)client->late_calls, client->late_calls == 1 ? "" : "s",
		     client->late_calls == 1 ? "it" : "them");
	if (client->late_records)
		warn("%s: %llu GPU record%s came after the file of %s window was closed", who,
		     (unsigned long long)client->late_records, client->late_records == 1 ? "" : "s",
		     client->late_records == 1 ? "its" : "their");
	if (!client->has_hello || !report->options->verbose)
		return;
	say("%s ended: step %u, %llu pieces of GPU work, %llu file%s", who, client->step,
	    (unsigned long long)client->gpu_ops, (unsigned long long)client->files,
	    client->files == 1 ? "" : "s");
}

static void say_captured_progress(const struct gt_client_info *leader)
{
	if (leader->phase == GT_PHASE_ACTIVE)
		say_progress("within the captured range");
	else if (leader->open_cycle)
		say_progress("waiting for the GPU's records");
	else if (leader->phase == GT_PHASE_OVER)
		end_progress();
	else
		say_progress("waiting for a range to capture");
}

void run_report_triggered(struct run_report *report, const struct gt_plan *plan)
{
	run_absent_triggered(&report->absent, plan);
	report->triggered = true;
	report->said_open = report->said_complete = false;
}

void run_report_progress(struct run_report *report, const struct gt_client_info *leader)
{
	struct gt_sched_pos pos;

	if (!leader || report->options->quiet)
		return;
	if (is_captured(report, leader)) {
		say_captured_progress(leader);
		return;
	}
	if (report->options->step_source == RUN_STEP_NONE)
		return;
	gt_plans_at(&report->options->schedule, &leader->plans, leader->step, &pos);
	switch (pos.phase) {
	case GT_PHASE_IDLE:
		if (leader->open_cycle)
			say_progress("step %u, waiting for the GPU's records", leader->step);
		else
			say_progress("step %u, window in %llu steps", leader->step,
				     (unsigned long long)pos.steps_to_active);
		break;
	case GT_PHASE_WARMUP:
		say_progress("step %u, warming up", leader->step);
		break;
	case GT_PHASE_ACTIVE:
		say_progress("step %u, window open: %llu of %llu", leader->step,
			     (unsigned long long)pos.index + 1, (unsigned long long)pos.active);
		break;
	case GT_PHASE_OVER:
		if (leader->open_cycle)
			say_progress("step %u, waiting for the GPU's records", leader->step);
		else
			end_progress();
		break;
	}
}

/* ---- the end ---- */

static int by_rank(const void *left, const void *right)
{
	const struct run_file *a = left, *b = right;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->cycle < b->cycle ? -1 : a->cycle > b->cycle;
}

static void list_files(const struct run_report *report)
{
	size_t i;

	if (report->file_count < 2) /* a single one has been named already */
		return;
	say("%zu files:", report->file_count);
	for (i = 0; i < report->file_count && i < FILES_LISTED; i++)
		say("  %s", shown_path(report->files[i].path));
	if (i < report->file_count)
		say("  and %zu more beside it", report->file_count - i);
}

/* The top of the last trace of the first file's rank, unless a lower one has its own gtrace. */
static void print_top(const struct run_report *report)
{
	struct gt_summary_style style = { .limit = TOP_ROWS, .width = 80, .brief = true };
	const struct run_file *top = &report->files[0];
	struct gt_summary *summary;
	struct gt_buf text = { 0 };
	struct winsize size;
	struct gt_rank own;
	size_t i;

	gt_rank_from_env(getenv, &own);
	for (i = 1; i < report->file_count; i++)
		if (report->files[i].rank == top->rank)
			top = &report->files[i];
	if (own.rank || gt_summary_load(&summary, top->path, NULL, NULL) < 0)
		return;
	if (!ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		style.width = size.ws_col;
	if (!gt_summary_print(summary, &style, &text) && text.len) {
		if (report->file_count > 1)
			say("the top of %s:", shown_path(top->path));
		say_text(text.data, text.len);
	}
	gt_buf_release(&text);
	gt_summary_free(summary);
}

void run_report_end(struct run_report *report)
{
	bool never_began = run_absent_end(&report->absent);
	size_t i;

	end_progress();
	run_explain(report, never_began);
	if (!report->options->quiet && report->file_count) {
		qsort(report->files, report->file_count, sizeof(*report->files), by_rank);
		list_files(report);
		print_top(report);
	}
	for (i = 0; i < report->file_count; i++)
		free(report->files[i].path);
	free(report->files);
}
