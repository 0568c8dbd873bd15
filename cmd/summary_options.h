/*
 * summary_options.h - the command line of gtrace summary.
 */
#ifndef CMD_SUMMARY_OPTIONS_H
#define CMD_SUMMARY_OPTIONS_H

#include "base.h"
#include "choice.h"
#include "summary.h"

#include <regex.h>

struct summary_options {
	const char *by;  /* as given; NULL: it was not */
	const char *ncu; /* a kernel to profile; NULL: print the summary */
	bool by_rank;
	int64_t rank;       /* -1: all */
	size_t stack_depth; /* 0: no stacks */
	bool for_programs;  /* the format has no place for warnings */
	bool has_sort;
	bool has_limit;
	bool has_choice;
	struct gt_choice choice;
	struct gt_summary_style style;
	regex_t regex; /* the style's filter */
};

/* The index of the first operand. Ends the program on --help and on errors. */
int summary_options_parse(struct summary_options *ret, int argc, char **argv);

#endif
