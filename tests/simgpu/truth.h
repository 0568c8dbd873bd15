/*
 * truth.h - what the sample program did, counted as it was done, step by step. Written as JSON, to
 * be compared with its trace.
 */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include "base.h"

enum truth_copy { TRUTH_HTOD, TRUTH_DTOH, TRUTH_DTOD, TRUTH_PTOP, TRUTH_SET, TRUTH_COPY_MAX };

enum truth_call { TRUTH_RUNTIME, TRUTH_DRIVER };

/* Any thread. Each counts in the step that the program is in. */
void truth_kernel(const char *name, uint64_t count);
void truth_copy(enum truth_copy kind, uint64_t bytes, uint64_t count);
void truth_range(const char *name);
/* A call of this thread that put work on a stream itself (graphs: any number of kernels). */
void truth_call(enum truth_call domain, const char *function);
void truth_captured(void); /* a launch that went into a graph */
void truth_silent(void);   /* a call that never gets a GPU record: zero bytes, an empty graph */

/* The step ends. Only the main thread, while no other counts. Returns the new step. */
uint64_t truth_next_step(void);

/* 0 or -1 with errno. demangled: pairs of a name and what it means, NULL-terminated. */
int truth_write(const char *path, const char *marks, const char *const *demangled);

#endif
