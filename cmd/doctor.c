#include "base.h"
#include "cmd.h"
#include "die.h"
#include "doctor.h"
#include "env.h"
#include "options.h"

#include <stdlib.h>

static struct {
	bool json;
	const char *python;
	const char *output_dir;
	uint64_t timeout_s;
} wanted = { .timeout_s = 5 };

static const struct opt opts[] = {
	OPT_FLAG(0, "json", &wanted.json, "print it as JSON"),
	OPT_STRING('o', "output-dir", &wanted.output_dir, "DIR",
		   "where traces are to go (., or GTRACE_OUTPUT_DIR)"),
	OPT_STRING(0, "python", &wanted.python, "PROGRAM", "the interpreter to look at (python3)"),
	OPT_UINT(0, "timeout", &wanted.timeout_s, "SECONDS", 1, 600,
		 "how long the driver and others have to answer\n"
		 "(5)"),
};

static const struct opt_command self = {
	.name = "doctor",
	.synopsis = "[options]",
	.about = "Say whether tracing will work on this machine, what hinders it and what\n"
		 "to do: the driver, CUPTI, limits, containers, other tools, Python; and\n"
		 "trace a small program as a test. The exit status is 0 when tracing will\n"
		 "work, 1 when it will not",
	.opts = opts,
	.count = ARRAY_SIZE(opts),
};

static void examine(struct gt_doctor *doctor)
{
	static void (*const parts[])(struct gt_doctor * doctor) = {
		gt_doctor_injection, gt_doctor_gpu,         gt_doctor_python,
		gt_doctor_cupti,     gt_doctor_tools,       gt_doctor_limits,
		gt_doctor_container, gt_doctor_directories, gt_doctor_trace,
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts) && !doctor->signal; i++)
		parts[i](doctor);
}

int cmd_doctor(int argc, char **argv)
{
	struct gt_doctor doctor = { .root = "" };
	struct gt_signals signals;
	struct gt_buf text = { 0 };
	struct gt_err err;
	int status;

	opt_parse_all(&self, argc, argv);
	if (gt_signals_init(&signals, &err) < 0)
		die(STATUS_FAILURE, "%s", err.msg);
	doctor.signals = &signals;
	doctor.timeout_ms = (int)wanted.timeout_s * 1000;
	doctor.python = wanted.python ? wanted.python : "python3";
	doctor.python_is_wanted = wanted.python;
	doctor.output_dir = wanted.output_dir ? wanted.output_dir : getenv(GT_ENV_OUTPUT_DIR);
	if (!doctor.output_dir || !*doctor.output_dir)
		doctor.output_dir = ".";
	examine(&doctor);
	gt_signals_release(&signals);
	if (doctor.signal)
		gt_signals_die_of(doctor.signal);
	if ((wanted.json ? gt_doctor_print_json(&doctor, &text)
			 : gt_doctor_print(&doctor, stdout_has_colours(), &text)) < 0)
		die(STATUS_FAILURE, "out of memory");
	put_stdout(gt_buf_str(&text));
	gt_buf_release(&text);
	status = gt_doctor_is_well(&doctor) ? 0 : STATUS_FAILURE;
	gt_doctor_release(&doctor);
	return status;
}
