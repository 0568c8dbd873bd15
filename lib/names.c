#include "base.h"
#include "hash.h"
#include "names.h"

#include <stdlib.h>

struct gt_name {
	char *bytes;
	uint32_t total_bytes;
	uint32_t have_bytes; /* pieces come in order, so this is a prefix */
};

static bool grow_names(struct gt_names *names, uint32_t id)
{
	uint32_t cap = GT_MAX(names->cap, 256u);
	struct gt_name *grown;

	if (id >= GT_NAMES_MAX_COUNT)
		return false;
	while (cap <= id)
		cap *= 2;
	grown = realloc(names->names, cap * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + names->cap, 0, (cap - names->cap) * sizeof(*grown));
	names->names = grown;
	names->cap = cap;
	return true;
}

void gt_names_add(struct gt_names *names, const struct gt_ev_string *piece)
{
	struct gt_name *name;

	if (piece->id >= names->cap && !grow_names(names, piece->id)) {
		names->refused++;
		return;
	}
	name = &names->names[piece->id];
	if (!name->bytes) {
		if (piece->total_bytes > GT_NAMES_MAX_BYTES - names->bytes)
			goto refuse;
		name->bytes = malloc(piece->total_bytes + 1u);
		if (!name->bytes)
			goto refuse;
		name->total_bytes = piece->total_bytes;
		names->bytes += piece->total_bytes;
	}
	/* An id is announced once: a second time, or out of order, changes nothing. */
	if (piece->total_bytes != name->total_bytes || piece->offset_bytes != name->have_bytes)
		return;
	memcpy(name->bytes + name->have_bytes, piece->bytes, piece->len_bytes);
	name->have_bytes += piece->len_bytes;
	return;
refuse:
	names->refused++;
}

struct gt_str gt_names_get(const struct gt_names *names, uint32_t id)
{
	if (id >= names->cap)
		return (struct gt_str){ 0 };
	return (struct gt_str){ names->names[id].bytes, names->names[id].have_bytes };
}

void gt_names_release(struct gt_names *names)
{
	uint32_t i;

	for (i = 0; i < names->cap; i++)
		free(names->names[i].bytes);
	free(names->names);
	*names = (struct gt_names){ 0 };
}

/* The slot of key, or the free one where it belongs. */
static struct gt_map_slot *map_slot(const struct gt_map *map, uint64_t key)
{
	uint32_t mask = map->cap - 1;
	uint32_t i = (uint32_t)((key * GT_HASH_FACTOR) >> 32) & mask;

	while (map->slots[i].value && map->slots[i].key != key)
		i = (i + 1) & mask;
	return &map->slots[i];
}

static bool map_grow(struct gt_map *map)
{
	struct gt_map grown = { .cap = map->cap ? map->cap * 2 : 64, .count = map->count };
	uint32_t i;

	grown.slots = calloc(grown.cap, sizeof(*grown.slots));
	if (!grown.slots)
		return false;
	for (i = 0; i < map->cap; i++)
		if (map->slots[i].value)
			*map_slot(&grown, map->slots[i].key) = map->slots[i];
	free(map->slots);
	*map = grown;
	return true;
}

bool gt_map_put(struct gt_map *map, uint64_t key, uint32_t value)
{
	struct gt_map_slot *slot;

	if (!value)
		return true;
	if (map->count * 2 >= map->cap && !map_grow(map))
		return false;
	slot = map_slot(map, key);
	if (!slot->value) {
		if (map->count >= GT_MAP_MAX)
			return false;
		map->count++;
	}
	*slot = (struct gt_map_slot){ .key = key, .value = value };
	return true;
}

uint32_t gt_map_get(const struct gt_map *map, uint64_t key)
{
	return map->cap ? map_slot(map, key)->value : 0;
}

void gt_map_release(struct gt_map *map)
{
	free(map->slots);
	*map = (struct gt_map){ 0 };
}
