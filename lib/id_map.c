/*
 * id_map.c - see id_map.h: open addressing, at most three of four slots are used.
 */
#include "base.h"
#include "hash.h"
#include "id_map.h"

#include <stdlib.h>

#define FIRST_SLOTS UINT32_C(256)
#define MAX_SLOTS   (UINT32_C(1) << 31)

/* The slot of id, which is not 0, or the free one where it goes. */
static struct gt_id_slot *slot_of(struct gt_id_slot *slots, uint32_t slot_count, int64_t id)
{
	uint32_t at = gt_hash_id(id) & (slot_count - 1);

	while (slots[at].id && slots[at].id != id)
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
		if (map->slots[i].id)
			*slot_of(slots, slot_count, map->slots[i].id) = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->slot_count = slot_count;
	return true;
}

int64_t *gt_id_map_find(struct gt_id_map *map, int64_t id)
{
	struct gt_id_slot *slot;

	if (!id)
		return map->has_zero ? &map->zero_value : NULL;
	if (!map->slot_count)
		return NULL;
	slot = slot_of(map->slots, map->slot_count, id);
	return slot->id ? &slot->value : NULL;
}

int64_t *gt_id_map_put(struct gt_id_map *map, int64_t id)
{
	struct gt_id_slot *slot;

	if (!id) {
		map->count += !map->has_zero;
		map->has_zero = true;
		return &map->zero_value;
	}
	if (map->count >= map->slot_count / 4 * 3) {
		int64_t *value = gt_id_map_find(map, id);

		if (value)
			return value;
		if (!grow(map))
			return NULL;
	}
	slot = slot_of(map->slots, map->slot_count, id);
	map->count += !slot->id;
	slot->id = id;
	return &slot->value;
}

int gt_id_map_add(struct gt_id_map *map, int64_t id, int64_t value)
{
	int64_t *sum = gt_id_map_put(map, id);

	if (!sum)
		return -ENOMEM;
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = value < 0 ? INT64_MIN : INT64_MAX;
	return 0;
}

void gt_id_map_release(struct gt_id_map *map)
{
	free(map->slots);
	memset(map, 0, sizeof(*map));
}
