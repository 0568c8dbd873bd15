#include "lanes.h"

#include <stdlib.h>

#define CHUNK_SPANS     63                /* fills 1 KiB */
#define ROW_CHUNKS_MAX  4096              /* about 258,000 slices, 4 MiB */
#define POOL_CHUNKS_MAX ((size_t)1 << 15) /* 32 MiB a trace */

struct span {
	uint64_t start;
	uint64_t end;
};

struct chunk { /* spans in the order of their start, the longer first */
	uint32_t count;
	struct span spans[CHUNK_SPANS];
};

struct chunk_ref {
	struct chunk *chunk;
	uint64_t max_end; /* of its spans */
	uint64_t reach;   /* of its spans and of those in all chunks before it */
};

struct gt_lane_row {
	struct chunk_ref *refs; /* in order, none empty */
	uint32_t count;
	uint32_t cap;
	bool forgot;
	struct span past; /* if forgot: from the first to the last moment of what was forgotten */
};

static bool span_before(const struct span *a, const struct span *b)
{
	return a->start < b->start || (a->start == b->start && a->end > b->end);
}

/* How many chunks begin before span. */
static uint32_t chunks_before(const struct gt_lane_row *row, const struct span *span)
{
	uint32_t low = 0, high = row->count;

	if (high && span_before(&row->refs[high - 1].chunk->spans[0], span))
		return high; /* the usual case: later than everything */
	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (span_before(&row->refs[mid].chunk->spans[0], span))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint32_t spans_before(const struct chunk *chunk, const struct span *span)
{
	uint32_t low = 0, high = chunk->count;

	if (span_before(&chunk->spans[high - 1], span))
		return high;
	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (span_before(&chunk->spans[mid], span))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The last span that starts before 'before' and ends after 'after'. */
static const struct span *last_reaching(const struct gt_lane_row *row, uint64_t before,
					uint64_t after)
{
	const struct span key = { .start = before, .end = UINT64_MAX };
	uint32_t c = chunks_before(row, &key);

	while (c-- && row->refs[c].reach > after) {
		const struct chunk *chunk = row->refs[c].chunk;
		uint32_t i;

		if (row->refs[c].max_end <= after)
			continue;
		for (i = spans_before(chunk, &key); i--;) {
			if (chunk->spans[i].end > after)
				return &chunk->spans[i];
		}
	}
	return NULL;
}

static bool row_fits(const struct gt_lane_row *row, enum gt_lane_rule rule, const struct span *span)
{
	const struct span *other;

	if (row->forgot && span->start < row->past.end && span->end > row->past.start) {
		if (rule == GT_LANE_DISJOINT || span->start > row->past.start ||
		    span->end < row->past.end)
			return false;
	}
	if (rule == GT_LANE_DISJOINT)
		return !last_reaching(row, span->end, span->start);
	/* What is here nests already, so the innermost span around each end decides. */
	other = last_reaching(row, span->start, span->start);
	if (other && other->end < span->end)
		return false;
	other = last_reaching(row, span->end, span->end);
	return !other || other->start <= span->start;
}

/* Count a span of chunk at anew; its reach and that of later chunks only grows. */
static void row_note_end(struct gt_lane_row *row, uint32_t at, uint64_t end)
{
	row->refs[at].max_end = GT_MAX(row->refs[at].max_end, end);
	for (; at < row->count && row->refs[at].reach < end; at++)
		row->refs[at].reach = end;
}

/* Count the spans of the chunks from c on, before end, anew. */
static void row_update_reach(struct gt_lane_row *row, uint32_t c, uint32_t end)
{
	uint64_t reach = c ? row->refs[c - 1].reach : 0;
	uint32_t i;

	for (; c < end; c++) {
		const struct chunk *chunk = row->refs[c].chunk;

		row->refs[c].max_end = 0;
		for (i = 0; i < chunk->count; i++)
			row->refs[c].max_end = GT_MAX(row->refs[c].max_end, chunk->spans[i].end);
		reach = GT_MAX(reach, row->refs[c].max_end);
		row->refs[c].reach = reach;
	}
}

static void forget_span(struct gt_lane_row *row, const struct span *span)
{
	if (!row->forgot) {
		row->forgot = true;
		row->past = *span;
	}
	row->past.start = GT_MIN(row->past.start, span->start);
	row->past.end = GT_MAX(row->past.end, span->end);
}

/*
 * Forget the older half of the row, but for the spans that reach into the other half (ranges still
 * open there); of those at most one chunk stays, so that there always is progress.
 */
static void row_forget(struct gt_lane_row *row, struct gt_lane_pool *pool)
{
	uint32_t drop = (row->count + 1) / 2, c, i;
	uint64_t cut = drop < row->count ? row->refs[drop].chunk->spans[0].start : UINT64_MAX;
	struct chunk keep = { .count = 0 };
	bool room = drop > 1;

	for (c = 0; c < drop; c++) {
		const struct chunk *chunk = row->refs[c].chunk;

		for (i = 0; i < chunk->count; i++) {
			if (room && chunk->spans[i].end > cut && keep.count < CHUNK_SPANS)
				keep.spans[keep.count++] = chunk->spans[i];
			else
				forget_span(row, &chunk->spans[i]);
		}
	}
	if (keep.count)
		*row->refs[--drop].chunk = keep;
	for (c = 0; c < drop; c++)
		free(row->refs[c].chunk);
	pool->chunks -= drop;
	row->count -= drop;
	memmove(row->refs, row->refs + drop, row->count * sizeof(*row->refs));
	row_update_reach(row, 0, row->count);
}

/* A new chunk at index at, or NULL. */
static struct chunk *row_add_chunk(struct gt_lane_row *row, struct gt_lane_pool *pool, uint32_t at)
{
	struct chunk *chunk;

	if (pool->chunks >= POOL_CHUNKS_MAX)
		return NULL;
	if (row->count == row->cap) {
		uint32_t cap = row->cap ? row->cap * 2 : 4;
		struct chunk_ref *refs = realloc(row->refs, cap * sizeof(*refs));

		if (!refs)
			return NULL;
		row->refs = refs;
		row->cap = cap;
	}
	chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return NULL;
	chunk->count = 0;
	memmove(row->refs + at + 1, row->refs + at, (row->count - at) * sizeof(*row->refs));
	row->refs[at].chunk = chunk;
	row->refs[at].max_end = 0;
	row->refs[at].reach = at ? row->refs[at - 1].reach : 0;
	row->count++;
	pool->chunks++;
	return chunk;
}

static void row_insert(struct gt_lane_row *row, struct gt_lane_pool *pool, const struct span *span)
{
	struct chunk *chunk, *upper;
	uint32_t c, at = 0;

	if (row->count >= ROW_CHUNKS_MAX || (row->count && pool->chunks >= POOL_CHUNKS_MAX))
		row_forget(row, pool);
	c = chunks_before(row, span);
	c -= c > 0;
	if (row->count)
		at = spans_before(row->refs[c].chunk, span);
	if (!row->count || row->refs[c].chunk->count == CHUNK_SPANS) {
		upper = row_add_chunk(row, pool, row->count ? c + 1 : 0);
		if (!upper) {
			forget_span(row, span);
			return;
		}
		chunk = row->refs[c].chunk;
		if (at == chunk->count && chunk != upper) {
			c++; /* in order: leave the full chunk full */
			at = 0;
		} else if (chunk != upper) {
			upper->count = chunk->count / 2;
			chunk->count -= upper->count;
			memcpy(upper->spans, chunk->spans + chunk->count,
			       upper->count * sizeof(*span));
			row_update_reach(row, c, c + 2);
			if (at > chunk->count) {
				at -= chunk->count;
				c++;
			}
		}
	}
	chunk = row->refs[c].chunk;
	memmove(chunk->spans + at + 1, chunk->spans + at, (chunk->count - at) * sizeof(*span));
	chunk->spans[at] = *span;
	chunk->count++;
	row_note_end(row, c, span->end);
}

static struct gt_lane_row *track_add_row(struct gt_track *track)
{
	struct gt_lane_row **rows;

	rows = realloc(track->rows, (track->row_count + 1) * sizeof(struct gt_lane_row *));
	if (!rows)
		return NULL;
	track->rows = rows;
	rows[track->row_count] = calloc(1, sizeof(struct gt_lane_row));
	if (!rows[track->row_count])
		return NULL;
	return rows[track->row_count++];
}

uint32_t gt_track_place(struct gt_track *track, struct gt_lane_pool *pool, uint32_t first,
			uint64_t start_ns, uint64_t end_ns)
{
	const struct span span = { start_ns, end_ns };
	uint32_t r = first;

	while (r < GT_LANE_ROWS_MAX) {
		if (r >= track->row_count) {
			if (!track_add_row(track))
				return r;
			continue;
		}
		if (end_ns <= start_ns)
			return r;
		if (row_fits(track->rows[r], track->rule, &span)) {
			row_insert(track->rows[r], pool, &span);
			return r;
		}
		r++;
	}
	return GT_LANE_ROWS_MAX - 1;
}

void gt_track_release(struct gt_track *track, struct gt_lane_pool *pool)
{
	uint32_t r, c;

	for (r = 0; r < track->row_count; r++) {
		for (c = 0; c < track->rows[r]->count; c++)
			free(track->rows[r]->refs[c].chunk);
		pool->chunks -= track->rows[r]->count;
		free(track->rows[r]->refs);
		free(track->rows[r]);
	}
	free(track->rows);
	track->rows = NULL;
	track->row_count = 0;
}
