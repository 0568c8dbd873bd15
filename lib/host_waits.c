/*
 * host_waits.c - see host_waits.h.
 */
#include "base.h"
#include "host_waits.h"

#include <stdlib.h>

/* ---- names ----------------------------------------------------------------------------------- */

/*
 * torch.utils.data calls its ranges enumerate(DataLoader)#…; collectives of PyTorch are c10d::…,
 * functional ones _c10d_functional::…, and their backends write nccl:all_reduce and the like.
 */
enum gt_host_wait gt_host_wait_of_prefix(struct gt_str name)
{
	static const struct {
		struct gt_str prefix;
		enum gt_host_wait wait;
	} known[] = {
		{ GT_STR("enumerate(DataLoader)#"), GT_WAIT_DATA },
		{ GT_STR("c10d::"), GT_WAIT_COMMUNICATION },
		{ GT_STR("_c10d_functional::"), GT_WAIT_COMMUNICATION },
		{ GT_STR("c10d_functional::"), GT_WAIT_COMMUNICATION },
		{ GT_STR("record_param_comms"), GT_WAIT_COMMUNICATION },
		{ GT_STR("nccl:"), GT_WAIT_COMMUNICATION },
		{ GT_STR("gloo:"), GT_WAIT_COMMUNICATION },
		{ GT_STR("mpi:"), GT_WAIT_COMMUNICATION },
		{ GT_STR("ucc:"), GT_WAIT_COMMUNICATION },
		{ GT_STR("xccl:"), GT_WAIT_COMMUNICATION },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (gt_str_starts(name, known[i].prefix))
			return known[i].wait;
	}
	return GT_WAIT_NONE;
}

enum gt_host_wait gt_host_wait_of_range(struct gt_str name)
{
	static const struct gt_str words[] = { GT_STR("dataload"), GT_STR("data_load"),
					       GT_STR("data load"), GT_STR("load_data") };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (gt_str_has_nocase(name, words[i]))
			return GT_WAIT_DATA;
	}
	return gt_host_wait_of_op(name);
}

/* ---- times ----------------------------------------------------------------------------------- */

static int add(struct gt_thread_spans *spans, const struct gt_thread_span *span)
{
	if (spans->count == spans->cap) {
		size_t cap = spans->cap ? spans->cap * 2 : 16;
		struct gt_thread_span *items = realloc(spans->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		spans->items = items;
		spans->cap = cap;
	}
	spans->items[spans->count++] = *span;
	return 0;
}

int gt_host_waits_add(struct gt_host_waits *waits, enum gt_host_wait wait, uint32_t thread,
		      int64_t start_ns, int64_t end_ns)
{
	struct gt_thread_span span = { start_ns, end_ns, thread };

	if (wait == GT_WAIT_DATA && add(&waits->data, &span))
		return -ENOMEM;
	return add(&waits->either, &span);
}

static int by_start(const void *a, const void *b)
{
	const struct gt_thread_span *l = a, *r = b;

	if (l->thread != r->thread)
		return l->thread < r->thread ? -1 : 1;
	return (l->start_ns > r->start_ns) - (l->start_ns < r->start_ns);
}

/* What overlaps becomes one. */
static void merge(struct gt_thread_spans *spans)
{
	size_t last = 0;

	if (!spans->count)
		return;
	qsort(spans->items, spans->count, sizeof(*spans->items), by_start);
	for (size_t i = 1; i < spans->count; i++) {
		const struct gt_thread_span *next = &spans->items[i];
		struct gt_thread_span *open = &spans->items[last];

		if (next->thread == open->thread && next->start_ns <= open->end_ns)
			open->end_ns = GT_MAX(open->end_ns, next->end_ns);
		else
			spans->items[++last] = *next;
	}
	spans->count = last + 1;
}

void gt_host_waits_sort(struct gt_host_waits *waits)
{
	merge(&waits->data);
	merge(&waits->either);
}

static uint64_t overlap_ns(const struct gt_thread_spans *spans, uint32_t thread, int64_t from_ns,
			   int64_t to_ns)
{
	size_t low = 0, high = spans->count;
	uint64_t total = 0;

	/* The first of this thread that ends behind from_ns. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct gt_thread_span *span = &spans->items[mid];

		if (span->thread < thread || (span->thread == thread && span->end_ns <= from_ns))
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < spans->count; low++) {
		const struct gt_thread_span *span = &spans->items[low];

		if (span->thread != thread || span->start_ns >= to_ns)
			break;
		total += (uint64_t)(GT_MIN(span->end_ns, to_ns) - GT_MAX(span->start_ns, from_ns));
	}
	return total;
}

struct gt_waited gt_host_waited(const struct gt_host_waits *waits, uint32_t thread, int64_t from_ns,
				int64_t to_ns)
{
	uint64_t either_ns = overlap_ns(&waits->either, thread, from_ns, to_ns);
	struct gt_waited waited = { .data_ns = overlap_ns(&waits->data, thread, from_ns, to_ns) };

	waited.communication_ns = either_ns - waited.data_ns;
	return waited;
}

void gt_host_waits_release(struct gt_host_waits *waits)
{
	free(waits->data.items);
	free(waits->either.items);
	memset(waits, 0, sizeof(*waits));
}
