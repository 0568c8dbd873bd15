#include "base.h"
#include "buf.h"
#include "command_name.h"
#include "die.h"
#include "env.h"
#include "launch.h"
#include "other_tool.h"
#include "preflight.h"
#include "rank.h"
#include "run_exec.h"
#include "run_nsight.h"
#include "session.h"
#include "shell_words.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define NSYS_ARGS_MAX 64 /* of --nsight-args */
#define NAME_ATTEMPTS 10000
#define REPORT_SUFFIX ".nsys-rep"
#define OWN_WORDS_MAX 12 /* nsys, profile, our options, gtrace */

/* ---- nsys is there: become the command ---- */

/* Of an outer gtrace: its library must not come in by doors that are not for this run. */
static const char *unless_ours(const char *variable)
{
	const char *value = getenv(variable);

	return value && strstr(value, "libgtrace-inject") ? NULL : value;
}

static void __attribute__((noreturn))
become_command(const struct run_options *options, const struct gt_preflight *preflight)
{
	char schedule[GT_SCHEDULE_TEXT_MAX];
	const char *given = getenv("PYTHONPATH");
	char *path = gt_preflight_python_path(preflight, given);
	const struct gt_envvar vars[] = {
		{ "CUDA_INJECTION64_PATH", unless_ours("CUDA_INJECTION64_PATH") },
		{ "NVTX_INJECTION64_PATH", unless_ours("NVTX_INJECTION64_PATH") },
		{ "PYTHONPATH", path ? path : given },
		{ GT_ENV_PYTHON_DIR, preflight->python_dir },
		{ GT_ENV_INJECTION, preflight->injection },
		{ GT_ENV_SCHEDULE, schedule },
		{ GT_ENV_STEP_SOURCE, run_step_sources[options->step_source] },
		{ GT_ENV_STEP_CALL, options->step_call },
		{ GT_ENV_CAPTURE, "steps" },
		{ GT_ENV_ACTIVITIES, options->activities },
		{ GT_ENV_NSIGHT, options->quiet ? "quiet" : "1" },
		{ GT_ENV_SOCKET, NULL },
		{ GT_ENV_STEP_RANGE, NULL },
		{ GT_ENV_WITH, NULL },
	};
	char **environment;

	gt_schedule_format(&options->schedule, schedule, sizeof(schedule));
	environment = gt_environment_new(environ, vars, ARRAY_SIZE(vars));
	if (!environment)
		run_untraced(options->command, "out of memory");
	if (options->then == RUN_THEN_STOP && !getenv(GT_ENV_NSIGHT))
		warn("Nsight Systems stops the program or does not: see its "
		     "--capture-range-end=stop-shutdown");
	run_exec(options->command, environment);
}

/* ---- nsys is to be started ---- */

/* Is there a report of this name, or one of its captures? */
static bool is_taken(const char *prefix)
{
	static const char *const suffixes[] = { REPORT_SUFFIX, ".1" REPORT_SUFFIX };
	char path[PATH_MAX + 16];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(path, sizeof(path), "%s%s", prefix, suffixes[i]);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

/* As traces are named, with the rank where a launcher started one gtrace for each. */
static void name_report(const struct run_options *options, char *buf, size_t len)
{
	char name[GT_SESSION_NAME_MAX + 1], rank_part[24] = "", number[16] = "";
	bool here = !strcmp(options->output_dir, ".");
	struct gt_rank rank;

	gt_command_name(options->command, name, sizeof(name));
	gt_rank_from_env(getenv, &rank);
	if (rank.source != GT_RANK_NONE)
		snprintf(rank_part, sizeof(rank_part), "-rank%u", rank.rank);
	for (int attempt = 2; attempt < NAME_ATTEMPTS; attempt++) {
		snprintf(buf, len, "%s%s%s%s%s", here ? "" : options->output_dir, here ? "" : "/",
			 options->name ? options->name : name, number, rank_part);
		if (options->force || !is_taken(buf))
			return;
		snprintf(number, sizeof(number), "-%d", attempt);
	}
}

/* Is this option among the user's words? Nsys refuses one that is given twice. */
static bool is_given(const char *name, char letter, char *const *words, size_t count)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < count; i++) {
		if (!strncmp(words[i], "--", 2) && !strncmp(words[i] + 2, name, len) &&
		    (!words[i][2 + len] || words[i][2 + len] == '='))
			return true;
		if (letter && words[i][0] == '-' && words[i][1] == letter)
			return true;
	}
	return false;
}

/* "repeat:3" */
static void describe_end(const struct run_options *options, char *buf, size_t len)
{
	bool stop = options->then == RUN_THEN_STOP;
	uint64_t repeat = options->schedule.repeat;

	if (repeat == 1)
		snprintf(buf, len, "%s", stop ? "stop-shutdown" : "stop");
	else if (!repeat)
		snprintf(buf, len, "repeat");
	else
		snprintf(buf, len, "%s:%llu", stop ? "repeat-shutdown" : "repeat",
			 (unsigned long long)repeat);
}

