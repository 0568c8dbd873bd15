/*
 * id_map.c - see id_map.h: open addressing, at most three of four slots are used.
 */
#include "base.h"
#include "id_map.h"

#include <stdlib.h>

#define FIRST_SLOTS UINT32_C(256)
#define MAX_SLOTS   (UINT32_C(1) << 31)

/* The slot of id, or the free one where it goes. */
static struct gt_id_slot *slot_of(struct gt_id_slot *slots, uint32_t slot_count, int64_t id)
{
	/* 2^64 over the golden ratio */
	uint64_t hash = (uint64_t)id * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)(hash >> 32) & (slot_count - 1);

	while (slots[at].used && slots[at].id != id)
		at = (at + 1) & (slot_count - 1);
	return &slots[at];
}

static bool grow(struct gt_id_map *map)
{
	uint32_t slot_count = map->slot_count ? map->slot_count * 2 : FIRST_SLOTS;
	struct gt_id_slot *slots;

	if (map->slot_count >= MAX_SLOTS)
		return false;
	slots = calloc(slot_count, sizeof(*slots));
	if (!slots)
		return false;
	for (uint32_t i = 0; i < map->slot_count; i++) {
		if (map->slots[i].used)
			*slot_of(slots, slot_count, map->slots[i].id) = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->slot_count = slot_count;
	return true;
}

uint32_t *gt_id_map_find(const struct gt_id_map *map, int64_t id)
{
	struct gt_id_slot *slot = map->count ? slot_of(map->slots, map->slot_count, id) : NULL;

	return slot && slot->used ? &slot->value : NULL;
}

uint32_t *gt_id_map_put(struct gt_id_map *map, int64_t id)
{
	uint32_t *value = gt_id_map_find(map, id);
	struct gt_id_slot *slot;

	if (value)
		return value;
	if (map->count >= map->slot_count / 4 * 3 && !grow(map))
		return NULL;
	slot = slot_of(map->slots, map->slot_count, id);
	*slot = (struct gt_id_slot){ .id = id, .used = true };
	map->count++;
	return &slot->value;
}

void gt_id_map_release(struct gt_id_map *map)
{
	free(map->slots);
	memset(map, 0, sizeof(*map));
}
