#include "base.h"
#include "event_pairs.h"

#define MAX_OPEN   (UINT32_C(1) << 20) /* at a time: 24 MiB */
#define MAX_TRACKS (UINT32_C(1) << 20) /* threads and ids */
#define MAX_PAIRS  (UINT64_C(1) << 28) /* 32 MiB; more are taken by their own time */

struct open_slice {
	uint64_t number; /* of its beginning */
	int64_t start_ns;
	uint32_t outer; /* plus 1; of unused ones the next one */
	bool is_wanted;
};

/* The number of a track: the innermost slice plus 1, and above it how many more are open inside of
 * it that were too many to remember. */
#define INNERMOST(value) ((uint32_t)((uint64_t)(value)&UINT32_MAX))
#define FORGOTTEN_ONE    (INT64_C(1) << 32)

enum side { SIDE_NONE, SIDE_BEGIN, SIDE_WITHIN, SIDE_END };

static enum side side_of(char phase)
{
	switch (phase) {
	case 'B':
	case 'b':
	case 'S':
		return SIDE_BEGIN;
	case 'E':
	case 'e':
	case 'F':
		return SIDE_END;
	case 'n':
	case 'T':
	case 'p':
		return SIDE_WITHIN;
	default:
		return SIDE_NONE;
	}
}

