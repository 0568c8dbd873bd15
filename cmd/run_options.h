/*
 * run_options.h - the command line of gtrace run.
 */
#ifndef CMD_RUN_OPTIONS_H
#define CMD_RUN_OPTIONS_H

#include "base.h"
#include "schedule.h"

#define STATUS_OWN_FAILURE    125 /* gtrace itself failed, as env(1) and its like */
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND      127

enum run_step_source {
	RUN_STEP_NOT_GIVEN = -1, /* as long as options are checked */
	RUN_STEP_AUTO,
	RUN_STEP_API,
	RUN_STEP_NVTX,
	RUN_STEP_OPTIMIZER,
	RUN_STEP_FRAMEWORK,
	RUN_STEP_CALL,
	RUN_STEP_NONE
};

enum run_capture {
	RUN_CAPTURE_AUTO, /* steps, or a cudaProfilerStart() that comes before all of them */
	RUN_CAPTURE_STEPS,
	RUN_CAPTURE_PROFILER,
	RUN_CAPTURE_NVTX,
	RUN_CAPTURE_TIME
};

#define RUN_NO_BACKTRACE UINT64_MAX
#define RUN_NOT_GIVEN    UINT64_MAX /* a number, as long as options are checked */

enum run_then { RUN_THEN_CONTINUE, RUN_THEN_STOP };

struct run_options { /* strings are of argv and the environment */
	struct gt_schedule schedule;
	const char *output_dir;
	const char *name; /* NULL: by the command */
	bool force;
	bool tensorboard;       /* files are called and laid out for it */
	const char *activities; /* what is recorded: words with commas */
	bool no_gpu;            /* "gpu" is not among them */
	bool with_memory;       /* "mem" is */
	int with_shapes;        /* of operators */
	int with_flops;         /* readers are to compute them from the shapes */
	bool with_stack;
	bool with_modules;
	uint64_t cuda_backtrace_us; /* stacks of CUDA calls from that on; RUN_NO_BACKTRACE */
	int step_source;            /* enum run_step_source */
	const char *step_range;     /* NULL: none */
	const char *step_call;      /* MODULE:QUALNAME; NULL: none */
	const char *capture_range;  /* as given; NULL: it was not */
	bool capture_implied;       /* but by --delay or --duration */
	const char *capture_end;    /* as given; NULL: it was not */
	enum run_capture capture;
	uint64_t delay_ms;    /* of RUN_CAPTURE_TIME, from the start */
	uint64_t duration_ms; /* 0: to the end */
	uint64_t max_buffer_bytes;
	int cuda_graph;         /* index in run_cuda_graphs */
	int then;               /* enum run_then */
	const char *rendezvous; /* directory; NULL: none */
	int verbose;
	bool quiet;
	bool nsight;               /* Nsight Systems records */
	const char *nsight_output; /* its report; NULL: by the command */
	const char *nsight_args;   /* more of its options; NULL: none */
	char *const *command;
};

/* The words of --step-source and --cuda-graph, by their values; as the environment has them. */
extern const char *const run_step_sources[];
extern const char *const run_cuda_graphs[];

/* ---- run_capture.c ---- */

/* The options of captured ranges: check them, and make a schedule of them. Ends the program. */
void run_capture_check(struct run_options *run);

/* For GT_ENV_CAPTURE, when the program starts now. "": the default. */
#define RUN_CAPTURE_TEXT_MAX 1200
void run_capture_format(const struct run_options *run, char *buf, size_t len);

/* "capture-range time": the option that had ranges captured, as it was given. */
#define RUN_CAPTURE_OPTION_MAX 1200
void run_capture_option(const struct run_options *run, char *buf, size_t len);

/* "cudaProfilerStart()": what begins a range. */
void run_capture_describe(const struct run_options *run, char *buf, size_t len);

/* ---- run_options.c ---- */

/* The first option of the schedule that was given, be it as by default; NULL: none was. */
const char *run_schedule_option(const struct gt_schedule *sched);

/* Not a valid regular expression: ends the program. */
void run_check_regex(const char *option, const char *text);

/* Parse and check. Ends the program on --help and on errors. */
void run_options_parse(struct run_options *ret, int argc, char **argv);

#endif
