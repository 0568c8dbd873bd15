#include "base.h"
#include "arena_reader.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

struct progress { /* of one event chunk */
	uint64_t seq;
	uint32_t read_bytes[GT_PASS_MAX];
};

struct gt_arena {
	unsigned char *map;
	size_t map_bytes;
	struct gt_pool_desc pool[GT_POOL_MAX]; /* checked copies */
	struct progress *progress;             /* one for each event chunk */
	unsigned char *copy;                   /* chunk_bytes of the event pool */
};

static struct gt_arena_hdr *arena_hdr(const struct gt_arena *arena)
{
	return (struct gt_arena_hdr *)arena->map;
}

static struct gt_chunk *arena_chunk(const struct gt_arena *arena, enum gt_pool pool, uint32_t index)
{
	return (struct gt_chunk *)(arena->map + arena->pool[pool].table_offset) + index;
}

static bool in_bounds(uint64_t offset, uint64_t count, uint64_t size, uint64_t total)
{
	return offset >= sizeof(struct gt_arena_hdr) && offset <= total &&
	       count <= (total - offset) / size;
}

static int check_layout(const struct gt_arena_hdr *hdr, uint64_t size, struct gt_err *err)
{
	/* Two tables and two data areas; they must not overlap, lest freeing one writes into
	 * another. */
	uint64_t begin[GT_POOL_MAX * 2], end[GT_POOL_MAX * 2];
	size_t i, j, n = 0;

	if (hdr->magic != GT_ARENA_MAGIC)
		return gt_err_set(err, -EPROTO, "the arena has no magic number");
	if (hdr->version != GT_WIRE_VERSION || hdr->hdr_bytes != sizeof(*hdr))
		return gt_err_set(err, -EPROTO, "the arena is of version %u, this gtrace reads %u",
				  hdr->version, GT_WIRE_VERSION);
	if (hdr->arena_bytes != size)
		return gt_err_set(err, -EPROTO, "the arena claims %llu bytes and has %llu",
				  (unsigned long long)hdr->arena_bytes, (unsigned long long)size);
	for (i = 0; i < GT_POOL_MAX; i++) {
		const struct gt_pool_desc *pool = &hdr->pool[i];
		uint32_t want = i == GT_POOL_CUPTI ? GT_CUPTI_CHUNK : GT_EVENT_CHUNK;

		if (pool->chunk_bytes != want || pool->table_offset % sizeof(struct gt_chunk) ||
		    pool->data_offset % GT_ARENA_DATA_ALIGN ||
		    !in_bounds(pool->table_offset, pool->count, sizeof(struct gt_chunk), size) ||
		    !in_bounds(pool->data_offset, pool->count, want, size))
			return gt_err_set(err, -EPROTO, "pool %zu of the arena is out of bounds",
					  i);
		begin[n] = pool->table_offset;
		end[n++] = pool->table_offset + pool->count * sizeof(struct gt_chunk);
		begin[n] = pool->data_offset;
		end[n++] = pool->data_offset + (uint64_t)pool->count * want;
	}
	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			if (begin[i] < end[j] && begin[j] < end[i])
				return gt_err_set(err, -EPROTO, "areas of the arena overlap");
	return 0;
}

/* A file that can shrink, or whose pages can be missing, would kill its reader by SIGBUS. */
static int check_file(int fd, uint64_t arena_bytes, struct gt_err *err)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
		return gt_err_set(err, -EPROTO, "the arena is not sealed against resizing");
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return gt_err_sys(err, -errno, "cannot examine the arena");
	if (fs.f_type != TMPFS_MAGIC)
		return gt_err_set(err, -EPROTO, "the arena is not a memory file");
	/* The least that is asked for is a little more than what its parts then fill. */
	if (st.st_size < (off_t)GT_ARENA_DATA_ALIGN || st.st_size > (off_t)GT_ARENA_MAX_BYTES)
		return gt_err_set(err, -EPROTO, "the arena has %lld bytes", (long long)st.st_size);
	if ((uint64_t)st.st_size != arena_bytes)
		return gt_err_set(err, -EPROTO, "the arena has %lld bytes, its hello says %llu",
				  (long long)st.st_size, (unsigned long long)arena_bytes);
	return 0;
}

