/*
 * rec_state.h - what the parts of the recorder share: recorder.c (drains), rec_windows.c (which
 * windows are open, and when each is complete), rec_window_steps.c (the steps of one), rec_trace.c
 * (its file), rec_ops.c and rec_stacks.c (operators and Python functions in it), rec_events.c
 * (events of threads), rec_gpu.c (GPU records).
 */
#ifndef GT_REC_STATE_H
#define GT_REC_STATE_H

#include "arena_reader.h"
#include "corr_ring.h"
#include "decode.h"
#include "fwdbwd.h"
#include "names.h"
#include "nccl.h"
#include "range_history.h"
#include "ranges.h"
#include "recorder.h"
#include "stacks.h"
#include "step_marks.h"

#define GT_WINDOWS_MAX  16                   /* open or draining at one time */
#define GT_WHOLE_ID     (GT_WINDOW_NONE - 1) /* id of the window that is the whole run */
#define GT_LAUNCHES_MAX (UINT32_C(1) << 19)  /* that wait: 56 MiB, and 8 of index */
#define GT_ORPHANS_MAX  (UINT32_C(1) << 16)  /* 15 MiB, and 1 of index */
#define GT_DEVICES_KEPT 64

struct gt_launch {
	struct gt_ring_entry entry;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t worked_ns;     /* end of the latest of its GPU work; 0: none so far */
	uint64_t external_id;   /* as gt_rec_enclosing_id() has it */
	struct gt_range *range; /* innermost PUSH, a reference; NULL once all its work is known */
	struct gt_range *step;  /* likewise */
	uint32_t window;        /* id; GT_WINDOW_NONE: launched outside of all windows */
	uint32_t step_number;
	uint32_t tid;
	uint32_t cbid;
	uint32_t name_id;
	uint32_t stream;   /* graphs: CUPTI's id, or GT_STREAM_UNKNOWN */
	uint32_t nccl;     /* id of the call of NCCL that launched it; 0: none */
	uint32_t stack_id; /* of the Python code that made the call; 0: none */
	uint8_t context;   /* graphs: low bits of CUPTI's id */
	bool graph;        /* any number of GPU records */
	bool runtime;
	bool written; /* its call is in the trace */
	bool worked;  /* a GPU record came for it */
	bool traced;  /* a graph: and that record is of the graph as one piece of work */
	bool untimed; /* one came, but without times */
};

struct gt_orphan { /* a GPU record whose launch is not known (yet) */
	struct gt_ring_entry entry;
	struct gt_record record;
};

/*
 * The oldest call that was heard in a cycle, its warm-up included. GPU work of older calls was
 * launched before the target switched CUPTI on: none of the cycle's, and no loss.
 */
struct gt_heard {
	uint64_t cycle;  /* from 0 */
	uint32_t oldest; /* correlation */
	bool any;
};

/* Of as many windows may be heard before the first of them is read. */
#define GT_YIELDS_KEPT 64
#define GT_LOOKS_KEPT  64
#define GT_LATE_KEPT   8

struct gt_window {
	uint32_t id;     /* its cycle from 0, or GT_WHOLE_ID */
	uint64_t number; /* of its file, from 1 */
	uint64_t first_step;
	uint64_t last_step;
	uint64_t since_step; /* launches since then may be of work that runs in the window */
	uint64_t start_ns;   /* first_step began */
	uint64_t end_ns;     /* last_step ended; UINT64_MAX: not known yet */
	uint64_t last_ns;    /* latest host time in it */

	bool own_steps;         /* it is a captured range, divided by the program's own steps */
	uint64_t own_first;     /* of these the first */
	uint64_t top_step;      /* the last step that has a range */
	bool closed;            /* no launch can belong to it any more, but for those under way */
	bool told;              /* the target said so */
	bool drained;           /* every launch has its record */
	bool held;              /* its text is compressed later, for the program waits */
	uint64_t closed_now_ns; /* by the clock of the drain that saw it first; 0: none has */
	uint64_t behind_now_ns; /* of the last drain that read work of its steps, or earlier ones */
	bool overtaken;         /* kernels of later steps were read */
	uint64_t drained_now_ns;
	bool yielded;    /* work of its steps was the program's own profiler's */
	bool left_out;   /* all of it was: there is no file */
	const char *cut; /* why it is shorter than asked for; NULL: it is not */

