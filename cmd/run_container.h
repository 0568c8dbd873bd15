/*
 * run_container.h - gtrace run -- docker run …: what is to be called instead.
 */
#ifndef CMD_RUN_CONTAINER_H
#define CMD_RUN_CONTAINER_H

#include "run_options.h"

/*
 * Where the command starts a container and --force is not given, say how to trace inside of it, and
 * become the command untraced; elsewhere return. argv is that of gtrace run.
 */
void run_container(const struct run_options *options, char *const *argv);

/* A warning where the container that this runs in has too little memory left. */
void run_container_memory(const struct run_options *options);

#endif
