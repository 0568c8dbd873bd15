/*
 * names.h - the names of one traced process: GT_EV_STRING bytes by id, and small maps from a number
 * (kernel name pointer, thread, API) to such an id. Memory is bounded, whatever the peer sends.
 */
#ifndef GT_NAMES_H
#define GT_NAMES_H

#include "base.h"
#include "str.h"
#include "wire.h"

#define GT_NAMES_MAX_COUNT (UINT32_C(1) << 20)
#define GT_NAMES_MAX_BYTES (UINT64_C(64) << 20)

struct gt_name;

struct gt_names { /* { 0 } is an empty one */
	struct gt_name *names;
	uint32_t cap;
	uint64_t bytes;
	uint64_t refused; /* pieces that did not fit the bounds or memory */
};

/* Take over a piece (well formed, see gt_event_next()). */
void gt_names_add(struct gt_names *names, const struct gt_ev_string *piece);

/* The name, as far as its pieces came; ptr is NULL when none did. Valid until the release. */
struct gt_str gt_names_get(const struct gt_names *names, uint32_t id);
void gt_names_release(struct gt_names *names);

/* Map of at most GT_MAP_MAX numbers, open addressing; the last put of a key wins. */
#define GT_MAP_MAX (UINT32_C(1) << 16)

struct gt_map { /* { 0 } is an empty one */
	struct gt_map_slot {
		uint64_t key;
		uint32_t value; /* 0: a free slot */
	} * slots;
	uint32_t cap;
	uint32_t count;
};

/* value 0 is ignored. false: the map is full, or memory is out. */
bool gt_map_put(struct gt_map *map, uint64_t key, uint32_t value);
uint32_t gt_map_get(const struct gt_map *map, uint64_t key); /* 0: not there */
void gt_map_release(struct gt_map *map);

#endif
