#include "base.h"
#include "die.h"
#include "env.h"
#include "options.h"
#include "run_options.h"
#include "session.h"
#include "wire.h"

#include <regex.h>
#include <stdlib.h>

#define TIME_MAX_MS        (UINT64_C(1000) * 3600 * 24 * 365)
#define MAX_BUFFER_DEFAULT (UINT64_C(64) << 20)
#define NOT_GIVEN          -1
#define BACKTRACE_US       10
#define BACKTRACE_MAX_US   1000000000

const char *const run_step_sources[] = { "auto",      "api",  "nvtx", "optimizer",
					 "framework", "call", "none", NULL };
const char *const run_cuda_graphs[] = { "node", "graph", NULL };

static const char *const thens[] = { "continue", "stop", NULL };

static void parse(struct run_options *run, int argc, char **argv, int *ret_operand)
{
	struct gt_schedule *sched = &run->schedule;
	const struct opt opts[] = {
		OPT_TITLE("which steps"),
		OPT_UINT(0, "skip-first", &sched->skip_first, "N", 0, GT_SCHEDULE_MAX,
			 "leave out the first N steps (1)"),
		OPT_UINT(0, "wait", &sched->wait, "N", 0, GT_SCHEDULE_MAX,
			 "then, in each cycle, wait for N steps (1),"),
		OPT_UINT(0, "warmup", &sched->warmup, "N", 0, GT_SCHEDULE_MAX,
			 "trace N steps and throw that away (1):\n"
			 "the first ones after switching on are slower,"),
		OPT_UINT(0, "active", &sched->active, "N", 1, GT_SCHEDULE_MAX,
			 "and trace N steps (3: steps 3 to 5)"),
		OPT_UINT(0, "repeat", &sched->repeat, "N", 0, GT_SCHEDULE_MAX,
			 "number of cycles, each with its own file (1);\n"
			 "0: until the program ends"),
		OPT_FLAG(0, "skip-first-wait", &sched->skip_first_wait,
			 "the first cycle does not wait"),
		OPT_FLAG(0, "on-demand", &sched->on_demand,
			 "trace nothing until 'gtrace trigger' or SIGUSR2:\n"
			 "then --warmup and --active steps, each time"),
		OPT_STRING(0, "rendezvous", &run->rendezvous, "DIR",
			   "a directory that other sessions see, too: one\n"
			   "'gtrace trigger --rendezvous DIR' reaches them all"),
		OPT_TITLE("files"),
		OPT_STRING('o', "output-dir", &run->output_dir, "DIR",
			   "where traces go (., or GTRACE_OUTPUT_DIR)"),
		OPT_STRING('n', "name", &run->name, "NAME",
			   "traces are called NAME-rankR.trace.json.gz\n"
			   "(the name of the script or program)"),
		OPT_FLAG(0, "tensorboard", &run->tensorboard,
			 "they are NAME/HOST_rankR.MS.pt.trace.json.gz, as\n"
			 "TensorBoard's profiler plug-in looks for them"),
		OPT_FLAG(0, "force", &run->force,
			 "overwrite traces, instead of taking the next\n"
			 "free name NAME-2, NAME-3, ...; and trace beside\n"
			 "another tool, such as nsys or compute-sanitizer"),
		OPT_TITLE("what a step is"),
		OPT_CHOICE(0, "step-source", &run->step_source, "SOURCE", run_step_sources,
			   "what marks the end of a step:\n"
			   "api: gtrace_step() of gtrace.h, gtrace.step();\n"
			   "nvtx: NVTX ranges and marks of --step-range;\n"
			   "framework: Transformers, Lightning and others;\n"
			   "optimizer: PyTorch's optimizer.step();\n"
			   "auto: the first of these that is seen (auto);\n"
			   "call: the function of --step-call;\n"
			   "none: the whole run is one step"),
		OPT_STRING(0, "step-range", &run->step_range, "REGEX",
			   "which NVTX ranges or marks are steps"),
		OPT_STRING(0, "step-call", &run->step_call, "MODULE:NAME",
			   "a Python function whose calls are the steps, for\n"
			   "instance __main__:train_step, pkg.mod:Class.method"),
		OPT_TITLE("a range of the program or of time, instead of steps by number"),
		OPT_STRING(0, "capture-range", &run->capture_range, "WHAT",
			   "steps: by number, as above (steps);\n"
			   "cuda-profiler: from cudaProfilerStart() to Stop(),\n"
			   "also without this option, before the first step;\n"
			   "nvtx:REGEX: an NVTX range (nvtx:REGEX@DOMAIN);\n"
			   "time: by --delay and --duration; none: all"),
		OPT_STRING(0, "capture-end", &run->capture_end, "WHAT",
			   "after such a range stop, or repeat or repeat:N,\n"
			   "each with its own file (stop)"),
		OPT_TIME(0, "delay", &run->delay_ms, "TIME", 0, TIME_MAX_MS,
			 "begin so long after the start: 30, 2.5s, 500ms"),
		OPT_TIME(0, "duration", &run->duration_ms, "TIME", 1, TIME_MAX_MS,
			 "and end after this time (at the program's end)"),
		OPT_TITLE("contents"),
		OPT_STRING(0, "activities", &run->activities, "LIST",
			   "what is recorded: cpu (PyTorch's operators), gpu\n"
			   "and, beside these, mem (what PyTorch allocates)\n"
			   "(cpu,gpu)"),
		OPT_SWITCH(0, "with-shapes", &run->with_shapes,
			   "of each operator the sizes, strides and types of\n"
			   "its inputs (on; --no-shapes)"),
		OPT_SWITCH(0, "with-flops", &run->with_flops,
			   "tables of the trace have FLOPs, from the shapes\n"
			   "(on; --no-flops)"),
		OPT_FLAG(0, "with-stack", &run->with_stack,
			 "the Python code that calls each operator"),
		OPT_FLAG(0, "with-modules", &run->with_modules,
			 "the nn.Module that each operator is in"),
		OPT_UINT_OR_NOT(0, "cuda-backtrace", &run->cuda_backtrace_us, "US", 0,
				BACKTRACE_MAX_US, BACKTRACE_US,
				"the Python code that makes each CUDA call of so\n"
				"many us or more (off; without a number 10)"),
		OPT_CHOICE(0, "cuda-graph", &run->cuda_graph, "LEVEL", run_cuda_graphs,
			   "node: each kernel of a CUDA graph (node);\n"
			   "graph: each graph as one, which costs less"),
		OPT_SIZE(0, "max-buffer", &run->max_buffer_bytes, "SIZE", GT_ARENA_MIN_BYTES,
			 GT_ARENA_MAX_BYTES,
			 "memory a process has for what is not yet read\n(64M)"),
		OPT_TITLE("by Nsight Systems instead of gtrace"),
		OPT_FLAG(0, "nsight", &run->nsight,
			 "Nsight Systems records these steps: run nsys, or\n"
			 "be run by it"),
		OPT_STRING(0, "nsight-output", &run->nsight_output, "PREFIX",
			   "its report, PREFIX.nsys-rep (as traces)"),
		OPT_STRING(0, "nsight-args", &run->nsight_args, "ARGS",
			   "more options for nsys profile"),
		OPT_TITLE("other options"),
		OPT_CHOICE(0, "then", &run->then, "WHAT", thens,
			   "when the traces are complete, continue or\n"
			   "stop the program with SIGTERM (continue)"),
		OPT_COUNT('v', "verbose", &run->verbose, "say more, twice: much more"),
		OPT_FLAG('q', "quiet", &run->quiet, "say only what is lost or wrong"),
	};
	const struct opt_command command = {
		.name = "run",
		.synopsis = "[options] -- command [args]",
		.about = "Run a program and trace its steps on the GPU, one file a rank",
		.opts = opts,
		.count = ARRAY_SIZE(opts),
		.stop_at_operand = true,
	};
	struct gt_err err;
	int rc = opt_parse(&command, argc, argv, ret_operand, &err);

	if (rc < 0)
		die(STATUS_OWN_FAILURE, "run: %s; see 'gtrace run -h'", err.msg);
	if (rc > 0) {
		opt_print_help(&command, stdout);
		exit(check_stdout(0));
	}
}

