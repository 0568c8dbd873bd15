#include "base.h"
#include "corr_ring.h"

#include <stdlib.h>

#define FIRST_CAP 1024

void *gt_ring_at(const struct gt_ring *ring, uint64_t pos)
{
	return ring->entries + (size_t)(pos & (ring->cap - 1)) * ring->entry_bytes;
}

/* Twice as many buckets as entries. */
static uint64_t *bucket(const struct gt_ring *ring, uint32_t correlation)
{
	uint32_t hash = correlation * UINT32_C(0x9e3779b1);

	return &ring->buckets[(hash >> 8 ^ hash) & (2 * ring->cap - 1)];
}

static void link_newest(struct gt_ring *ring, uint64_t pos)
{
	struct gt_ring_entry *entry = gt_ring_at(ring, pos), *second;
	uint64_t *chain = bucket(ring, entry->correlation);

	entry->newer = 0;
	entry->older = *chain;
	entry->linked = true;
	if (*chain) {
		second = gt_ring_at(ring, *chain - 1);
		second->newer = pos + 1;
	}
	*chain = pos + 1;
}

void *gt_ring_find(const struct gt_ring *ring, uint32_t correlation)
{
	uint64_t next = ring->cap ? *bucket(ring, correlation) : 0;

	while (next) {
		struct gt_ring_entry *entry = gt_ring_at(ring, next - 1);

		if (entry->correlation == correlation)
			return entry;
		next = entry->older;
	}
	return NULL;
}

void *gt_ring_push(struct gt_ring *ring, uint32_t correlation)
{
	struct gt_ring_entry *entry;

	if (ring->head - ring->tail >= ring->cap)
		return NULL;
	entry = gt_ring_at(ring, ring->head);
	memset(entry, 0, ring->entry_bytes);
	entry->correlation = correlation;
	link_newest(ring, ring->head++);
	return entry;
}

int gt_ring_grow(struct gt_ring *ring)
{
	struct gt_ring grown = *ring;
	uint64_t pos;

	if (ring->cap >= ring->max)
		return -ENOSPC;
	grown.cap = ring->cap ? ring->cap * 2 : FIRST_CAP;
	grown.entries = malloc((size_t)grown.cap * grown.entry_bytes);
	grown.buckets = calloc(2 * (size_t)grown.cap, sizeof(*grown.buckets));
	if (!grown.entries || !grown.buckets) {
		free(grown.entries);
		free(grown.buckets);
		return -ENOMEM;
	}
	for (pos = ring->tail; pos < ring->head; pos++) {
		struct gt_ring_entry *entry = gt_ring_at(&grown, pos);

		memcpy(entry, gt_ring_at(ring, pos), ring->entry_bytes);
		if (entry->linked)
			link_newest(&grown, pos);
	}
	free(ring->entries);
	free(ring->buckets);
	*ring = grown;
	return 0;
}

void gt_ring_unlink(struct gt_ring *ring, void *arg)
{
	struct gt_ring_entry *entry = arg, *other;

	if (!entry->linked)
		return;
	if (entry->newer) {
		other = gt_ring_at(ring, entry->newer - 1);
		other->older = entry->older;
	} else {
		*bucket(ring, entry->correlation) = entry->older;
	}
	if (entry->older) {
		other = gt_ring_at(ring, entry->older - 1);
		other->newer = entry->newer;
	}
	entry->linked = false;
}

void gt_ring_drop(struct gt_ring *ring)
{
	gt_ring_unlink(ring, gt_ring_at(ring, ring->tail));
	ring->tail++;
}

void gt_ring_release(struct gt_ring *ring)
{
	free(ring->entries);
	free(ring->buckets);
	ring->entries = NULL;
	ring->buckets = NULL;
	ring->cap = 0;
	ring->head = 0;
	ring->tail = 0;
}
