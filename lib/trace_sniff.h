/*
 * trace_sniff.h - what tells the beginning and the end of events where the text before is damaged.
 */
#ifndef GT_TRACE_SNIFF_H
#define GT_TRACE_SNIFF_H

#include "base.h"

/* at stands on '{' in the text from start to end: is it one of an event, and not one of args? */
bool gt_trace_event_begins(const char *at, const char *start, const char *end);

/*
 * at stands on ']': is it the end of the events, with a known member or the end of all behind?
 * ended: nothing follows end; is_array: the events are the whole file.
 */
bool gt_trace_events_end(const char *at, const char *end, bool ended, bool is_array);

#endif
