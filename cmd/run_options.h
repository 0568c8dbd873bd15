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
	RUN_STEP_AUTO,
	RUN_STEP_API,
	RUN_STEP_NVTX,
	RUN_STEP_OPTIMIZER,
	RUN_STEP_FRAMEWORK,
	RUN_STEP_CALL,
	RUN_STEP_NONE
};

enum run_then { RUN_THEN_CONTINUE, RUN_THEN_STOP };

struct run_options { /* strings are of argv and the environment */
	struct gt_schedule schedule;
	const char *output_dir;
	const char *name; /* NULL: by the command */
	bool force;
	const char *activities; /* what is recorded: words with commas */
	bool no_gpu;            /* "gpu" is not among them */
	bool with_shapes;       /* of operators */
	bool with_flops;        /* readers are to compute them from the shapes */
	bool with_stack;
	bool with_modules;
	int step_source;        /* enum run_step_source */
	const char *step_range; /* NULL: none */
	const char *step_call;  /* MODULE:QUALNAME; NULL: none */
	uint64_t max_buffer_bytes;
	int cuda_graph; /* index in run_cuda_graphs */
	int then;       /* enum run_then */
	int verbose;
	bool quiet;
	char *const *command;
};

/* The words of --step-source and --cuda-graph, by their values; as the environment has them. */
extern const char *const run_step_sources[];
extern const char *const run_cuda_graphs[];

/* Parse and check. Ends the program on --help and on errors. */
void run_options_parse(struct run_options *ret, int argc, char **argv);

#endif
