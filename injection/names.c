/*
 * names.c - every text of a trace gets a number, and goes to the collector once. A thread first
 * publishes a new text in its own stream, then enters it into the table: whoever finds it there can
 * rely on the collector having it. Two threads that race publish it twice, which does no harm.
 */
#include "events.h"

#include <sys/mman.h>

#define TABLE_SLOTS    (UINT32_C(1) << 17)
#define NAMES_MAX      (TABLE_SLOTS / 2) /* threads that race can go a little beyond */
#define POINTER_SLOTS  (UINT32_C(1) << 14)
#define POINTER_PROBES 8
#define STORE_BYTES    (UINT64_C(32) << 20)

struct name {
	uint64_t hash;
	uint32_t id;
	uint32_t len_bytes;
	char bytes[];
};

_Static_assert(2 * NAMES_MAX <= GT_NAME_PTR_MIN, "an id must not look like a pointer");

struct pointer {
	const char *at;
	const struct name *name;
};

static _Atomic(struct name *) table[TABLE_SLOTS];
static _Atomic(struct pointer *) pointers[POINTER_SLOTS];
static _Atomic uint32_t next_id;

static char *store; /* memory for both, never given back */
static _Atomic uint64_t store_used;

int inj_names_init(void)
{
	store = mmap(NULL, STORE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return store == MAP_FAILED ? -errno : 0;
}

static void *store_take(uint64_t bytes)
{
	uint64_t pos;

	bytes = (bytes + 7) & ~UINT64_C(7);
	pos = atomic_fetch_add_explicit(&store_used, bytes, memory_order_relaxed);
	if (pos + bytes > STORE_BYTES) {
		atomic_fetch_sub_explicit(&store_used, bytes, memory_order_relaxed);
		return NULL;
	}
	return store + pos;
}

static uint64_t mix(uint64_t value)
{
	value *= UINT64_C(0x9e3779b97f4a7c15);
	return value ^ (value >> 32);
}

static uint64_t hash_bytes(const char *bytes, size_t len)
{
	uint64_t hash = mix(len), word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = mix(hash ^ word);
	}
	word = 0;
	memcpy(&word, bytes, len);
	return mix(hash ^ word);
}

/* Room for the piece of a text that begins at offset; NULL: there is none (counted). */
static struct gt_ev_string *begin_piece(uint32_t len, uint32_t offset)
{
	uint32_t piece = GT_MIN(len - offset, (uint32_t)GT_STRING_PIECE);
	struct gt_ev_string *ev = inj_reserve(GT_EV_STRING, sizeof(*ev) + GT_PAD8(piece));

	if (!ev)
		return NULL;
	ev->total_bytes = len;
	ev->offset_bytes = offset;
	ev->len_bytes = piece;
	return ev;
}

/* Returns the offset of the next one. */
static uint32_t end_piece(struct gt_ev_string *ev, uint32_t id, const char *bytes)
{
	uint32_t offset = ev->offset_bytes, piece = ev->len_bytes;

	ev->id = id;
	memcpy(ev->bytes, bytes + offset, piece);
	memset(ev->bytes + piece, 0, GT_PAD8(piece) - piece);
	inj_commit();
	return offset + piece;
}

static struct name *name_new(const char *bytes, uint32_t len, uint64_t hash)
{
	struct gt_ev_string *ev;
	struct name *name;
	uint32_t id, offset;

	if (atomic_load_explicit(&next_id, memory_order_relaxed) >= NAMES_MAX ||
	    atomic_load_explicit(&store_used, memory_order_relaxed) + sizeof(*name) + len >
		    STORE_BYTES)
		return NULL;
	/* First: numbers and memory do not come back, and with no room this is tried again and
	 * again. */
	ev = begin_piece(len, 0);
	if (!ev)
		return NULL;
	id = atomic_fetch_add_explicit(&next_id, 1, memory_order_relaxed) + 1;
	offset = end_piece(ev, id, bytes);
	name = store_take(sizeof(*name) + len);
	while (name && offset < len) {
		ev = begin_piece(len, offset);
		if (!ev)
			return NULL;
		offset = end_piece(ev, id, bytes);
	}
	if (!name)
		return NULL;
	name->hash = hash;
	name->id = id;
	name->len_bytes = len;
	memcpy(name->bytes, bytes, len);
	return name;
}

static const struct name *find_or_add(const char *bytes, size_t len_bytes)
{
	uint32_t len = (uint32_t)GT_MIN(len_bytes, (size_t)GT_STRING_MAX);
	uint64_t hash = hash_bytes(bytes, len);
	uint32_t slot = (uint32_t)hash % TABLE_SLOTS;
	struct name *name, *fresh = NULL;

	/* The table is never more than half full, so there is an empty slot. */
	for (;; slot = (slot + 1) % TABLE_SLOTS) {
		name = atomic_load_explicit(&table[slot], memory_order_acquire);
		if (!name) {
			if (!fresh)
				fresh = name_new(bytes, len, hash);
			if (!fresh)
				break;
			if (atomic_compare_exchange_strong(&table[slot], &name, fresh))
				return fresh;
		}
		if (name->hash == hash && name->len_bytes == len &&
		    !memcmp(name->bytes, bytes, len))
			return name;
	}
	atomic_fetch_add_explicit(&inj_arena->dropped_names, 1, memory_order_relaxed);
	return NULL;
}

uint32_t inj_intern(const char *bytes, size_t len)
{
	const struct name *name = inj_live_alive() ? find_or_add(bytes, len) : NULL;

	return name ? name->id : 0;
}

/* Tell the collector what a pointer stands for, should it find it in an unfinished buffer. */
static void publish_pointer(const struct pointer *pointer)
{
	struct gt_ev_name *ev = inj_reserve(GT_EV_POINTER, sizeof(*ev));

	if (!ev)
		return;
	ev->ref = (uintptr_t)pointer->at;
	ev->name_id = pointer->name->id;
	ev->klass = 0;
	inj_commit();
}

uint32_t inj_intern_pointer(const char *at)
{
	uint32_t slot = (uint32_t)mix((uintptr_t)at) % POINTER_SLOTS;
	_Atomic(struct pointer *) *place = NULL;
	struct pointer *pointer;
	const struct name *name;

	if (!at)
		return 0;
	for (int i = 0; i < POINTER_PROBES; i++) {
		place = &pointers[(slot + (uint32_t)i) % POINTER_SLOTS];
		pointer = atomic_load_explicit(place, memory_order_acquire);
		if (!pointer || pointer->at == at)
			break;
		place = NULL;
	}
	/* A module was unloaded, another loaded: the same address may hold another name. */
	if (place && pointer && !strncmp(pointer->name->bytes, at, pointer->name->len_bytes) &&
	    (!at[pointer->name->len_bytes] || pointer->name->len_bytes == GT_STRING_MAX))
		return pointer->name->id;

	name = find_or_add(at, strnlen(at, GT_STRING_MAX));
	if (!name)
		return 0;
	pointer = place ? store_take(sizeof(*pointer)) : NULL;
	if (pointer) {
		pointer->at = at;
		pointer->name = name;
		publish_pointer(pointer);
		atomic_store_explicit(place, pointer, memory_order_release);
	}
	return name->id;
}