int gt_arena_open(struct gt_arena **ret, int fd, uint64_t arena_bytes, struct gt_err *err)
{
	struct gt_arena *arena = calloc(1, sizeof(*arena));
	struct gt_arena_hdr hdr;
	int rc;

	if (!arena) {
		close(fd);
		return gt_err_sys(err, -ENOMEM, "cannot read the arena");
	}
	rc = check_file(fd, arena_bytes, err);
	if (!rc) {
		arena->map_bytes = (size_t)arena_bytes;
		arena->map =
			mmap(NULL, arena->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (arena->map == MAP_FAILED) {
			arena->map = NULL;
			rc = gt_err_sys(err, -errno, "cannot map the arena");
		}
	}
	close(fd);
	if (rc < 0)
		goto fail;
	memcpy(&hdr, arena->map, sizeof(hdr));
	rc = check_layout(&hdr, arena_bytes, err);
	if (rc < 0)
		goto fail;
	memcpy(arena->pool, hdr.pool, sizeof(arena->pool));
	arena->progress = calloc(arena->pool[GT_POOL_EVENT].count + 1u, sizeof(*arena->progress));
	arena->copy = malloc(GT_EVENT_CHUNK);
	if (!arena->progress || !arena->copy) {
		rc = gt_err_sys(err, -ENOMEM, "cannot read the arena");
		goto fail;
	}
	*ret = arena;
	return 0;
fail:
	gt_arena_close(arena);
	return rc;
}

void gt_arena_close(struct gt_arena *arena)
{
	if (!arena)
		return;
	if (arena->map)
		munmap(arena->map, arena->map_bytes);
	free(arena->progress);
	free(arena->copy);
	free(arena);
}

uint32_t gt_arena_step(const struct gt_arena *arena)
{
	return atomic_load_explicit(&arena_hdr(arena)->step, memory_order_acquire);
}

bool gt_arena_has_ended(const struct gt_arena *arena)
{
	return atomic_load_explicit(&arena_hdr(arena)->ended, memory_order_acquire) != 0;
}

void gt_arena_wake(const struct gt_arena *arena)
{
	_Atomic uint32_t *request = &arena_hdr(arena)->request;

	atomic_fetch_add(request, 1);
	syscall(SYS_futex, request, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void gt_arena_state(const struct gt_arena *arena, struct gt_arena_state *ret)
{
	struct gt_arena_hdr *hdr = arena_hdr(arena);

	/* The step first and with acquire: every event written before it was set is then seen. */
	ret->step = gt_arena_step(arena);
	ret->mode = atomic_load_explicit(&hdr->mode, memory_order_acquire);
	ret->keep_full = atomic_load_explicit(&hdr->keep_full, memory_order_acquire) != 0;
	ret->ops_full = atomic_load_explicit(&hdr->ops_full, memory_order_relaxed) != 0;
	ret->keep_yielded = atomic_load_explicit(&hdr->keep_yielded, memory_order_relaxed) != 0;
	ret->step_source = atomic_load_explicit(&hdr->step_source, memory_order_relaxed);
	ret->dropped_cupti = atomic_load_explicit(&hdr->dropped_cupti, memory_order_relaxed);
	ret->dropped_arena = atomic_load_explicit(&hdr->dropped_arena, memory_order_relaxed);
	ret->dropped_events = atomic_load_explicit(&hdr->dropped_events, memory_order_relaxed);
	ret->dropped_names = atomic_load_explicit(&hdr->dropped_names, memory_order_relaxed);
	ret->late_step = atomic_load_explicit(&hdr->late_step, memory_order_relaxed);
}

bool gt_arena_yield(const struct gt_arena *arena, uint32_t *seen, struct gt_msg_phase *ret)
{
	struct gt_arena_hdr *hdr = arena_hdr(arena);
	const struct gt_yield *yield;
	uint32_t count = atomic_load(&hdr->yields);

	if (count == *seen)
		return false;
	if (count - *seen >= GT_YIELDS) /* those before are overwritten, or just being so */
		*seen = count - GT_YIELDS + 1;
	yield = &hdr->yield[*seen % GT_YIELDS];
	*ret = (struct gt_msg_phase){ .what = atomic_load(&yield->what),
				      .cycle = atomic_load(&yield->cycle),
				      .value = atomic_load(&yield->step),
				      .time_ns = atomic_load(&yield->time_ns) };
	++*seen;
	return ret->what == GT_WHAT_YIELD || ret->what == GT_WHAT_LEFT_OUT;
}

static int by_seq(const void *a, const void *b)
{
	const struct gt_arena_chunk *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

uint32_t gt_arena_count(const struct gt_arena *arena, enum gt_pool pool)
{
	return arena->pool[pool].count;
}

size_t gt_arena_list(const struct gt_arena *arena, enum gt_pool pool, bool busy,
		     struct gt_arena_chunk *ret)
{
	size_t count = 0;
	uint32_t i;

	for (i = 0; i < arena->pool[pool].count; i++) {
		struct gt_chunk *chunk = arena_chunk(arena, pool, i);
		uint32_t state = atomic_load_explicit(&chunk->state, memory_order_acquire);
		uint32_t used;

		if (state != GT_CHUNK_DONE && !(busy && state == GT_CHUNK_BUSY))
			continue;
		/* Pairs with the store after each event: seq and tid are valid once it is not 0. */
		used = atomic_load_explicit(&chunk->used_bytes, memory_order_acquire);
		if (state == GT_CHUNK_BUSY && !used && pool == GT_POOL_EVENT)
			continue;
		ret[count++] = (struct gt_arena_chunk){
			.seq = atomic_load_explicit(&chunk->seq, memory_order_relaxed),
			.index = i,
			.tid = chunk->tid,
			.used_bytes = GT_MIN(used, arena->pool[pool].chunk_bytes),
			.done = state == GT_CHUNK_DONE,
		};
	}
	qsort(ret, count, sizeof(*ret), by_seq);
	return count;
}

const unsigned char *gt_arena_bytes(const struct gt_arena *arena, enum gt_pool pool,
				    const struct gt_arena_chunk *chunk)
{
	return arena->map + arena->pool[pool].data_offset +
	       (uint64_t)chunk->index * arena->pool[pool].chunk_bytes;
}

void gt_arena_events(struct gt_arena *arena, const struct gt_arena_chunk *chunk,
		     enum gt_arena_pass pass, struct gt_event_cursor *ret)
{
	struct progress *progress = &arena->progress[chunk->index];
	uint32_t from;

	if (progress->seq != chunk->seq)
		*progress = (struct progress){ .seq = chunk->seq };
	from = progress->read_bytes[pass];
	*ret = (struct gt_event_cursor){ .pos = arena->copy, .end = arena->copy };
	if (from >= chunk->used_bytes)
		return;
	memcpy(arena->copy, gt_arena_bytes(arena, GT_POOL_EVENT, chunk) + from,
	       chunk->used_bytes - from);
	ret->end += chunk->used_bytes - from;
	progress->read_bytes[pass] = chunk->used_bytes;
}

void gt_arena_spoil(struct gt_arena *arena, const struct gt_arena_chunk *chunk)
{
	struct progress *progress = &arena->progress[chunk->index];
	size_t i;

	for (i = 0; i < GT_PASS_MAX; i++)
		progress->read_bytes[i] = UINT32_MAX;
}

bool gt_arena_consumed(const struct gt_arena *arena, const struct gt_arena_chunk *chunk,
		       enum gt_arena_pass pass)
{
	const struct progress *progress = &arena->progress[chunk->index];

	return chunk->done &&
	       (!chunk->used_bytes ||
		(progress->seq == chunk->seq && progress->read_bytes[pass] >= chunk->used_bytes));
}

void gt_arena_free_chunk(struct gt_arena *arena, enum gt_pool pool,
			 const struct gt_arena_chunk *chunk)
{
	struct gt_chunk *shared = arena_chunk(arena, pool, chunk->index);

	/* All of it: behind the used bytes CUPTI may have begun a record. */
	if (pool == GT_POOL_CUPTI)
		memset(arena->map + arena->pool[pool].data_offset +
			       (uint64_t)chunk->index * arena->pool[pool].chunk_bytes,
		       0, arena->pool[pool].chunk_bytes);
	else
		arena->progress[chunk->index] = (struct progress){ 0 };
	atomic_store_explicit(&shared->used_bytes, 0, memory_order_relaxed);
	atomic_store_explicit(&shared->state, GT_CHUNK_FREE, memory_order_release);
}

/* Smallest size of each type; 0: a type this version does not know. */
static const uint16_t event_bytes[] = {
	[GT_EV_STRING] = sizeof(struct gt_ev_string),
	[GT_EV_STEP] = sizeof(struct gt_ev_step),
	[GT_EV_CALL] = sizeof(struct gt_ev_call),
	[GT_EV_PUSH] = sizeof(struct gt_ev_range),
	[GT_EV_POP] = sizeof(struct gt_ev_end),
	[GT_EV_RANGE_START] = sizeof(struct gt_ev_range),
	[GT_EV_RANGE_END] = sizeof(struct gt_ev_end),
	[GT_EV_MARK] = sizeof(struct gt_ev_range),
	[GT_EV_THREAD_NAME] = sizeof(struct gt_ev_name),
	[GT_EV_POINTER] = sizeof(struct gt_ev_name),
	[GT_EV_API_NAME] = sizeof(struct gt_ev_name),
	[GT_EV_OP] = sizeof(struct gt_ev_op),
	[GT_EV_OP_END] = sizeof(struct gt_ev_op_end),
	[GT_EV_COMM] = sizeof(struct gt_ev_comm),
	[GT_EV_COLLECTIVE] = sizeof(struct gt_ev_collective),
	[GT_EV_FRAME] = sizeof(struct gt_ev_frame),
	[GT_EV_COMMS] = sizeof(struct gt_ev_comms),
	[GT_EV_OWN_STEP] = sizeof(struct gt_ev_step),
	[GT_EV_MEMORY] = sizeof(struct gt_ev_memory),
};

static bool event_valid(const struct gt_ev *ev)
{
	const struct gt_ev_string *string = (const void *)ev;
	const struct gt_ev_range *range = (const void *)ev;
	const struct gt_ev_op *op = (const void *)ev;

	if (ev->size_bytes < event_bytes[ev->type])
		return false;
	switch (ev->type) {
	case GT_EV_STRING:
		return string->len_bytes <= ev->size_bytes - sizeof(*string) &&
		       string->len_bytes <= GT_STRING_PIECE && string->id &&
		       string->total_bytes <= GT_STRING_MAX &&
		       string->offset_bytes <= string->total_bytes &&
		       string->len_bytes <= string->total_bytes - string->offset_bytes;
	case GT_EV_PUSH:
	case GT_EV_RANGE_START:
	case GT_EV_MARK:
		return range->len_bytes <= GT_INLINE_MAX && range->inputs_bytes <= GT_INPUTS_MAX &&
		       GT_PAD8(range->len_bytes) + range->inputs_bytes <=
			       ev->size_bytes - sizeof(*range);
	case GT_EV_OP:
		return op->inputs_bytes <= ev->size_bytes - sizeof(*op) &&
		       op->inputs_bytes <= GT_INPUTS_MAX;
	case GT_EV_MEMORY:
		return ev->size_bytes == sizeof(struct gt_ev_memory);
	case GT_EV_COMMS:
		return gt_comms_bytes((const void *)ev) == ev->size_bytes;
	default:
		return true;
	}
}

int gt_event_next(struct gt_event_cursor *cur, const struct gt_ev **ret)
{
	for (;;) {
		const struct gt_ev *ev = (const void *)cur->pos;
		size_t left = (size_t)(cur->end - cur->pos);

		if (!left)
			return 0;
		if (left < sizeof(*ev))
			return -EBADMSG;
		if (ev->type == GT_EV_END)
			return 0;
		if (ev->size_bytes < sizeof(*ev) || ev->size_bytes % 8 || ev->size_bytes > left)
			return -EBADMSG;
		cur->pos += ev->size_bytes;
		if (ev->type >= ARRAY_SIZE(event_bytes))
			continue;
		if (!event_valid(ev))
			return -EBADMSG;
		*ret = ev;
		return 1;
	}
}
