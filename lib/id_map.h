/*
 * id_map.h - a hash table from numbers to small values.
 */
#ifndef GT_ID_MAP_H
#define GT_ID_MAP_H

#include "base.h"

struct gt_id_map { /* { 0 } is empty */
	struct gt_id_slot {
		int64_t id;
		uint32_t value;
		bool used;
	} * slots;
	uint32_t slot_count; /* a power of two */
	uint32_t count;
};

/* Where the value of id stands, until the next gt_id_map_put(); NULL: nowhere. */
uint32_t *gt_id_map_find(const struct gt_id_map *map, int64_t id);

/* The same; an id that is new gets the value 0. NULL: out of memory. */
uint32_t *gt_id_map_put(struct gt_id_map *map, int64_t id);

void gt_id_map_release(struct gt_id_map *map);

#endif
