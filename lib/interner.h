/*
 * interner.h - numbers names: equal bytes get equal numbers, from 0 up in the order of their first
 * sight.
 */
#ifndef GT_INTERNER_H
#define GT_INTERNER_H

#include "base.h"
#include "str.h"

#define GT_INTERN_FAILED UINT32_MAX /* out of memory */

struct gt_interner { /* { 0 } is an empty one */
	struct gt_intern_slot {
		uint32_t hash;
		uint32_t number; /* plus 1; 0: a free slot */
	} * slots;
	struct gt_str *names;
	/* By number: what followed it last. The steps of a program are alike, so it mostly does
	 * again. */
	uint32_t *followers;
	uint32_t last;
	uint32_t slot_count;
	uint32_t count;
	uint32_t names_cap;
	struct gt_intern_block *blocks; /* of the copied bytes */
};

uint32_t gt_intern(struct gt_interner *interner, struct gt_str name);

/* number < interner->count. Valid until the release. */
static inline struct gt_str gt_interned(const struct gt_interner *interner, uint32_t number)
{
	return interner->names[number];
}

void gt_interner_release(struct gt_interner *interner);

#endif
