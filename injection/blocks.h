/*
 * blocks.h - the blocks of memory that were handed out while it was recorded, by their addresses:
 * who takes one back knows no more than that. Of any threads and without a lock. A block's address
 * is nobody else's until it is taken back, so that the calls for one are never at the same time.
 */
#ifndef INJ_BLOCKS_H
#define INJ_BLOCKS_H

#include "base.h"

struct inj_block {
	uint64_t bytes;
	uint32_t step; /* in which it was handed out */
};

/* false: there is no room for it. */
bool inj_blocks_put(uintptr_t address, const struct inj_block *block);
/* false: it is not known. */
bool inj_blocks_take(uintptr_t address, struct inj_block *ret);
/* Of all that are known. */
uint64_t inj_blocks_bytes(void);
/* Forget all. Meanwhile the others are not called, or what they do may be forgotten as well. */
void inj_blocks_clear(void);

#endif
