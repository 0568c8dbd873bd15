/*
 * trace_priv.h - shared by the parts of the trace writer: trace_writer.c (the file), trace_text.c
 * (its text), trace_cpu.c, trace_ops.c and trace_gpu.c (events), trace_tracks.c (lanes),
 * trace_pieces.c (text that comes again), trace_meta.c (what stands around the events).
 */
#ifndef GT_TRACE_PRIV_H
#define GT_TRACE_PRIV_H

#include "trace_writer.h"
#include "gz_writer.h"
#include "json_writer.h"
#include "lanes.h"
#include "wire.h"

#define GT_TRACE_DEVICES_MAX 64 /* a larger pid breaks readers that index arrays by it */

/* Pids below 64 look like GPUs in viewers (a container's init is 1); no real pid is that large. */
#define GT_TRACE_PID_OFFSET       (UINT32_C(1) << 22)

#define GT_TRACE_STREAM_STRIDE    UINT32_C(2000000)  /* from one lane of a stream to the next */
#define GT_TRACE_THREAD_STRIDE    UINT32_C(10000000) /* of a thread */
#define GT_TRACE_GPU_RANGE_BASE   UINT32_C(1000000)  /* first tid of the ranges' lanes on a GPU */
#define GT_TRACE_GPU_RANGE_TRACKS 3900               /* so many do not reach the stream stride */

/* ts + dur stay below, or a double loses nanoseconds. */
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

/*
 * Where a pattern of a part stood last, as an offset in all its text so far; 0: nowhere yet. Each
 * place in the code that writes a pattern keeps one and passes it to gt_trace_hint().
 */
typedef uint64_t gt_trace_spot;

struct gt_trace_part {
	struct gt_buf text;
	uint64_t start; /* offset of text in all of the part's text, plus 1 */
	struct gt_deflate_hint *hints;
	size_t hint_count;
	size_t hint_cap;
};

struct gt_piece { /* the text an event begins with, made once */
	uint64_t hash;
	gt_trace_spot spot;
	struct gt_buf key;
	struct gt_buf text; /* empty: to be made */
};

#define GT_PIECE_SLOTS 4096

struct gt_pieces {
	struct gt_piece slots[GT_PIECE_SLOTS];
	size_t bytes;
};

struct gt_trace {
	struct gt_gz_writer *gz;
	int error; /* -errno, sticks */
	uint64_t base_ns;
	uint64_t events;
	uint64_t refused; /* events that cannot be written */
	uint32_t pid;     /* as written */
	uint32_t real_pid;
	uint32_t correlations_invented;
	char comm[32];
	struct gt_buf about; /* the fixed part of the gtrace object */

	/*
	 * Text: what was compressed already (as history), then what waits. GPU work waits for
	 * itself and goes behind the rest, a thousand launches at a time: what is alike comes close
	 * together then, and files become an eighth smaller.
	 */
	struct gt_trace_part main;
	struct gt_trace_part gpu;
	size_t compressed; /* bytes of main.text */
	bool held;         /* compression is to wait */
	size_t unflushed;  /* bytes compressed since the last flush */
	struct {
		gt_trace_spot call_place, call_time, flow_start;
		gt_trace_spot gpu_place, gpu_time, flow_end;
		gt_trace_spot range, gpu_range, mark;
		gt_trace_spot op_id, op_sequence, op_place, op_time, link_from, link_to, calls;
		gt_trace_spot memory, memory_total, memory_block, memory_place;
	} spots;
	struct gt_pieces *pieces;

	uint64_t devices_used;  /* bit n: device n has events */
	uint64_t devices_known; /* bit n: devices[n] is filled in */
	struct gt_msg_device devices[GT_TRACE_DEVICES_MAX];

	struct gt_trace_track *tracks; /* hash table */
	uint32_t track_count;
	uint32_t track_cap; /* a power of two */
	uint32_t gpu_range_tracks;
	struct gt_lane_pool pool;
};

/* ---- trace_text.c ---- */

#define GT_TRACE_HINTS_MAX 9 /* of an event */

/*
 * Begin an event of a part that takes at most bytes. What was written before lacks its last brace,
 * so that each event's text begins with the end of the one before; so does what spot refers to (may
 * be NULL). NULL: trace->error is set.
 */
