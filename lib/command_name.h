/*
 * command_name.h - what a command line is about, for the names of its traces.
 */
#ifndef GT_COMMAND_NAME_H
#define GT_COMMAND_NAME_H

#include "base.h"

/*
 * The script or module that argv runs, without directory and suffix: interpreters and launchers
 * (torchrun, mpirun, srun, env, …) are looked through. "python" for its -c, the program's base
 * name where there is no script. Always something gt_session_check_name() takes.
 */
void gt_command_name(char *const *argv, char *buf, size_t len);

/* Does this program run the command on its command line? */
bool gt_command_is_launcher(const char *path);

#endif
