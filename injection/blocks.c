/*
 * blocks.c - see blocks.h. A table of buckets: a block is in any place of the bucket that its
 * address chooses, and a bucket that is full takes no more.
 */
#include "blocks.h"

#include <stdatomic.h>

#define BUCKETS      2048 /* with half of the places taken, one block in ten thousand finds none */
#define BUCKET_SLOTS 32   /* four cache lines of addresses */

static _Atomic uintptr_t addresses[BUCKETS][BUCKET_SLOTS]; /* 0: free */
static struct inj_block blocks[BUCKETS][BUCKET_SLOTS];
static _Atomic uint64_t total_bytes;

static uint32_t bucket_of(uintptr_t address)
{
	/* Fibonacci hashing: blocks are aligned, and often of one size. */
	return (uint32_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 53);
}

_Static_assert(BUCKETS == 1 << (64 - 53), "bucket_of()");

static int find(uint32_t bucket, uintptr_t address)
{
	for (int i = 0; i < BUCKET_SLOTS; i++) {
		if (atomic_load_explicit(&addresses[bucket][i], memory_order_relaxed) == address)
			return i;
	}
	return -1;
}

/* A place that is free becomes this block's. */
static int claim(uint32_t bucket, uintptr_t address)
{
	for (int i = 0; i < BUCKET_SLOTS; i++) {
		uintptr_t nobody = 0;

		if (!atomic_load_explicit(&addresses[bucket][i], memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&addresses[bucket][i], &nobody, address,
							    memory_order_acquire,
							    memory_order_relaxed))
			return i;
	}
	return -1;
}

bool inj_blocks_put(uintptr_t address, const struct inj_block *block)
{
	struct inj_block former;
	uint32_t bucket = bucket_of(address);
	int slot;

	inj_blocks_take(address, &former); /* nobody said that it was taken back */
	slot = claim(bucket, address);
	if (slot < 0)
		return false;
	blocks[bucket][slot] = *block;
	atomic_fetch_add_explicit(&total_bytes, block->bytes, memory_order_relaxed);
	return true;
}

bool inj_blocks_take(uintptr_t address, struct inj_block *ret)
{
	uint32_t bucket = bucket_of(address);
	int slot = find(bucket, address);

	if (slot < 0)
		return false;
	*ret = blocks[bucket][slot];
	atomic_store_explicit(&addresses[bucket][slot], 0, memory_order_release);
	atomic_fetch_sub_explicit(&total_bytes, ret->bytes, memory_order_relaxed);
	return true;
}

uint64_t inj_blocks_bytes(void)
{
	return atomic_load_explicit(&total_bytes, memory_order_relaxed);
}

void inj_blocks_clear(void)
{
	for (uint32_t i = 0; i < BUCKETS; i++) {
		for (int k = 0; k < BUCKET_SLOTS; k++)
			atomic_store_explicit(&addresses[i][k], 0, memory_order_relaxed);
	}
	atomic_store_explicit(&total_bytes, 0, memory_order_relaxed);
}
