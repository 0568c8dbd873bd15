/*
 * trace_writer.h - streams one Kineto trace into one gzip member that is loadable after every
 * flush. The order of the calls is free: the writer finds the lanes (pid/tid) on which slices nest.
 * man/gtrace-trace.5 documents the file. Not thread-safe; one thread at a time.
 */
#ifndef GT_TRACE_WRITER_H
#define GT_TRACE_WRITER_H

#include "base.h"
#include "err.h"
#include "gpu_op.h"
#include "str.h"

struct gt_trace;
struct gt_msg_device;

/* A struct gt_str here is borrowed for the call; the writer escapes and repairs its bytes. */

struct gt_trace_meta { /* all strings borrowed for gt_trace_create() only; NULL: not known */
	uint32_t pid;
	uint32_t rank;
	uint32_t world_size; /* 0: not known */
	uint64_t cycle;      /* from 1 */
	bool whole_run;      /* one step that is the whole (bounded) recording */
	bool with_shapes;    /* of operators, where they are known */
	bool with_flops;     /* and readers are to compute their FLOPs */
	bool with_stack;
	bool with_modules;
	bool with_memory;
	const char *rank_source; /* "RANK", "OMPI_COMM_WORLD_RANK", …, "none" */
	const char *step_source; /* gt_step_source_name() */
	const char *comm;
	const char *command; /* the command line as the user typed it */
	const char *torch;
	const char *python;
	const char *host;
	uint32_t cupti_version;
	uint32_t driver_version;
	uint32_t runtime_version;
	const struct gt_msg_device *devices;
	size_t device_count;
	const char *const *environment; /* "NAME=value" that falsify timings, NULL-terminated */
};

struct gt_trace_health { /* as known now; written with every flush */
	bool complete;   /* every launch of the window has its GPU record, nothing was dropped */
	bool fallback;   /* launches came from the API activity kinds */
	uint64_t dropped_cupti;
	uint64_t dropped_arena;
	uint64_t dropped_ring; /* events */
	uint64_t dropped_names;
	uint64_t bad_records; /* zero times, end before start, unknown kinds or sizes */
	uint64_t launches_without_gpu;
	uint64_t gpu_without_launch;
	uint64_t captured_launches;
	double step_before_ms; /* medians; NaN: none seen, the key is null */
	double step_active_ms;
	double step_after_ms;
	int64_t clock_residue_ns; /* REALTIME against MONOTONIC over the window */
	const char *reason;       /* why it is not complete, NULL: complete or still open */
	/* NULL-terminated, may be NULL. The writer adds the one about step_*_ms itself. */
	const char *const *warnings;
};

/* A call of the program into CUDA, or a GPU op's view of the call that launched it. */
struct gt_trace_call {
	uint32_t tid;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t correlation;
	uint32_t cbid;
	bool runtime; /* cuda_runtime, else cuda_driver */
	/*
	 * Its GPU work is written, too: an ac2g flow starts here. Write the call and its first GPU
	 * op before the next flush, so that no file on disk has one end of a flow only.
	 */
	bool launches;
	bool captured;
	struct gt_str name;
	struct gt_str calls;  /* "Call stack"; empty: none */
	uint64_t external_id; /* of the enclosing operator or range; 0: none */
	/* More args of its GPU op: JSON members, a comma before each. */
	struct gt_str gpu_args;
};

struct gt_trace_range { /* NVTX range or step */
	uint32_t tid;
	bool process_range; /* start/end range: may overlap, lanes of its own */
	bool is_step;       /* name is "ProfilerStep#N"; no other range may be called so: it gets a
			     * blank in front, since readers abort on it */
	bool cut;           /* of a step: the trace ends before it does */
	uint64_t start_ns;
	uint64_t end_ns;
	struct gt_str name;
	struct gt_str domain; /* empty: default domain */
	struct gt_str inputs; /* struct gt_input of wire_events.h; empty: none */
	uint64_t external_id; /* > 0, unique in the file */
};

struct gt_trace_op { /* an operator of torch */
	uint32_t tid;
	uint32_t fwd_thread; /* torch's number of the forward op's thread; 0: this is no backward */
	int64_t sequence;    /* autograd's; -1: none */
	uint64_t start_ns;
	uint64_t end_ns;
	struct gt_str name;
	struct gt_str inputs;  /* as of a range */
	struct gt_str args;    /* more of them, as gpu_args above */
	struct gt_str calls;   /* "Call stack"; empty: none */
	struct gt_str modules; /* "Module Hierarchy"; likewise */
	uint64_t external_id;  /* > 0, unique in the file */
};