enum { CPU = 1, GPU = 2, MEM = 4 };

/* The words of --activities, with commas, as their bits; 0: the list is not made of these. */
static unsigned int parse_activities(const char *list)
{
	static const char words[][4] = { "cpu", "gpu", "mem" };
	unsigned int found = 0;
	size_t len, i;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		for (i = 0; i < ARRAY_SIZE(words); i++)
			if (len == 3 && !strncmp(list, words[i], len))
				break;
		if (i == ARRAY_SIZE(words))
			return 0;
		found |= 1U << i;
		if (!list[len])
			return found;
	}
}

const char *run_schedule_option(const struct gt_schedule *sched)
{
	return sched->skip_first != RUN_NOT_GIVEN ? "skip-first"
	       : sched->wait != RUN_NOT_GIVEN     ? "wait"
	       : sched->warmup != RUN_NOT_GIVEN   ? "warmup"
	       : sched->active != RUN_NOT_GIVEN   ? "active"
	       : sched->repeat != RUN_NOT_GIVEN   ? "repeat"
	       : sched->skip_first_wait           ? "skip-first-wait"
	       : sched->on_demand                 ? "on-demand"
						  : NULL;
}

void run_check_regex(const char *option, const char *text)
{
	char why[128];
	regex_t regex;
	int rc;

	if (strlen(text) >= GT_ENV_REGEX_MAX)
		die(STATUS_OWN_FAILURE,
		    "run: the regular expression of --%s is longer than %d bytes", option,
		    GT_ENV_REGEX_MAX - 1);
	rc = regcomp(&regex, text, REG_EXTENDED | REG_NOSUB);
	if (!rc) {
		regfree(&regex);
		return;
	}
	regerror(rc, &regex, why, sizeof(why));
	die(STATUS_OWN_FAILURE, "run: --%s '%s' is no regular expression: %s", option, text, why);
}

