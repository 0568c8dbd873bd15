#include "base.h"
#include "die.h"
#include "run_absent.h"
#include "run_control.h"
#include "step_marks.h"

#include <stdlib.h>
#include <unistd.h>

#define PROCESSES_TOLD 64

/* ---- what gtrace ps shows ---- */

/* Of all processes: what one does that does the most. */
static const char *describe_phase(const struct run_control *control)
{
	bool warming_up = false, tracing = false, finishing = false, waiting = false;
	bool captures = control->options->schedule.capture; /* no step is to come first */

	for (size_t i = 0; i < control->collector->client_count; i++) {
		const struct gt_client_info *info = gt_client_info(control->collector->clients[i]);

		tracing |= info->phase == GT_PHASE_ACTIVE;
		warming_up |= info->phase == GT_PHASE_WARMUP;
		finishing |= info->open_cycle != 0;
		waiting |= info->phase == GT_PHASE_IDLE &&
			   (info->step_source != GT_STEP_NONE || captures);
	}
	if (control->stopped)
		return "stopped";
	if (!gt_collector_leader(control->collector))
		return waiting ? "waiting" : "starting";
	if (tracing || warming_up)
		return tracing ? "tracing" : "warming up";
	if (finishing || waiting)
		return finishing ? "finishing" : "waiting";
	return control->options->schedule.on_demand ? "idle" : "over";
}

static enum gt_step_source source_now(const struct run_control *control)
{
	const struct gt_client_info *leader = gt_collector_leader(control->collector);

	return leader ? leader->step_source : GT_STEP_NONE;
}

/* Marks of captured ranges are no steps of the program, and the whole run is one. */
static bool counts_steps(const struct run_control *control, enum gt_step_source source)
{
	return !control->options->schedule.capture &&
	       control->options->step_source != RUN_STEP_NONE && source != GT_STEP_CAPTURE;
}

static void tell_status(struct run_control *control, struct gt_fields *fields)
{
	char *directory = realpath(control->options->output_dir, NULL);
	enum gt_step_source source = source_now(control);
	unsigned int ranks;
	pid_t pid;
	uint64_t step = gt_trigger_shown_step(&control->trigger, &ranks);

	if (control->stopped) { /* what processes do since then is not seen */
		step = control->stopped_step;
		source = control->stopped_source;
	}
	gt_fields_add(fields, "session", "%s", gt_session_name(control->session));
	gt_fields_add(fields, "pid", "%d", (int)getpid());
	gt_fields_add(fields, "host", "%s", control->host);
	gt_fields_add(fields, "command", "%s", control->command ? control->command : "");
	gt_fields_add(fields, "directory", "%s",
		      directory ? directory : control->options->output_dir);
	free(directory);
	gt_fields_add(fields, "ranks", "%u", ranks);
	if (counts_steps(control, source))
		gt_fields_add(fields, "step", "%llu", (unsigned long long)step);
	gt_fields_add(fields, "source", "%s", gt_step_source_name(source));
	gt_fields_add(fields, "phase", "%s", describe_phase(control));
	gt_fields_add(fields, "process", "%d", (int)*control->pid);
	for (size_t i = 0; i < control->collector->client_count && i < PROCESSES_TOLD; i++) {
		pid = gt_client_pid(control->collector->clients[i]);
		if (pid != *control->pid)
			gt_fields_add(fields, "process", "%d", (int)pid);
	}
}

/* ---- triggers ---- */

static void answer_failure(struct gt_control_peer *peer, const char *why)
{
	struct gt_fields answer = { .len = 0 };

	gt_fields_add(&answer, "result", "failed");
	gt_fields_add(&answer, "why", "%s", why);
	gt_control_answer(peer, &answer);
}

static void default_request(const struct run_control *control, struct gt_trigger_request *ret)
{
	*ret = (struct gt_trigger_request){
		.active = control->options->schedule.active,
		.warmup = control->options->schedule.warmup,
	};
}

static int begin(struct run_control *control, const struct gt_trigger_request *request,
		 struct gt_err *err)
{
	if (control->stopped)
		return gt_err_set(err, -ESHUTDOWN, "the session was stopped");
	if (control->options->step_source == RUN_STEP_NONE || control->options->schedule.capture)
		return gt_err_set(err, -EINVAL, "the session does not trace by steps");
	if (request->active < 1 || request->active > GT_PLAN_ACTIVE_MAX ||
	    request->warmup > GT_PLAN_WARMUP_MAX)
		return gt_err_set(err, -EINVAL,
				  "a window has 1 to %u steps, and at most %d to warm up",
				  GT_PLAN_ACTIVE_MAX, GT_PLAN_WARMUP_MAX);
	return gt_trigger_begin(&control->trigger, request, err);
}