	struct gt_heard heard;
	uint32_t newest;         /* correlation of its newest launch */
	uint64_t launched;       /* launches */
	uint64_t worked;         /* of these, with a record */
	uint64_t waiting;        /* launches (not graphs) without a record */
	uint64_t graphs;         /* graph launches */
	struct gt_range **steps; /* open ones, in order */
	size_t step_count;
	size_t step_cap;
	uint64_t next_step; /* the first that is not closed, as its range is numbered */

	struct gt_recorder *rec;
	struct gt_fwdbwd links; /* of its operators */
	uint64_t link_count;
	uint64_t function_count; /* of Python */
	uint64_t stack_bytes;    /* of text in the file that is of Python */
	uint64_t stacks_left_out;
	uint64_t unnamed; /* kernels of which the program never told the name */

	struct gt_trace *trace;
	bool failed; /* its file: nothing more is written */
	char path[sizeof(((struct gt_recorder_closed *)0)->path)];

	/* losses; those of the process as they were when it began */
	struct gt_arena_state began;
	uint64_t began_bad;
	uint64_t began_refused;
	uint64_t launches_without_gpu;
	uint64_t untimed; /* of these, with a record without times */
	uint64_t gpu_without_launch;
	uint64_t captured;
	int64_t began_clock_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	char reason[160];
	char cut_text[96]; /* for cut */
};

struct gt_stack_text {
	uint32_t stack_id; /* that it is of; 0: none */
	struct gt_buf text;
};

/* Lists of chunks, each with room for all of its pool. */
enum gt_list { GT_LIST_RECORDS = 0, GT_LIST_EVENTS = 1, GT_LIST_NAMES = 2, GT_LIST_MAX = 3 };

/* What was lost up to a look, and a step that the process had not left by then. */
struct gt_losses {
	struct gt_arena_state state;
	uint32_t step;
};

struct gt_recorder {
	struct gt_recorder_config config;
	struct gt_plans plans;
	struct gt_plan held;              /* active: there is one */
	_Atomic(const char *) stopped_by; /* NULL: it was not told to stop */
	_Atomic uint64_t stopped_ns;      /* when; before stopped_by */
	_Atomic uint32_t stopped_step;    /* in which; likewise */
	struct gt_msg_hello hello;
	struct gt_msg_device devices[GT_DEVICES_KEPT];
	size_t device_count;
	uint16_t record_bytes[GT_KIND_MAX];
	bool fallback;
	uint64_t fallback_ns;   /* since when */
	uint64_t callbacks_ns;  /* since when no more; 0: it is so still */
	bool no_cupti;          /* and no GPU work then */
	uint64_t newest_api_ns; /* start of the newest call that came as a record */

	struct gt_arena *arena;
	struct gt_arena_state state; /* as the look before this drain found it */
	struct gt_arena_chunk *chunks[GT_LIST_MAX];
	size_t chunk_counts[GT_LIST_NAMES]; /* of the first two, as that look found them */
	/* Of the last looks one for each step; by its number modulo GT_LOOKS_KEPT. */
	struct gt_losses losses[GT_LOOKS_KEPT];
	uint64_t losses_count;
	uint64_t late_steps[GT_LATE_KEPT]; /* likewise: values of the arena's late_step */
	uint64_t late_count;
	bool backlog;    /* this drain left records unread */
	bool one_thread; /* and all its events are of one thread */
	struct gt_names names;
	struct gt_stacks stacks;
	uint32_t stack_threads;      /* that have room for the functions they are in */
	struct gt_map pointers;      /* kernel name pointer -> name id */
	struct gt_map thread_names;  /* tid -> name id */
	struct gt_map api_names;     /* domain << 32 | cbid -> name id */
	struct gt_map api_classes;   /* likewise -> enum gt_call_class */
	struct gt_map stream_newest; /* stream_key() -> correlation of its newest GPU record */
	struct gt_steps steps;
	struct gt_steps own_steps; /* the program's, while captured ranges are the steps */
	struct gt_ranges ranges;
	struct gt_nccl nccl;
	struct gt_range_history history; /* in the fall-back mode */
	struct gt_ring launches;
	struct gt_ring orphans;
	struct gt_heard heard[2]; /* of cycles without a window so far, at their number modulo 2 */

