#include "base.h"
#include "fwdbwd.h"

#include <stdlib.h>

struct gt_fwdbwd_slot {
	uint64_t sequence;
	uint32_t thread; /* 0: a free slot; torch counts from 1 */
	bool has_forward;
	bool has_backward;
	struct gt_fwdbwd_end forward;
	struct gt_fwdbwd_end backward;
};

static void pass_on(struct gt_fwdbwd *links, const struct gt_fwdbwd_slot *slot)
{
	/* With the clock set back in between the arrow would point into the past. */
	if (slot->has_forward && slot->has_backward &&
	    slot->forward.start_ns <= slot->backward.start_ns)
		links->sink(links->ctx, &slot->forward, &slot->backward);
}

void gt_fwdbwd_add(struct gt_fwdbwd *links, uint32_t thread, uint64_t sequence, bool backward,
		   const struct gt_fwdbwd_end *end)
{
	struct gt_fwdbwd_slot *slot;

	if (!links->slots)
		links->slots = calloc(GT_FWDBWD_SLOTS, sizeof(*links->slots));
	if (!links->slots || !thread)
		return;
	/* Threads count from 0 each: far apart, they rarely get into each other's way. */
	slot = &links->slots[(sequence + thread * UINT64_C(0x9e37)) % GT_FWDBWD_SLOTS];
	if (slot->thread != thread || slot->sequence != sequence) {
		pass_on(links, slot);
		*slot = (struct gt_fwdbwd_slot){ .sequence = sequence, .thread = thread };
	}
	if (backward) {
		if (!slot->has_backward || end->end_ns < slot->backward.end_ns)
			slot->backward = *end;
		slot->has_backward = true;
	} else {
		if (!slot->has_forward || end->start_ns >= slot->forward.start_ns)
			slot->forward = *end;
		slot->has_forward = true;
	}
}

void gt_fwdbwd_flush(struct gt_fwdbwd *links)
{
	size_t i;

	for (i = 0; links->slots && i < GT_FWDBWD_SLOTS; i++)
		pass_on(links, &links->slots[i]);
	gt_fwdbwd_release(links);
}

void gt_fwdbwd_release(struct gt_fwdbwd *links)
{
	free(links->slots);
	links->slots = NULL;
}
