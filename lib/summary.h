/*
 * summary.h - what a trace says about where the time went: totals by name, the exact split of each
 * GPU's time, steps, and the health of the trace itself.
 */
#ifndef GT_SUMMARY_H
#define GT_SUMMARY_H

#include "base.h"
#include "buf.h"
#include "err.h"
#include "gpu_time.h"
#include "gz_reader.h"
#include "host_waits.h"
#include "idle.h"
#include "interner.h"
#include "intervals.h"
#include "kernel_stats.h"
#include "launch_stats.h"
#include "launches.h"
#include "op_report.h"
#include "ops.h"
#include "phases.h"
#include "selection.h"
#include "thread_ids.h"
#include "trace_reader.h"

enum gt_summary_by {
	GT_SUMMARY_BY_ANY, /* all tables that the file has something for */
	GT_SUMMARY_BY_OP,
	GT_SUMMARY_BY_KERNEL,
	GT_SUMMARY_BY_CATEGORY,
	GT_SUMMARY_BY_STEP,
	GT_SUMMARY_BY_STREAM,
	GT_SUMMARY_BY_THREAD,
	GT_SUMMARY_BY_ANNOTATION,
	GT_SUMMARY_BY_MEMCPY,
	GT_SUMMARY_BY_BLOCKING,
	GT_SUMMARY_BY_LINE
};

/* Durations of one kind of event; what does not fit a field saturates. */
struct gt_summary_stat {
	uint64_t calls;
	uint64_t total_ns;
	uint64_t min_ns; /* 0 without calls */
	uint64_t max_ns;
	uint64_t bytes; /* of copies and sets */
	bool marked;    /* by its name: communication (a kernel), blocks the host (a call) */
	enum gt_host_wait wait; /* of a range, by its name */
};

/* Rows by name: stats[i] belongs to name i. */
struct gt_summary_table {
	struct gt_interner names;
	struct gt_summary_stat *stats;
	uint32_t cap;
};

/*
 * The work of one GPU. Communication is a kernel or memset whose name contains nccl, rccl or
 * cross_device_reduce; computation is every other kernel and memset. (The definitions of
 * TraceLens.)
 */
struct gt_summary_gpu {
	int64_t device;
	struct gt_intervals compute;
	struct gt_intervals comm;
	struct gt_intervals memcpy;
	int64_t first_ns;
	int64_t last_ns;
	uint64_t ops;
	struct gt_launched_works works; /* while it is read */
	/* at the end */
	struct gt_gpu_time time;
	struct gt_idle idle; /* adds up to time.idle_ns */
	struct gt_launch_stats launch;
};

#define GT_TRACK_PARTS 3

/* A stream or a thread. */
struct gt_summary_track {
	uint64_t slices;
	struct gt_intervals busy;
	uint64_t busy_ns; /* at the end: while there was any slice */
	/* of a stream: computation, communication, copies; of a thread: calls into CUDA or HIP, of
	 * these those that block */
	uint64_t parts_ns[GT_TRACK_PARTS];
	struct gt_buf label; /* what the file calls the thread, with its escapes */
};

struct gt_summary_tracks {
	struct gt_interner names;
	struct gt_summary_track *rows; /* by number */
	uint32_t cap;
};

struct gt_summary_step {
	uint32_t name; /* in step_names */
	int64_t start_ns;
	uint64_t dur_ns;
	bool cut; /* as gtrace says: it goes on behind the end of the trace */
	/* from its beginning to its end on the host, launched by whom ever; of several GPUs the sum
	 */
	uint64_t gpu_busy_ns;
	uint32_t thread; /* of ops */
	bool has_phases;
	struct gt_phase_times phases;
	uint64_t data_gpu_busy_ns; /* as gpu_busy_ns, while data were loaded */
};

/* The top-level object "gtrace" of our own traces; see gtrace-trace(5). */
struct gt_summary_own {
	bool present;
	bool complete;
	uint64_t dropped; /* records and events of all causes */
	uint64_t bad_records;
	uint64_t launches_without_gpu;
	uint64_t gpu_without_launch;
	uint64_t captured_launches;
	struct gt_buf version;
	struct gt_buf step_source;
	struct gt_buf reason;
	struct gt_buf warnings; /* each ends in '\n' */
};

enum gt_copy_kind { GT_COPY_NONE, GT_COPY_CUT, GT_COPY_REPAIR };

/*
 * The top-level object "gtrace_copy": what gtrace cut or gtrace check made of another trace. A copy
 * of a copy is a cut when one of them was.
 */
struct gt_summary_copy {
	enum gt_copy_kind kind;
	bool by_kind;      /* a cut by GPU or category: launches and their work may be apart */
	char about[16384]; /* what it is, one line that is safe to print */
};