	struct gt_window *windows[GT_WINDOWS_MAX]; /* in the order they were opened */
	size_t window_count;
	bool gone;       /* the program is: this is the last drain */
	bool ended;      /* as programs do */
	uint64_t off_ns; /* when the target last switched off; 0: never so far */
	/* When and where it made room for the program's own profiler; the last at yields - 1. */
	struct gt_msg_phase yield[GT_YIELDS_KEPT]; /* by its number modulo GT_YIELDS_KEPT */
	uint64_t yields;
	uint32_t yields_seen;      /* in the arena */
	struct gt_msg_phase close; /* the last CLOSE; its hdr.type is 0 before the first one */
	uint64_t next_id;          /* cycles below it are open or done */
	struct gt_window *whole;   /* of windows, when mode KEEP or WHOLE made one */
	bool whole_mode;           /* all events belong to whole */
	bool whole_done;           /* and it is complete */
	char *whole_path;          /* its file, which a real window may replace; NULL: none */
	uint32_t cached_step;      /* of the last event */
	struct gt_window *cached;  /* and its window */
	enum gt_phase cached_phase;
	uint64_t cached_cycle;
	bool cached_armed; /* the target listens in this step, from some moment on */
	bool cached_valid;
	bool cached_late;    /* it had one, which is complete */
	uint32_t step_limit; /* no event of this drain can be of a later step */

	struct gt_buf text;           /* in the making, for the next event of a trace */
	struct gt_stack_text calls;   /* of the stack that was written last */
	struct gt_stack_text modules; /* likewise */

	uint64_t now_ns;
	uint64_t gpu_ops;
	uint64_t newest_kernel_ns; /* its start; copies can be ahead, on their stream */
	uint64_t synced_ns;        /* what was launched before is done */
	uint64_t bad_records;
	uint64_t late_calls;   /* of windows whose files were complete */
	uint64_t late_records; /* GPU work of windows whose files were closed */

	struct gt_recorder_closed *closed;
	size_t closed_count;
	size_t closed_cap;
	uint64_t over_cycles;    /* the last of them is drained, given up or unknown */
	uint64_t drained_cycles; /* so many were reported: all before it have to be, too */
	bool drained;
	uint64_t drained_cycle;
};

/* ---- rec_look.c: what is in the arena at a moment ---- */

/* What was lost before the process came to this step, at the last look of that time. */
const struct gt_arena_state *gt_rec_losses_before(const struct gt_recorder *rec, uint64_t step);
/* Did this step begin before CUPTI was on for it? */
bool gt_rec_began_late(const struct gt_recorder *rec, uint64_t step);

/* ---- rec_trace.c: one window's file ---- */

/*
 * What its reading loses counts from now; what the arena loses from window->began on, which the
 * caller sets, else from the start. NULL without memory. The caller's, for gt_window_free().
 */
struct gt_window *gt_window_new(struct gt_recorder *rec, uint32_t id);
void gt_window_free(struct gt_window *window);

/*
 * Are its calls records of CUPTI's? Not of one that ended before that began, however late we are,
 * nor of one in which the callbacks were ours again.
 */
static inline bool gt_window_fell_back(const struct gt_recorder *rec,
				       const struct gt_window *window)
{
	return rec->fallback && rec->fallback_ns < window->end_ns &&
	       (!rec->callbacks_ns || rec->callbacks_ns >= window->end_ns);
}

/* Each makes the file when it is the first. A failure sticks and is reported. */
void gt_window_call(struct gt_recorder *rec, struct gt_window *window,
		    const struct gt_launch *launch, bool launches, bool captured);
void gt_window_gpu(struct gt_recorder *rec, struct gt_window *window, const struct gt_gpu_op *op,
		   const struct gt_launch *launch);
void gt_window_range(struct gt_recorder *rec, struct gt_window *window,
		     const struct gt_range *range);
void gt_window_spans(struct gt_recorder *rec, struct gt_window *window,
		     const struct gt_range *range);
void gt_window_mark(struct gt_recorder *rec, struct gt_window *window, uint32_t tid,
		    uint64_t time_ns, struct gt_str name);
void gt_window_device(struct gt_recorder *rec, struct gt_window *window,
		      const struct gt_msg_device *device);
/* Make the file loadable when that is due, or much waits. */
void gt_window_flush(struct gt_recorder *rec, struct gt_window *window, bool due);

