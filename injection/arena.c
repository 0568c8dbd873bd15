/*
 * arena.c - the shared memory of one process: a sealed memfd that holds a header and two pools of
 * chunks, one for CUPTI's buffers and one for the threads' events. lib/wire.h has the layout.
 */
#include "session.h"
#include "torch_ops.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3; vm.memfd_noexec=2 insists on it */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* What is backed with memory at once; the control thread does the rest. */
#define EVENT_CHUNKS_FIRST 32
#define CUPTI_CHUNKS_FIRST 32
#define GROW_BYTES         (UINT64_C(1) << 20)

struct gt_arena_hdr *inj_arena;

/* A chunk counts as BUSY until it is backed with memory. */
static struct pool {
	struct gt_pool_desc layout; /* the arena's own could be changed by the other side */
	_Atomic uint32_t backed;    /* so many first chunks are, or are about to be */
	_Atomic uint32_t hint;      /* where the next search begins */
} pools[GT_POOL_MAX];

static uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

static struct gt_chunk *pool_table(enum gt_pool pool)
{
	return (struct gt_chunk *)((char *)inj_arena + pools[pool].layout.table_offset);
}

/*
 * Three quarters for the GPU's records, which are five times as long as a launch's event; half,
 * when a launch also has the events of two or three operators.
 */
static void lay_out(struct gt_arena_hdr *hdr, uint64_t bytes)
{
	struct gt_pool_desc *cupti = &hdr->pool[GT_POOL_CUPTI];
	struct gt_pool_desc *event = &hdr->pool[GT_POOL_EVENT];
	uint64_t tables, room;

	cupti->chunk_bytes = GT_CUPTI_CHUNK;
	event->chunk_bytes = GT_EVENT_CHUNK;
	cupti->count = (uint32_t)(bytes / 4 * (inj_ops_observed() ? 2 : 3) / GT_CUPTI_CHUNK);
	room = bytes - (uint64_t)cupti->count * GT_CUPTI_CHUNK;
	tables = (cupti->count + room / GT_EVENT_CHUNK) * sizeof(struct gt_chunk);
	cupti->table_offset = align_up(sizeof(*hdr), sizeof(struct gt_chunk));
	event->table_offset = cupti->table_offset + cupti->count * sizeof(struct gt_chunk);
	event->data_offset = align_up(cupti->table_offset + tables, GT_ARENA_DATA_ALIGN);
	event->count = (uint32_t)((room - event->data_offset) / GT_EVENT_CHUNK);
	cupti->data_offset = event->data_offset + (uint64_t)event->count * GT_EVENT_CHUNK;
}

