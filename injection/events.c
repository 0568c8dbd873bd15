/*
 * events.c - the event streams of the program's threads: each fills one chunk of the arena after
 * the other. The collector reads up to the chunk's used_bytes at any time.
 */
#include "events.h"
#include "clock.h"
#include "torch_ops.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX 4096
/* With the pool empty a search is long: most events of a thread without a chunk do without one. */
#define SEARCH_EVERY 64

static struct inj_thread threads[THREADS_MAX];
static _Atomic uint32_t threads_high; /* slots below were in use at some time */
static pthread_key_t thread_key;

__thread struct inj_thread *inj_self;

void inj_drop(void)
{
	atomic_fetch_add_explicit(&inj_arena->dropped_events, 1, memory_order_relaxed);
}

/* The thread ends: its last chunk is the collector's. What later destructors add is dropped. */
static void thread_leave(void *arg)
{
	struct inj_thread *self = arg;

	inj_self = INJ_THREAD_LIMBO;
	if (!inj_live_alive())
		return;
	if (self->chunk)
		inj_chunk_done(self->chunk, self->pos);
	self->chunk = NULL;
	self->data = NULL;
	self->pos = 0;
	self->open.generation = 0;
	atomic_store_explicit(&self->launching, 0, memory_order_relaxed);
	atomic_store_explicit(&self->used, 0, memory_order_release);
}

int inj_events_init(void)
{
	return -pthread_key_create(&thread_key, thread_leave);
}

static struct inj_thread *take_slot(void)
{
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		uint32_t free_slot = 0, high;

		if (atomic_load_explicit(&threads[i].used, memory_order_relaxed) ||
		    !atomic_compare_exchange_strong(&threads[i].used, &free_slot, 1))
			continue;
		high = atomic_load_explicit(&threads_high, memory_order_relaxed);
		while (high <= i && !atomic_compare_exchange_weak(&threads_high, &high, i + 1))
			;
		return &threads[i];
	}
	return NULL;
}

struct inj_thread *inj_thread_join(void)
{
	struct inj_thread *self;
	int saved = errno;

	if (inj_self == INJ_THREAD_LIMBO || !inj_live_alive()) {
		if (inj_live_alive())
			inj_drop();
		return NULL;
	}
	inj_self = INJ_THREAD_LIMBO;
	atomic_signal_fence(memory_order_seq_cst);
	self = take_slot();
	if (self && pthread_setspecific(thread_key, self)) {
		atomic_store_explicit(&self->used, 0, memory_order_release);
		self = NULL;
	}
	if (self) {
		self->tid = (uint32_t)syscall(SYS_gettid);
		self->busy = 0;
		self->dropped = 0;
		atomic_signal_fence(memory_order_seq_cst);
		inj_self = self;
	} else {
		inj_drop();
		inj_self = INJ_THREAD_NONE;
	}
	errno = saved;
	return self;
}

/* The recording that is kept until the first step has reached its bound. */
void inj_recording_full(void)
{
	uint32_t no = 0;

	if (atomic_load_explicit(&inj_arena->mode, memory_order_relaxed) == GT_MODE_KEEP &&
	    atomic_compare_exchange_strong(&inj_arena->keep_full, &no, 1)) {
		atomic_store_explicit(&inj_live.recording, 0, memory_order_relaxed);
		atomic_store_explicit(&inj_live.taking, 0, memory_order_relaxed);
		inj_control_post();
	}
}

/*
 * Until the first step no chunk comes back, and a program may run any number of operators before
 * its first work on the GPU: they get half of the room.
 */
static void limit_operators(void)
{
	static _Atomic uint32_t taken;

	if (!inj_ops_observed() ||
	    atomic_load_explicit(&inj_arena->mode, memory_order_relaxed) != GT_MODE_KEEP ||
	    atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed) + 1 !=
		    inj_arena_chunks(GT_POOL_EVENT) / 2)
		return;
	atomic_store_explicit(&inj_arena->ops_full, 1, memory_order_relaxed);
	inj_control_post();
}

void inj_thread_drop(struct inj_thread *self)
{
	self->dropped++;
	inj_drop();
}

bool inj_thread_next_chunk(struct inj_thread *self, uint32_t size_bytes)
{
	struct gt_chunk *chunk;

	if (size_bytes > GT_EVENT_CHUNK || (!self->data && self->dropped % SEARCH_EVERY)) {
		inj_thread_drop(self);
		return false;
	}
	if (self->chunk)
		inj_chunk_done(self->chunk, self->pos);
	self->data = NULL;
	self->pos = 0;
	self->chunk = chunk = inj_chunk_take(GT_POOL_EVENT, self->tid);
	if (chunk) {
		self->data = inj_chunk_data(GT_POOL_EVENT, chunk);
		self->dropped = 0;
		limit_operators();
	} else {
		inj_thread_drop(self);
		inj_recording_full();
	}
	return chunk;
}

static uint64_t sum_threads(size_t offset)
{
	uint32_t high = atomic_load_explicit(&threads_high, memory_order_relaxed);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < high; i++)
		sum += atomic_load_explicit((_Atomic uint64_t *)((char *)&threads[i] + offset),
					    memory_order_relaxed);
	return sum;
}

uint64_t inj_events_total(void)
{
	return sum_threads(offsetof(struct inj_thread, count));
}

uint64_t inj_launches_total(void)
{
	return sum_threads(offsetof(struct inj_thread, launches));
}

bool inj_threads_launching(void)
{
	uint32_t generation = atomic_load_explicit(&inj_live.generation, memory_order_relaxed);
	uint32_t high = atomic_load_explicit(&threads_high, memory_order_relaxed);

	for (uint32_t i = 0; i < high; i++) {
		if (atomic_load_explicit(&threads[i].launching, memory_order_acquire) == generation)
			return true;
	}
	return false;
}

uint64_t inj_now_ns(void)
{
	return gt_clock_ns(CLOCK_REALTIME);
}

void *inj_reserve(enum gt_event_type type, uint32_t size_bytes)
{
	struct inj_thread *self = inj_thread_self();
	struct gt_ev *ev = self ? inj_event_begin(self, size_bytes) : NULL;

	if (ev)
		*ev = (struct gt_ev){ .type = (uint16_t)type,
				      .size_bytes = (uint16_t)size_bytes,
				      .step = inj_step_now(),
				      .time_ns = inj_now_ns() };
	return ev;
}

void inj_shrink(void *event, uint32_t size_bytes)
{
	((struct gt_ev *)event)->size_bytes = (uint16_t)size_bytes;
	inj_self->reserved = size_bytes;
}

void inj_commit(void)
{
	inj_event_end(inj_self);
}
