/*
 * arena_reader.h - the collector's view of one process's arena (wire.h): a mapping whose layout is
 * checked once, lists of its chunks, and event by event copies. Everything in it is hostile: what
 * is used is copied out first and checked then.
 */
#ifndef GT_ARENA_READER_H
#define GT_ARENA_READER_H

#include "base.h"
#include "err.h"
#include "wire.h"

struct gt_arena;

struct gt_arena_state { /* the header's counters, one relaxed load each */
	uint32_t mode;  /* enum gt_arena_mode, unchecked */
	uint32_t step_source;
	uint32_t step;
	bool keep_full;
	bool ops_full;
	bool keep_yielded;
	uint64_t dropped_cupti;
	uint64_t dropped_arena;
	uint64_t dropped_events;
	uint64_t dropped_names;
	uint64_t late_step; /* see struct gt_arena_hdr */
};

struct gt_arena_chunk { /* a chunk as the last gt_arena_list() saw it */
	uint64_t seq;
	uint32_t index;
	uint32_t tid;
	uint32_t used_bytes; /* at most the chunk's size */
	bool done;
};

/* What has been read of an event chunk is remembered for each of two passes over it. */
enum gt_arena_pass { GT_PASS_NAMES = 0, GT_PASS_EVENTS = 1, GT_PASS_MAX = 2 };

struct gt_event_cursor {
	const unsigned char *pos; /* aligned to 8 */
	const unsigned char *end;
};

/*
 * Check the seals and the layout of the memfd fd and map it. fd is closed in any case.
 * -EPROTO with a message when the peer lies.
 */
int gt_arena_open(struct gt_arena **ret, int fd, uint64_t arena_bytes, struct gt_err *err);
void gt_arena_close(struct gt_arena *arena);

void gt_arena_state(const struct gt_arena *arena, struct gt_arena_state *ret);

/*
 * What the program's own profiler took from a window, as the message of it, one at a time. *seen
 * counts those that were told before, from 0. false: there is none since.
 */
bool gt_arena_yield(const struct gt_arena *arena, uint32_t *seen, struct gt_msg_phase *ret);

/* The step the process is in now. */
uint32_t gt_arena_step(const struct gt_arena *arena);

/* The process has come to its orderly end. */
bool gt_arena_has_ended(const struct gt_arena *arena);

/* Wake the process's control thread: there is a message for it. Any thread. */
void gt_arena_wake(const struct gt_arena *arena);

/* How many chunks a pool has. */
uint32_t gt_arena_count(const struct gt_arena *arena, enum gt_pool pool);

/*
 * The chunks of a pool that are DONE (and BUSY, when busy is set), in the order they were taken. A
 * BUSY event chunk without bytes is left out. ret has room for all of the pool. Returns their
 * count.
 */
size_t gt_arena_list(const struct gt_arena *arena, enum gt_pool pool, bool busy,
		     struct gt_arena_chunk *ret);

/*
 * A private copy of what this pass has not read of an event chunk, for gt_event_next(). It is valid
 * until the next call. What the cursor covers counts as read, unless gt_arena_spoil() follows.
 */
void gt_arena_events(struct gt_arena *arena, const struct gt_arena_chunk *chunk,
		     enum gt_arena_pass pass, struct gt_event_cursor *ret);

/* Nothing more of this chunk is read by any pass: an event in it was malformed. */
void gt_arena_spoil(struct gt_arena *arena, const struct gt_arena_chunk *chunk);

/* Has the pass read all that this DONE chunk will ever hold? */
bool gt_arena_consumed(const struct gt_arena *arena, const struct gt_arena_chunk *chunk,
		       enum gt_arena_pass pass);

/* The bytes of a chunk, in shared memory: they may change under the reader. */
const unsigned char *gt_arena_bytes(const struct gt_arena *arena, enum gt_pool pool,
				    const struct gt_arena_chunk *chunk);

/* Give a DONE chunk back to the target; a CUPTI chunk's used bytes become zero. */
void gt_arena_free_chunk(struct gt_arena *arena, enum gt_pool pool,
			 const struct gt_arena_chunk *chunk);

/*
 * The next event that is well formed for its type; unknown types are skipped. 1: *ret is set,
 * 0: the end, -EBADMSG: malformed. *ret lies in the cursor's bytes.
 */
int gt_event_next(struct gt_event_cursor *cur, const struct gt_ev **ret);

#endif
