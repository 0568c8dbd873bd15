/*
 * interner.c - see interner.h: open addressing over the names, whose bytes lie in large blocks.
 */
#include "base.h"
#include "hash.h"
#include "interner.h"

#include <stdlib.h>

#define FIRST_SLOTS UINT32_C(256)
#define MAX_SLOTS   (UINT32_C(1) << 31)
#define BLOCK_BYTES ((size_t)64 << 10)

struct gt_intern_block {
	struct gt_intern_block *next;
	size_t used;
	size_t cap;
	char bytes[];
};

static bool grow_slots(struct gt_interner *interner)
{
	uint32_t slot_count = interner->slot_count ? interner->slot_count * 2 : FIRST_SLOTS;
	struct gt_intern_slot *slots;

	if (interner->slot_count >= MAX_SLOTS)
		return false;
	slots = calloc(slot_count, sizeof(*slots));
	if (!slots)
		return false;
	for (uint32_t i = 0; i < interner->slot_count; i++) {
		const struct gt_intern_slot *slot = &interner->slots[i];
		uint32_t at = slot->hash & (slot_count - 1);

		if (!slot->number)
			continue;
		while (slots[at].number)
			at = (at + 1) & (slot_count - 1);
		slots[at] = *slot;
	}
	free(interner->slots);
	interner->slots = slots;
	interner->slot_count = slot_count;
	return true;
}

static const char *copy_bytes(struct gt_interner *interner, struct gt_str name)
{
	struct gt_intern_block *block = interner->blocks;
	char *to;

	if (!block || block->cap - block->used < name.len) {
		size_t cap = GT_MAX(BLOCK_BYTES, name.len);

		block = malloc(sizeof(*block) + cap);
		if (!block)
			return NULL;
		block->next = interner->blocks;
		block->used = 0;
		block->cap = cap;
		interner->blocks = block;
	}
	to = block->bytes + block->used;
	if (name.len)
		memcpy(to, name.ptr, name.len);
	block->used += name.len;
	return to;
}

static bool add_name(struct gt_interner *interner, struct gt_str name)
{
	if (interner->count == interner->names_cap) {
		uint32_t cap = interner->names_cap ? interner->names_cap * 2 : 64;
		struct gt_str *names = realloc(interner->names, cap * sizeof(*names));
		uint32_t *followers;

		if (!names)
			return false;
		interner->names = names;
		followers = realloc(interner->followers, cap * sizeof(*followers));
		if (!followers)
			return false;
		interner->followers = followers;
		interner->names_cap = cap;
	}
	name.ptr = copy_bytes(interner, name);
	if (!name.ptr)
		return false;
	interner->followers[interner->count] = 0;
	interner->names[interner->count++] = name;
	return true;
}

/* The number of a name, which is added when it is new. */
static uint32_t look_up(struct gt_interner *interner, struct gt_str name)
{
	uint32_t hash = gt_hash_name(name);
	uint32_t at;

	if (interner->count >= interner->slot_count / 2 && !grow_slots(interner))
		return GT_INTERN_FAILED;
	at = hash & (interner->slot_count - 1);
	while (interner->slots[at].number) {
		uint32_t number = interner->slots[at].number - 1;

		if (interner->slots[at].hash == hash && gt_str_equal(interner->names[number], name))
			return number;
		at = (at + 1) & (interner->slot_count - 1);
	}
	if (!add_name(interner, name))
		return GT_INTERN_FAILED;
	interner->slots[at] = (struct gt_intern_slot){ hash, interner->count };
	return interner->count - 1;
}

uint32_t gt_intern(struct gt_interner *interner, struct gt_str name)
{
	uint32_t number;

	if (interner->count) {
		number = interner->followers[interner->last];
		if (gt_str_equal(interner->names[number], name))
			return interner->last = number;
	}
	number = look_up(interner, name);
	if (number == GT_INTERN_FAILED)
		return number;
	interner->followers[interner->last] = number;
	return interner->last = number;
}

void gt_interner_release(struct gt_interner *interner)
{
	struct gt_intern_block *block, *next;

	for (block = interner->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(interner->slots);
	free(interner->names);
	free(interner->followers);
	memset(interner, 0, sizeof(*interner));
}
