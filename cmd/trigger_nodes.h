/*
 * trigger_nodes.h - gtrace trigger --rendezvous: the requester of lib/rendezvous.h.
 */
#ifndef CMD_TRIGGER_NODES_H
#define CMD_TRIGGER_NODES_H

#include "base.h"
#include "trigger.h"

struct trigger_nodes {
	const char *dir;
	enum gt_trigger_at at;
	uint64_t step;
	uint64_t active; /* UINT64_MAX: as the sessions have it */
	uint64_t warmup; /* likewise */
};

/* The exit status. */
int trigger_nodes(const struct trigger_nodes *wanted);

#endif
