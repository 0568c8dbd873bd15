/*
 * run_explain.h - the last words of gtrace run where its user has not got what was asked for.
 */
#ifndef CMD_RUN_EXPLAIN_H
#define CMD_RUN_EXPLAIN_H

#include "run_report.h"

/*
 * Say why there is no trace, unless that has been said, or why it is not of the steps that were
 * looked for. never_began: a window that was triggered never began, which has been said.
 */
void run_explain(const struct run_report *report, bool never_began);

#endif
