/*
 * activity.c - GPU work: CUPTI fills buffers that lie in the arena. When it gives one back, the
 * kernels' names, which are pointers into this process, are replaced by numbers where they stand,
 * and the collector has its turn.
 */
#include "clock.h"
#include "cupti_api.h"
#include "events.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* From the fourth version of the record (CUDA 9) on, all that follow have the name here. */
#define KERNEL_NAME_OFFSET 104

/* Of 3.2 MB of GPU memory each, in a context. CUPTI's own limit is 250. */
#define DEVICE_BUFFERS_MAX 32

/*
 * Where buffers come from when no chunk is free, since CUPTI must always get one. What they hold
 * is lost, so they are small: the next request may find a chunk.
 */
#define SPARE_BYTES 32768
#define SPARES_MAX  512

static char spares[SPARES_MAX][SPARE_BYTES] __attribute__((aligned(4096)));
static _Atomic uint32_t spare_busy[SPARES_MAX];

static _Atomic uint32_t requested; /* buffers, since the start */
static _Atomic uint32_t completed; /* with records in them */

static bool whole_graphs;       /* GRAPH_TRACE is on */
static bool whole_graphs_tried; /* or CUPTI did not want it */

static const CUpti_ActivityKind gpu_kinds[] = {
	CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
	CUPTI_ACTIVITY_KIND_MEMCPY,
	CUPTI_ACTIVITY_KIND_MEMSET,
	CUPTI_ACTIVITY_KIND_MEMCPY2,
};

/* ---- buffers ---- */

