/*
 * thread_ids.h - numbers for the threads of a trace, by pid and tid.
 */
#ifndef GT_THREAD_IDS_H
#define GT_THREAD_IDS_H

#include "base.h"
#include "interner.h"
#include "trace_event.h"

struct gt_thread_ids { /* { 0 } is empty */
	struct gt_interner ids;
	/* Events come in runs: the last one's, when both of its ids are numbers. */
	int64_t last_pid;
	int64_t last_tid;
	uint32_t last;
	bool last_known;
};

/* The same for a thread that is not that of the event before. */
uint32_t gt_thread_find(struct gt_thread_ids *threads, const struct gt_trace_event *event);

/* From 0 on, in the order in which they come; GT_INTERN_FAILED: out of memory. */
static inline uint32_t gt_thread_number(struct gt_thread_ids *threads,
					const struct gt_trace_event *event)
{
	if (GT_LIKELY(threads->last_known && !event->pid.text.ptr && !event->tid.text.ptr &&
		      event->pid.number == threads->last_pid &&
		      event->tid.number == threads->last_tid))
		return threads->last;
	return gt_thread_find(threads, event);
}

void gt_thread_ids_release(struct gt_thread_ids *threads);

#endif