static int make_fd(void)
{
	const char *name = GT_ARENA_NAME;
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

/*
 * Back count more chunks with memory, so that no later write to them can fail: that would be a
 * SIGBUS for the program. Returns the first of them, which are BUSY; NULL when there are none left
 * or there is no memory, which costs the pool these chunks. *count may become less.
 */
static struct gt_chunk *back(enum gt_pool pool, uint32_t *count)
{
	const struct gt_pool_desc *desc = &pools[pool].layout;
	uint32_t first = atomic_load_explicit(&pools[pool].backed, memory_order_relaxed);
	uint32_t n;

	do {
		n = GT_MIN(*count, desc->count - first);
		if (!n)
			return NULL;
	} while (!atomic_compare_exchange_weak(&pools[pool].backed, &first, first + n));
	*count = n;
	if (madvise((char *)inj_arena + desc->data_offset + (size_t)first * desc->chunk_bytes,
		    (size_t)n * desc->chunk_bytes, MADV_POPULATE_WRITE) < 0)
		return NULL;
	return pool_table(pool) + first;
}

static bool back_and_free(enum gt_pool pool, uint32_t count)
{
	struct gt_chunk *chunk = back(pool, &count);

	for (uint32_t i = 0; chunk && i < count; i++)
		atomic_store_explicit(&chunk[i].state, GT_CHUNK_FREE, memory_order_release);
	return chunk;
}

bool inj_arena_keeps_up(void)
{
	const struct gt_chunk *table = pool_table(GT_POOL_CUPTI);
	uint32_t count = pools[GT_POOL_CUPTI].layout.count, done = 0;

	for (uint32_t i = 0; i < count; i++)
		done += atomic_load_explicit(&table[i].state, memory_order_relaxed) ==
			GT_CHUNK_DONE;
	return done <= count / 4;
}

uint32_t inj_arena_chunks(enum gt_pool pool)
{
	return pools[pool].layout.count;
}

struct gt_chunk *inj_chunk_at(enum gt_pool pool, uint32_t number)
{
	return pool_table(pool) + number;
}

bool inj_arena_attach(void)
{
	return atomic_load_explicit(&pools[GT_POOL_CUPTI].backed, memory_order_relaxed) ||
	       back_and_free(GT_POOL_CUPTI, CUPTI_CHUNKS_FIRST);
}

bool inj_arena_grow(enum gt_pool pool)
{
	return back_and_free(pool, (uint32_t)(GROW_BYTES / pools[pool].layout.chunk_bytes));
}

/* Map it and back its tables. An old kernel can only back the file as a whole. */
static int map_arena(const struct gt_arena_hdr *hdr, int fd)
{
	void *map = mmap(NULL, hdr->arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	enum gt_chunk_state state = GT_CHUNK_BUSY;
	int err;

	if (map == MAP_FAILED)
		return -errno;
	err = madvise(map, hdr->pool[GT_POOL_EVENT].data_offset, MADV_POPULATE_WRITE) < 0 ? -errno
											  : 0;
	if (err == -EINVAL) {
		err = fallocate(fd, 0, 0, (off_t)hdr->arena_bytes) < 0 ? -errno : 0;
		state = GT_CHUNK_FREE;
	}
	if (err) {
		munmap(map, hdr->arena_bytes);
		return err;
	}
	memcpy(map, hdr, sizeof(*hdr));
	inj_arena = map;
	for (int pool = 0; pool < GT_POOL_MAX; pool++) {
		pools[pool].layout = hdr->pool[pool];
		pools[pool].backed = state == GT_CHUNK_FREE ? hdr->pool[pool].count : 0;
		for (uint32_t i = 0; i < hdr->pool[pool].count; i++)
			atomic_init(&pool_table(pool)[i].state, state);
	}
	if (state == GT_CHUNK_BUSY && !back_and_free(GT_POOL_EVENT, EVENT_CHUNKS_FIRST))
		return -ENOMEM;
	return 0;
}

int inj_arena_create(uint64_t bytes, enum gt_arena_mode mode, int *ret_fd)
{
	struct gt_arena_hdr hdr = { .magic = GT_ARENA_MAGIC,
				    .version = GT_WIRE_VERSION,
				    .hdr_bytes = sizeof(hdr) };
	struct rlimit limit;
	int fd, err;

	/* Beyond this limit ftruncate() would not only fail but send SIGXFSZ, which kills. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY)
		bytes = GT_MIN(bytes, (uint64_t)limit.rlim_cur);
	bytes -= bytes % GT_ARENA_DATA_ALIGN;
	if (bytes < GT_ARENA_MIN_BYTES)
		return -EFBIG;
	lay_out(&hdr, bytes);
	hdr.arena_bytes = bytes;
	atomic_init(&hdr.mode, mode);
	atomic_init(&hdr.seq, 1);

	fd = make_fd();
	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)hdr.arena_bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		err = -errno;
	else
		err = map_arena(&hdr, fd);
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

struct gt_chunk *inj_chunk_take(enum gt_pool pool, uint32_t tid)
{
	struct gt_chunk *table = pool_table(pool), *chunk = NULL;
	uint32_t count = pools[pool].layout.count, one = 1, i;
	uint32_t start = atomic_load_explicit(&pools[pool].hint, memory_order_relaxed);

	for (i = 0; i < count && !chunk; i++) {
		uint32_t state = GT_CHUNK_FREE;

		chunk = &table[(start + i) % count];
		if (atomic_load_explicit(&chunk->state, memory_order_relaxed) != GT_CHUNK_FREE ||
		    !atomic_compare_exchange_strong(&chunk->state, &state, GT_CHUNK_BUSY))
			chunk = NULL;
	}
	/* More than the control thread has prepared so far. */
	if (!chunk)
		chunk = back(pool, &one);
	if (!chunk)
		return NULL;
	chunk->tid = tid;
	atomic_store_explicit(&chunk->seq,
			      atomic_fetch_add_explicit(&inj_arena->seq, 1, memory_order_relaxed),
			      memory_order_release);
	atomic_store_explicit(&pools[pool].hint, (uint32_t)(chunk - table) + 1,
			      memory_order_relaxed);
	return chunk;
}

void *inj_chunk_data(enum gt_pool pool, const struct gt_chunk *chunk)
{
	const struct gt_pool_desc *desc = &pools[pool].layout;

	return (char *)inj_arena + desc->data_offset +
	       (uint64_t)(chunk - pool_table(pool)) * desc->chunk_bytes;
}

void inj_chunk_done(struct gt_chunk *chunk, uint32_t used_bytes)
{
	atomic_store_explicit(&chunk->used_bytes, used_bytes, memory_order_release);
	atomic_store_explicit(&chunk->state, used_bytes ? GT_CHUNK_DONE : GT_CHUNK_FREE,
			      memory_order_release);
}

struct gt_chunk *inj_chunk_of(enum gt_pool pool, const void *data)
{
	const struct gt_pool_desc *desc = &pools[pool].layout;
	uintptr_t base = (uintptr_t)inj_arena + desc->data_offset;
	uintptr_t offset = (uintptr_t)data - base;
	struct gt_chunk *chunk;

	if ((uintptr_t)data < base || offset % desc->chunk_bytes ||
	    offset / desc->chunk_bytes >= desc->count)
		return NULL;
	chunk = pool_table(pool) + offset / desc->chunk_bytes;
	return atomic_load_explicit(&chunk->state, memory_order_relaxed) == GT_CHUNK_BUSY ? chunk
											  : NULL;
}
