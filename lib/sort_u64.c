/*
 * sort_u64.c - see sort_u64.h: byte by byte, from the lowest on, up to the highest that is used.
 */
#include "base.h"
#include "sort_u64.h"

static void sort_by_byte(uint64_t *to, const uint64_t *from, size_t count, unsigned int shift)
{
	size_t starts[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		starts[from[i] >> shift & 0xff]++;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		size_t here = starts[i];

		starts[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[from[i] >> shift & 0xff]++] = from[i];
}

void gt_sort_u64(uint64_t *values, uint64_t *spare, size_t count)
{
	uint64_t used = 0, *from = values, *to = spare;
	bool is_sorted = true;

	for (size_t i = 0; i < count; i++) {
		used |= values[i];
		is_sorted &= !i || values[i - 1] <= values[i];
	}
	for (unsigned int shift = 0; !is_sorted && shift < 64 && used >> shift; shift += 8) {
		uint64_t *swap = from;

		sort_by_byte(to, from, count, shift);
		from = to;
		to = swap;
	}
	if (from != values)
		memcpy(values, from, count * sizeof(*values));
}
