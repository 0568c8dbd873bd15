/*
 * rec_look.c - looks at the arena: what is in it at a moment, for the next drain to read, and what
 * was lost up to then.
 */
#include "base.h"
#include "rec_state.h"

static void note_losses(struct gt_recorder *rec)
{
	const struct gt_losses *newest = &rec->losses[(rec->losses_count - 1) % GT_LOOKS_KEPT];

	/* The plan's steps, which are not read so far: what was lost before them is not to be
	 * forgotten. */
	if (rec->held.active && rec->step_limit >= gt_plan_begin(&rec->held))
		return;
	if (!rec->losses_count || newest->step != rec->step_limit)
		rec->losses_count++;
	rec->losses[(rec->losses_count - 1) % GT_LOOKS_KEPT] =
		(struct gt_losses){ .state = rec->state, .step = rec->step_limit };
}

const struct gt_arena_state *gt_rec_losses_before(const struct gt_recorder *rec, uint64_t step)
{
	static const struct gt_arena_state nothing;
	uint64_t oldest = gt_sub(rec->losses_count, GT_LOOKS_KEPT);

	for (uint64_t i = rec->losses_count; i-- > oldest;) {
		const struct gt_losses *losses = &rec->losses[i % GT_LOOKS_KEPT];

		if (losses->step < step)
			return &losses->state;
	}
	return oldest ? &rec->losses[oldest % GT_LOOKS_KEPT].state : &nothing;
}

static void note_late_step(struct gt_recorder *rec)
{
	uint64_t late = rec->state.late_step;

	if (late &&
	    (!rec->late_count || rec->late_steps[(rec->late_count - 1) % GT_LATE_KEPT] != late))
		rec->late_steps[rec->late_count++ % GT_LATE_KEPT] = late;
}

bool gt_rec_began_late(const struct gt_recorder *rec, uint64_t step)
{
	for (size_t i = 0; i < GT_LATE_KEPT; i++)
		if (rec->late_steps[i] == step + 1)
			return true;
	return false;
}

/*
 * The order matters, since the target goes on writing: DONE records, then how far events go, then
 * the step, which is that of the newest of them or a later one.
 */
void gt_recorder_look(struct gt_recorder *rec)
{
	struct gt_msg_phase yield;

	gt_arena_state(rec->arena, &rec->state);
	rec->chunk_counts[GT_LIST_RECORDS] =
		gt_arena_list(rec->arena, GT_POOL_CUPTI, rec->gone, rec->chunks[GT_LIST_RECORDS]);
	rec->chunk_counts[GT_LIST_EVENTS] =
		gt_arena_list(rec->arena, GT_POOL_EVENT, true, rec->chunks[GT_LIST_EVENTS]);
	rec->step_limit = gt_arena_step(rec->arena);
	note_losses(rec);
	note_late_step(rec);
	for (int i = 0; i < GT_YIELDS && gt_arena_yield(rec->arena, &rec->yields_seen, &yield); i++)
		gt_windows_phase(rec, &yield);
}
