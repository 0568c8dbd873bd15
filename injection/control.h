/*
 * control.h - what the control thread knows, and its parts: control.c is the thread and its talk
 * with the collector, window.c follows the program's steps and switches CUPTI.
 */
#ifndef INJ_CONTROL_H
#define INJ_CONTROL_H

#include "session.h"

/* The control thread's own; no other thread reads it. */
struct inj_control {
	bool attached; /* CUPTI can be used */
	bool refused;  /* CUPTI refused its kinds; what else was taken of it is ours still */
	bool on;       /* its kinds and callbacks are on */
	bool fallback; /* when it was switched on last, another tool had the callbacks */
	bool wanted;   /* the program's threads are to record */
	bool opened;   /* the window of this cycle is open */
	bool closed;   /* it was closed, and that CUPTI is off since has not been told */
	bool draining; /* it was closed, but not all of its launches have their records */
	bool yielded;  /* to the program's own profiler */
	bool stopped;  /* for good: the collector said so or is gone */
	bool mute;     /* the socket is gone: nobody to talk to */
	uint64_t cycle;
	uint64_t closed_cycle;   /* the last window that was closed */
	uint64_t closed_ms;      /* when it was */
	uint64_t drain_end_ms;   /* so long its records are awaited, also beside the next window */
	uint32_t buffers_seen;   /* of inj_activity_buffers() */
	uint64_t launches_at_on; /* of the whole process, as CUPTI was switched on */
	uint32_t buffers_at_on;
	uint64_t dropped_at_on; /* records */
};
extern struct inj_control inj_control;

/* ---- control.c ---- */

/* Send GT_MSG_PHASE; only the control thread may. */
void inj_tell(enum gt_phase_what what, uint64_t cycle, uint64_t value);

/* Send the GPUs' properties if they can be had by now. */
void inj_tell_devices(void);

/* ---- window.c ---- */

/* 0; -EBUSY with the API kinds instead of callbacks; -EIO and nothing is on (said). */
int inj_cupti_on(void);

/* Is CUPTI to be on at this moment, for the schedule? From any thread. */
bool inj_cupti_wanted(void);

/*
 * Catch up with the program's marks and profilers, which are so many now, and whose last one went
 * in resume_step; switch on and off. Returns after how many ms there is to do again, without a
 * mark.
 */
uint32_t inj_window_follow(uint32_t yields, uint32_t resume_step);

/* Take the plan and say so, or say that it is late. */
void inj_window_plan(const struct gt_msg_plan *msg);

/* Take the plan of this cycle back. Its window, should it be open, is none. */
void inj_window_cancel(uint64_t cycle);

/* No record is awaited any more, up to this cycle. */
void inj_window_drained(uint64_t cycle);

/* The program ends: take what its last calls set going, until end_ms at most. */
void inj_window_finish(uint64_t end_ms, void (*read_messages)(void));

#endif
