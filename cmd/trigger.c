#include "base.h"
#include "cmd.h"
#include "die.h"
#include "options.h"
#include "rendezvous.h"
#include "sessions.h"
#include "step_marks.h"
#include "trigger.h"
#include "trigger_nodes.h"

#include <stdlib.h>

/* The session tries for some seconds, and gives up then by itself. */
#define ANSWER_WITHIN_MS 30000

#define NOT_GIVEN        UINT64_MAX

static struct {
	const char *session;
	const char *rendezvous;
	const char *at_step;
	uint64_t active;
	uint64_t warmup;
} wanted = { .active = NOT_GIVEN, .warmup = NOT_GIVEN };

static const struct opt opts[] = {
	OPT_STRING('s', "session", &wanted.session, "ID",
		   "which session, as gtrace ps shows it: its name,\n"
		   "pid or that of a process of it (the only one)"),
	OPT_STRING(0, "rendezvous", &wanted.rendezvous, "DIR",
		   "all sessions of gtrace run --rendezvous DIR"),
	OPT_UINT(0, "active", &wanted.active, "N", 1, GT_PLAN_ACTIVE_MAX,
		 "trace N steps (--active of gtrace run)"),
	OPT_UINT(0, "warmup", &wanted.warmup, "N", 0, GT_PLAN_WARMUP_MAX,
		 "trace N steps before and throw that away\n"
		 "(--warmup of gtrace run)"),
	OPT_STRING(0, "at-step", &wanted.at_step, "N|+N",
		   "the first step; +N: so many after the present one\n"
		   "(as soon as all ranks can)"),
};

static const struct opt_command self = {
	.name = "trigger",
	.synopsis = "[options]",
	.about = "Have a program that runs under 'gtrace run' trace some steps, the same ones\n"
		 "in all its ranks. The exit status is 0 when they will be traced",
	.opts = opts,
	.count = ARRAY_SIZE(opts),
};

static const struct opt stop_opts[] = {
	OPT_STRING('s', "session", &wanted.session, "ID",
		   "which session, as gtrace ps shows it: its name,\n"
		   "pid or that of a process of it (the only one)"),
};

static const struct opt_command stop_self = {
	.name = "stop",
	.synopsis = "[options]",
	.about = "End the tracing of a session of 'gtrace run'; its program goes on. A window\n"
		 "that is open ends here, and its traces are completed",
	.opts = stop_opts,
	.count = ARRAY_SIZE(stop_opts),
};

static void parse_at(const char *text, enum gt_trigger_at *ret_at, uint64_t *ret_step)
{
	const char *digits = text && *text == '+' ? text + 1 : text;
	char *end;

	*ret_at = GT_AT_SOON;
	if (!text)
		return;
	*ret_at = digits > text ? GT_AT_AFTER : GT_AT_STEP;
	*ret_step = gt_is_digit(*digits) ? strtoull(digits, &end, 10) : 0;
	if (!*ret_step || *end || *ret_step > GT_SCHEDULE_MAX)
		die(STATUS_USAGE, "trigger: --at-step takes a step or +N, from 1 to %llu, not '%s'",
		    (unsigned long long)GT_SCHEDULE_MAX, text);
}

/* What it has to say, and whether it did as it was asked. */
static bool tell(const struct gt_fields *answer, const char *command)
{
	char text[1024] = "it does not say why";
	const char *at = NULL;

	while (gt_fields_each(answer, "warning", &at, text, sizeof(text)))
		warn("%s", text);
	if (gt_fields_is(answer, "result", "ok"))
		return true;
	gt_fields_get(answer, "why", text, sizeof(text));
	say("%s: %s", command, text);
	return false;
}

static void ask(const char *command, struct gt_fields *question, struct gt_fields *answer)
{
	const struct session_found *session;
	struct sessions sessions;
	struct gt_err err;

	sessions_find(&sessions);
	session = sessions_choose(&sessions, command, wanted.session);
	if (gt_control_ask(session->path, question, ANSWER_WITHIN_MS, answer, &err) < 0)
		die(STATUS_FAILURE, "%s: the session does not answer: %s", command, err.msg);
	sessions_free(&sessions);
}

static int trigger_one(enum gt_trigger_at at, uint64_t step)
{
	static const char *const words[] = { "soon", "step", "after" };
	struct gt_fields question = { .len = 0 }, answer;
	uint64_t first = 0, last = 0, ranks = 0;
	struct gt_steps_text steps;

	gt_fields_add(&question, "do", "trigger");
	if (wanted.active != NOT_GIVEN)
		gt_fields_add(&question, "active", "%llu", (unsigned long long)wanted.active);
	if (wanted.warmup != NOT_GIVEN)
		gt_fields_add(&question, "warmup", "%llu", (unsigned long long)wanted.warmup);
	gt_fields_add(&question, "at", "%s", words[at]);
	gt_fields_add(&question, "step", "%llu", (unsigned long long)step);
	ask("trigger", &question, &answer);
	if (!tell(&answer, "trigger"))
		return STATUS_FAILURE;
	gt_fields_number(&answer, "first", &first);
	gt_fields_number(&answer, "last", &last);
	gt_fields_number(&answer, "ranks", &ranks);
	steps = gt_steps_text(first, last);
	if (!ranks) {
		warn("no rank that has marked a step took it so far: %s will be traced if one "
		     "comes to %s",
		     steps.text, first == last ? "it" : "them");
		return 0;
	}
	say("%s of %llu rank%s will be traced", steps.text, (unsigned long long)ranks,
	    ranks == 1 ? "" : "s");
	return 0;
}

int cmd_trigger(int argc, char **argv)
{
	enum gt_trigger_at at;
	uint64_t step = 0;

	opt_parse_all(&self, argc, argv);
	parse_at(wanted.at_step, &at, &step);
	if (!wanted.rendezvous)
		return trigger_one(at, step);
	if (wanted.session)
		die(STATUS_USAGE, "trigger: --session and --rendezvous exclude each other");
	if (!*wanted.rendezvous)
		die(STATUS_USAGE, "trigger: --rendezvous takes a directory, not ''");
	return trigger_nodes(&(struct trigger_nodes){
		.dir = wanted.rendezvous,
		.at = at,
		.step = step,
		.active = wanted.active,
		.warmup = wanted.warmup,
	});
}

int cmd_stop(int argc, char **argv)
{
	struct gt_fields question = { .len = 0 }, answer;

	opt_parse_all(&stop_self, argc, argv);
	gt_fields_add(&question, "do", "stop");
	ask("stop", &question, &answer);
	return tell(&answer, "stop") ? 0 : STATUS_FAILURE;
}
