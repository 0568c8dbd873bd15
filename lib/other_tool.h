/*
 * other_tool.h - whether another tool is in a program, or is to get into it: CUDA takes one
 * injection library, and CUPTI one subscriber.
 */
#ifndef GT_OTHER_TOOL_H
#define GT_OTHER_TOOL_H

#include "base.h"

struct gt_other_tool {
	const char *name; /* "Nsight Systems"; NULL: a library that nobody knows */
	bool nsys;        /* it is that one */
	bool variable;    /* it has set one; else it is the command or an ancestor */
	char how[320];    /* by what it was found: "Nsight Systems has set CUDA_INJECTION64_PATH" */
};

/*
 * Look for one: the command itself, the variables that tools set, then the names of this process's
 * ancestors, as a debugger sets none. lookup is getenv() or a stand-in; injection is the path of
 * ours (another gtrace is no other tool), NULL: not known. false: there is none.
 */
bool gt_other_tool_find(struct gt_other_tool *ret, char *const *argv,
			char *(*lookup)(const char *name), const char *injection);

/* The path of a program of PATH. false: there is none. */
bool gt_find_program(const char *name, char *ret, size_t len);

#endif
