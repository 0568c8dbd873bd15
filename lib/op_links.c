/*
 * op_links.c - see op_links.h: open addressing.
 */
#include "base.h"
#include "op_links.h"

#include <stdlib.h>

#define FIRST_SLOTS 256

static inline size_t slot_of(const struct gt_op_links *links, int64_t id)
{
	/* 2^64 over the golden ratio: neighbours are spread, and multiples of a power of 2, too. */
	uint64_t hash = (uint64_t)id * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash ^ hash >> 32) & (links->slot_count - 1);

	while (links->slots[at].id && links->slots[at].id != id)
		at = (at + 1) & (links->slot_count - 1);
	return at;
}

static bool grow(struct gt_op_links *links)
{
	struct gt_op_links grown = { .slot_count = links->slot_count ? links->slot_count * 2
								     : FIRST_SLOTS };

	grown.slots = calloc(grown.slot_count, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (size_t i = 0; i < links->slot_count; i++) {
		if (links->slots[i].id)
			grown.slots[slot_of(&grown, links->slots[i].id)] = links->slots[i];
	}
	free(links->slots);
	links->slots = grown.slots;
	links->slot_count = grown.slot_count;
	return true;
}

int gt_op_links_add(struct gt_op_links *links, int64_t id, int64_t gpu_ns)
{
	struct gt_op_link *slot;

	if (links->count >= links->slot_count / 2 && !grow(links))
		return -ENOMEM;
	slot = &links->slots[slot_of(links, id)];
	links->count += !slot->id;
	slot->id = id;
	if (__builtin_add_overflow(slot->gpu_ns, gpu_ns, &slot->gpu_ns))
		slot->gpu_ns = INT64_MAX;
	return 0;
}

bool gt_op_links_get(const struct gt_op_links *links, int64_t id, int64_t *ret_gpu_ns)
{
	const struct gt_op_link *slot;

	if (!links->count || !id)
		return false;
	slot = &links->slots[slot_of(links, id)];
	if (!slot->id)
		return false;
	*ret_gpu_ns = slot->gpu_ns;
	return true;
}

void gt_op_links_release(struct gt_op_links *links)
{
	free(links->slots);
	memset(links, 0, sizeof(*links));
}
