/*
 * hash.c - see hash.h.
 */
#include "base.h"
#include "hash.h"

#include <sys/auxv.h>

uint64_t gt_hash_secret;

/* The kernel gives each process 16 random bytes. */
__attribute__((constructor)) static void choose_secret(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);

	if (random)
		memcpy(&gt_hash_secret, random, sizeof(gt_hash_secret));
}

uint32_t gt_hash_name(struct gt_str name)
{
	uint64_t hash = (name.len * GT_HASH_FACTOR) ^ gt_hash_secret;
	uint64_t word;
	size_t i;

	for (i = 0; i + 8 <= name.len; i += 8) {
		memcpy(&word, name.ptr + i, 8);
		hash = (hash ^ word) * GT_HASH_FACTOR;
		hash ^= hash >> 29;
	}
	if (i < name.len) {
		word = 0;
		memcpy(&word, name.ptr + i, name.len - i);
		hash ^= word;
	}
	return gt_hash_mix(hash);
}