static uint8_t *spare_take(void)
{
	void *memory;

	for (size_t i = 0; i < SPARES_MAX; i++) {
		uint32_t no = 0;

		if (atomic_compare_exchange_strong(&spare_busy[i], &no, 1))
			return (uint8_t *)spares[i];
	}
	/* More buffers than any program has threads. Never NULL: before 12.9 CUPTI crashes. */
	memory =
		mmap(NULL, SPARE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *size, size_t *max_records)
{
	struct gt_chunk *chunk = inj_live_alive() ? inj_chunk_take(GT_POOL_CUPTI, 0) : NULL;

	atomic_fetch_add_explicit(&requested, 1, memory_order_relaxed);
	*max_records = 0;
	*size = chunk ? GT_CUPTI_CHUNK : SPARE_BYTES;
	*buffer = chunk ? inj_chunk_data(GT_POOL_CUPTI, chunk) : spare_take();
	if (!chunk && inj_live_alive())
		inj_recording_full();
}

/* ---- records ---- */

/* The size of the record at pos, 0 where the records end or cannot be followed any further. */
static uint32_t record_size(const char *data, size_t valid, size_t pos)
{
	uint32_t kind, size;

	if (valid - pos < sizeof(kind))
		return 0;
	memcpy(&kind, data + pos, sizeof(kind));
	kind &= ~GT_KIND_HELD;
	size = kind < GT_KIND_MAX ? inj_cupti.record_bytes[kind] : 0;
	return size <= valid - pos ? size : 0;
}

static bool has_name(const char *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	kind &= ~GT_KIND_HELD;
	return kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
}

static void number_names(char *data, size_t valid)
{
	uint32_t size;

	for (size_t pos = 0; (size = record_size(data, valid, pos)); pos += size) {
		const char *name;
		uint64_t id;

		if (!has_name(data + pos))
			continue;
		memcpy(&name, data + pos + KERNEL_NAME_OFFSET, sizeof(name));
		id = inj_intern_pointer(name);
		memcpy(data + pos + KERNEL_NAME_OFFSET, &id, sizeof(id));
	}
}

/* Copy size bytes of this process, read by the kernel: whether they are there is not known. */
static bool read_memory(void *ret, const void *at, size_t size)
{
	struct iovec to = { .iov_base = ret, .iov_len = size };
	struct iovec from = { .iov_base = (void *)(uintptr_t)at, .iov_len = size };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

/* Is there a text, with its end? Within a page all of it is there, or nothing. */
static bool is_text(const char *at)
{
	char piece[256];
	size_t len;

	for (size_t read = 0; read <= GT_STRING_MAX; read += len) {
		len = sizeof(piece) - (uintptr_t)(at + read) % sizeof(piece);
		if (!read_memory(piece, at + read, len))
			return false;
		if (memchr(piece, '\0', len))
			return true;
	}
	return false;
}

static void name_held(const struct gt_chunk *chunk)
{
	static char copy[GT_CUPTI_CHUNK];
	uint64_t seq = atomic_load_explicit(&chunk->seq, memory_order_acquire);
	const char *name;
	uint32_t size;

	if (!seq || atomic_load_explicit(&chunk->state, memory_order_acquire) != GT_CHUNK_BUSY ||
	    !read_memory(copy, inj_chunk_data(GT_POOL_CUPTI, chunk), sizeof(copy)))
		return;
	/* Else it was handed out, and has become another buffer while it was read. */
	if (atomic_load_explicit(&chunk->seq, memory_order_acquire) != seq ||
	    atomic_load_explicit(&chunk->state, memory_order_acquire) != GT_CHUNK_BUSY)
		return;
	for (size_t pos = 0; (size = record_size(copy, sizeof(copy), pos)); pos += size) {
		if (!has_name(copy + pos))
			continue;
		memcpy(&name, copy + pos + KERNEL_NAME_OFFSET, sizeof(name));
		if ((uintptr_t)name >= GT_NAME_PTR_MIN && is_text(name))
			inj_intern_pointer(name);
	}
}

void inj_activity_name_held(void)
{
	for (uint32_t i = 0; i < inj_arena_chunks(GT_POOL_CUPTI); i++)
		name_held(inj_chunk_at(GT_POOL_CUPTI, i));
}

static void count_lost(uint64_t records)
{
	atomic_fetch_add_explicit(&inj_arena->dropped_arena, records, memory_order_relaxed);
}

/*
 * A buffer that another tool gave CUPTI is not ours to touch. But CUPTI fills it up before it asks
 * us for one, so what is in it is of interest. Read by the kernel: its owner may have freed it.
 */
static void foreign_completed(const uint8_t *buffer, size_t valid)
{
	struct gt_chunk *chunk;
	size_t len, used;
	uint32_t size;
	char *data;

	for (size_t pos = 0; pos < valid; pos += used) {
		chunk = inj_chunk_take(GT_POOL_CUPTI, 0);
		if (!chunk) {
			count_lost(1); /* or more: they cannot be told apart unread */
			return;
		}
		data = inj_chunk_data(GT_POOL_CUPTI, chunk);
		len = GT_MIN(valid - pos, (size_t)GT_CUPTI_CHUNK);
		used = 0;
		if (read_memory(data, buffer + pos, len))
			while ((size = record_size(data, len, used)))
				used += size;
		memset(data + used, 0, GT_CUPTI_CHUNK - used);
		number_names(data, used);
		inj_chunk_done(chunk, (uint32_t)used);
		if (!used) {
			count_lost(1);
			return;
		}
		atomic_fetch_add_explicit(&completed, 1, memory_order_relaxed);
	}
}

/* The number of a spare buffer; SPARES_MAX: it is none. */
static size_t spare_number(const uint8_t *buffer)
{
	uintptr_t offset = (uintptr_t)buffer - (uintptr_t)spares;

	return offset < sizeof(spares) && offset % SPARE_BYTES == 0 ? offset / SPARE_BYTES
								    : SPARES_MAX;
}

/* What is in a spare buffer is lost. */
static void count_spare(const char *spare, size_t valid)
{
	uint64_t lost = 0;
	uint32_t size;

	valid = GT_MIN(valid, (size_t)SPARE_BYTES);
	for (size_t pos = 0; (size = record_size(spare, valid, pos)); pos += size)
		lost++;
	count_lost(lost);
}

static void spare_give_back(size_t number)
{
	memset(spares[number], 0, SPARE_BYTES);
	atomic_store_explicit(&spare_busy[number], 0, memory_order_release);
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
				      size_t size, size_t valid)
{
	size_t spare = spare_number(buffer);
	struct gt_chunk *chunk;

	(void)context;
	(void)stream;
	(void)size;
	if (spare < SPARES_MAX) {
		if (inj_live_alive()) /* or there is no arena to count in */
			count_spare(spares[spare], valid);
		spare_give_back(spare);
		return;
	}
	if (!inj_live_alive() || !buffer)
		return;
	chunk = inj_chunk_of(GT_POOL_CUPTI, buffer);
	if (!chunk) {
		if (atomic_load_explicit(&inj_live.on, memory_order_relaxed))
			foreign_completed(buffer, valid);
		return;
	}
	valid = GT_MIN(valid, (size_t)GT_CUPTI_CHUNK);
	if (valid) {
		atomic_fetch_add_explicit(&completed, 1, memory_order_relaxed);
		number_names((char *)buffer, valid);
	} else {
		memset(buffer, 0, GT_CUPTI_CHUNK); /* it may have begun a record */
	}
	inj_chunk_done(chunk, (uint32_t)valid);
}

/* ---- switching ---- */

static void set_flag(CUpti_ActivityAttribute attribute, uint8_t on)
{
	size_t size = sizeof(on);

	if (inj_cupti.cuptiActivitySetAttribute)
		inj_cupti.cuptiActivitySetAttribute(attribute, &size, &on);
}

/*
 * With the attribute set CUPTI does not clear each buffer on the program's own thread; ours are
 * clear. Another tool's are not, so it is on only while ours are in use.
 */
static void set_cleared(uint8_t on)
{
	set_flag(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, on);
}

static uint64_t CUPTIAPI real_time(void)
{
	return gt_clock_ns(CLOCK_REALTIME);
}

/*
 * Records are stamped by CLOCK_REALTIME, unless a tool has registered another clock: Kineto does,
 * the processor's tick counter, each time it begins. That cannot be undone, only replaced, and
 * records that are under way may get wrong times then; so not without need.
 */
static void take_clock(void)
{
	uint64_t stamp, now = real_time();

	if (!inj_cupti.cuptiGetTimestamp || !inj_cupti.cuptiActivityRegisterTimestampCallback ||
	    inj_cupti.cuptiGetTimestamp(&stamp) != CUPTI_SUCCESS)
		return;
	if (stamp - now + GT_NSEC_PER_SEC > 2 * GT_NSEC_PER_SEC)
		inj_cupti.cuptiActivityRegisterTimestampCallback(real_time);
}

void inj_activity_prepare(void)
{
	static bool called;
	size_t limit = DEVICE_BUFFERS_MAX, size = sizeof(limit);

	if (called)
		return;
	called = true;
	if (inj_cupti.cuptiActivitySetAttribute)
		inj_cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT,
						    &size, &limit);
}

int inj_activity_take(void)
{
	CUptiResult result;

	inj_activity_prepare();
	/*
	 * The default, which torch.profiler turns off and leaves so. CUPTI wants it before the
	 * callbacks.
	 */
	set_flag(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1);
	take_clock();
	result = inj_cupti.cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed);
	if (result == CUPTI_SUCCESS) {
		set_cleared(1);
		return 0;
	}
	inj_log(GT_LOG_WARN, "CUPTI takes no buffers: %s (%d)", inj_cupti_error(result),
		(int)result);
	return -EIO;
}