bool gt_event_is_paired(const struct gt_trace_event *event)
{
	return side_of(event->phase) != SIDE_NONE;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static uint64_t hash_id(uint64_t hash, const struct gt_trace_id *id)
{
	if (id->text.ptr)
		return gt_str_hash(hash, id->text);
	return gt_str_hash(hash, (struct gt_str){ (const char *)&id->number, sizeof(id->number) });
}

/* By thread, or by category and id, which in id2 may be one of the process. */
static int64_t track_of(const struct gt_trace_event *event)
{
	static const struct gt_str names[] = { GT_STR("id"), GT_STR("id2"), GT_STR("scope") };
	struct gt_trace_event as_args = { .args = event->text };
	struct gt_str values[ARRAY_SIZE(names)];
	bool is_legacy = strchr("STpF", event->phase) != NULL;
	uint64_t hash = GT_HASH_START;

	if (event->phase == 'B' || event->phase == 'E')
		return (int64_t)hash_id(hash_id(hash, &event->pid), &event->tid);
	gt_trace_event_args(&as_args, names, values, ARRAY_SIZE(names));
	hash = gt_str_hash(hash, event->cat_text);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		hash = gt_str_hash(hash, values[i]);
	if (values[1].len)
		hash = hash_id(hash, &event->pid);
	return (int64_t)(is_legacy ? gt_str_hash(hash, event->name) : hash);
}

static struct open_slice *slice_at(struct gt_event_pairs *pairs, uint32_t number)
{
	return &((struct open_slice *)(void *)pairs->open.data)[number - 1];
}

/* Ids are often used once: those under which nothing is open any more are forgotten. */
static int forget_closed(struct gt_event_pairs *pairs)
{
	struct gt_id_map open = { 0 };

	for (uint32_t i = 0; i < pairs->heads.slot_count; i++) {
		const struct gt_id_slot *slot = &pairs->heads.slots[i];
		int64_t *head;

		if (!slot->id || !slot->value)
			continue;
		head = gt_id_map_put(&open, slot->id);
		if (!head) {
			gt_id_map_release(&open);
			return -ENOMEM;
		}
		*head = slot->value;
	}
	gt_id_map_release(&pairs->heads);
	pairs->heads = open;
	return 0;
}

/* *ret is NULL when there are too many. */
static int find_head(struct gt_event_pairs *pairs, int64_t track, int64_t **ret)
{
	*ret = gt_id_map_find(&pairs->heads, track);
	if (*ret)
		return 0;
	if (pairs->heads.count >= MAX_TRACKS) {
		int rc = forget_closed(pairs);

		if (rc || pairs->heads.count >= MAX_TRACKS / 2)
			return rc;
	}
	*ret = gt_id_map_put(&pairs->heads, track);
	return *ret ? 0 : -ENOMEM;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool is_kept(const struct gt_event_pairs *pairs, uint64_t number)
{
	return number / 8 < pairs->kept.len &&
	       (unsigned char)pairs->kept.data[number / 8] >> number % 8 & 1;
}

static void keep(struct gt_event_pairs *pairs, const struct open_slice *slice, int64_t end_ns,
		 struct gt_event_span span)
{
	if (slice->is_wanted && slice->start_ns < span.end_ns &&
	    (slice->start_ns >= span.start_ns || end_ns > span.start_ns))
		pairs->kept.data[slice->number / 8] |= (char)(1 << slice->number % 8);
}

/* 1: it is open now; 0: there are too many to remember; -ENOMEM. */
static int begin(struct gt_event_pairs *pairs, const struct gt_trace_event *event, bool is_wanted)
{
	struct open_slice slice = { pairs->count, event->ts_ns, 0, is_wanted };
	size_t open = pairs->open.len / sizeof(slice);
	uint32_t number = pairs->free;
	int64_t *head;
	int rc = find_head(pairs, track_of(event), &head);

	if (rc || !head)
		return rc;
	if (slice.number >= MAX_PAIRS || (!number && open >= MAX_OPEN) || *head >= FORGOTTEN_ONE) {
		*head += FORGOTTEN_ONE;
		return 0;
	}
	slice.outer = INNERMOST(*head);
	if (number) {
		pairs->free = slice_at(pairs, number)->outer;
		*slice_at(pairs, number) = slice;
	} else {
		number = (uint32_t)open + 1;
		gt_buf_append(&pairs->open, &slice, sizeof(slice));
	}
	*head = number;
	if (pairs->count++ / 8 >= pairs->kept.len)
		gt_buf_byte(&pairs->kept, 0);
	return pairs->open.failed || pairs->kept.failed ? -ENOMEM : 1;
}

/* The innermost slice of a track; false: none is known. An end takes it away. */
static bool innermost(struct gt_event_pairs *pairs, const struct gt_trace_event *event,
		      struct open_slice *ret)
{
	int64_t *head = gt_id_map_find(&pairs->heads, track_of(event));
	bool is_end = side_of(event->phase) == SIDE_END;
	uint32_t number;

	if (!head || !*head)
		return false;
	if (*head >= FORGOTTEN_ONE) {
		*head -= is_end ? FORGOTTEN_ONE : 0;
		return false;
	}
	number = INNERMOST(*head);
	*ret = *slice_at(pairs, number);
	if (is_end) {
		*head = ret->outer;
		slice_at(pairs, number)->outer = pairs->free;
		pairs->free = number;
	}
	return true;
}

int gt_event_pairs_note(struct gt_event_pairs *pairs, const struct gt_trace_event *event,
			bool is_wanted, struct gt_event_span span)
{
	struct open_slice slice;

	if (side_of(event->phase) == SIDE_BEGIN)
		return GT_MIN(begin(pairs, event, is_wanted), 0);
	if (side_of(event->phase) == SIDE_END && innermost(pairs, event, &slice))
		keep(pairs, &slice, event->ts_ns, span);
	return 0;
}

void gt_event_pairs_reread(struct gt_event_pairs *pairs, struct gt_event_span span)
{
	for (uint32_t i = 0; i < pairs->heads.slot_count; i++) {
		uint32_t number = INNERMOST(pairs->heads.slots[i].value);

		for (; pairs->heads.slots[i].id && number; number = slice_at(pairs, number)->outer)
			keep(pairs, slice_at(pairs, number), INT64_MAX, span);
	}
	gt_id_map_release(&pairs->heads);
	pairs->open.len = 0;
	pairs->free = 0;
	pairs->count = 0;
	pairs->is_rereading = true;
}

bool gt_event_pairs_take(struct gt_event_pairs *pairs, const struct gt_trace_event *event,
			 bool alone)
{
	struct open_slice slice;
	uint64_t number = pairs->count;

	if (!pairs->is_rereading)
		return alone;
	if (side_of(event->phase) == SIDE_BEGIN)
		return begin(pairs, event, false) > 0 ? is_kept(pairs, number) : alone;
	return innermost(pairs, event, &slice) ? is_kept(pairs, slice.number) : alone;
}

void gt_event_pairs_release(struct gt_event_pairs *pairs)
{
	gt_id_map_release(&pairs->heads);
	gt_buf_release(&pairs->open);
	gt_buf_release(&pairs->kept);
}