struct gt_summary {
	char *path;
	struct gt_buf producer; /* "gtrace 0.1.0", "Kineto (PyTorch)", … */
	struct gt_buf runtime;  /* "CUDA 12.4", "HIP 60443483"; empty: not known */
	struct gt_buf devices;  /* names, each once, ", " between */
	int64_t rank;           /* -1: not known */
	int64_t world_size;     /* 0: not known */
	bool has_base;          /* times are relative to base_ns */
	int64_t base_ns;
	struct gt_summary_table kernels;
	struct gt_summary_table copies; /* copies and sets of GPU memory */
	struct gt_summary_table calls;  /* into CUDA or HIP; marked: they block the host */
	struct gt_summary_table ranges;
	enum gt_summary_by by;
	struct gt_summary_table categories; /* for this table alone */
	struct gt_summary_table blocking;   /* the same: "cudaMemcpy < aten::item" */
	struct gt_summary_tracks tracks;    /* the same: streams or threads */
	bool with_launches;                 /* of kernels: kernel_stats has them */
	struct gt_kernel_stats kernel_stats;
	/* while it is read */
	struct gt_thread_ids thread_ids;
	struct gt_launches launches;
	struct gt_host_waits waits;
	struct gt_phases phases;
	struct gt_ops ops;
	struct gt_summary_gpu *gpus; /* by device */
	size_t gpu_count;
	struct gt_interner step_names;
	struct gt_summary_step *steps; /* by start */
	size_t step_count;
	size_t step_cap;
	uint64_t without_dur;           /* slices, of any category, without a time: left out */
	uint64_t negative;              /* of a slice in the tables: a duration, taken as 0 */
	uint64_t clamped;               /* times beyond what is computed with */
	uint64_t not_spans;             /* of the categories of spans, but in another phase */
	bool no_operators;              /* they were left out */
	bool with_flops;                /* torch's tables of this profile have FLOPs */
	bool is_kineto;                 /* by its categories */
	struct gt_selection *selection; /* while it is read; NULL: everything counts */
	struct gt_summary_own own;
	struct gt_summary_copy copy;
	struct gt_trace_stats read;
	struct gt_gz_status gz;
};

struct gt_summary_options {    /* { 0 } and NULL: the defaults */
	size_t stack_depth;    /* frames of the Python stack of each operator; 0: no stacks */
	enum gt_summary_by by; /* the table that is wanted: some take more reading */
	bool no_operators;     /* leave them out: they are most of the time and memory */
	bool with_launches;    /* how kernels were launched, as for the table of kernels */
	struct gt_selection *selection; /* only what it takes; NULL: everything */
};

/*
 * Read the trace at path ("-": standard input). 0 also when parts of it were lost, see
 * gt_summary_is_lossy(); -EBADMSG: not a trace; err does not name path. *ret is the caller's, for
 * gt_summary_free(). -ENODATA: see gt_selection_check().
 */
int gt_summary_load(struct gt_summary **ret, const char *path,
		    const struct gt_summary_options *options, struct gt_err *err);

/* The same from a reader; path is only a name. */
int gt_summary_read(struct gt_summary **ret, struct gt_gz_reader *gz, const char *path,
		    const struct gt_summary_options *options, struct gt_err *err);

void gt_summary_free(struct gt_summary *summary); /* may be NULL */

/* Whether something of the file could not be used. */
bool gt_summary_is_lossy(const struct gt_summary *summary);

/*
 * What was lost or is doubtful, a line each ("the file is cut: …\n"). Losses of the file come
 * first, then what its producer says about it.
 */
void gt_summary_losses(const struct gt_summary *summary, struct gt_buf *out);

struct gt_range { /* all 0 without values */
	size_t count;
	uint64_t min;
	uint64_t median;
	uint64_t max;
};

/* Of these values, which get sorted. */
struct gt_range gt_range_of(uint64_t *values, size_t count);

/* Of the durations of the steps, in ns; of those that are cut only without others. 0 or -ENOMEM. */
int gt_summary_step_range(const struct gt_summary *summary, struct gt_range *ret);

/* ---- output ---------------------------------------------------------------------------------- */

enum gt_summary_format { GT_SUMMARY_TABLE, GT_SUMMARY_JSON, GT_SUMMARY_CSV, GT_SUMMARY_MARKDOWN };

enum gt_summary_sort {
	GT_SUMMARY_BY_TOTAL,
	GT_SUMMARY_BY_CALLS,
	GT_SUMMARY_BY_MEAN,
	GT_SUMMARY_BY_MIN,
	GT_SUMMARY_BY_MAX,
	GT_SUMMARY_BY_NAME
};

/* Takes the text of a summary, piece by piece. */
struct gt_summary_sink {
	void (*put)(void *context, struct gt_str text);
	void *context;
};

struct gt_summary_style {
	enum gt_summary_format format;
	enum gt_summary_by by;
	bool by_shape; /* operators by their input dims, too */
	bool by_stack; /* and by their stack */
	enum gt_summary_sort sort;
	enum gt_op_sort op_sort;
	const regex_t *filter; /* only names in which it is found; NULL: all */
	size_t limit;          /* rows a table; 0: all */
	size_t width;          /* columns of the terminal */
	bool brief;            /* the table of kernels alone, without what stands above it */
	const struct gt_summary_sink *sink; /* NULL: all of the text stays in out */
};

/*
 * Append the summary to out; names are made safe for a terminal. With a sink out is given to it
 * and emptied whenever it is large; the rest is the caller's to put. 0 or -ENOMEM.
 */
int gt_summary_print(const struct gt_summary *summary, const struct gt_summary_style *style,
		     struct gt_buf *out);

/*
 * The numbers of the rows that the style's filter takes, or of the marked ones among them alone, in
 * its order; malloc'd, with their count in *ret_count. NULL: out of memory.
 */
uint32_t *gt_summary_order(const struct gt_summary_table *table,
			   const struct gt_summary_style *style, bool marked, size_t *ret_count);

uint64_t gt_summary_mean_ns(const struct gt_summary_stat *stat);

#endif
