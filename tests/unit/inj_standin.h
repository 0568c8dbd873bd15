/*
 * inj_standin.h - a stand-in for the injection's core: what the part under test asks is set by the
 * test, what it writes is kept in memory.
 */
#ifndef INJ_STANDIN_H
#define INJ_STANDIN_H

#include "inject.h"

#define STANDIN_EVENTS_MAX 4096
#define STANDIN_STACK      7 /* inj_stack() */

struct standin_event {
	uint16_t type;
	uint64_t range_id; /* THREAD_NAME: ref */
	uint32_t domain_id;
	uint32_t name_id;
	char text[GT_INLINE_MAX + 1]; /* the inline bytes */
	struct gt_ev_collective collective;
	struct gt_ev_comm comm;
};

struct standin {
	_Atomic bool alive; /* inj_alive(), inj_start() */
	_Atomic bool recording;
	bool arena_full;   /* inj_reserve() fails */
	bool intern_fails; /* inj_intern() fails */
	int starts;        /* calls of inj_start(), inj_step(), inj_is_step_name() */
	int steps;
	int captures; /* open ones */
	int regex_runs;
	int drops;
	size_t event_count;
	struct standin_event events[STANDIN_EVENTS_MAX];
};

extern struct standin standin;

/* Alive, recording and empty; but for the names, which are for ever. */
void standin_reset(void);

/* The bytes of an id of inj_intern(). */
const char *standin_name(uint32_t id);

#endif