struct gt_trace_memory { /* of an allocator of torch: as struct gt_ev_memory of wire_events.h */
	uint32_t tid;
	int8_t device_type;
	int8_t device;
	bool failed;
	uint64_t time_ns;
	uint64_t address;
	int64_t bytes;
	uint64_t allocated;
	uint64_t reserved;
	uint64_t index; /* "Ev Idx", unique among these and operators */
};

struct gt_trace_function { /* a Python function, by the operators and ranges in it */
	uint32_t tid;
	uint64_t id;       /* > 0, unique among these in the file */
	uint64_t outer_id; /* of the function that called it; 0: none */
	uint64_t start_ns;
	uint64_t end_ns;
	bool is_module;     /* the call of an nn.Module */
	uint32_t instance;  /* and its number in its class */
	struct gt_str name; /* "file(line): function"; of a module "Linear_0" */
};

/* An arrow from a forward operator to its backward one: lanes and begins of both. */
struct gt_trace_link {
	uint64_t id; /* > 0, unique among these in the file */
	uint32_t from_lane;
	uint32_t to_lane;
	uint64_t from_ns;
	uint64_t to_ns;
};

struct gt_trace_gpu_range { /* from the first to the last GPU op launched inside a range */
	uint32_t tid;       /* of the range: one set of lanes a thread */
	uint32_t device;
	uint32_t stream;
	bool is_step;
	uint64_t start_ns;
	uint64_t end_ns;
	struct gt_str name;
	uint64_t external_id;
};

#define GT_TRACE_OVERWRITE 1u /* replace an existing file; otherwise O_EXCL */

/*
 * Create path with its head and no events but its metadata; when that fails there is no file.
 * base_ns becomes baseTimeNanoseconds: what begins earlier is made to begin there. *ret is owned
 * by the caller.
 */
int gt_trace_create(struct gt_trace **ret, const char *path, unsigned int flags, uint64_t base_ns,
		    const struct gt_trace_meta *meta, struct gt_err *err);

/*
 * Each: 0 or -errno (-ENOMEM, or the first write error, which sticks). What cannot be written (a
 * device beyond 63, a time beyond 100 days) is counted as a bad record.
 */
int gt_trace_call(struct gt_trace *trace, const struct gt_trace_call *call);
/*
 * launch: NULL when it was not seen; else an ac2g flow ends here, and its external_id is the op's,
 * too. name: the mangled or plain kernel name, unused for copies.
 */
int gt_trace_gpu(struct gt_trace *trace, const struct gt_gpu_op *op, struct gt_str name,
		 const struct gt_trace_call *launch);
int gt_trace_range(struct gt_trace *trace, const struct gt_trace_range *range);
/* *ret_lane: the tid it has in the trace, for gt_trace_link(). */
int gt_trace_op(struct gt_trace *trace, const struct gt_trace_op *op, uint32_t *ret_lane);
int gt_trace_memory(struct gt_trace *trace, const struct gt_trace_memory *memory);
int gt_trace_function(struct gt_trace *trace, const struct gt_trace_function *function);
int gt_trace_link(struct gt_trace *trace, const struct gt_trace_link *link);
int gt_trace_gpu_range(struct gt_trace *trace, const struct gt_trace_gpu_range *range);
int gt_trace_mark(struct gt_trace *trace, uint32_t tid, uint64_t time_ns, struct gt_str name);
int gt_trace_thread_name(struct gt_trace *trace, uint32_t tid, struct gt_str name);
/* A GPU learned of after gt_trace_create(); copied. Kernels written before lack what needs it. */
int gt_trace_device(struct gt_trace *trace, const struct gt_msg_device *device);

/*
 * Everything written so far becomes a loadable file on disk. After an error the file is that of
 * the flush before. No signal to be handled: beyond RLIMIT_FSIZE it is -EFBIG without a write.
 */
int gt_trace_flush(struct gt_trace *trace, const struct gt_trace_health *health,
		   struct gt_err *err);

/* From now on, compress what is written later, until a flush or much waits; or do so as it comes.
 */
void gt_trace_hold(struct gt_trace *trace, bool hold);

/* Bytes of JSON that wait for the next flush; events written so far. */
size_t gt_trace_pending_bytes(const struct gt_trace *trace);
uint64_t gt_trace_event_count(const struct gt_trace *trace);

/* Flush, close, free. trace may be NULL. The file stays loadable whatever this returns. */
int gt_trace_close(struct gt_trace *trace, const struct gt_trace_health *health,
		   struct gt_err *err);

#endif
