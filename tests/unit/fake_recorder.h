/*
 * fake_recorder.h - stands in for the recorder in the tests of what calls it: it counts, and does
 * as it is told.
 */
#ifndef FAKE_RECORDER_H
#define FAKE_RECORDER_H

#include "base.h"
#include "recorder.h"

#include <uv.h>

struct fake_recorder {
	int refuse; /* gt_recorder_new() returns it, when it is not 0 */
	int rc;     /* and the drains report a file that failed so */
	struct gt_recorder_report report;
	uv_sem_t *entered; /* a drain tells that it has begun, */
	uv_sem_t *leave;   /* and waits for this */
	/* what happened */
	int phases, devices, looks, drains, finishes, frees, wakes;
	int plans_committed;
	bool held;        /* by a plan that is not decided on */
	int alive;        /* recorders */
	uint32_t rank;    /* the last one told */
	enum gt_end end;  /* the last finish */
	bool ended;       /* the process, in order: its arena says so */
	bool flush_due;   /* the last drain */
	_Atomic int busy; /* drains that wait in worker threads */
	bool interleaved; /* something else was called meanwhile */
	char path[64];    /* by path_for, when there is one */
};

extern struct fake_recorder fake;

void fake_recorder_reset(void);

/* Let the drains that begin from now on report this. */
void fake_recorder_say(struct gt_recorder_report report);

#endif
