/*
 * Text that comes again: the beginnings of calls and GPU work, which are long (names), dear to make
 * (demangling, occupancy) and few.
 */
#include "hash.h"
#include "trace_priv.h"

#include <stdlib.h>

#define BYTES_MAX ((size_t)16 << 20) /* of keys and texts; beyond, all are forgotten */
#define WAYS      4                  /* slots that a piece may be in */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const char *p = data;
	uint64_t word;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&word, p, 8);
		hash = (hash ^ word) * GT_HASH_FACTOR;
		hash ^= hash >> 29;
	}
	word = 0;
	if (len)
		memcpy(&word, p, len);
	hash = (hash ^ word ^ (uint64_t)len << 56) * GT_HASH_FACTOR;
	return hash ^ hash >> 32;
}

static bool key_equals(const struct gt_piece *piece, const void *key, size_t key_len,
		       struct gt_str name)
{
	return piece->key.len == key_len + name.len && !memcmp(piece->key.data, key, key_len) &&
	       (!name.len || !memcmp(piece->key.data + key_len, name.ptr, name.len));
}

static void piece_release(struct gt_piece *piece)
{
	gt_buf_release(&piece->key);
	gt_buf_release(&piece->text);
	piece->spot = 0;
}

void gt_pieces_free(struct gt_pieces *pieces)
{
	size_t i;

	if (!pieces)
		return;
	for (i = 0; i < GT_PIECE_SLOTS; i++)
		piece_release(&pieces->slots[i]);
	free(pieces);
}

/* The piece, or the slot that it gets: an empty one, else one as good as any. */
static struct gt_piece *find_slot(struct gt_pieces *pieces, uint64_t hash, const void *key,
				  size_t key_len, struct gt_str name)
{
	struct gt_piece *set = &pieces->slots[hash % (GT_PIECE_SLOTS / WAYS) * WAYS];
	struct gt_piece *slot = &set[hash >> 32 & (WAYS - 1)];
	int i;

	for (i = 0; i < WAYS; i++) {
		if (!set[i].text.len)
			slot = &set[i];
		else if (set[i].hash == hash && key_equals(&set[i], key, key_len, name))
			return &set[i];
	}
	pieces->bytes -= slot->key.cap + slot->text.cap;
	piece_release(slot);
	slot->hash = hash;
	gt_buf_append(&slot->key, key, key_len);
	gt_buf_append(&slot->key, name.ptr, name.len);
	pieces->bytes += slot->key.cap;
	return slot;
}

struct gt_piece *gt_piece_get(struct gt_trace *trace, const void *key, size_t key_len,
			      struct gt_str name)
{
	uint64_t hash = hash_bytes(hash_bytes(0, key, key_len), name.ptr, name.len);
	struct gt_piece *piece = NULL;

	if (trace->pieces && trace->pieces->bytes > BYTES_MAX) {
		gt_pieces_free(trace->pieces);
		trace->pieces = NULL;
	}
	if (!trace->pieces)
		trace->pieces = calloc(1, sizeof(*trace->pieces));
	if (trace->pieces)
		piece = find_slot(trace->pieces, hash, key, key_len, name);
	if (!piece || piece->key.failed) {
		trace->error = trace->error ? trace->error : -ENOMEM;
		return NULL;
	}
	return piece;
}

char *gt_piece_reserve(struct gt_trace *trace, struct gt_piece *piece, size_t bytes)
{
	char *p = gt_buf_reserve(&piece->text, bytes);

	if (!p)
		trace->error = trace->error ? trace->error : -ENOMEM;
	trace->pieces->bytes += piece->text.cap;
	return p;
}