/* The function of --step-call is the source: it was named to be that. */
static void check_step_call(struct run_options *run)
{
	const char *colon = run->step_call ? strchr(run->step_call, ':') : NULL;

	if (!run->step_call && run->step_source == RUN_STEP_CALL)
		die(STATUS_OWN_FAILURE, "run: --step-source call needs --step-call: the function");
	if (!run->step_call)
		return;
	if (!colon || colon == run->step_call || !colon[1] || strpbrk(colon + 1, ":( \t"))
		die(STATUS_OWN_FAILURE,
		    "run: --step-call takes MODULE:NAME, such as __main__:train_step, not '%s'",
		    run->step_call);
	if (run->step_source != RUN_STEP_NOT_GIVEN && run->step_source != RUN_STEP_AUTO &&
	    run->step_source != RUN_STEP_CALL)
		die(STATUS_OWN_FAILURE, "run: --step-call and --step-source %s exclude each other",
		    run_step_sources[run->step_source]);
	if (run->step_range)
		die(STATUS_OWN_FAILURE, "run: --step-call and --step-range exclude each other");
	run->step_source = RUN_STEP_CALL;
}

static void check_nsight(const struct run_options *run)
{
	char capture[RUN_CAPTURE_OPTION_MAX];

	if (!run->nsight && (run->nsight_output || run->nsight_args))
		die(STATUS_OWN_FAILURE, "run: --nsight-%s is of --nsight",
		    run->nsight_output ? "output" : "args");
	if (run->nsight && run->step_range)
		die(STATUS_OWN_FAILURE, "run: --nsight and --step-range exclude each other: NVTX "
					"is Nsight Systems' then");
	if (run->nsight && run->with_memory)
		die(STATUS_OWN_FAILURE,
		    "run: --nsight and --activities %s exclude each other: see --nsight-args",
		    run->activities);
	if (run->nsight && run->capture != RUN_CAPTURE_AUTO && run->capture != RUN_CAPTURE_STEPS) {
		run_capture_option(run, capture, sizeof(capture));
		die(STATUS_OWN_FAILURE,
		    "run: --nsight and --%s exclude each other: see --nsight-args", capture);
	}
	if (run->nsight && (run->with_stack || run->with_modules))
		die(STATUS_OWN_FAILURE, "run: --nsight and --with-%s exclude each other",
		    run->with_stack ? "stack" : "modules");
	if (run->nsight && run->tensorboard)
		die(STATUS_OWN_FAILURE, "run: --nsight and --tensorboard exclude each other");
	if (run->nsight && run->cuda_backtrace_us != RUN_NO_BACKTRACE)
		die(STATUS_OWN_FAILURE,
		    "run: --nsight and --cuda-backtrace exclude each other: see --nsight-args");
}