/* Is there a file to write to? Makes it at the first call. */
bool gt_window_open_file(struct gt_recorder *rec, struct gt_window *window);
/* Is there room for so much text of Python's functions? What finds none is counted. */
bool gt_window_takes_stack(struct gt_window *window, size_t bytes);
/* A failure of the writer sticks; its own words come with the next flush or close. */
void gt_window_check_write(struct gt_recorder *rec, struct gt_window *window, int rc);

/* With what else the drain has to tell. */
void gt_window_report_failure(struct gt_recorder *rec, const struct gt_err *err);

/* Complete the file and report it. why: the reason it is incomplete; NULL: find out. */
void gt_window_finish_file(struct gt_recorder *rec, struct gt_window *window, const char *why);

/* ---- rec_health.c ---- */

/* How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC: changes when somebody sets the clock. */
int64_t gt_clock_offset_ns(void);

#define GT_WINDOW_WARNINGS 4 /* three, and the NULL behind them */

/* As of now, without a reason; ret->warnings is warnings, which NULL ends, where there are any. */
void gt_window_health(const struct gt_recorder *rec, const struct gt_window *window,
		      struct gt_trace_health *ret, const char *warnings[GT_WINDOW_WARNINGS]);

/* The first of what is missing, in words. NULL: nothing is. */
const char *gt_window_reason(const struct gt_recorder *rec, struct gt_window *window,
			     const struct gt_trace_health *health);

/* All that is lost of a window, as one number. */
uint64_t gt_health_losses(const struct gt_trace_health *health);

/* ---- rec_ops.c: operators of torch ---- */

/* As those of rec_trace.c: an operator that has ended, and what an allocator did. */
void gt_window_op(struct gt_recorder *rec, struct gt_window *window, const struct gt_range *range);
void gt_window_memory(struct gt_recorder *rec, struct gt_window *window, uint32_t tid,
		      const struct gt_ev_memory *ev);

/* ---- rec_stacks.c: Python functions ---- */

/*
 * The stack as "Call stack" or "Module Hierarchy" has it, valid until the next one; empty: none.
 * False without memory.
 */
bool gt_rec_calls(struct gt_recorder *rec, uint32_t stack_id, struct gt_str *ret);
bool gt_rec_modules(struct gt_recorder *rec, uint32_t stack_id, struct gt_str *ret);

/*
 * An operator begins, or a range begins or ends, with this stack (0: none). window: that of the
 * event; NULL: none.
 */
void gt_rec_stack(struct gt_recorder *rec, struct gt_window *window, struct gt_thread *thread,
		  uint32_t stack_id, const struct gt_ev *ev);
/* This operator has ended. */
void gt_rec_stack_end(struct gt_recorder *rec, const struct gt_range *op);
/* The window is about to be complete: its functions end. */
void gt_rec_stacks_finish(struct gt_recorder *rec, struct gt_window *window);

/* ---- rec_windows.c: all of them ---- */

/* The window of what happened in this step; opens it when it is new. NULL: none. */
struct gt_window *gt_windows_of_step(struct gt_recorder *rec, uint32_t step, uint64_t time_ns);
/* NULL: it is not open. */
struct gt_window *gt_windows_by_id(const struct gt_recorder *rec, uint32_t id);
/* The window whose time this lies in. NULL: none. */
struct gt_window *gt_windows_of_time(const struct gt_recorder *rec, uint64_t time_ns);
/* Set its end_ns, when the mark that ended it is known. */
void gt_windows_find_end(const struct gt_recorder *rec, struct gt_window *window);

/* What rules: that of the configuration, unless the program's captured ranges took over. */
const struct gt_schedule *gt_windows_schedule(const struct gt_recorder *rec);

/* From now on all events belong to the window that is the whole run, unless it was complete. */
void gt_windows_open_whole(struct gt_recorder *rec);
/* It has reached its bound. */
void gt_windows_close_whole(struct gt_recorder *rec);
/* After a drain: close steps and windows that are over, complete those that have all. */
void gt_windows_advance(struct gt_recorder *rec);

/* Before a drain: have the files of windows that it may find complete compressed later. */
void gt_windows_hold(struct gt_recorder *rec);
/* Has one ended that may be drained at any moment? */
bool gt_windows_closing(const struct gt_recorder *rec);
/* The process is gone, or has stopped: complete them all. */
void gt_windows_finish(struct gt_recorder *rec, enum gt_end end);

/* ---- rec_window_phases.c: what the target says of them ---- */

