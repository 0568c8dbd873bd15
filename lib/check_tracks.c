/*
 * check_tracks.c - the slices of each track must nest, arrows end on a slice, and steps follow each
 * other.
 */
#include "base.h"
#include "check_priv.h"

#include <stdlib.h>

#define MAX_SLICES   ((size_t)2 << 20) /* 64 MiB */
#define MAX_TRACKS   (UINT32_C(1) << 17)
#define MAX_STEPS    ((size_t)1 << 16)
#define NAME_MAX_LEN 64
#define STEP_PREFIX  GT_STR("ProfilerStep#")

/* Times are clamped so that sums stay within 64 bits. */
#define TIME_MAX_NS (INT64_C(1) << 61)

/* Rounding to ns makes slices of one thread overlap by so much. */
#define ROUNDING_NS 1

struct step {
	int64_t start_ns;
	int64_t end_ns;
	int64_t number;
	uint32_t pid;
	uint32_t event;
};

/* ---- events ---------------------------------------------------------------------------------- */

/* The number of the track (or process, when tid is empty); GT_INTERN_FAILED: too many. */
static int find_track(struct gt_interner *names, struct gt_str pid, struct gt_str tid,
		      uint32_t *ret)
{
	char name[2 * NAME_MAX_LEN + 1];
	size_t len = 0;

	*ret = GT_INTERN_FAILED;
	if (!pid.len || pid.len > NAME_MAX_LEN || tid.len > NAME_MAX_LEN ||
	    names->count >= MAX_TRACKS)
		return 0;
	memcpy(name, pid.ptr, pid.len);
	len = pid.len;
	name[len++] = '\n'; /* raw values have none */
	if (tid.len)
		memcpy(name + len, tid.ptr, tid.len);
	*ret = gt_intern(names, (struct gt_str){ name, len + tid.len });
	return *ret == GT_INTERN_FAILED ? -ENOMEM : 0;
}

static int add_step(struct gt_checker *checker, const struct gt_check_event *e, int64_t start_ns,
		    int64_t end_ns)
{
	struct gt_check_tracks *tracks = &checker->tracks;
	struct gt_str number = e->event->name;
	struct step step = { start_ns, end_ns, 0, 0, (uint32_t)e->number };
	int rc;

	number.ptr += STEP_PREFIX.len;
	number.len -= STEP_PREFIX.len;
	rc = find_track(&tracks->pids, e->raw[GT_FIELD_PID], (struct gt_str){ 0 }, &step.pid);
	if (rc || step.pid == GT_INTERN_FAILED || !gt_json_int(number, &step.number))
		return rc;
	checker->check->health.steps++;
	if (tracks->steps.len / sizeof(step) < MAX_STEPS)
		gt_buf_append(&tracks->steps, &step, sizeof(step));
	return tracks->steps.failed ? -ENOMEM : 0;
}

static int add_slice(struct gt_checker *checker, struct gt_check_event *e, int64_t start_ns,
		     int64_t end_ns)
{
	struct gt_check_tracks *tracks = &checker->tracks;
	bool is_point = e->event->phase != 'X';
	struct gt_check_slice slice = { .start_ns = start_ns, .end_ns = end_ns };
	struct gt_check_point point = { .at_ns = start_ns, .link = GT_CHECK_NOWHERE };
	size_t slices = tracks->slices.len / sizeof(slice);
	size_t points = tracks->points.len / sizeof(point);
	struct gt_buf *to = is_point ? &tracks->points : &tracks->slices;
	int rc = find_track(&tracks->names, e->raw[GT_FIELD_PID], e->raw[GT_FIELD_TID],
			    &slice.track);

	if (rc)
		return rc;
	if (slice.track == GT_INTERN_FAILED || slices + points >= MAX_SLICES) {
		checker->check->health.not_compared++;
		return 0;
	}
	e->slice = (uint32_t)(is_point ? points : slices);
	slice.event = (uint32_t)e->number << 1 | gt_check_is_gpu_work(e->event);
	point.track = slice.track;
	point.event = (uint32_t)e->number << 1 | (e->event->phase == 's');
	if (is_point)
		gt_buf_append(to, &point, sizeof(point));
	else
		gt_buf_append(to, &slice, sizeof(slice));
	return to->failed ? -ENOMEM : 0;
}

uint64_t gt_check_event_of(const struct gt_checker *checker, uint32_t slice)
{
	const struct gt_check_slice *slices = (const void *)checker->tracks.slices.data;

	return slice == GT_CHECK_NOWHERE ? UINT64_MAX : slices[slice].event >> 1;
}

