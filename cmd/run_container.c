#include "base.h"
#include "cgroup.h"
#include "container_command.h"
#include "die.h"
#include "env.h"
#include "preflight.h"
#include "run_container.h"
#include "run_exec.h"
#include "safe_text.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* What gtrace was seen to take for itself, and a reserve. */
#define OWN_BYTES (UINT64_C(128) << 20)

/* The words of an option for a directory at argv: 0, 1 or 2. */
static int dir_words(char *const *argv, const char *option)
{
	size_t len = strlen(option);

	if (!strcmp(*argv, option))
		return 2;
	return !strncmp(*argv, option, len) && (option[1] != '-' || (*argv)[len] == '=');
}

/* The words between "run" and the command, but for directories: allocated, of argv. */
static char **other_options(char *const *argv, char *const *command, size_t *ret_count)
{
	char **options = calloc((size_t)(command - argv) + 1, sizeof(*options));
	size_t count = 0;
	int words;

	for (argv++; options && argv < command; argv += words) {
		words = dir_words(argv, "-o") + dir_words(argv, "--output-dir") +
			dir_words(argv, "--rendezvous");
		if (!words && strcmp(*argv, "--"))
			options[count++] = *argv;
		words = GT_MAX(words, 1);
	}
	*ret_count = count;
	return options;
}

/* As lines of their own, to be copied. */
static void say_command(const struct gt_buf *text)
{
	struct gt_buf line = { 0 };

	gt_buf_text(&line, "  ");
	gt_safe_put(&line, gt_buf_str(text));
	gt_buf_byte(&line, '\n');
	if (!line.failed)
		say_text(line.data, line.len);
	gt_buf_release(&line);
}

static void tell_how(const struct run_options *options, const struct gt_container_setup *setup)
{
	struct gt_buf command = { 0 }, missing = { 0 };
	bool limited;

	if (gt_container_command(options->command, setup, &command, &missing, &limited) < 0)
		run_untraced(options->command, "out of memory");
	warn("not tracing: gtrace is to run inside of the container that %s starts or enters:",
	     gt_container_runtime(options->command));
	say_command(&command);
	if (missing.len) {
		say("and the container is to be started with");
		say_command(&missing);
	}
	if (limited)
		say("of the container's memory gtrace takes %llu MiB for each traced process "
		    "(--max-buffer), and about 85 MiB for itself",
		    (unsigned long long)(options->max_buffer_bytes >> 20));
	gt_buf_release(&command);
	gt_buf_release(&missing);
}

void run_container(const struct run_options *options, char *const *argv)
{
	char program[PATH_MAX], output_dir[PATH_MAX], rendezvous[PATH_MAX];
	struct gt_container_setup setup = { .program = program,
					    .output_dir = output_dir,
					    .lookup = getenv };
	const char *runtime = gt_container_runtime(options->command);
	struct gt_preflight found;
	struct gt_err err;
	char **words;

	if (!runtime)
		return;
	if (options->force) {
		warn("--force traces %s from outside of its container, which seldom works",
		     runtime);
		return;
	}
	if (gt_preflight_find(&found, getenv(GT_ENV_INJECTION), &err) < 0)
		run_untraced(options->command, "%s", err.msg);
	setup.injection = found.injection;
	if (!realpath("/proc/self/exe", program))
		run_untraced(options->command, "cannot tell where gtrace is: %s", strerror(errno));
	if (!realpath(options->output_dir, output_dir))
		snprintf(output_dir, sizeof(output_dir), "%s", options->output_dir);
	if (options->rendezvous) {
		if (!realpath(options->rendezvous, rendezvous))
			snprintf(rendezvous, sizeof(rendezvous), "%s", options->rendezvous);
		setup.rendezvous = rendezvous;
	}
	words = other_options(argv, options->command, &setup.option_count);
	if (!words)
		run_untraced(options->command, "out of memory");
	setup.options = words;
	tell_how(options, &setup);
	free(words);
	run_exec(options->command, NULL);
}

void run_container_memory(const struct run_options *options)
{
	uint64_t limit, left = gt_cgroup_memory("", &limit);

	if (left >= options->max_buffer_bytes + OWN_BYTES)
		return;
	warn("of the container's memory of %llu MiB %llu MiB are left: tracing takes up to %llu "
	     "MiB "
	     "for each process and about 85 MiB for itself, so less of --max-buffer or more memory "
	     "may be needed",
	     (unsigned long long)(limit >> 20), (unsigned long long)(left >> 20),
	     (unsigned long long)(options->max_buffer_bytes >> 20));
}