/* The target's control thread switched something. */
void gt_windows_phase(struct gt_recorder *rec, const struct gt_msg_phase *phase);
/* The last time that the program's own profiler took one of these cycles; NULL: never. */
const struct gt_msg_phase *gt_windows_yield(const struct gt_recorder *rec, uint64_t first,
					    uint64_t last);
/* That profiler has CUPTI now. The whole run goes on afterwards, a window does not. */
void gt_window_hear_yield(struct gt_window *window, const struct gt_msg_phase *yield);
/* The target's last word was that it closed this window, or a later one; or it was another. */
void gt_window_hear_close(struct gt_recorder *rec, struct gt_window *window);
/* The window is shorter than asked for, for this reason. */
void gt_window_cut(struct gt_window *window, const char *fmt, ...) GT_PRINTF(2, 3);

/* ---- rec_window_steps.c: the steps of one ---- */

/*
 * The number of the range that this step is in its window: the step's; 0 in that of the whole run;
 * that of the program's own step at this time in a captured range.
 */
uint32_t gt_window_number(const struct gt_recorder *rec, const struct gt_window *window,
			  uint32_t step, uint64_t time_ns);
/* That range, made at first sight; NULL without memory. */
struct gt_range *gt_window_step(struct gt_recorder *rec, struct gt_window *window, uint32_t step,
				uint64_t time_ns);
/* The first and the last number in it. */
void gt_window_numbers(const struct gt_window *window, uint64_t *ret_first, uint64_t *ret_last);
/* Close the steps that are over, as marks and the process say; all when the window is 'over'. */
void gt_window_close_steps(struct gt_recorder *rec, struct gt_window *window, bool over);

/* ---- rec_events.c: what threads wrote ---- */

/* Each takes the events that are its own, names or what happened, and passes over the others. */
void gt_rec_name(struct gt_recorder *rec, uint32_t tid, const struct gt_ev *ev);
void gt_rec_event(struct gt_recorder *rec, uint32_t tid, const struct gt_ev *ev);

/* Is a call of this enum gt_call_class one that GPU records follow? */
bool gt_rec_is_launch(uint32_t klass);
/*
 * External id of a call: of the innermost operator around it, also when that has a range in it:
 * torch.profiler gives the GPU work of a collective to record_param_comms, not to NCCL's range.
 * With no operator, of the range that began last, which its thread's step can be. 0: none.
 */
uint64_t gt_rec_enclosing_id(const struct gt_range *innermost, const struct gt_range *step,
			     uint32_t tid);

/* The fall-back mode begins: keep the ranges that are open in windows, for calls to find. */
void gt_rec_remember_ranges(struct gt_recorder *rec);

/* ---- rec_api.c: the fall-back mode ---- */

/* From this time on calls come as records, unless they did before. */
void gt_rec_fall_back(struct gt_recorder *rec, uint64_t since_ns);
/* A call that came as CUPTI's record. */
void gt_rec_api(struct gt_recorder *rec, const struct gt_api_record *api);

/* ---- rec_gpu.c: launches and GPU records ---- */

/* A call with this correlation id was heard in the step that was looked up last. */
void gt_rec_heard(struct gt_recorder *rec, uint32_t correlation);
/*
 * A launch that will have GPU work (or, with 'worked' set, a call that will not). It is copied, and
 * takes references of its own.
 */
void gt_rec_launch(struct gt_recorder *rec, const struct gt_launch *launch);
/* Write the calls without GPU work that were added from this position of the ring on. */
void gt_rec_write_calls(struct gt_recorder *rec, uint64_t pos);
/* GPU work: of a launch that is known, or that may yet be read. */
void gt_rec_gpu(struct gt_recorder *rec, const struct gt_record *record);
/*
 * Has every launch of the window its GPU records, and (when wait_for_launches is set) all GPU work
 * in its time a launch?
 */
bool gt_rec_settled(const struct gt_recorder *rec, const struct gt_window *window,
		    bool wait_for_launches);
/* Forget launches that are of use to no open window: their ids can come again. */
void gt_rec_forget(struct gt_recorder *rec);
/* The window is about to be complete: write and count what has no other half. */
void gt_rec_give_up(struct gt_recorder *rec, struct gt_window *window);
/* When the oldest launch that waits for its work began. */
uint64_t gt_rec_oldest_waiting_ns(const struct gt_recorder *rec);

#endif