/* What is asked for by name and cannot be is refused; defaults give way. */
static void check_operators(struct run_options *run, bool operators)
{
	const struct {
		const char *name;
		bool asked;
	} of_operators[] = {
		{ "shapes", run->with_shapes == 1 },
		{ "flops", run->with_flops == 1 },
		{ "stack", run->with_stack },
		{ "modules", run->with_modules },
	};

	for (size_t i = 0; i < ARRAY_SIZE(of_operators) && !operators; i++)
		if (of_operators[i].asked)
			die(STATUS_OWN_FAILURE,
			    "run: --with-%s is of operators, which --activities %s leaves out",
			    of_operators[i].name, run->activities);
	if (run->with_flops == 1 && !run->with_shapes)
		die(STATUS_OWN_FAILURE, "run: --with-flops needs the shapes, which --no-shapes "
					"leaves out");
	run->with_shapes = run->with_shapes && operators;
	run->with_flops = run->with_flops && run->with_shapes;
}

static void check_on_demand(struct run_options *run)
{
	const struct gt_schedule *given = &run->schedule;
	const struct gt_schedule cycles = { .skip_first = given->skip_first,
					    .wait = given->wait,
					    .warmup = RUN_NOT_GIVEN,
					    .active = RUN_NOT_GIVEN,
					    .repeat = given->repeat,
					    .skip_first_wait = given->skip_first_wait };
	const char *option = run_schedule_option(&cycles);

	if (!option)
		option = run->capture_range ? "capture-range" : run->nsight ? "nsight" : NULL;
	if (run->rendezvous && !*run->rendezvous)
		die(STATUS_OWN_FAILURE, "run: --rendezvous takes a directory, not ''");
	if (run->rendezvous && run->nsight)
		die(STATUS_OWN_FAILURE, "run: --rendezvous and --nsight exclude each other");
	if (!given->on_demand)
		return;
	if (option)
		die(STATUS_OWN_FAILURE, "run: --on-demand and --%s exclude each other", option);
	if (run->step_source == RUN_STEP_NONE)
		die(STATUS_OWN_FAILURE, "run: --on-demand is by steps, so --step-source none "
					"cannot be");
	if ((given->active != RUN_NOT_GIVEN && given->active > GT_PLAN_ACTIVE_MAX) ||
	    (given->warmup != RUN_NOT_GIVEN && given->warmup > GT_PLAN_WARMUP_MAX))
		die(STATUS_OWN_FAILURE,
		    "run: --on-demand takes an --active of at most %u, a --warmup of at most %d",
		    GT_PLAN_ACTIVE_MAX, GT_PLAN_WARMUP_MAX);
	run->capture = RUN_CAPTURE_STEPS; /* nothing is listened to */
}

static void check_whole(struct run_options *run)
{
	const char *option = run_schedule_option(&run->schedule);
	bool by_range = run->capture_range && !strcmp(run->capture_range, "none");

	if (run->step_source != RUN_STEP_NONE || run->schedule.capture || !option)
		return;
	warn("the whole run is one step (--%s none): --%s changes nothing",
	     by_range ? "capture-range" : "step-source", option);
	run->schedule = (struct gt_schedule)GT_SCHEDULE_DEFAULT; /* nor a file's name */
}

static void set_default(uint64_t *value, uint64_t standard)
{
	if (*value == RUN_NOT_GIVEN)
		*value = standard;
}

