/*
 * recorder.h - everything about one traced process after the socket: reads its arena, decodes CUPTI
 * records, matches launches, GPU work and ranges, cuts windows by step, writes the traces.
 *
 * No thread, no loop; of the clocks only how far REALTIME and MONOTONIC are apart. One thread at a
 * time; the collector drains in its worker threads, and does all else between drains.
 *
 * Memory of one process, at most, whatever it sends: 64 MiB of launches that wait for GPU work, 16
 * MiB of GPU work that waits for its launch, 32 MiB of ranges, 64 MiB of names, 15 MiB of stacks,
 * and what 16 open files take. All of it grows with need; what does not fit is counted as lost.
 */
#ifndef GT_RECORDER_H
#define GT_RECORDER_H

#include "base.h"
#include "err.h"
#include "schedule.h"
#include "trace_writer.h"
#include "wire.h"

#include <limits.h>

struct gt_recorder;

struct gt_recorder_config {
	struct gt_schedule schedule;
	const char *command;            /* borrowed for the recorder's life */
	const char *host;               /* likewise */
	const char *const *environment; /* likewise; see struct gt_trace_meta */
	bool with_shapes;               /* of operators */
	bool with_flops;
	bool with_stack;   /* Python functions and the stacks of operators */
	bool with_modules; /* nn.Modules, and which each operator is in */
	bool with_memory;  /* what torch's allocators do */
	/*
	 * Path of the file of this cycle (from 1), into buf. Called once a cycle, when its first
	 * event is to be written, and again when that file was there. overwrite: may replace a
	 * file. 0 or -errno.
	 */
	int (*path_for)(void *ctx, const struct gt_msg_hello *hello, uint64_t cycle, char *buf,
			size_t len, bool *overwrite, struct gt_err *err);
	void *ctx;
};

struct gt_recorder_closed {
	struct gt_err err; /* with a code, the file could not be written; the rest is unset */
	uint64_t cycle;    /* from 1 */
	uint64_t first_step;
	uint64_t last_step;
	bool complete;
	bool whole_run;
	bool bounded;  /* of it up to the bound of a recording without steps */
	bool captured; /* a captured range; the steps are the program's own */
	uint64_t events;
	uint64_t losses; /* sum of what the file's gtrace.dropped and missing records say */
	char why[272];   /* it is not complete, or shorter than asked for; empty: neither */
	char path[PATH_MAX];
};

struct gt_recorder_report { /* what one drain saw */
	uint32_t step;
	enum gt_phase phase;
	enum gt_step_source step_source;
	uint64_t gpu_ops;    /* since the start */
	uint64_t open_cycle; /* the oldest, from 1; 0: no window is open or draining */
	bool closing; /* a window has just ended, and CUPTI is on until its records are read */
	/*
	 * Said once: every launch up to the end of drained_cycle (from 0, as on the wire) has its
	 * record, or is given up.
	 */
	bool drained;
	uint64_t drained_cycle;
	/* since the start: CUDA calls and GPU records that came after their file was closed */
	uint64_t late_calls;
	uint64_t late_records;
	/* Files that are complete, or failed; borrowed until the next call. */
	struct gt_recorder_closed *closed;
	size_t closed_count;
};

/*
 * Take over arena_fd (closed by gt_recorder_free, also when this fails), check its seals and
 * layout, map it. -EPROTO with a message when the peer lies. hello is copied.
 */
int gt_recorder_new(struct gt_recorder **ret, int arena_fd, const struct gt_msg_hello *hello,
		    const struct gt_recorder_config *config, struct gt_err *err);

/* News from the socket; to be called between drains. */
void gt_recorder_phase(struct gt_recorder *rec, const struct gt_msg_phase *phase);
void gt_recorder_device(struct gt_recorder *rec, const struct gt_msg_device *device);
void gt_recorder_rank(struct gt_recorder *rec, const struct gt_msg_rank *rank);

/*
 * A plan that the process was told of, but that may yet be taken back: what happens in its steps
 * stays in the arena until it is decided on. Both are to be called between drains.
 */
void gt_recorder_hold(struct gt_recorder *rec, const struct gt_plan *plan);
void gt_recorder_decide(struct gt_recorder *rec, bool commit);

/* The plans that were committed; valid until the next one is. */
const struct gt_plans *gt_recorder_plans(const struct gt_recorder *rec);

/*
 * These may be called beside a drain. The process is told to stop, by this, a literal, at this time
 * of the realtime clock; nothing that begins later is a window:
 */
void gt_recorder_stop(struct gt_recorder *rec, const char *by, uint64_t now_ns);
/* The step it is in at this moment: */
uint32_t gt_recorder_step(const struct gt_recorder *rec);
/* The process has come to its orderly end, as its arena says. */
bool gt_recorder_has_ended(const struct gt_recorder *rec);
/* Have the process look at its messages at once. */
void gt_recorder_wake(const struct gt_recorder *rec);

/*
 * Note what is in the arena, for the next drain to read; in little time, between drains, and before
 * messages are read: what is noted is then never newer than what the process has said of it.
 */
void gt_recorder_look(struct gt_recorder *rec);

/*
 * Read what was noted and is new in the arena, free its chunks, write and flush the open trace when
 * flush_due. now_ns is CLOCK_REALTIME. When a trace cannot be written, the rest goes on without it.
 */
void gt_recorder_drain(struct gt_recorder *rec, uint64_t now_ns, bool flush_due,
		       struct gt_recorder_report *report);

enum gt_end {
	GT_END_ORDERLY = 0,
	GT_END_DIED = 1,
	GT_END_EXEC = 2, /* there is another program in the process */
};

/*
 * The process is gone, or has stopped: read unfinished CUPTI buffers too and complete every file.
 * Only gt_recorder_free may follow.
 */
void gt_recorder_finish(struct gt_recorder *rec, enum gt_end end, uint64_t now_ns,
			struct gt_recorder_report *report);

void gt_recorder_free(struct gt_recorder *rec);

#endif