static int enable(CUpti_ActivityKind kind)
{
	static CUpti_ActivityKind said;
	CUptiResult result = inj_cupti.cuptiActivityEnable(kind);

	if (result == CUPTI_SUCCESS)
		return 0;
	if (kind == said) /* within cuInit() */
		return -EIO;
	said = kind;
	inj_log(GT_LOG_WARN, "CUPTI does not collect GPU work of kind %d: %s (%d)", (int)kind,
		inj_cupti_error(result), (int)result);
	return -EIO;
}

int inj_activity_on(void)
{
	if (enable(gpu_kinds[0]) < 0) {
		set_cleared(whole_graphs);
		return -EIO;
	}
	for (size_t i = 1; i < ARRAY_SIZE(gpu_kinds); i++)
		enable(gpu_kinds[i]);
	atomic_store_explicit(&inj_live.was_on, 1, memory_order_relaxed);
	return 0;
}

void inj_activity_off(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(gpu_kinds); i++)
		inj_cupti.cuptiActivityDisable(gpu_kinds[i]);
	inj_activity_flush(false);
	set_cleared(whole_graphs);
}

/*
 * The kind that stands for whole graphs stays on between windows: CUPTI 13.0 crashes in the launch
 * of a graph that was instantiated without it.
 */
void inj_activity_attach(bool prearm)
{
	whole_graphs_tried = true;
	if (inj_config.graph_whole && !inj_activity_take() &&
	    !enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE))
		whole_graphs = true;
	if (prearm && !inj_activity_take() && !inj_activity_on())
		inj_activity_off();
}

void inj_activity_end_graphs(void)
{
	if (!whole_graphs)
		return;
	inj_cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	inj_activity_flush(false);
	whole_graphs = false;
	set_cleared(0);
}

void inj_activity_yield(void)
{
	static bool said;
	bool wanted = whole_graphs || (inj_config.graph_whole && !whole_graphs_tried);

	inj_activity_end_graphs();
	if (wanted && !said)
		inj_log(GT_LOG_WARN,
			"for the program's own profiler graphs are traced node by node now");
	said |= wanted;
}

void inj_activity_flush(bool forced)
{
	size_t dropped = 0;

	inj_cupti.cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
	if (inj_cupti.cuptiActivityGetNumDroppedRecords &&
	    inj_cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS)
		atomic_fetch_add_explicit(&inj_arena->dropped_cupti, dropped, memory_order_relaxed);
}

bool inj_activity_seen(void)
{
	return atomic_load_explicit(&requested, memory_order_relaxed);
}

uint32_t inj_activity_buffers(void)
{
	return atomic_load_explicit(&completed, memory_order_relaxed);
}
