/*
 * events.h - the event stream of one thread, and its shortest path: one thread-local pointer, no
 * lock, no allocation.
 */
#ifndef INJ_EVENTS_H
#define INJ_EVENTS_H

#include "session.h"

#include <time.h>

/* The CUDA call a thread is in, from its ENTER to its EXIT; inner calls belong to it. */
struct inj_open_call {
	uint64_t start_ns;
	uint32_t generation; /* of the subscription that saw ENTER; 0: no call is open */
	uint32_t correlation;
	uint32_t step;
	uint32_t cbid;
	uint32_t flags; /* GT_CALL_* */
	uint32_t stream;
	uint8_t domain;
	uint8_t context;
};

/* Written by its thread in each call: on cache lines of its own. */
struct inj_thread {
	char *data; /* of the chunk in hand; NULL: none */
	struct gt_chunk *chunk;
	uint32_t pos;      /* bytes of it in use */
	uint32_t reserved; /* bytes between inj_reserve() and inj_commit() */
	uint32_t busy;     /* in between: what a signal handler adds is dropped */
	uint32_t tid;
	uint32_t dropped;
	_Atomic uint32_t used;     /* this slot has an owner */
	_Atomic uint64_t count;    /* events written; stored by the owner only */
	_Atomic uint64_t launches; /* of them, those that a GPU record is to follow; likewise */
	struct inj_open_call open;
	_Atomic uint32_t launching; /* in a launch; the generation of the subscription, or 0 */
	struct inj_stack *stack;    /* py_stacks.c; stays with the slot */
} __attribute__((aligned(128)));

/* The states of inj_self besides a slot: no stream yet, one in the making, none any more. */
#define INJ_THREAD_NONE  ((struct inj_thread *)0)
#define INJ_THREAD_LIMBO ((struct inj_thread *)1)

extern __thread struct inj_thread *inj_self;

/* Count an event of the thread that has no room. */
void inj_thread_drop(struct inj_thread *self);

/* The slow parts of the functions below; the second while the thread is busy. */
struct inj_thread *inj_thread_join(void);
bool inj_thread_next_chunk(struct inj_thread *self, uint32_t size_bytes);

/* KEEP: no room is left for the recording; it ends here. */
void inj_recording_full(void);

/* Of all threads since the start. */
uint64_t inj_events_total(void);
uint64_t inj_launches_total(void);

/* Is one within a launch, as quiet.h has it? */
bool inj_threads_launching(void);

int inj_events_init(void); /* 0 or -errno: no thread key is left */

/* The calling thread's stream, NULL when it has none. */
static inline struct inj_thread *inj_thread_self(void)
{
	struct inj_thread *self = inj_self;

	return GT_LIKELY((uintptr_t)self > (uintptr_t)INJ_THREAD_LIMBO) ? self : inj_thread_join();
}

/* Room for an event, all of which the caller fills; NULL when there is none (counted). */
static inline void *inj_event_begin(struct inj_thread *self, uint32_t size_bytes)
{
	if (GT_UNLIKELY(self->busy)) {
		inj_thread_drop(self);
		return NULL;
	}
	self->busy = 1;
	atomic_signal_fence(memory_order_seq_cst);
	if (GT_UNLIKELY(self->pos + size_bytes > GT_EVENT_CHUNK || !self->data) &&
	    !inj_thread_next_chunk(self, size_bytes)) {
		atomic_signal_fence(memory_order_seq_cst);
		self->busy = 0;
		return NULL;
	}
	self->reserved = size_bytes;
	return self->data + self->pos;
}

static inline void inj_event_end(struct inj_thread *self)
{
	self->pos += self->reserved;
	atomic_store_explicit(&self->chunk->used_bytes, self->pos, memory_order_release);
	atomic_store_explicit(&self->count,
			      atomic_load_explicit(&self->count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	self->busy = 0;
}

static inline uint32_t inj_step_now(void)
{
	return atomic_load_explicit(&inj_arena->step, memory_order_relaxed);
}

#endif
