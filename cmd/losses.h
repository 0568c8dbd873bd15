/*
 * losses.h - what of a trace was lost, as warnings.
 */
#ifndef CMD_LOSSES_H
#define CMD_LOSSES_H

#include "summary.h"

/* A warning for each of gt_summary_losses(). */
void warn_of_losses(const struct gt_summary *summary, const char *path);

#endif