/* Of a slice, or of one of the two events of one. */
static void widen_span(struct gt_check_tracks *tracks, int64_t start_ns, int64_t end_ns)
{
	tracks->first_ns = GT_MIN(tracks->first_ns, start_ns);
	tracks->last_ns = GT_MAX(tracks->last_ns, end_ns);
}

int gt_check_track_event(struct gt_checker *checker, struct gt_check_event *e)
{
	struct gt_check_tracks *tracks = &checker->tracks;
	const struct gt_trace_event *event = e->event;
	int64_t start_ns = GT_MAX(GT_MIN(event->ts_ns, TIME_MAX_NS), -TIME_MAX_NS);
	int64_t end_ns = start_ns + GT_MAX(GT_MIN(event->dur_ns, TIME_MAX_NS), 0);
	int rc;

	if (!event->has_ts)
		return 0;
	if (event->phase == 's' || event->phase == 'f')
		return e->raw[GT_FIELD_TID].len ? add_slice(checker, e, start_ns, start_ns) : 0;
	if (event->phase && strchr("BEbe", event->phase))
		widen_span(tracks, start_ns, start_ns);
	if (event->phase != 'X' || !event->has_dur)
		return 0;
	rc = add_slice(checker, e, start_ns, end_ns);
	if (rc || event->cat == GT_CAT_TRACE)
		return rc;
	widen_span(tracks, start_ns, end_ns);
	if ((event->cat == GT_CAT_ANNOTATION || event->cat == GT_CAT_CPU_OP) &&
	    gt_str_starts(event->name, STEP_PREFIX))
		return add_step(checker, e, start_ns, end_ns);
	return 0;
}

/* ---- nesting --------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct gt_check_slice *l = a, *r = b;

	if (l->track != r->track)
		return l->track < r->track ? -1 : 1;
	if (l->start_ns != r->start_ns)
		return l->start_ns < r->start_ns ? -1 : 1;
	if (l->end_ns != r->end_ns)
		return l->end_ns > r->end_ns ? -1 : 1;
	return (l->event > r->event) - (l->event < r->event);
}

static bool is_gpu_track(const struct gt_check_slice *slices, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (slices[i].event & 1)
			return true;
	}
	return false;
}

/* Do the slices of one track nest? They are sorted; open holds the numbers of those that have not
 * ended yet. */
static void judge_track(struct gt_checker *checker, const struct gt_check_slice *slices,
			size_t count, struct gt_buf *open)
{
	int64_t allowed = is_gpu_track(slices, count) ? 0 : ROUNDING_NS;
	const struct gt_check_slice *work = NULL;

	open->len = 0;
	for (size_t i = 0; i < count; i++) {
		const struct gt_check_slice *slice = &slices[i], *top = NULL;
		uint32_t number = (uint32_t)i;

		while (open->len) {
			uint32_t last;

			memcpy(&last, open->data + open->len - sizeof(last), sizeof(last));
			top = &slices[last];
			if (top->end_ns > slice->start_ns + allowed)
				break;
			open->len -= sizeof(last);
			top = NULL;
		}
		if (top && slice->end_ns > top->end_ns + allowed &&
		    !(slice->event & 1 && top->event & 1))
			gt_check_add_at(checker, GT_CHECK_S_NEST, slice->event >> 1, 1,
					"ends %lld ns behind event %u",
					(long long)(slice->end_ns - top->end_ns), top->event >> 1);
		gt_buf_append(open, &number, sizeof(number));
		if (open->failed || !(slice->event & 1))
			continue;
		if (work && slice->start_ns < work->end_ns && slice->start_ns < slice->end_ns)
			gt_check_add_at(
				checker, GT_CHECK_S_GPU, slice->event >> 1, 1,
				"%lld ns with event %u",
				(long long)(GT_MIN(slice->end_ns, work->end_ns) - slice->start_ns),
				work->event >> 1);
		if (!work || slice->end_ns > work->end_ns)
			work = slice;
	}
}

static int by_place_of_points(const void *a, const void *b)
{
	const struct gt_check_point *l = a, *r = b;

	if (l->track != r->track)
		return l->track < r->track ? -1 : 1;
	if (l->at_ns != r->at_ns)
		return l->at_ns < r->at_ns ? -1 : 1;
	return (l->event > r->event) - (l->event < r->event);
}

