/*
 * random.h - numbers for tests: the same ones in each run (xorshift64).
 */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>

static inline uint64_t random_u64(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* bound is not 0. */
static inline uint64_t random_below(uint64_t bound)
{
	return random_u64() % bound;
}

#endif
