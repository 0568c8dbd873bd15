/*
 * op_memory.c - see op_memory.h.
 */
#include "base.h"
#include "op_memory.h"

#include <stdlib.h>

#define FIRST_CAP 256

int gt_op_memory_add(struct gt_op_memory *memory, int64_t time_ns, int64_t bytes, bool on_gpu)
{
	if (memory->count == memory->cap) {
		size_t cap = memory->cap ? memory->cap * 2 : FIRST_CAP;
		struct gt_op_memory_record *records =
			realloc(memory->records, cap * sizeof(*records));

		if (!records)
			return -ENOMEM;
		memory->records = records;
		memory->cap = cap;
	}
	memory->records[memory->count++] =
		(struct gt_op_memory_record){ time_ns, bytes, 0, on_gpu };
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct gt_op_memory_record *left = a, *right = b;

	return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

/* Sums wrap around: the difference of two is right all the same. */
static void add(struct gt_op_bytes *sum, const struct gt_op_memory_record *record)
{
	int64_t *part = record->on_gpu ? &sum->gpu : &sum->cpu;

	*part = (int64_t)((uint64_t)*part + (uint64_t)record->bytes);
}

int gt_op_memory_sort(struct gt_op_memory *memory)
{
	struct gt_op_bytes sum = { 0 };

	if (!memory->count)
		return 0;
	memory->sums = malloc((memory->count + 1) * sizeof(*memory->sums));
	if (!memory->sums)
		return -ENOMEM;
	qsort(memory->records, memory->count, sizeof(*memory->records), by_time);
	for (size_t i = 0; i < memory->count; i++) {
		memory->sums[i] = sum;
		add(&sum, &memory->records[i]);
	}
	memory->sums[memory->count] = sum;
	return 0;
}

/* The first record at time_ns or later. */
static size_t lower_bound(const struct gt_op_memory *memory, int64_t time_ns)
{
	size_t low = 0, high = memory->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (memory->records[mid].time_ns < time_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct gt_op_bytes gt_op_memory_claim(struct gt_op_memory *memory, int64_t start_ns, int64_t end_ns)
{
	size_t first = lower_bound(memory, start_ns), end = lower_bound(memory, end_ns + 1);
	const struct gt_op_bytes *sums = memory->sums;

	if (first >= end)
		return (struct gt_op_bytes){ 0 };
	memory->records[first].claims++;
	if (end < memory->count)
		memory->records[end].claims--;
	return (struct gt_op_bytes){ (int64_t)((uint64_t)sums[end].cpu - (uint64_t)sums[first].cpu),
				     (int64_t)((uint64_t)sums[end].gpu -
					       (uint64_t)sums[first].gpu) };
}

struct gt_op_bytes gt_op_memory_unclaimed(const struct gt_op_memory *memory, uint64_t *ret_count)
{
	struct gt_op_bytes sum = { 0 };
	int64_t claims = 0;

	*ret_count = 0;
	for (size_t i = 0; i < memory->count; i++) {
		claims += memory->records[i].claims;
		if (claims)
			continue;
		add(&sum, &memory->records[i]);
		++*ret_count;
	}
	return sum;
}

void gt_op_memory_release(struct gt_op_memory *memory)
{
	free(memory->records);
	free(memory->sums);
	memset(memory, 0, sizeof(*memory));
}
