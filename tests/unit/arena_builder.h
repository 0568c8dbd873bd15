/*
 * arena_builder.h - plays the target: an arena in a sealed memfd, filled event by event and record
 * by record as the injection and CUPTI fill theirs. Header only, for tests and fuzz targets.
 */
#ifndef ARENA_BUILDER_H
#define ARENA_BUILDER_H

#include "base.h"
#include "wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define AB_THREADS     8
#define AB_PID         4242u
#define AB_EPOCH       UINT64_C(1700000000000000000)
#define AB_MS(ms)      (AB_EPOCH + (uint64_t)((ms)*1e6)) /* a time, in ms of the test */
#define AB_KIND_KERNEL 10

struct arena_builder {
	int fd;
	unsigned char *map;
	size_t map_bytes;
	struct gt_arena_hdr *hdr;
	struct gt_msg_hello hello;
	struct ab_stream {
		uint32_t tid;
		struct gt_chunk *chunk; /* NULL: none yet */
	} threads[AB_THREADS];
	struct gt_chunk *records; /* being filled; NULL: none */
	uint16_t kernel_bytes;
};

/* Record sizes of CUPTI by CUDA version: kernels, copies, peer copies, sets, graphs. */
struct ab_sizes {
	const char *version;
	uint16_t kernel, copy, peer, set, graph;
};

static const struct ab_sizes ab_versions[] = {
	{ "11.8", 200, 80, 88, 80, 48 }, { "12.0", 208, 80, 88, 80, 48 },
	{ "12.4", 208, 88, 88, 80, 48 }, { "12.8", 208, 96, 96, 88, 56 },
	{ "13.0", 216, 96, 96, 88, 56 }, { "13.3", 240, 104, 104, 96, 64 },
};

static inline void ab_set_sizes(uint16_t sizes[GT_KIND_MAX], const struct ab_sizes *of)
{
	memset(sizes, 0, GT_KIND_MAX * sizeof(*sizes));
	sizes[1] = of->copy;
	sizes[2] = of->set;
	sizes[3] = of->kernel;
	sizes[4] = 40;
	sizes[5] = 40;
	sizes[10] = of->kernel;
	sizes[22] = of->peer;
	sizes[38] = 56;
	sizes[51] = of->graph;
}

