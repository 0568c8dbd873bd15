/* main.c - the table of commands; what gtrace says of itself. */
#include "base.h"
#include "cmd.h"
#include "die.h"
#include "options.h"
#include "wire.h"

#include <fcntl.h>
#include <isa-l.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *about; /* NULL: not for users */
} commands[] = {
	{ "run", cmd_run, "run a program and trace its steps on the GPU" },
	{ "summary", cmd_summary, "say where the time of a trace went" },
	{ "check", cmd_check, "say whether a trace is whole and sound; repair it" },
	{ "cut", cmd_cut, "write a part of a trace" },
	{ "ps", cmd_ps, "list the sessions of gtrace run" },
	{ "trigger", cmd_trigger, "have a running program trace some steps now" },
	{ "stop", cmd_stop, "end the tracing of a running program" },
	{ "doctor", cmd_doctor, "say whether tracing will work here, and what to do" },
	{ "self-test", cmd_self_test, NULL },
};

static bool want_version;

static const struct opt opts[] = {
	OPT_FLAG('V', "version", &want_version, "version of gtrace and its parts"),
};

static const struct opt_command self = {
	.name = "",
	.synopsis = "COMMAND [options]",
	.about = "Trace and analyse programs that use NVIDIA GPUs",
	.opts = opts,
	.count = ARRAY_SIZE(opts),
	.stop_at_operand = true,
};

static void print_version(void)
{
	printf("gtrace %s\n", GT_VERSION);
	printf("protocol %d, libuv %s, ISA-L %d.%d.%d\n", GT_WIRE_VERSION, uv_version_string(),
	       ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION);
}

static void print_help(void)
{
	size_t i;

	opt_print_help(&self, stdout);
	if (opt_wants_completion()) {
		for (i = 0; i < ARRAY_SIZE(commands); i++)
			if (commands[i].about)
				printf("%s - command %s\n", commands[i].name, commands[i].about);
		return;
	}
	printf("\ncommands:\n");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (commands[i].about)
			printf("  %-10s%s\n", commands[i].name, commands[i].about);
	printf("\n'gtrace help COMMAND' explains a command, 'man gtrace' the whole.\n");
}

/*
 * Were a standard stream closed, the next descriptor would take its place and get what is meant
 * for it. The target finds it closed as it was.
 */
static void occupy_standard_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int run_command(int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		/* A write that fails is said. The program of run finds the signal as it was. */
		if (commands[i].run != cmd_run)
			signal(SIGXFSZ, SIG_IGN);
		return commands[i].run(argc, argv);
	}
	die(STATUS_USAGE, "'%s' is not a command; see 'gtrace -h'", argv[0]);
}

/* "gtrace help COMMAND" is "gtrace COMMAND --help", as people have it from git and perf. */
static int run_help(int argc, char **argv)
{
	char option[] = "--help";
	char *of_command[] = { argv[argc - 1], option, NULL };

	if (argc > 2)
		die(STATUS_USAGE, "help: one command at a time; see 'gtrace -h'");
	if (argc == 2 && strcmp(argv[1], "help") != 0 && argv[1][0] != '-')
		return run_command(2, of_command);
	print_help();
	return 0;
}

int main(int argc, char **argv)
{
	struct gt_err err;
	int operand, rc;

	occupy_standard_streams();
	rc = opt_parse(&self, argc, argv, &operand, &err);
	if (rc < 0)
		die(STATUS_USAGE, "%s; see 'gtrace -h'", err.msg);
	if (rc > 0) {
		print_help();
		return check_stdout(0);
	}
	if (want_version) {
		print_version();
		return check_stdout(0);
	}
	if (operand == argc)
		die(STATUS_USAGE, "which command? see 'gtrace -h'");
	argc -= operand;
	argv += operand;
	return check_stdout(strcmp(argv[0], "help") == 0 ? run_help(argc, argv)
							 : run_command(argc, argv));
}
