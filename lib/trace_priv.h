/*
 * trace_priv.h - shared by the parts of the trace writer: trace_writer.c (file, CPU side),
 * trace_gpu.c (GPU work), trace_meta.c (what stands around the events), trace_tracks.c (lanes).
 */
#ifndef GT_TRACE_PRIV_H
#define GT_TRACE_PRIV_H

#include "trace_writer.h"
#include "gz_writer.h"
#include "json_writer.h"
#include "lanes.h"
#include "wire.h"

#define GT_TRACE_DEVICES_MAX 64 /* a larger pid breaks readers that index arrays by it (W7) */

/* Pids below 64 look like GPUs in viewers (a container's init is 1); no real pid is that large. */
#define GT_TRACE_PID_OFFSET       (UINT32_C(1) << 22)

#define GT_TRACE_STREAM_STRIDE    UINT32_C(2000000)  /* from one lane of a stream to the next */
#define GT_TRACE_THREAD_STRIDE    UINT32_C(10000000) /* of a thread */
#define GT_TRACE_GPU_RANGE_BASE   UINT32_C(1000000)  /* first tid of the ranges' lanes on a GPU */
#define GT_TRACE_GPU_RANGE_TRACKS 3900               /* so many do not reach the stream stride */

/* ts + dur stay below, or a double loses nanoseconds (W12). */
#define GT_TRACE_TIME_MAX_NS ((UINT64_C(1) << 43) * 1000 - 1)

enum gt_track_kind {
	GT_TRACK_STREAM = 1,
	GT_TRACK_THREAD = 2,
	GT_TRACK_GPU_RANGE = 3,
	GT_TRACK_GPU_STEP = 4,
};

struct gt_trace_track {
	uint64_t key;       /* 0: empty slot */
	uint32_t first_tid; /* of row 0 */
	uint32_t stride;    /* from a row's tid to the next one's */
	uint32_t named_rows;
	struct gt_track rows;
};

struct gt_kernel_cache;

struct gt_trace {
	struct gt_gz_writer *gz;
	struct gt_json json; /* events not compressed yet */
	int error;           /* -errno, sticks */
	uint64_t base_ns;
	uint64_t events;
	size_t pending_bytes; /* since the last flush */
	uint64_t refused;     /* events that cannot be written, whatever the health says */
	uint32_t pid;         /* as written */
	uint32_t real_pid;
	uint32_t correlations_invented;
	char comm[32];
	struct gt_json about;   /* the fixed part of the gtrace object */
	uint64_t devices_used;  /* bit n: device n has events */
	uint64_t devices_known; /* bit n: device[n] is filled in */
	struct gt_msg_device devices[GT_TRACE_DEVICES_MAX];

	struct gt_trace_track *tracks; /* hash table */
	uint32_t track_count;
	uint32_t track_cap; /* a power of two */
	uint32_t gpu_range_tracks;
	struct gt_lane_pool pool;

	struct gt_kernel_cache *kernels;
};

/* Room for the next event, its comma included; NULL: trace->error is set. */
char *gt_trace_reserve(struct gt_trace *trace, size_t bytes);
/* It ends at end. Returns trace->error. */
int gt_trace_end_event(struct gt_trace *trace, const char *end);

/* Times relative to the base; false when they cannot be written. */
bool gt_trace_times(struct gt_trace *trace, uint64_t start_ns, uint64_t end_ns, uint64_t *ret_start,
		    uint64_t *ret_end);

/* A quoted name, changed only where readers would take it for a step. */
#define GT_TRACE_NAME_MAX(len) (GT_JSON_STR_MAX(len) + 1)
char *gt_trace_put_name(char *p, struct gt_str name, bool is_step);

/* ,"ts":…,"dur":…} of a complete event. */
#define GT_TRACE_SLICE_END_MAX 64
char *gt_trace_put_slice_end(char *p, uint64_t start_ns, uint64_t end_ns);

/*
 * The tid of the lane where this slice (in relative time) goes; lanes are named with their first
 * use, first is the lowest row allowed. id: stream or thread; device: 0 for threads.
 */
uint32_t gt_trace_lane(struct gt_trace *trace, enum gt_track_kind kind, uint32_t device,
		       uint32_t id, uint32_t first, uint64_t start_ns, uint64_t end_ns);
void gt_trace_tracks_release(struct gt_trace *trace);

/* Metadata events. */
int gt_trace_meta_thread(struct gt_trace *trace, uint32_t pid, uint32_t tid, const char *name,
			 size_t len, int64_t sort_index);
int gt_trace_meta_process(struct gt_trace *trace, uint32_t pid, const char *labels,
			  int64_t sort_index);
/* Note that device has events: named with its first one. */
void gt_trace_use_device(struct gt_trace *trace, uint32_t device);

/* What stands before the first event, and the text that closes the document. */
int gt_trace_put_head(struct gt_trace *trace, const char *path, const struct gt_trace_meta *meta);
int gt_trace_put_tail(const struct gt_trace *trace, const struct gt_trace_health *health,
		      struct gt_json *json);

void gt_kernel_cache_free(struct gt_kernel_cache *cache);

#endif