static inline void ab_check(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

static inline void ab_init_of(struct arena_builder *ab, uint32_t mode, uint32_t cupti_chunks,
			      uint32_t event_chunks)
{
	const uint64_t table_bytes = (cupti_chunks * sizeof(struct gt_chunk) + 4095) / 4096 * 4096;
	struct gt_arena_hdr *hdr;

	memset(ab, 0, sizeof(*ab));
	ab->map_bytes =
		GT_ARENA_DATA_ALIGN + cupti_chunks * GT_CUPTI_CHUNK + event_chunks * GT_EVENT_CHUNK;
	ab->fd = memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ab_check(ab->fd >= 0, "memfd_create");
	ab_check(!ftruncate(ab->fd, (off_t)ab->map_bytes), "ftruncate");
	ab_check(!fcntl(ab->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), "F_ADD_SEALS");
	ab->map = mmap(NULL, ab->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ab->fd, 0);
	ab_check(ab->map != MAP_FAILED, "mmap");
	ab->hdr = hdr = (void *)ab->map;
	hdr->magic = GT_ARENA_MAGIC;
	hdr->version = GT_WIRE_VERSION;
	hdr->hdr_bytes = sizeof(*hdr);
	hdr->arena_bytes = ab->map_bytes;
	hdr->pool[GT_POOL_CUPTI] = (struct gt_pool_desc){
		.table_offset = 4096,
		.data_offset = GT_ARENA_DATA_ALIGN,
		.count = cupti_chunks,
		.chunk_bytes = GT_CUPTI_CHUNK,
	};
	hdr->pool[GT_POOL_EVENT] = (struct gt_pool_desc){
		.table_offset = 4096 + table_bytes,
		.data_offset = GT_ARENA_DATA_ALIGN + cupti_chunks * GT_CUPTI_CHUNK,
		.count = event_chunks,
		.chunk_bytes = GT_EVENT_CHUNK,
	};
	atomic_store(&hdr->mode, mode);
	atomic_store(&hdr->seq, 1);
	ab->hello.arena_bytes = ab->map_bytes;
	ab->hello.realtime_ns = AB_MS(0);
	ab->hello.pid = AB_PID;
	ab->kernel_bytes = 216;
	ab_set_sizes(ab->hello.record_bytes, &ab_versions[4]);
}

static inline void ab_init(struct arena_builder *ab, uint32_t mode)
{
	ab_init_of(ab, mode, 16, 32);
}

static inline void ab_release(struct arena_builder *ab)
{
	munmap(ab->map, ab->map_bytes);
	close(ab->fd);
}

/* A descriptor of its own for the recorder, which closes it. */
static inline int ab_fd(const struct arena_builder *ab)
{
	return fcntl(ab->fd, F_DUPFD_CLOEXEC, 3);
}

static inline struct gt_chunk *ab_table(const struct arena_builder *ab, enum gt_pool pool)
{
	return (void *)(ab->map + ab->hdr->pool[pool].table_offset);
}

static inline unsigned char *ab_data(const struct arena_builder *ab, enum gt_pool pool,
				     const struct gt_chunk *chunk)
{
	return ab->map + ab->hdr->pool[pool].data_offset +
	       (size_t)(chunk - ab_table(ab, pool)) * ab->hdr->pool[pool].chunk_bytes;
}

static inline uint32_t ab_state(const struct arena_builder *ab, enum gt_pool pool, uint32_t index)
{
	return atomic_load(&ab_table(ab, pool)[index].state);
}

/* How many chunks of the pool are in this state? */
static inline uint32_t ab_count(const struct arena_builder *ab, enum gt_pool pool, uint32_t state)
{
	uint32_t i, count = 0;

	for (i = 0; i < ab->hdr->pool[pool].count; i++)
		count += ab_state(ab, pool, i) == state;
	return count;
}

static inline struct gt_chunk *ab_take(struct arena_builder *ab, enum gt_pool pool, uint32_t tid)
{
	struct gt_chunk *table = ab_table(ab, pool);
	uint32_t i;

	for (i = 0; i < ab->hdr->pool[pool].count; i++) {
		if (atomic_load(&table[i].state) != GT_CHUNK_FREE)
			continue;
		atomic_store(&table[i].state, GT_CHUNK_BUSY);
		table[i].tid = tid;
		atomic_store(&table[i].seq, atomic_fetch_add(&ab->hdr->seq, 1));
		return &table[i];
	}
	errno = ENOSPC;
	ab_check(false, "no free chunk");
	return NULL;
}

/* ---- events ---- */

static inline struct ab_stream *ab_stream(struct arena_builder *ab, uint32_t tid)
{
	struct ab_stream *stream = ab->threads;

	while (stream->tid && stream->tid != tid)
		stream++;
	ab_check(stream < ab->threads + AB_THREADS, "too many threads");
	stream->tid = tid;
	return stream;
}

/* The thread's chunk is full, or the thread ended. */
static inline void ab_done(struct arena_builder *ab, uint32_t tid)
{
	struct ab_stream *stream = ab_stream(ab, tid);

	if (stream->chunk)
		atomic_store(&stream->chunk->state, GT_CHUNK_DONE);
	stream->chunk = NULL;
}

static inline void ab_put(struct arena_builder *ab, uint32_t tid, const void *bytes, size_t len)
{
	struct ab_stream *stream = ab_stream(ab, tid);
	uint32_t used;

	if (stream->chunk && atomic_load(&stream->chunk->used_bytes) + len > GT_EVENT_CHUNK)
		ab_done(ab, tid);
	if (!stream->chunk)
		stream->chunk = ab_take(ab, GT_POOL_EVENT, tid);
	used = atomic_load(&stream->chunk->used_bytes);
	memcpy(ab_data(ab, GT_POOL_EVENT, stream->chunk) + used, bytes, len);
	atomic_store(&stream->chunk->used_bytes, used + (uint32_t)len);
}

static inline struct gt_ev ab_ev(uint16_t type, size_t size, uint32_t step, uint64_t time_ns)
{
	return (struct gt_ev){
		.type = type,
		.size_bytes = (uint16_t)size,
		.step = step,
		.time_ns = time_ns,
	};
}

static inline void ab_string(struct arena_builder *ab, uint32_t tid, uint32_t id, const char *text)
{
	uint64_t buf[(sizeof(struct gt_ev_string) + GT_STRING_PIECE) / 8] = { 0 };
	struct gt_ev_string *ev = (void *)buf;
	size_t len = strlen(text), size = (sizeof(*ev) + len + 7) & ~(size_t)7;

	ev->ev = ab_ev(GT_EV_STRING, size, 0, 0);
	ev->id = id;
	ev->total_bytes = (uint32_t)len;
	ev->len_bytes = (uint32_t)len;
	memcpy(ev->bytes, text, len);
	ab_put(ab, tid, ev, size);
}

static inline void ab_step_source(struct arena_builder *ab, uint32_t tid, uint32_t step,
				  uint64_t time_ns, uint32_t source)
{
	struct gt_ev_step ev = {
		.ev = ab_ev(GT_EV_STEP, sizeof(ev), step, time_ns),
		.source = source,
	};

	atomic_store(&ab->hdr->step, step);
	atomic_store(&ab->hdr->step_source, source);
	ab_put(ab, tid, &ev, sizeof(ev));
}

static inline void ab_step(struct arena_builder *ab, uint32_t tid, uint32_t step, uint64_t time_ns)
{
	ab_step_source(ab, tid, step, time_ns, GT_STEP_API);
}

/* One of the program's own, within captured ranges. */
static inline void ab_own_step(struct arena_builder *ab, uint32_t tid, uint32_t number,
			       uint64_t time_ns, uint32_t source)
{
	struct gt_ev_step ev = {
		.ev = ab_ev(GT_EV_OWN_STEP, sizeof(ev), atomic_load(&ab->hdr->step), time_ns),
		.source = source,
		.number = number,
	};

	ab_put(ab, tid, &ev, sizeof(ev));
}

struct ab_call {
	uint32_t tid, step, correlation, stream, name_id, stack_id;
	uint16_t klass, flags;
	uint8_t context;
	uint64_t start_ns, end_ns; /* end_ns 0: 10 us later */
	bool driver;
};

static inline void ab_call(struct arena_builder *ab, struct ab_call call)
{
	struct gt_ev_call ev = {
		.ev = ab_ev(GT_EV_CALL, sizeof(ev), call.step, call.start_ns),
		.end_ns = call.end_ns ? call.end_ns : call.start_ns + 10000,
		.correlation = call.correlation,
		.name_id = call.name_id,
		.domain = call.driver ? 1 : 2,
		.context = call.context,
		.klass = call.klass,
		.cbid = 211,
		.flags = call.flags,
		.stack_id = call.stack_id,
		.stream = call.klass == GT_CALL_GRAPH ? call.stream : GT_STREAM_UNKNOWN,
	};

	ab_put(ab, call.tid, &ev, sizeof(ev));
}

/* A kernel launch of 10 us. */
static inline void ab_launch(struct arena_builder *ab, uint32_t tid, uint32_t step,
			     uint32_t correlation, uint64_t start_ns)
{
	ab_call(ab, (struct ab_call){
			    .tid = tid,
			    .step = step,
			    .correlation = correlation,
			    .klass = GT_CALL_KERNEL,
			    .start_ns = start_ns,
		    });
}

/* inputs: any text. */
static inline void ab_range_with(struct arena_builder *ab, uint16_t type, uint32_t tid,
				 uint32_t step, uint64_t time_ns, uint32_t domain_id,
				 uint64_t range_id, const char *text, const char *inputs)
{
	uint64_t buf[(sizeof(struct gt_ev_range) + GT_INLINE_MAX + GT_INPUTS_MAX) / 8] = { 0 };
	struct gt_ev_range *ev = (void *)buf;

	ev->range_id = range_id;
	ev->domain_id = domain_id;
	ev->len_bytes = (uint32_t)strlen(text);
	ev->inputs_bytes = (uint32_t)strlen(inputs);
	memcpy(ev->bytes, text, ev->len_bytes);
	memcpy(ev->bytes + GT_PAD8(ev->len_bytes), inputs, ev->inputs_bytes);
	ev->ev = ab_ev(type, sizeof(*ev) + GT_PAD8(ev->len_bytes) + GT_PAD8(ev->inputs_bytes), step,
		       time_ns);
	ab_put(ab, tid, ev, ev->ev.size_bytes);
}

static inline void ab_range(struct arena_builder *ab, uint16_t type, uint32_t tid, uint32_t step,
			    uint64_t time_ns, uint32_t domain_id, uint64_t range_id,
			    const char *text)
{
	ab_range_with(ab, type, tid, step, time_ns, domain_id, range_id, text, "");
}

/* In the default domain; depth from 1. */
static inline void ab_push(struct arena_builder *ab, uint32_t tid, uint32_t step, uint64_t time_ns,
			   uint64_t depth, const char *text)
{
	ab_range(ab, GT_EV_PUSH, tid, step, time_ns, 0, depth, text);
}

static inline void ab_end(struct arena_builder *ab, uint16_t type, uint32_t tid, uint32_t step,
			  uint64_t time_ns, uint32_t domain_id, uint64_t range_id)
{
	struct gt_ev_end ev = {
		.ev = ab_ev(type, sizeof(ev), step, time_ns),
		.range_id = range_id,
		.domain_id = domain_id,
	};

	ab_put(ab, tid, &ev, sizeof(ev));
}

static inline void ab_pop(struct arena_builder *ab, uint32_t tid, uint32_t step, uint64_t time_ns,
			  uint64_t depth)
{
	ab_end(ab, GT_EV_POP, tid, step, time_ns, 0, depth);
}

static inline void ab_frame(struct arena_builder *ab, uint32_t tid, struct gt_ev_frame frame)
{
	frame.ev = ab_ev(GT_EV_FRAME, sizeof(frame), 0, 0);
	ab_put(ab, tid, &frame, sizeof(frame));
}

struct ab_op {
	uint32_t tid, step, name_id, depth, thread, fwd_thread, stack_id;
	int64_t sequence;
	uint64_t start_ns;
	const char *inputs; /* any text; NULL: none */
};

static inline void ab_op(struct arena_builder *ab, struct ab_op op)
{
	uint64_t buf[(sizeof(struct gt_ev_op) + GT_INPUTS_MAX) / 8] = { 0 };
	struct gt_ev_op *ev = (void *)buf;

	*ev = (struct gt_ev_op){
		.sequence = op.sequence,
		.thread = op.thread,
		.fwd_thread = op.fwd_thread,
		.name_id = op.name_id,
		.depth = op.depth,
		.inputs_bytes = op.inputs ? (uint32_t)strlen(op.inputs) : 0,
		.stack_id = op.stack_id,
	};
	if (op.inputs)
		memcpy(ev->inputs, op.inputs, ev->inputs_bytes);
	ev->ev = ab_ev(GT_EV_OP, sizeof(*ev) + GT_PAD8(ev->inputs_bytes), op.step, op.start_ns);
	ab_put(ab, op.tid, ev, ev->ev.size_bytes);
}

static inline void ab_op_end(struct arena_builder *ab, uint32_t tid, uint32_t step,
			     uint64_t time_ns, uint32_t depth)
{
	struct gt_ev_op_end ev = {
		.ev = ab_ev(GT_EV_OP_END, sizeof(ev), step, time_ns),
		.depth = depth,
	};

	ab_put(ab, tid, &ev, sizeof(ev));
}

/* A block of the CPU; bytes < 0: it is taken back. */
static inline void ab_memory(struct arena_builder *ab, uint32_t tid, uint32_t step,
			     uint64_t time_ns, int64_t bytes, uint32_t since_step)
{
	struct gt_ev_memory ev = {
		.ev = ab_ev(GT_EV_MEMORY, sizeof(ev), step, time_ns),
		.address = 4096,
		.bytes = bytes,
		.allocated = 100,
		.reserved = 200,
		.since_step = since_step,
		.device = -1,
	};

	ab_put(ab, tid, &ev, sizeof(ev));
}

static inline void ab_name(struct arena_builder *ab, uint16_t type, uint32_t tid, uint64_t ref,
			   uint32_t name_id, uint32_t klass)
{
	struct gt_ev_name ev = {
		.ev = ab_ev(type, sizeof(ev), 0, 0),
		.ref = ref,
		.name_id = name_id,
		.klass = klass,
	};

	ab_put(ab, tid, &ev, sizeof(ev));
}

/* ---- records ---- */

static inline void ab_u32(unsigned char *rec, size_t offset, uint32_t value)
{
	memcpy(rec + offset, &value, sizeof(value));
}

static inline void ab_u64(unsigned char *rec, size_t offset, uint64_t value)
{
	memcpy(rec + offset, &value, sizeof(value));
}

static inline void ab_record(struct arena_builder *ab, const void *rec, size_t size)
{
	uint32_t used;

	if (ab->records && atomic_load(&ab->records->used_bytes) + size > GT_CUPTI_CHUNK) {
		atomic_store(&ab->records->state, GT_CHUNK_DONE);
		ab->records = NULL;
	}
	if (!ab->records)
		ab->records = ab_take(ab, GT_POOL_CUPTI, 0);
	used = atomic_load(&ab->records->used_bytes);
	memcpy(ab_data(ab, GT_POOL_CUPTI, ab->records) + used, rec, size);
	atomic_store(&ab->records->used_bytes, used + (uint32_t)size);
}

/* CUPTI gives its buffer back. */
static inline void ab_flush(struct arena_builder *ab)
{
	if (ab->records)
		atomic_store(&ab->records->state, GT_CHUNK_DONE);
	ab->records = NULL;
}

struct ab_kernel {
	uint32_t correlation, context, stream;
	uint64_t start_ns, end_ns, name_ref;
};

static inline void ab_kernel_like(struct arena_builder *ab, struct ab_kernel kernel)
{
	unsigned char rec[512] = { 0 };

	ab_u32(rec, 0, AB_KIND_KERNEL);
	ab_u64(rec, 16, kernel.start_ns);
	ab_u64(rec, 24, kernel.end_ns);
	ab_u32(rec, 44, kernel.context);
	ab_u32(rec, 48, kernel.stream);
	ab_u32(rec, 92, kernel.correlation);
	ab_u64(rec, 104, kernel.name_ref);
	ab_record(ab, rec, ab->kernel_bytes);
}

static inline void ab_kernel_on(struct arena_builder *ab, uint32_t correlation, uint32_t stream,
				uint64_t start_ns, uint64_t end_ns, uint64_t name_ref)
{
	ab_kernel_like(ab, (struct ab_kernel){ .correlation = correlation,
					       .stream = stream,
					       .start_ns = start_ns,
					       .end_ns = end_ns,
					       .name_ref = name_ref });
}

/* On stream 7, of 20 us. */
static inline void ab_kernel(struct arena_builder *ab, uint32_t correlation, uint64_t start_ns)
{
	ab_kernel_on(ab, correlation, 7, start_ns, start_ns + 20000, 1);
}

static inline void ab_api(struct arena_builder *ab, bool runtime, uint32_t cbid, uint32_t tid,
			  uint32_t correlation, uint64_t start_ns, uint64_t end_ns)
{
	unsigned char rec[40] = { 0 };

	ab_u32(rec, 0, runtime ? 5 : 4);
	ab_u32(rec, 4, cbid);
	ab_u64(rec, 8, start_ns);
	ab_u64(rec, 16, end_ns);
	ab_u32(rec, 24, AB_PID);
	ab_u32(rec, 28, tid);
	ab_u32(rec, 32, correlation);
	ab_record(ab, rec, sizeof(rec));
}

#endif
