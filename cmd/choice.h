/*
 * choice.h - the part of a trace that options name.
 */
#ifndef CMD_CHOICE_H
#define CMD_CHOICE_H

#include "selection.h"

/* A larger number is no GPU's. */
#define DEVICE_MAX 4096

/*
 * "A:B", each side as read() has it; without a colon both are the same, and an empty side leaves
 * its value alone. False: it is nothing of that, or the first is the larger one.
 */
bool read_sides(const char *text, bool (*read)(struct gt_str side, int64_t *ret), int64_t *ret_from,
		int64_t *ret_to);

/* The numbers of the first and the last step. */
bool read_steps(const char *text, struct gt_choice *choice);

#endif