/*
 * The command line of nsys, all of it allocated: our options unless the user gave them, the user's,
 * and then gtrace run again, which finds itself under nsys.
 */
static char **nsys_command(const struct run_options *options, const char *nsys, char *const *argv)
{
	bool steps = options->step_source != RUN_STEP_NONE;
	char prefix[PATH_MAX], end[48], self[PATH_MAX];
	char *user[NSYS_ARGS_MAX], *text = strdup(options->nsight_args ? options->nsight_args : "");
	int user_count = text ? gt_shell_split(text, user, ARRAY_SIZE(user)) : -ENOMEM;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const struct {
		const char *name;
		char letter;
		const char *value; /* NULL: not to be given */
	} ours[] = {
		{ "trace", 't', "cuda,nvtx" },
		{ "sample", 's', "none" },
		{ "cpuctxsw", 0, "none" },
		{ "cuda-graph-trace", 0, run_cuda_graphs[options->cuda_graph] },
		{ "capture-range", 'c', steps ? "cudaProfilerApi" : NULL },
		{ "capture-range-end", 0, steps ? end : NULL },
		{ "force-overwrite", 'f', options->force ? "true" : NULL },
		{ "output", 'o', prefix },
	};
	size_t argc = 0, used = 0, i;
	char **words;

	_Static_assert(ARRAY_SIZE(ours) + 3 < OWN_WORDS_MAX, "nsys, profile, gtrace");
	if (user_count < 0)
		die(STATUS_OWN_FAILURE, "run: --nsight-args '%s': %s", options->nsight_args,
		    user_count == -EINVAL ? "a quote is not closed" : "too many words");
	while (argv[argc])
		argc++;
	words = calloc(OWN_WORDS_MAX + (size_t)user_count + argc, sizeof(*words));
	if (!words)
		die(STATUS_OWN_FAILURE, "run: out of memory");
	self[len > 0 ? len : 0] = 0;
	describe_end(options, end, sizeof(end));
	if (options->nsight_output)
		snprintf(prefix, sizeof(prefix), "%s", options->nsight_output);
	else
		name_report(options, prefix, sizeof(prefix));
	words[used++] = strdup(nsys);
	words[used++] = strdup("profile");
	for (i = 0; i < ARRAY_SIZE(ours); i++) {
		if (!ours[i].value ||
		    is_given(ours[i].name, ours[i].letter, user, (size_t)user_count))
			continue;
		if (asprintf(&words[used++], "--%s=%s", ours[i].name, ours[i].value) < 0)
			die(STATUS_OWN_FAILURE, "run: out of memory");
	}
	for (i = 0; i < (size_t)user_count; i++)
		words[used++] = strdup(user[i]);
	words[used++] = strdup(len > 0 ? self : "gtrace");
	for (i = 0; i < argc; i++)
		words[used++] = strdup(argv[i]);
	free(text);
	return words;
}

/* Safe to be read by a shell; the caller's. */
static char *join(char *const *words)
{
	struct gt_buf line = { 0 };

	for (size_t i = 0; words[i]; i++) {
		if (i)
			gt_buf_byte(&line, ' ');
		gt_shell_put(&line, words[i]);
	}
	gt_buf_byte(&line, 0);
	if (line.failed)
		die(STATUS_OWN_FAILURE, "run: out of memory");
	return line.data;
}

static void __attribute__((noreturn))
become_nsys(const struct run_options *options, char *const *argv)
{
	char nsys[PATH_MAX];
	bool found = gt_find_program("nsys", nsys, sizeof(nsys));
	char **words = nsys_command(options, found ? nsys : "nsys", argv);
	char *line = join(words);

	if (!found)
		run_untraced(options->command,
			     "Nsight Systems is not here: there is no nsys on PATH. Where there is "
			     "one, this is run: %s",
			     line);
	if (!options->quiet)
		say("running %s", line);
	free(line);
	setenv(GT_ENV_NSIGHT, "1", 1); /* so that gtrace knows itself below it, whatever it sets */
	run_exec(words, NULL);
}

void run_nsight(const struct run_options *options, char *const *argv)
{
	struct gt_preflight preflight;
	struct gt_other_tool tool;
	struct gt_err err;
	bool found;

	if (gt_preflight_find(&preflight, getenv(GT_ENV_INJECTION), &err) < 0)
		run_untraced(options->command, "%s", err.msg);
	found = gt_other_tool_find(&tool, options->command, getenv, preflight.injection);
	if (found && !tool.nsys && !options->force)
		run_untraced(options->command, "%s, and excludes Nsight Systems", tool.how);
	if (getenv(GT_ENV_NSIGHT) || (found && tool.nsys))
		become_command(options, &preflight);
	become_nsys(options, argv);
}
