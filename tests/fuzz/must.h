/*
 * must.h - what holds in a fuzz target whatever its input: an abort is what the fuzzer looks for.
 */
#ifndef FUZZ_MUST_H
#define FUZZ_MUST_H

#include <stdbool.h>
#include <stdlib.h>

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

#endif
