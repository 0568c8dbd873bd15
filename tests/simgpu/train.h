/*
 * train.h - options of the sample program, and the things that it does to annoy a tracer.
 */
#ifndef SIM_TRAIN_H
#define SIM_TRAIN_H

#include "base.h"

/* X(field, option, default, meaning); numbers, -1: never or none */
#define TRAIN_NUMBERS(X)                                                                      \
	X(steps, "steps", 10, "steps to train")                                               \
	X(layers, "layers", 4, "layers, each with a few kernels")                             \
	X(threads, "threads", 1, "threads that launch")                                       \
	X(graph, "graph", 1, "1: capture a graph before the loop and replay it")              \
	X(branches, "branches", 0, "1: the graph has two branches")                           \
	X(capture_at, "capture-at", -1, "step in which the graph is captured anew")           \
	X(silent, "silent", 0, "1: also calls that get no GPU record")                        \
	X(peer, "peer", 0, "1: also copies to a second device")                               \
	X(nccl, "nccl", 0, "1: also calls of NCCL, as its NVTX ranges tell of them")          \
	X(sync, "sync", 1, "1: synchronise the device at the end of each step")               \
	X(step_us, "step-us", 0, "microseconds to sleep in each step")                        \
	X(tell_fd, "tell-fd", -1, "write 'pid PID NS', 'begin STEP NS', 'done STEP NS' here") \
	X(wait_fd, "wait-fd", -1, "read a byte here before each step")                        \
	X(fork_at, "fork-at", -1, "step with a child that only forks")                        \
	X(close_at, "close-at", -1, "step in which all other descriptors are closed")         \
	X(profiler_at, "profiler-at", -1,                                                     \
	  "step in which to take CUPTI over, as torch.profiler does")                         \
	X(profiler_steps, "profiler-steps", 2, "how long")                                    \
	X(die_at, "die-at", -1, "step in which to raise --die-signal")                        \
	X(die_signal, "die-signal", 9, "the signal")                                          \
	X(tools_gone, "tools-gone", 0, "1: at the end wait until no tool listens")            \
	X(exit_status, "exit-status", 0, "what main returns")

struct train_options {
#define TRAIN_FIELD(field, option, value, help) int field;
	TRAIN_NUMBERS(TRAIN_FIELD)
#undef TRAIN_FIELD
	const char *marks; /* api, nvtx, nvtx-mark or none */
	const char *truth; /* file, NULL: none */
	const char *range; /* what --ranges are: cuda, driver, nvtx, start or domain */
	/* "+3 -5": one begins at the start of step 3 and ends behind step 5. "m": in the middle of
	 * the step; "t": by another thread; "+s": before anything is set up. NULL: none. */
	const char *ranges;
	const char *tools; /* steps in which to wait for a tool to listen: ",2,3,", NULL: none */
	const char *tools_off; /* likewise, until none does */
};

/* Exits with 2 on a bad option. */
void train_parse(struct train_options *ret, int argc, char **argv);

/* Every descriptor from 3 on but these two. */
void train_close_descriptors(int keep1, int keep2);

/*
 * Take the subscriber slot and the activity callbacks, as torch.profiler's Kineto does, for a
 * while. Says on stdout what it got: "profiler: subscribe RESULT" and "profiler: N kernels".
 */
void train_profiler_start(void);
void train_profiler_stop(void);

/* Begin and end the ranges of this moment: 's', 'b' before a step, 'm' in it, 'e' behind it. */
void train_ranges(const struct train_options *options, char moment, uint64_t step);

/* NCCL makes a communicator; it is called in a step, and launches its kernels by this. */
void train_nccl_init(void);
void train_nccl_step(void (*launch)(void));

#endif