/* Does every point lie on a slice? Both are sorted. */
static void judge_points(struct gt_checker *checker, const struct gt_check_slice *slices,
			 size_t count, const struct gt_check_point *points, size_t point_count)
{
	size_t at = 0;
	int64_t reach = INT64_MIN;
	uint32_t track = UINT32_MAX;

	for (size_t i = 0; i < point_count; i++) {
		const struct gt_check_point *point = &points[i];

		if (point->track != track) {
			track = point->track;
			reach = INT64_MIN;
		}
		for (; at < count &&
		       (slices[at].track < track ||
			(slices[at].track == track && slices[at].start_ns <= point->at_ns));
		     at++) {
			if (slices[at].track == track)
				reach = GT_MAX(reach, slices[at].end_ns);
		}
		if (reach < point->at_ns)
			gt_check_add_at(checker, GT_CHECK_F_END, point->event >> 1, 1, NULL);
		else if (point->is_lost)
			gt_check_add_at(checker, GT_CHECK_F_CORR, point->event >> 1, 1, NULL);
	}
}

static void judge_slices(struct gt_checker *checker)
{
	struct gt_check_tracks *tracks = &checker->tracks;
	struct gt_check_slice *slices = (struct gt_check_slice *)(void *)tracks->slices.data;
	struct gt_check_point *points = (struct gt_check_point *)(void *)tracks->points.data;
	size_t count = tracks->slices.len / sizeof(*slices);
	size_t point_count = tracks->points.len / sizeof(*points);
	struct gt_buf open = { 0 };

	if (count)
		qsort(slices, count, sizeof(*slices), by_place);
	if (point_count)
		qsort(points, point_count, sizeof(*points), by_place_of_points);
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && slices[to].track == slices[from].track; to++)
			;
		judge_track(checker, slices + from, to - from, &open);
	}
	judge_points(checker, slices, count, points, point_count);
	gt_buf_release(&open);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int by_pid_and_time(const void *a, const void *b)
{
	const struct step *l = a, *r = b;

	if (l->pid != r->pid)
		return l->pid < r->pid ? -1 : 1;
	return (l->start_ns > r->start_ns) - (l->start_ns < r->start_ns);
}

static void judge_steps(struct gt_checker *checker)
{
	struct step *steps = (struct step *)(void *)checker->tracks.steps.data;
	size_t count = checker->tracks.steps.len / sizeof(*steps);

	if (!count) {
		gt_check_add(checker, GT_CHECK_P_NONE, NULL, NULL);
		return;
	}
	qsort(steps, count, sizeof(*steps), by_pid_and_time);
	for (size_t i = 1; i < count; i++) {
		const struct step *before = &steps[i - 1], *step = &steps[i];

		if (step->pid != before->pid)
			continue;
		if (step->number <= before->number)
			gt_check_add_at(checker, GT_CHECK_P_ORDER, step->event, 1,
					"step %lld after %lld", (long long)step->number,
					(long long)before->number);
		if (step->start_ns < before->end_ns - ROUNDING_NS)
			gt_check_add_at(checker, GT_CHECK_P_OVERLAP, step->event, 1, "by %lld ns",
					(long long)(before->end_ns - step->start_ns));
	}
}

/* Perfetto takes tid 0 for the thread whose tid is the pid. */
static int judge_tids(struct gt_checker *checker)
{
	struct gt_interner *names = &checker->tracks.names;
	uint32_t count = names->count;

	for (uint32_t i = 0; i < count; i++) {
		struct gt_str name = gt_interned(names, i);
		char twin[2 * NAME_MAX_LEN + 1];
		size_t len = name.len - 2;
		uint32_t other;

		if (name.len < 3 || len > NAME_MAX_LEN || memcmp(name.ptr + len, "\n0", 2) != 0 ||
		    *name.ptr < '1' || *name.ptr > '9')
			continue;
		memcpy(twin, name.ptr, len + 1);
		memcpy(twin + len + 1, name.ptr, len);
		other = gt_intern(names, (struct gt_str){ twin, 2 * len + 1 });
		if (other == GT_INTERN_FAILED)
			return -ENOMEM;
		if (other < count)
			gt_check_add(checker, GT_CHECK_E_TID0, NULL, "pid %.*s", (int)len, twin);
	}
	return 0;
}

int gt_check_tracks_finish(struct gt_checker *checker)
{
	struct gt_check_tracks *tracks = &checker->tracks;
	struct gt_check_health *health = &checker->check->health;

	judge_slices(checker);
	judge_steps(checker);
	health->tracks = tracks->names.count;
	if (tracks->last_ns >= tracks->first_ns)
		health->span_ns = (uint64_t)tracks->last_ns - (uint64_t)tracks->first_ns;
	return judge_tids(checker);
}

void gt_check_tracks_release(struct gt_check_tracks *tracks)
{
	gt_interner_release(&tracks->names);
	gt_interner_release(&tracks->pids);
	gt_buf_release(&tracks->slices);
	gt_buf_release(&tracks->points);
	gt_buf_release(&tracks->steps);
}