/* When all is checked: what was not given. */
static void set_defaults(struct run_options *run)
{
	const struct gt_schedule standard = GT_SCHEDULE_DEFAULT;

	set_default(&run->schedule.skip_first, standard.skip_first);
	set_default(&run->schedule.wait, standard.wait);
	set_default(&run->schedule.warmup, standard.warmup);
	set_default(&run->schedule.active, standard.active);
	set_default(&run->schedule.repeat, standard.repeat);
	set_default(&run->delay_ms, 0);
	if (run->step_source == RUN_STEP_NOT_GIVEN)
		run->step_source = RUN_STEP_AUTO;
	if (run->cuda_graph == NOT_GIVEN)
		run->cuda_graph = 0;
}

void run_options_parse(struct run_options *ret, int argc, char **argv)
{
	struct run_options run = {
		.schedule = { .skip_first = RUN_NOT_GIVEN,
			      .wait = RUN_NOT_GIVEN,
			      .warmup = RUN_NOT_GIVEN,
			      .active = RUN_NOT_GIVEN,
			      .repeat = RUN_NOT_GIVEN },
		.delay_ms = RUN_NOT_GIVEN,
		.step_source = RUN_STEP_NOT_GIVEN,
		.cuda_graph = NOT_GIVEN,
		.max_buffer_bytes = MAX_BUFFER_DEFAULT,
		.activities = "cpu,gpu",
		.with_shapes = NOT_GIVEN,
		.with_flops = NOT_GIVEN,
		.cuda_backtrace_us = RUN_NO_BACKTRACE,
	};
	struct gt_err err;
	unsigned int activities;
	int operand;

	run.output_dir = getenv(GT_ENV_OUTPUT_DIR);
	if (!run.output_dir || !*run.output_dir)
		run.output_dir = ".";
	parse(&run, argc, argv, &operand);
	if (operand == argc)
		die(STATUS_OWN_FAILURE,
		    "run: which command? gtrace run [options] -- command [args]");
	run.command = argv + operand;
	if (!*run.output_dir)
		die(STATUS_OWN_FAILURE, "run: --output-dir takes a directory, not ''");
	if (run.name && gt_session_check_name(run.name, &err) < 0)
		die(STATUS_OWN_FAILURE, "run: --name '%s': %s", run.name, err.msg);
	activities = parse_activities(run.activities);
	if (!(activities & (CPU | GPU)))
		die(STATUS_OWN_FAILURE,
		    "run: --activities takes cpu, gpu or both, and mem beside these, not '%s'",
		    run.activities);
	run.no_gpu = !(activities & GPU);
	run.with_memory = activities & MEM;
	check_operators(&run, activities & CPU);
	if (run.no_gpu && run.cuda_backtrace_us != RUN_NO_BACKTRACE)
		die(STATUS_OWN_FAILURE,
		    "run: --cuda-backtrace is of CUDA calls, which --activities %s leaves out",
		    run.activities);
	if (run.no_gpu && run.cuda_graph != NOT_GIVEN)
		die(STATUS_OWN_FAILURE,
		    "run: --cuda-graph is of GPU work, which --activities %s leaves out",
		    run.activities);
	if (run.step_range && !*run.step_range)
		die(STATUS_OWN_FAILURE, "run: --step-range takes a regular expression, not ''");
	if (run.step_range)
		run_check_regex("step-range", run.step_range);
	if (run.step_range && run.step_source != RUN_STEP_NOT_GIVEN &&
	    run.step_source != RUN_STEP_AUTO && run.step_source != RUN_STEP_NVTX)
		die(STATUS_OWN_FAILURE, "run: --step-range and --step-source %s exclude each other",
		    run_step_sources[run.step_source]);
	if (run.step_source == RUN_STEP_NVTX && !run.step_range)
		die(STATUS_OWN_FAILURE, "run: --step-source nvtx needs --step-range: the name of "
					"the range that is a step");
	check_step_call(&run);
	check_on_demand(&run);
	run_capture_check(&run);
	check_whole(&run);
	check_nsight(&run);
	set_defaults(&run);
	*ret = run;
}
