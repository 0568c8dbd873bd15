/*
 * ranges.c - the life of a range, whatever its kind, and the GPU work in it.
 */
#include "base.h"
#include "ranges_priv.h"

#include <stdlib.h>

struct gt_str gt_range_name(const struct gt_range *range, const struct gt_names *names)
{
	if (range->name_id)
		return gt_names_get(names, range->name_id);
	return (struct gt_str){ range->text, range->len_bytes };
}

struct gt_str gt_range_inputs(const struct gt_range *range)
{
	return (struct gt_str){ range->text + range->len_bytes, range->inputs_bytes };
}

/* ---- life of a range ---- */

static size_t bytes_of(const struct gt_range *range)
{
	return sizeof(*range) + range->len_bytes + range->inputs_bytes;
}

struct gt_range *gt_range_make(struct gt_ranges *ranges, const struct gt_range *like,
			       const char *text, const char *inputs)
{
	size_t bytes = bytes_of(like);
	struct gt_range *range;

	if (bytes > GT_RANGES_MAX_BYTES - ranges->bytes)
		goto refuse;
	range = malloc(bytes);
	if (!range)
		goto refuse;
	*range = *like;
	memcpy(range->text, text, like->len_bytes);
	memcpy(range->text + like->len_bytes, inputs, like->inputs_bytes);
	range->end_ns = UINT64_MAX;
	range->refs = 1;
	range->external_id = ++ranges->last_external_id;
	ranges->bytes += bytes;
	return range;
refuse:
	ranges->refused++;
	return NULL;
}

struct gt_range *gt_range_hold(struct gt_range *range)
{
	if (range)
		range->refs++;
	return range;
}

void gt_ranges_unhold(struct gt_ranges *ranges, struct gt_range *range)
{
	struct gt_range *outer;

	for (; range && !--range->refs; range = outer) {
		outer = range->outer;
		if (range->window != GT_WINDOW_NONE && range->span_count)
			ranges->sink.spans(ranges->sink.ctx, range);
		ranges->bytes -= bytes_of(range);
		ranges->bytes -= range->span_cap * sizeof(*range->spans);
		ranges->bytes -= range->args_bytes;
		free(range->spans);
		free(range->args);
		free(range);
	}
}

void gt_ranges_close(struct gt_ranges *ranges, struct gt_range *range, uint64_t end_ns)
{
	range->end_ns = GT_MAX(end_ns, range->start_ns);
	if (range->window != GT_WINDOW_NONE)
		ranges->sink.range(ranges->sink.ctx, range);
	gt_ranges_unhold(ranges, range);
}

struct gt_range *gt_range_rest(struct gt_ranges *ranges, const struct gt_range *range,
			       struct gt_range *outer, uint32_t window)
{
	struct gt_range like = *range;
	struct gt_range *rest;

	like.window = range->op ? GT_WINDOW_NONE : window;
	like.outer = outer;
	like.spans = NULL;
	like.span_count = 0;
	like.span_cap = 0;
	like.args = NULL;
	like.args_bytes = 0;
	like.gpu_args_bytes = 0;
	rest = gt_range_make(ranges, &like, range->text, gt_range_inputs(range).ptr);
	if (rest)
		gt_range_hold(outer);
	return rest;
}

/* ---- GPU work ---- */

static struct gt_range_span *find_span(struct gt_ranges *ranges, struct gt_range *range,
				       const struct gt_gpu_op *op)
{
	struct gt_range_span *span;
	uint16_t i, cap;

	for (i = range->span_count; i--;) {
		span = &range->spans[i];
		if (span->stream == op->stream && span->device == op->device)
			return span;
	}
	if (range->span_count == range->span_cap) {
		cap = range->span_cap ? range->span_cap * 2 : 2;
		if (cap > GT_RANGE_LANES_MAX)
			return NULL;
		span = realloc(range->spans, cap * sizeof(*span));
		if (!span)
			return NULL;
		ranges->bytes += (cap - range->span_cap) * sizeof(*span);
		range->spans = span;
		range->span_cap = cap;
	}
	span = &range->spans[range->span_count++];
	*span = (struct gt_range_span){
		.start_ns = op->start_ns,
		.end_ns = op->end_ns,
		.device = op->device,
		.stream = op->stream,
	};
	return span;
}

void gt_range_add_work(struct gt_ranges *ranges, struct gt_range *range, const struct gt_gpu_op *op)
{
	struct gt_range_span *span = find_span(ranges, range, op);

	if (!span)
		return;
	span->start_ns = GT_MIN(span->start_ns, op->start_ns);
	span->end_ns = GT_MAX(span->end_ns, op->end_ns);
}

void gt_ranges_work(struct gt_ranges *ranges, struct gt_range *range, uint64_t launch_ns,
		    const struct gt_gpu_op *op)
{
	/* Pops out of order leave an outer range that ended before the launch: hence the test. */
	for (; range; range = range->outer)
		if (!range->op && launch_ns <= range->end_ns)
			gt_range_add_work(ranges, range, op);
}

/* ---- steps and all ---- */

struct gt_range *gt_ranges_step(struct gt_ranges *ranges, uint32_t tid, uint32_t window,
				uint32_t step, uint64_t start_ns)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "ProfilerStep#%u", step);

	return gt_range_make(ranges,
			     &(struct gt_range){
				     .start_ns = start_ns,
				     .tid = tid,
				     .window = window,
				     .step = step,
				     .kind = GT_RANGE_STEP,
				     .len_bytes = (uint32_t)len,
			     },
			     text, "");
}

void gt_ranges_release(struct gt_ranges *ranges)
{
	uint32_t i;

	for (i = 0; i < ranges->thread_count; i++) {
		struct gt_thread *thread = &ranges->threads[i];

		while (thread->top) {
			struct gt_range *range = thread->top;

			thread->top = range->below;
			gt_ranges_unhold(ranges, range);
		}
		free(thread->calls.open);
	}
	while (ranges->shared) {
		struct gt_range *range = ranges->shared;

		ranges->shared = range->below;
		gt_ranges_unhold(ranges, range);
	}
	ranges->shared_count = 0;
	free(ranges->threads);
	gt_map_release(&ranges->by_tid);
	ranges->threads = NULL;
	ranges->thread_count = 0;
	ranges->thread_cap = 0;
}