char *gt_trace_begin(struct gt_trace *trace, struct gt_trace_part *part, size_t bytes,
		     gt_trace_spot *spot);
/* The event ends at end, but for its last brace. Returns trace->error. */
int gt_trace_end(struct gt_trace *trace, struct gt_trace_part *part, const char *end);

/* Compress what waits. */
int gt_trace_compress(struct gt_trace *trace);
/* The next text starts without history. */
void gt_trace_forget_text(struct gt_trace *trace);

static inline void gt_trace_add_hint(struct gt_trace_part *part, const char *p, uint64_t dist)
{
	struct gt_deflate_hint *hint = &part->hints[part->hint_count++];

	hint->at = (uint32_t)(p - part->text.data);
	hint->dist = dist <= GT_DEFLATE_WINDOW ? (uint32_t)dist : 0;
}

static inline gt_trace_spot gt_trace_spot_at(const struct gt_trace_part *part, const char *p)
{
	return part->start + (uint64_t)(p - part->text.data);
}

/* From p on comes what came from spot on, too, if that can still be referred to. */
static inline void gt_trace_hint(struct gt_trace_part *part, const char *p, gt_trace_spot *spot)
{
	gt_trace_spot now = gt_trace_spot_at(part, p);

	gt_trace_add_hint(part, p, *spot >= part->start ? now - *spot : 0);
	*spot = now;
}

/* Times relative to the base; false when they cannot be written. */
bool gt_trace_times(struct gt_trace *trace, uint64_t start_ns, uint64_t end_ns, uint64_t *ret_start,
		    uint64_t *ret_end);

/* A quoted name, changed only where readers would take it for a step. */
#define GT_TRACE_NAME_MAX(len) (GT_JSON_STR_MAX(len) + 1)
char *gt_trace_put_name(char *p, struct gt_str name, bool is_step);

/* ,"key":value; key is a literal */
#define GT_TRACE_PUT_NUMBER(p, key, value) gt_json_put_u64(GT_JSON_PUT(p, ",\"" key "\":"), value)

/* ,"pid":…,"tid":…,"ts":… */
char *gt_trace_put_place(char *p, uint32_t pid, uint32_t tid, uint64_t time_ns);

/* ---- trace_pieces.c ---- */

/*
 * The piece for this key and name, valid until the next call, which may forget it. The caller makes
 * its text when that is empty, in what gt_piece_reserve() gives it. NULL: trace->error is set.
 */
struct gt_piece *gt_piece_get(struct gt_trace *trace, const void *key, size_t key_len,
			      struct gt_str name);
char *gt_piece_reserve(struct gt_trace *trace, struct gt_piece *piece, size_t bytes);
void gt_pieces_free(struct gt_pieces *pieces);

/* ---- trace_ops.c ---- */

/*
 * Append the arguments for these inputs of an event of the main part, which has room for
 * GT_OP_INPUTS_TEXT_MAX() more bytes. Returns the end; NULL: trace->error is set.
 */
char *gt_trace_put_inputs(struct gt_trace *trace, char *p, struct gt_str inputs);
/* The same of "Call stack", for which there is room. */
char *gt_trace_put_calls(struct gt_trace *trace, char *p, struct gt_str calls);

/* ---- trace_tracks.c ---- */

/*
 * The tid of the lane where this slice (in relative time) goes; lanes are named with their first
 * use. first: the lowest row allowed. id: stream or thread; device: 0 for threads.
 */
uint32_t gt_trace_lane(struct gt_trace *trace, enum gt_track_kind kind, uint32_t device,
		       uint32_t id, uint32_t first, uint64_t start_ns, uint64_t end_ns);
void gt_trace_tracks_release(struct gt_trace *trace);

/* ---- trace_meta.c ---- */

void gt_trace_name_thread(struct gt_trace *trace, uint32_t pid, uint32_t tid, struct gt_str name,
			  int64_t sort_index);
/* Name a GPU with its first event. */
void gt_trace_use_device(struct gt_trace *trace, uint32_t device);

/* What stands before the first event, with that one, and what closes the document. -ENOMEM */
int gt_trace_put_head(struct gt_trace *trace, const char *path, const struct gt_trace_meta *meta);
int gt_trace_put_tail(const struct gt_trace *trace, const struct gt_trace_health *health,
		      struct gt_buf *buf);

#endif
