/*
 * trace_event.h - one event of a Chrome or Kineto trace: its fields, out of its JSON text.
 */
#ifndef GT_TRACE_EVENT_H
#define GT_TRACE_EVENT_H

#include "base.h"
#include "json_reader.h"
#include "str.h"

/*
 * What an event is, whatever the age of the producer: PyTorch up to 1.10 wrote Operator, Runtime,
 * Kernel, Memcpy, Memset; async, async_gpu and async_cpu_to_gpu flows became ac2g in 2022.
 */
enum gt_trace_cat {
	GT_CAT_OTHER,
	GT_CAT_NONE, /* no "cat" */
	GT_CAT_CPU_OP,
	GT_CAT_RUNTIME, /* cuda_runtime, also for HIP; mtia_runtime, xpu_runtime … */
	GT_CAT_DRIVER,
	GT_CAT_KERNEL, /* also mtia_ccp_events */
	GT_CAT_MEMCPY,
	GT_CAT_MEMSET,
	GT_CAT_ANNOTATION,
	GT_CAT_GPU_ANNOTATION,
	GT_CAT_PYTHON,
	GT_CAT_OVERHEAD,
	GT_CAT_SYNC, /* cuda_sync: how the GPU's streams wait */
	GT_CAT_LAUNCH_FLOW,
	GT_CAT_TRACE, /* the profiler's own span */
	GT_CAT_MAX
};

/* pid, tid: numbers, but also "Spans", "stream 7", "". */
struct gt_trace_id {
	int64_t number;     /* when text.ptr is NULL */
	struct gt_str text; /* as in the file, escapes included */
};

/* Everything is borrowed until the callback returns. Of keys that are there twice the last counts.
 */
struct gt_trace_event {
	char phase; /* 0: none */
	enum gt_trace_cat cat;
	bool has_ts;
	bool has_dur;
	int64_t ts_ns; /* as in the file: absolute, or since baseTimeNanoseconds */
	int64_t dur_ns;
	struct gt_trace_id pid;
	struct gt_trace_id tid;
	struct gt_str name;     /* decoded; any bytes */
	struct gt_str cat_text; /* the same */
	struct gt_str args;     /* the JSON object; empty: none */
	struct gt_str text;     /* the whole event */
	/* gt_trace_event_parse() leaves escapes in name, then name_escaped, and in cat_text */
	bool name_escaped;
};

/*
 * Read the event whose '{' stands at 'at'. Returns the byte behind it, at most text->end, or NULL
 * as json_reader.h says. A field with a value of the wrong type counts as missing.
 */
const char *gt_trace_event_parse(struct gt_json_text *text, const char *at,
				 struct gt_trace_event *ret);

/* The raw values of some members of args: values[i] is that of keys[i], empty when there is none.
 */
void gt_trace_event_args(const struct gt_trace_event *event, const struct gt_str *keys,
			 struct gt_str *values, size_t count);

/* The raw value of a member of args, as gt_json_find_last() finds it, or one with escapes. */
struct gt_str gt_trace_event_arg(const struct gt_trace_event *event, struct gt_str quoted_key);

/* The integer that is the value of such a member, often the first one; 0: there is none. */
int64_t gt_trace_event_id(const struct gt_trace_event *event, struct gt_str quoted_key);

/* Of GPU work. args.device, or its pid. */
int64_t gt_trace_event_device(const struct gt_trace_event *event);

/* args.stream, or its tid, which was "stream 7" up to 2021. -1: neither is a number. */
int64_t gt_trace_event_stream(const struct gt_trace_event *event);

enum gt_trace_cat gt_trace_cat_of(struct gt_str text);

/* As Kineto writes it today; NULL for GT_CAT_OTHER and GT_CAT_NONE. */
const char *gt_trace_cat_name(enum gt_trace_cat cat);

#endif