static void say_window(const struct run_control *control, const struct gt_plan *plan,
		       unsigned int ranks)
{
	if (control->options->quiet)
		return;
	say("triggered: window %llu, %s of %u process%s", (unsigned long long)plan->cycle + 1,
	    gt_steps_text(plan->first_step, (uint64_t)plan->first_step + plan->active - 1).text,
	    ranks, ranks == 1 ? "" : "es");
}

static void on_done(void *ctx, const struct gt_trigger_result *result)
{
	struct run_control *control = ctx;
	const struct gt_plan *plan = &result->plan;

	if (control->from_rendezvous) {
		control->prepared = result->ranks;
		gt_rendezvous_answer(&control->rendezvous, result);
		return;
	}
	if (result->rc < 0) {
		if (control->asking)
			answer_failure(control->asking, result->err.msg);
		else
			warn("nothing is triggered: %s", result->err.msg);
		control->asking = NULL;
		return;
	}
	control->triggered(control->ctx, plan);
	say_window(control, plan, result->ranks);
	if (!control->asking)
		return;
	gt_fields_add(&control->answer, "result", "ok");
	gt_fields_add(&control->answer, "first", "%u", plan->first_step);
	gt_fields_add(&control->answer, "last", "%u", plan->first_step + plan->active - 1);
	gt_fields_add(&control->answer, "window", "%llu", (unsigned long long)plan->cycle + 1);
	gt_fields_add(&control->answer, "ranks", "%u", result->ranks);
	gt_control_answer(control->asking, &control->answer);
	control->asking = NULL;
}

static void on_left_out(void *ctx, const struct gt_client_info *client, const char *why)
{
	struct run_control *control = ctx;
	char who[64];

	run_absent_who(client, who, sizeof(who));
	warn("%s %s: it has no part in the window that is triggered", who, why);
	gt_fields_add(&control->answer, "warning", "%s %s: it is left out", who, why);
}

static void on_stepless(void *ctx, const struct gt_client_info *client)
{
	static const char why[] = "was seen in no step so far: without steps it has no trace";
	struct run_control *control = ctx;
	char who[64];

	run_absent_who(client, who, sizeof(who));
	warn("%s %s of the window that is triggered", who, why);
	gt_fields_add(&control->answer, "warning", "%s %s", who, why);
}

void run_control_trigger(struct run_control *control)
{
	struct gt_trigger_request request;
	struct gt_err err;

	default_request(control, &request);
	if (begin(control, &request, &err) < 0)
		warn("nothing is triggered: %s", err.msg);
	else
		control->from_rendezvous = false;
}

/* false: what there is is no number. */
static bool parse_number(const struct gt_fields *question, const char *key, uint64_t *ret)
{
	char text[32];

	return gt_fields_number(question, key, ret) ||
	       !gt_fields_get(question, key, text, sizeof(text));
}

static bool parse_request(const struct gt_fields *question, struct gt_trigger_request *request)
{
	static const char *const words[] = { "soon", "step", "after" };
	char at[16] = "soon";
	size_t i;

	if (!parse_number(question, "active", &request->active) ||
	    !parse_number(question, "warmup", &request->warmup) ||
	    !parse_number(question, "step", &request->step))
		return false;
	gt_fields_get(question, "at", at, sizeof(at));
	for (i = 0; i < ARRAY_SIZE(words) && strcmp(at, words[i]); i++)
		;
	request->at = (enum gt_trigger_at)i;
	return i < ARRAY_SIZE(words) && request->step <= GT_SCHEDULE_MAX;
}

static void trigger_for(struct run_control *control, struct gt_control_peer *peer,
			const struct gt_fields *question)
{
	struct gt_trigger_request request;
	struct gt_err err;

	default_request(control, &request);
	if (!parse_request(question, &request)) {
		answer_failure(peer, "that is no window");
	} else if (begin(control, &request, &err) < 0) {
		answer_failure(peer, err.msg);
	} else {
		control->from_rendezvous = false;
		control->asking = peer;
		control->answer.len = 0;
	}
}

