/*
 * cmd.h - the commands. A new one is a function here, its file cmd/NAME.c, a row in the table of
 * main.c, and man/gtrace-NAME.1.
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base.h"

#define STATUS_FAILURE 1
#define STATUS_USAGE   2
#define STATUS_LOSSES  3 /* done with what a cut or damaged file still held */

/* argv[0] is the command's name. The exit status. */
int cmd_run(int argc, char **argv);
int cmd_summary(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_cut(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_trigger(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_doctor(int argc, char **argv);

/* Not for users: what 'gtrace doctor' traces. */
int cmd_self_test(int argc, char **argv);

#endif
