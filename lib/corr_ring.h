/*
 * corr_ring.h - entries in the order they came, found by CUPTI correlation id: launches that wait
 * for GPU records and GPU records that wait for their launch. Bounded; no allocation for an entry.
 */
#ifndef GT_CORR_RING_H
#define GT_CORR_RING_H

#include "base.h"

struct gt_ring_entry {  /* the first member of what is kept */
	uint64_t older; /* position + 1 in the chain of its bucket, 0: none */
	uint64_t newer;
	uint32_t correlation;
	bool linked;
};

struct gt_ring {
	unsigned char *entries;
	uint64_t *buckets; /* position + 1 of the newest entry, 0: none */
	uint64_t head;     /* positions count from 0 since the start; this is the next one's */
	uint64_t tail;     /* of the oldest */
	uint32_t cap;      /* a power of two, 0 before the first push */
	uint32_t max;      /* of cap; a power of two */
	uint32_t entry_bytes;
};

#define GT_RING(type, max_count)                                \
	{                                                       \
		.max = (max_count), .entry_bytes = sizeof(type) \
	}

/* The newest entry of this id; NULL: none. */
void *gt_ring_find(const struct gt_ring *ring, uint32_t correlation);

/* Room for an entry, zeroed but for its head; NULL when the ring is full. */
void *gt_ring_push(struct gt_ring *ring, uint32_t correlation);

/* Double the room; entries move. 0, -ENOSPC at the limit, -ENOMEM. */
int gt_ring_grow(struct gt_ring *ring);

/* No longer found by its id; it keeps its place until it is the oldest and dropped. */
void gt_ring_unlink(struct gt_ring *ring, void *entry);

/* The entry at a position from tail up to head - 1. */
void *gt_ring_at(const struct gt_ring *ring, uint64_t pos);

/* Drop the oldest entry; there must be one. */
void gt_ring_drop(struct gt_ring *ring);

void gt_ring_release(struct gt_ring *ring);

#endif
