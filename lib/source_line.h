/*
 * source_line.h - frames of Python as PyTorch writes them, "train.py(12): forward", and which of
 * them are of the program.
 */
#ifndef GT_SOURCE_LINE_H
#define GT_SOURCE_LINE_H

#include "base.h"
#include "str.h"

enum gt_source_kind {
	GT_SOURCE_NONE, /* not a line of a file: "<built-in method add …>", "nn.Module: Linear_0" */
	GT_SOURCE_LIBRARY, /* of PyTorch, of an installed package, of Python */
	GT_SOURCE_PROGRAM
};

struct gt_source_line { /* borrows from the frame */
	struct gt_str file;
	uint32_t number;
	struct gt_str function;
};

/* *ret is set unless it is GT_SOURCE_NONE. */
enum gt_source_kind gt_source_line_of(struct gt_str frame, struct gt_source_line *ret);

/* The frame of an operator with this stack, "innermost;…;outermost": the innermost one of the
 * program, or else of a library. Empty: there is none. */
struct gt_str gt_source_frame_of(struct gt_str stack);

#endif
