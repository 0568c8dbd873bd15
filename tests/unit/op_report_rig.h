/*
 * op_report_rig.h - the operators of a small trace, which is made of events of one line each. Times
 * of events are in us, as in a file; those that are checked are in ns.
 */
#ifndef OP_REPORT_RIG_H
#define OP_REPORT_RIG_H

#include "base.h"
#include "summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENT(cat, name, tid, ts, dur, args)                                              \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":9,\"tid\":" #tid \
	",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{" args "}},\n"
#define EXTERNAL(id)                "\"External id\": " #id
#define LAUNCH(ext, corr)           EXTERNAL(ext) ",\"cbid\": 211,\"correlation\": " #corr
#define OP(name, ts, dur, args)     EVENT("cpu_op", name, 1, ts, dur, args)
#define RANGE(name, ts, dur)        EVENT("user_annotation", name, 1, ts, dur, "")
#define CALL(name, ts, dur, args)   EVENT("cuda_runtime", name, 1, ts, dur, args)
#define KERNEL(name, ts, dur, args) EVENT("kernel", name, 7, ts, dur, args)
#define MEMORY(name, ts, bytes, device)                                            \
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"" name \
	"\",\"pid\":9,\"tid\":2,\"ts\":" #ts ",\"args\":{\"Bytes\": " #bytes       \
	",\"Device Type\": " #device "}},\n"

struct fixture {
	struct gt_summary *summary;
	struct gt_op_report report;
};

static inline struct fixture load(const char *events, size_t stack_depth,
				  const struct gt_op_grouping *grouping)
{
	struct gt_summary_options options = { .stack_depth = stack_depth };
	struct gt_buf text = { 0 };
	struct gt_gz_reader *gz;
	struct fixture ret;
	struct gt_err err;

	gt_buf_printf(&text, "{\"with_flops\": 1,\"traceEvents\":[%s]}", events);
	assert_int_equal(gt_gz_open_mem(&gz, text.data, text.len), 0);
	assert_int_equal(gt_summary_read(&ret.summary, gz, "trace", &options, &err), 0);
	gt_gz_close(gz);
	gt_buf_release(&text);
	assert_int_equal(gt_op_report(&ret.summary->ops, grouping, &ret.report), 0);
	return ret;
}

static inline struct fixture load_plain(const char *events)
{
	struct gt_op_grouping grouping = { .with_flops = true };

	return load(events, 0, &grouping);
}

static inline void unload(struct fixture *fixture)
{
	gt_op_report_release(&fixture->report);
	gt_summary_free(fixture->summary);
}

static inline const struct gt_op_line *find_line(const struct fixture *fixture, const char *name,
						 const char *rest)
{
	for (size_t i = 0; i < fixture->report.count; i++) {
		const struct gt_op_line *line = &fixture->report.lines[i];
		struct gt_str wanted = gt_str_of(name);
		struct gt_str shapes_or_stack = line->shapes.len ? line->shapes : line->stack;

		if (gt_str_equal(line->name, wanted) &&
		    (!rest || gt_str_equal(shapes_or_stack, gt_str_of(rest))))
			return line;
	}
	return NULL;
}

static inline const struct gt_op_row *line_of(const struct fixture *fixture, const char *name)
{
	const struct gt_op_line *line = find_line(fixture, name, NULL);

	if (!line)
		fail_msg("no line %s", name);
	return &line->sum;
}

#endif
