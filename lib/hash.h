/*
 * hash.h - where ids and names go in hash tables. A secret of this process is in it, so that no
 * file can be made in which they all go to one place.
 */
#ifndef GT_HASH_H
#define GT_HASH_H

#include "base.h"
#include "str.h"

/* 2^64 over the golden ratio, made odd: its multiples spread evenly. */
#define GT_HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

extern uint64_t gt_hash_secret; /* set before main() */

/* Each bit of value comes into each of the 32 that are returned. */
static inline uint32_t gt_hash_mix(uint64_t value)
{
	value ^= value >> 32;
	value *= GT_HASH_FACTOR;
	value ^= value >> 29;
	return (uint32_t)((value * GT_HASH_FACTOR) >> 32);
}

static inline uint32_t gt_hash_id(int64_t id)
{
	return gt_hash_mix((uint64_t)id ^ gt_hash_secret);
}

uint32_t gt_hash_name(struct gt_str name);

#endif
