#include "base.h"
#include "steps.h"

#include <math.h>
#include <stdlib.h>

static const struct gt_step_mark *mark_at(const struct gt_steps *steps, uint64_t pos)
{
	return &steps->marks[pos % GT_STEPS_KEPT];
}

static uint64_t oldest(const struct gt_steps *steps)
{
	return steps->count > GT_STEPS_KEPT ? steps->count - GT_STEPS_KEPT : 0;
}

void gt_steps_add(struct gt_steps *steps, uint32_t step, uint64_t time_ns, uint32_t tid)
{
	if (steps->count) {
		const struct gt_step_mark *last = mark_at(steps, steps->count - 1);

		if (step <= last->step || time_ns < last->time_ns)
			return;
	}
	steps->marks[steps->count++ % GT_STEPS_KEPT] = (struct gt_step_mark){
		.time_ns = time_ns,
		.step = step,
		.tid = tid,
	};
}

/* Position of the first mark whose step is greater. */
static uint64_t pos_after(const struct gt_steps *steps, uint64_t step)
{
	uint64_t low = oldest(steps), high = steps->count;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (mark_at(steps, mid)->step > step)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

const struct gt_step_mark *gt_steps_after(const struct gt_steps *steps, uint64_t step)
{
	uint64_t pos = pos_after(steps, step);

	return pos < steps->count ? mark_at(steps, pos) : NULL;
}

const struct gt_step_mark *gt_steps_find(const struct gt_steps *steps, uint64_t step)
{
	uint64_t pos = pos_after(steps, step);
	const struct gt_step_mark *mark;

	if (pos == oldest(steps))
		return NULL;
	mark = mark_at(steps, pos - 1);
	return mark->step == step ? mark : NULL;
}

uint32_t gt_steps_at(const struct gt_steps *steps, uint64_t time_ns)
{
	uint64_t pos = steps->count;

	/* Asked about the recent past: the newest marks are the likely ones. */
	while (pos > oldest(steps) && mark_at(steps, pos - 1)->time_ns > time_ns)
		pos--;
	return pos > oldest(steps) ? mark_at(steps, pos - 1)->step : 0;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

double gt_steps_median_ms(const struct gt_steps *steps, uint64_t first, uint64_t last, size_t most)
{
	uint64_t ns[GT_STEPS_KEPT];
	uint64_t pos = pos_after(steps, last);
	size_t count = 0;

	most = GT_MIN(most, ARRAY_SIZE(ns));
	for (; pos > oldest(steps) && count < most; pos--) {
		const struct gt_step_mark *begin = mark_at(steps, pos - 1), *end;

		if (begin->step < first)
			break;
		end = pos < steps->count ? mark_at(steps, pos) : NULL;
		if (end && end->step == begin->step + 1)
			ns[count++] = end->time_ns - begin->time_ns;
	}
	if (!count)
		return NAN;
	qsort(ns, count, sizeof(*ns), by_value);
	return (double)(ns[(count - 1) / 2] + ns[count / 2]) / 2 / GT_NSEC_PER_MSEC;
}
