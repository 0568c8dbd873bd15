/*
 * cupti_buffer.c - activity buffers, one current one a thread, as CUPTI keeps them by default. A
 * buffer is requested on the thread that launches. A record is written once its work is complete;
 * a worker thread does that, and hands full buffers out. cuptiActivityFlushAll hands out the rest.
 */
#include "cupti_sim.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define TICK_NS (2 * GT_NSEC_PER_MSEC)

/* In the kind of each record of a buffer that was not handed out so far (in_place; on an H200). */
#define NOT_HANDED_OUT (UINT32_C(1) << 31)

struct buffer {
	uint8_t *data;
	size_t size;
	size_t used;
	size_t unfinished; /* records in it of work in flight (in_place) */
	struct buffer *next;
};

struct thread { /* lives on after its thread: pending records name it */
	struct buffer *current;
	size_t pending;
	uint64_t began_ns;
	bool forgotten;
	struct thread *next;
};

struct pending {
	uint64_t due_ns;
	struct thread *thread;
	struct sim_record record;
	struct buffer *buffer; /* in which it has its place; NULL: in none so far */
	size_t place;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake_worker = PTHREAD_COND_INITIALIZER;
static pthread_cond_t flushed = PTHREAD_COND_INITIALIZER;

/* Under the lock. */
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static struct thread *threads;
static struct buffer *full;   /* to be handed out */
static struct pending **heap; /* the first is due first */
static size_t heap_count;
static size_t heap_size;
static uint64_t flush_wanted;
static uint64_t flush_done;
static bool flush_forced;
static size_t dropped;
static struct {
	uint64_t work;       /* records of GPU work announced */
	uint64_t written;    /* all records */
	uint64_t buffers;    /* requested */
	uint64_t handed_out; /* buffers */
} totals;
static size_t attributes[16];

static __thread struct thread *self;
static __thread bool is_worker;

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
					   CUpti_BuffersCallbackCompleteFunc completed)
{
	if (!requested || !completed)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sim_attach();
	pthread_mutex_lock(&lock);
	request = requested;
	complete = completed;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

/* ---- the heap of pending records ---- */

static bool heap_push(struct pending *item)
{
	size_t at = heap_count;

	if (heap_count == heap_size) {
		size_t size = heap_size ? 2 * heap_size : 1024;
		struct pending **bigger = realloc(heap, size * sizeof(*heap));

		if (!bigger)
			return false;
		heap = bigger;
		heap_size = size;
	}
	heap_count++;
	while (at > 0 && heap[(at - 1) / 2]->due_ns > item->due_ns) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = item;
	return true;
}

static struct pending *heap_pop(void)
{
	struct pending *first = heap[0];
	struct pending *last = heap[--heap_count];
	size_t at = 0;

	for (size_t child = 1; child < heap_count; child = 2 * at + 1) {
		if (child + 1 < heap_count && heap[child + 1]->due_ns < heap[child]->due_ns)
			child++;
		if (last->due_ns <= heap[child]->due_ns)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return first;
}

/* ---- buffers ---- */

static bool all_zero(const uint8_t *data, size_t size)
{
	return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

/* Lock held, but not while the client is asked. */
static struct buffer *buffer_new(void)
{
	CUpti_BuffersCallbackRequestFunc ask = request;
	bool zeroed = attributes[CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER];
	struct buffer *buffer = calloc(1, sizeof(*buffer));
	size_t max_records = 0;

	if (!buffer || !ask) {
		free(buffer);
		return NULL;
	}
	pthread_mutex_unlock(&lock);
	ask(&buffer->data, &buffer->size, &max_records);
	if (!buffer->data && simgpu_faults()->layout < SIM_13_0) {
		fprintf(stderr, "simgpu: a NULL buffer, on which this version of CUPTI crashes\n");
		abort();
	}
	if (buffer->data && zeroed && !all_zero(buffer->data, buffer->size))
		fprintf(stderr, "simgpu: a buffer promised to be zeroed is not\n");
	else if (buffer->data && !zeroed)
		memset(buffer->data, 0, buffer->size);
	pthread_mutex_lock(&lock);
	if (!buffer->data || buffer->size < SIM_RECORD_MAX) {
		free(buffer);
		return NULL;
	}
	totals.buffers++;
	return buffer;
}

/* Lock held. The thread's buffer with room for bytes, NULL: none to be had. */
static struct buffer *buffer_of(struct thread *thread, size_t bytes)
{
	struct buffer *buffer = thread->current;

	if (buffer && buffer->used + bytes <= buffer->size)
		return buffer;
	if (buffer) {
		thread->current = NULL;
		buffer->next = full;
		full = buffer;
	}
	buffer = buffer_new();
	if (buffer && thread->current) { /* another thread was faster meanwhile */
		buffer->next = full;
		full = buffer;
	} else if (buffer) {
		thread->current = buffer;
	}
	return thread->current;
}

static void put(struct buffer *buffer, size_t at, const struct sim_record *record)
{
	uint32_t kind;

	memcpy(buffer->data + at, record->bytes, record->size_bytes);
	memcpy(&kind, record->bytes, sizeof(kind));
	kind |= simgpu_faults()->in_place ? NOT_HANDED_OUT : 0;
	memcpy(buffer->data + at, &kind, sizeof(kind));
}

static void write_record(struct thread *thread, const struct sim_record *record)
{
	struct buffer *buffer = buffer_of(thread, record->size_bytes);

	if (!buffer) {
		dropped++;
		return;
	}
	put(buffer, buffer->used, record);
	buffer->used += record->size_bytes;
	totals.written++;
}

/* The place of a record whose work has not begun. */
static void begin_record(struct pending *item)
{
	struct buffer *buffer = item->thread->current;
	struct sim_record record = item->record;

	sim_record_times(&record, 0, 0);
	item->buffer = buffer;
	item->place = buffer->used;
	put(buffer, buffer->used, &record);
	buffer->used += record.size_bytes;
	buffer->unfinished++;
}

static void finish_record(const struct pending *item)
{
	put(item->buffer, item->place, &item->record);
	item->buffer->unfinished--;
	totals.written++;
}

static struct thread *this_thread(void)
{
	if (!self) {
		self = calloc(1, sizeof(*self));
		if (self) {
			self->began_ns = simgpu_now_ns();
			self->next = threads;
			threads = self;
		}
	}
	return self;
}

void sim_buffer_add(const struct sim_record *record, uint64_t due_ns)
{
	struct pending *item = NULL;
	struct thread *thread;

	pthread_mutex_lock(&lock);
	thread = this_thread();
	if (thread && thread->forgotten) {
		pthread_mutex_unlock(&lock);
		return;
	}
	if (thread && due_ns == 0) {
		write_record(thread, record);
	} else if (thread && buffer_of(thread, record->size_bytes)) {
		item = malloc(sizeof(*item));
		if (item) {
			item->due_ns = due_ns;
			item->thread = thread;
			item->record = *record;
			item->buffer = NULL;
			if (simgpu_faults()->in_place)
				begin_record(item);
		}
		totals.work++;
		if (item && heap_push(item)) {
			thread->pending++;
			if (heap_count == 1)
				pthread_cond_signal(&wake_worker);
		} else {
			free(item);
		}
	} else {
		dropped++;
	}
	pthread_mutex_unlock(&lock);
}

void sim_buffer_forget_young(void)
{
	uint64_t now = simgpu_now_ns();

	pthread_mutex_lock(&lock);
	for (struct thread *thread = threads; thread; thread = thread->next)
		thread->forgotten |= now - thread->began_ns < simgpu_faults()->forget_young;
	pthread_mutex_unlock(&lock);
}

void sim_buffer_count_drop(void)
{
	pthread_mutex_lock(&lock);
	dropped++;
	pthread_mutex_unlock(&lock);
}

/* ---- the worker ---- */

/* Lock held. Write what is complete, or everything, with an end of 0, when forced. */
static void write_complete(bool forced)
{
	uint64_t now = simgpu_now_ns();

	while (heap_count > 0 && (forced || heap[0]->due_ns <= now)) {
		struct pending *item = heap_pop();

		if (item->due_ns > now)
			sim_record_times(&item->record, now, 0);
		item->thread->pending--;
		if (item->buffer)
			finish_record(item);
		else
			write_record(item->thread, &item->record);
		free(item);
	}
}

/* Lock held. */
static void take_current(void)
{
	for (struct thread *t = threads; t; t = t->next) {
		struct buffer *buffer = t->current;

		if (!buffer || buffer->used == 0 || buffer->unfinished ||
		    (simgpu_faults()->withhold && t->pending))
			continue;
		t->current = NULL;
		buffer->next = full;
		full = buffer;
	}
}

/* Lock held. A full buffer all of whose records are finished, where it is linked. */
static struct buffer **find_finished(void)
{
	struct buffer **link = &full;

	while (*link && (*link)->unfinished)
		link = &(*link)->next;
	return *link ? link : NULL;
}

static void unmark(struct buffer *buffer)
{
	uint32_t kind;

	for (size_t at = 0; at < buffer->used; at += sim_record_bytes(kind)) {
		memcpy(&kind, buffer->data + at, sizeof(kind));
		kind &= ~NOT_HANDED_OUT;
		memcpy(buffer->data + at, &kind, sizeof(kind));
	}
}

/* Lock held, but not while the client is told. */
static void hand_out(void)
{
	struct buffer **link;

	while ((link = find_finished())) {
		CUpti_BuffersCallbackCompleteFunc tell = complete;
		struct buffer *buffer = *link;

		*link = buffer->next;
		unmark(buffer);
		pthread_mutex_unlock(&lock);
		tell(NULL, 0, buffer->data, buffer->size, buffer->used);
		free(buffer);
		pthread_mutex_lock(&lock);
		totals.handed_out++;
	}
}

/* Lock held, but not while the client is told. A buffer that some other client requested. */
static void hand_out_foreign(void)
{
	CUpti_BuffersCallbackCompleteFunc tell = complete;
	struct sim_record record;
	uint8_t *data = calloc(1, 4096);

	if (!data)
		return;
	sim_record_opaque(&record, CUPTI_ACTIVITY_KIND_RUNTIME);
	memcpy(data, record.bytes, record.size_bytes);
	pthread_mutex_unlock(&lock);
	tell(NULL, 0, data, 4096, record.size_bytes);
	free(data);
	pthread_mutex_lock(&lock);
}

static void *worker(void *arg)
{
	(void)arg;
	is_worker = true;
	pthread_mutex_lock(&lock);
	for (;;) {
		uint64_t until = simgpu_now_ns() + TICK_NS;
		struct timespec ts = { .tv_sec = (time_t)(until / GT_NSEC_PER_SEC),
				       .tv_nsec = (long)(until % GT_NSEC_PER_SEC) };
		uint64_t ticket;

		if (flush_wanted == flush_done && !find_finished()) {
			if (heap_count > 0)
				pthread_cond_timedwait(&wake_worker, &lock, &ts);
			else
				pthread_cond_wait(&wake_worker, &lock);
		}
		ticket = flush_wanted;
		write_complete(flush_forced);
		flush_forced = false;
		if (ticket != flush_done) {
			take_current();
			if (simgpu_faults()->foreign_buffers && complete)
				hand_out_foreign();
		}
		hand_out();
		flush_done = ticket;
		pthread_cond_broadcast(&flushed);
	}
	return NULL;
}

static void report(void)
{
	pthread_mutex_lock(&lock);
	fprintf(stderr,
		"simgpu: %llu pieces of work, %llu records written, %llu of %llu buffers handed "
		"out\n",
		(unsigned long long)totals.work, (unsigned long long)totals.written,
		(unsigned long long)totals.handed_out, (unsigned long long)totals.buffers);
	pthread_mutex_unlock(&lock);
}

static void first_call(void)
{
	uint64_t slow_ns = simgpu_faults()->slow_call;
	const struct timespec ts = { .tv_sec = (time_t)(slow_ns / GT_NSEC_PER_SEC),
				     .tv_nsec = (long)(slow_ns % GT_NSEC_PER_SEC) };

	nanosleep(&ts, NULL);
	if (!simgpu_faults()->report)
		return;
	fprintf(stderr, "simgpu: first call of CUPTI was over after %llu pieces of work\n",
		(unsigned long long)simgpu_work());
	atexit(report);
}

void sim_buffer_called(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, first_call);
}

static void start_worker(void)
{
	sigset_t all;
	sigset_t old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, worker, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void sim_buffer_start_worker(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start_worker);
}

/* ---- entry points ---- */

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	uint64_t ticket;

	if (is_worker)
		return CUPTI_ERROR_INVALID_OPERATION;
	sim_attach();
	sim_buffer_start_worker();
	pthread_mutex_lock(&lock);
	ticket = ++flush_wanted;
	if (flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
		flush_forced = true;
	pthread_cond_signal(&wake_worker);
	while (!simgpu_faults()->async_flush && flush_done < ticket)
		pthread_cond_wait(&flushed, &lock);
	pthread_mutex_unlock(&lock);
	sim_callback_settle();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream_id, size_t *ret)
{
	(void)context;
	(void)stream_id;
	pthread_mutex_lock(&lock);
	*ret = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *size, void *value)
{
	if ((size_t)attr >= ARRAY_SIZE(attributes) || !size || !value)
		return CUPTI_ERROR_INVALID_PARAMETER;
	sim_attach();
	pthread_mutex_lock(&lock);
	memcpy(&attributes[attr], value, GT_MIN(*size, sizeof(attributes[attr])));
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *size, void *value)
{
	if ((size_t)attr >= ARRAY_SIZE(attributes) || !size || !value)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	memcpy(value, &attributes[attr], GT_MIN(*size, sizeof(attributes[attr])));
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}
