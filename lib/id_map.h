/*
 * id_map.h - a hash table from numbers to numbers.
 */
#ifndef GT_ID_MAP_H
#define GT_ID_MAP_H

#include "base.h"

struct gt_id_map { /* { 0 } is empty */
	struct gt_id_slot {
		int64_t id; /* 0: a free slot */
		int64_t value;
	} * slots;
	int64_t zero_value; /* of the id that is 0 */
	bool has_zero;
	uint32_t slot_count; /* a power of two */
	uint32_t count;
};

/* Where the value of id stands, until the next gt_id_map_put(); NULL: nowhere. */
int64_t *gt_id_map_find(struct gt_id_map *map, int64_t id);

/* The same; an id that is new gets the value 0. NULL: out of memory. */
int64_t *gt_id_map_put(struct gt_id_map *map, int64_t id);

/* Add to the value of id; the sum saturates. 0 or -ENOMEM. */
int gt_id_map_add(struct gt_id_map *map, int64_t id, int64_t value);

void gt_id_map_release(struct gt_id_map *map);

#endif
