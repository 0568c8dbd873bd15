/*
 * run_absent.h - processes that agreed to a window that was triggered and have no trace of it:
 * which they are, and why as far as that is known.
 */
#ifndef CMD_RUN_ABSENT_H
#define CMD_RUN_ABSENT_H

#include "base.h"
#include "collector.h"

struct run_absentee;

struct run_absent {                /* { 0 }; private */
	struct gt_plan plan;       /* of the window that was triggered last; active 0: none was */
	bool begun;                /* somebody has a trace of it */
	struct run_absentee *gone; /* before that, by their end */
	size_t gone_count;
	uint64_t *still; /* ids of those that were said to stand still */
	size_t still_count;
};

/* "rank 3 (process 4711)" */
void run_absent_who(const struct gt_client_info *client, char *buf, size_t len);

/* A window will open: nothing more comes of the one before. */
void run_absent_triggered(struct run_absent *absent, const struct gt_plan *plan);

/* A process has a trace of this cycle (from 1): who has none is said from now on. */
void run_absent_closed(struct run_absent *absent, uint64_t cycle);

void run_absent_gone(struct run_absent *absent, const struct gt_client_info *client);

/* Say who stands still, now and then. */
void run_absent_look(struct run_absent *absent, const struct gt_collector *collector,
		     uint64_t now_ms);

/* The last word; true: it was that the window never began. Frees what it holds. */
bool run_absent_end(struct run_absent *absent);

#endif
