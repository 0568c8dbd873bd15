#include "base.h"
#include "step_marks.h"
#include "wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

const char *gt_step_source_name(uint32_t source)
{
#define X(id, name) name,
	static const char *const names[] = { GT_STEP_SOURCES(X) };
#undef X

	return names[source < ARRAY_SIZE(names) ? source : GT_STEP_NONE];
}

/* Position of the first mark whose step is greater. */
static size_t pos_after(const struct gt_steps *steps, uint64_t step)
{
	size_t low = 0, high = steps->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (steps->marks[mid].step > step)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

void gt_steps_add(struct gt_steps *steps, const struct gt_step_mark *mark, uint32_t source)
{
	size_t pos;

	if (source < steps->source)
		return;
	if (source > steps->source) {
		steps->source = source;
		steps->count = 0;
	}
	/* Threads are read one after the other, so marks of several do not come in order. */
	pos = pos_after(steps, mark->step);
	if (pos && steps->marks[pos - 1].step == mark->step)
		return;
	if (pos < steps->count && (steps->marks[pos].time_ns < mark->time_ns ||
				   (pos && steps->marks[pos - 1].time_ns > mark->time_ns)))
		return;
	if (steps->count == GT_STEPS_KEPT) {
		size_t half = GT_STEPS_KEPT / 2;

		if (pos < half)
			return;
		memmove(steps->marks, steps->marks + half, half * sizeof(steps->marks[0]));
		steps->count = half;
		pos -= half;
	}
	memmove(&steps->marks[pos + 1], &steps->marks[pos],
		(steps->count - pos) * sizeof(steps->marks[0]));
	steps->marks[pos] = *mark;
	/* Somebody set the clock back: no step ends before it began. */
	if (pos && mark->time_ns < steps->marks[pos - 1].time_ns)
		steps->marks[pos].time_ns = steps->marks[pos - 1].time_ns;
	steps->count++;
}

const struct gt_step_mark *gt_steps_after(const struct gt_steps *steps, uint64_t step)
{
	size_t pos = pos_after(steps, step);

	return pos < steps->count ? &steps->marks[pos] : NULL;
}

const struct gt_step_mark *gt_steps_find(const struct gt_steps *steps, uint64_t step)
{
	size_t pos = pos_after(steps, step);

	return pos && steps->marks[pos - 1].step == step ? &steps->marks[pos - 1] : NULL;
}

uint32_t gt_steps_at(const struct gt_steps *steps, uint64_t time_ns)
{
	size_t pos = steps->count;

	/* Asked about the recent past: the newest marks are the likely ones. */
	while (pos && steps->marks[pos - 1].time_ns > time_ns)
		pos--;
	return pos ? steps->marks[pos - 1].step : 0;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

double gt_steps_median_ms(const struct gt_steps *steps, uint64_t first, uint64_t last, size_t most)
{
	uint64_t ns[GT_STEPS_KEPT];
	size_t count = 0, pos = pos_after(steps, last);

	most = GT_MIN(most, ARRAY_SIZE(ns));
	for (; pos && count < most && steps->marks[pos - 1].step >= first; pos--) {
		const struct gt_step_mark *begin = &steps->marks[pos - 1];

		if (pos < steps->count && begin[1].step == begin->step + 1)
			ns[count++] = begin[1].time_ns - begin->time_ns;
	}
	if (!count)
		return NAN;
	qsort(ns, count, sizeof(*ns), by_value);
	return (double)(ns[(count - 1) / 2] + ns[count / 2]) / 2 / GT_NSEC_PER_MSEC;
}

struct gt_steps_text gt_steps_text(uint64_t first, uint64_t last)
{
	struct gt_steps_text ret;

	if (first == last)
		snprintf(ret.text, sizeof(ret.text), "step %" PRIu64, first);
	else
		snprintf(ret.text, sizeof(ret.text), "steps %" PRIu64 " to %" PRIu64, first, last);
	return ret;
}