/* ---- the control socket ---- */

static void stop(struct run_control *control, struct gt_control_peer *peer)
{
	struct gt_fields answer = { .len = 0 };
	unsigned int ranks;

	if (control->stopped) {
		answer_failure(peer, "it was stopped already");
		return;
	}
	control->stopped = true;
	control->stopped_step = gt_trigger_shown_step(&control->trigger, &ranks);
	control->stopped_source = source_now(control);
	if (!control->options->quiet)
		say("stopped by 'gtrace stop': the program goes on untraced");
	gt_trigger_give_up(&control->trigger, -ESHUTDOWN, "the session was stopped");
	if (control->options->rendezvous) /* the others can go on without it */
		gt_rendezvous_leave(&control->rendezvous);
	gt_collector_stop(control->collector, "'gtrace stop'");
	gt_fields_add(&answer, "result", "ok");
	gt_control_answer(peer, &answer);
}

static void on_asked(void *ctx, struct gt_control_peer *peer, const struct gt_fields *question)
{
	struct run_control *control = ctx;
	struct gt_fields answer = { .len = 0 };

	if (gt_fields_is(question, "do", "trigger")) {
		trigger_for(control, peer, question);
	} else if (gt_fields_is(question, "do", "stop")) {
		stop(control, peer);
	} else if (gt_fields_is(question, "do", "status")) {
		tell_status(control, &answer);
		gt_control_answer(peer, &answer);
	} else {
		answer_failure(peer, "this version of gtrace does not know how");
	}
}

/* ---- the rendezvous ---- */

static int on_prepare(void *ctx, const struct gt_trigger_request *request, struct gt_err *err)
{
	struct run_control *control = ctx;
	int rc = begin(control, request, err);

	if (!rc)
		control->from_rendezvous = true;
	return rc;
}

/* Not of a trigger that was begun here when the one of the rendezvous was given up. */
static bool on_decide(void *ctx, bool commit)
{
	struct run_control *control = ctx;

	if (!control->from_rendezvous || !gt_trigger_decide(&control->trigger, commit))
		return false;
	if (!commit)
		return true;
	control->triggered(control->ctx, &control->trigger.plan);
	say_window(control, &control->trigger.plan, control->prepared);
	return true;
}

static void on_state(void *ctx, struct gt_rendezvous_state *state)
{
	struct run_control *control = ctx;

	state->step = gt_trigger_step(&control->trigger, &state->ranks);
	state->next_cycle = gt_trigger_next_cycle(&control->trigger, state->step);
	state->active = control->options->schedule.active;
	state->warmup = control->options->schedule.warmup;
}

void run_control_start(struct run_control *control, uv_loop_t *loop)
{
	struct gt_err err;

	control->started = true;
	control->trigger.collector = control->collector;
	control->trigger.schedule = &control->options->schedule;
	control->trigger.done = on_done;
	control->trigger.left_out = on_left_out;
	control->trigger.stepless = on_stepless;
	control->trigger.ctx = control;
	gt_trigger_start(&control->trigger, loop);
	control->control.asked = on_asked;
	control->control.ctx = control;
	control->open = !gt_control_open(&control->control, loop, getenv, &err);
	if (!control->open && control->options->schedule.on_demand)
		warn("%s: only SIGUSR2 triggers", err.msg);
	if (!control->options->rendezvous)
		return;
	control->rendezvous.dir = control->options->rendezvous;
	control->rendezvous.host = control->host;
	control->rendezvous.command = control->command ? control->command : "";
	control->rendezvous.prepare = on_prepare;
	control->rendezvous.decide = on_decide;
	control->rendezvous.state = on_state;
	control->rendezvous.ctx = control;
	if (gt_rendezvous_start(&control->rendezvous, loop, &err) < 0)
		warn("%s: 'gtrace trigger --rendezvous' does not reach this session", err.msg);
}

void run_control_close(struct run_control *control)
{
	if (!control->started)
		return;
	control->started = false;
	if (control->asking)
		answer_failure(control->asking, "the program has ended");
	control->asking = NULL;
	if (control->open)
		gt_control_close(&control->control);
	if (control->options->rendezvous)
		gt_rendezvous_close(&control->rendezvous);
	gt_trigger_close(&control->trigger);
}
