/*
 * cut.c - see cut.h. One reading finds the span of time, one what is linked to what is in it, and
 * one copies: no producer sorts its events.
 */
#include "base.h"
#include "cut.h"
#include "id_map.h"
#include "json_reader.h"
#include "safe_text.h"
#include "trace_event.h"

#define STEP_PREFIX GT_STR("ProfilerStep#")

/* Ids that are remembered, of each kind (64 MiB); beyond, events go by their own time. */
#define MAX_IDS (UINT32_C(1) << 21)

/* Times beyond it are clamped: sums stay within 64 bits. */
#define TIME_MAX_NS (INT64_C(1) << 61)

#define MAX_DEVICES 64

/* What is known of a correlation. */
enum {
	LAUNCH_SEEN = 1,
	LAUNCH_IN = 2, /* the span */
	LAUNCH_KEPT = 4,
	GPU_SEEN = 8,
	GPU_WANTED = 16,
};

/* Of an arrow and of an annotation. */
enum {
	OUTSIDE = 1,
	INSIDE = 2,
};

struct cutter {
	const struct gt_cut_choice *choice;
	struct gt_trace_copy *copy;
	bool has_span;
	int64_t from_ns;
	int64_t to_ns;
	/* the first reading */
	int64_t first_ns;
	int64_t last_ns;
	int64_t lowest_step;
	int64_t highest_step;
	/* the second */
	struct gt_id_map correlations;
	struct gt_id_map annotations; /* by External id */
	struct gt_id_map arrows;      /* by a hash of category and id */
	bool saw_device;              /* the one that is wanted has work */
	uint64_t other_devices;       /* bit n: GPU n has work that is not wanted */
};

/* ---- an event -------------------------------------------------------------------------------- */

static int64_t clamp(int64_t ns)
{
	return GT_MAX(GT_MIN(ns, TIME_MAX_NS), -TIME_MAX_NS);
}

static int64_t end_of(const struct gt_trace_event *event)
{
	return clamp(event->ts_ns) + GT_MAX(clamp(event->dur_ns), 0);
}

/* Does it reach into the span of time? */
static bool is_inside(const struct cutter *cutter, const struct gt_trace_event *event)
{
	int64_t start_ns = clamp(event->ts_ns);

	if (!cutter->has_span)
		return true;
	if (!event->has_ts || start_ns >= cutter->to_ns)
		return false;
	return start_ns >= cutter->from_ns ||
	       (event->phase == 'X' && end_of(event) > cutter->from_ns);
}

static bool is_gpu_work(const struct gt_trace_event *event)
{
	return event->phase == 'X' && (event->cat == GT_CAT_KERNEL || event->cat == GT_CAT_MEMCPY ||
				       event->cat == GT_CAT_MEMSET || event->cat == GT_CAT_SYNC);
}

static bool is_on_gpu(const struct gt_trace_event *event)
{
	return is_gpu_work(event) || (event->phase == 'X' && event->cat == GT_CAT_GPU_ANNOTATION);
}

static bool is_launch(const struct gt_trace_event *event)
{
	return event->phase == 'X' && (event->cat == GT_CAT_RUNTIME || event->cat == GT_CAT_DRIVER);
}

static bool is_arrow(const struct gt_trace_event *event)
{
	return event->phase == 's' || event->phase == 't' || event->phase == 'f';
}

/* N of ProfilerStep#N; false: the event is no step. */
static bool step_number(const struct gt_trace_event *event, int64_t *ret)
{
	struct gt_str name = event->name;

	if (event->phase != 'X' || !gt_str_starts(name, STEP_PREFIX))
		return false;
	name.ptr += STEP_PREFIX.len;
	name.len -= STEP_PREFIX.len;
	return gt_json_int(name, ret);
}

static bool is_chosen_step(const struct gt_cut_choice *choice, int64_t step)
{
	return step >= choice->first_step && step <= choice->last_step;
}

static int64_t int_arg(const struct gt_trace_event *event, struct gt_str key)
{
	struct gt_str value;
	int64_t number = 0;

	gt_trace_event_args(event, &key, &value, 1);
	return gt_json_int(value, &number) ? number : 0;
}

/* A GPU's events have its number as args.device or as their pid. */
static bool device_wanted(const struct cutter *cutter, const struct gt_trace_event *event)
{
	static const struct gt_str key = GT_STR("device");
	struct gt_str value;
	int64_t device;

	if (cutter->choice->device < 0)
		return true;
	gt_trace_event_args(event, &key, &value, 1);
	if (!gt_json_int(value, &device) && !gt_json_int(event->pid.text, &device))
		device = event->pid.number;
	return device == cutter->choice->device;
}

static bool category_wanted(const struct cutter *cutter, const struct gt_trace_event *event)
{
	const char *at = cutter->choice->categories;

	while (at) {
		size_t len = strcspn(at, ",");
		struct gt_str word = { at, len };
		enum gt_trace_cat cat = gt_trace_cat_of(word);

		if (gt_str_equal(event->cat_text, word) ||
		    (cat == event->cat && cat != GT_CAT_OTHER && cat != GT_CAT_NONE))
			return true;
		at = at[len] ? at + len + 1 : NULL;
	}
	return !cutter->choice->categories;
}

/* An arrow's id may be any value: FNV-1a over it and the category. */
static bool arrow_key(const struct gt_trace_event *event, int64_t *ret)
{
	struct gt_json_text text = { .end = event->text.ptr + event->text.len };
	const char *at = event->text.ptr + 1;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	struct gt_str key, id = { NULL, 0 };

	while (gt_json_member(&text, &at, &key) > 0) {
		const char *value = at;

		at = gt_json_value_end(&text, at);
		if (!at)
			break;
		if (gt_str_equal(key, GT_STR("id")))
			id = (struct gt_str){ value, (size_t)(at - value) };
	}
	for (size_t i = 0; i < event->cat_text.len; i++)
		hash = (hash ^ (unsigned char)event->cat_text.ptr[i]) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < id.len; i++)
		hash = (hash ^ (unsigned char)id.ptr[i]) * UINT64_C(0x100000001b3);
	*ret = (int64_t)hash;
	return id.len > 0;
}

/* The number of an arrow from a launch to its GPU work; 0: it is none. */
static int64_t arrow_correlation(const struct gt_trace_event *event)
{
	struct gt_trace_event as_args = { .args = event->text };

	return event->cat == GT_CAT_LAUNCH_FLOW ? int_arg(&as_args, GT_STR("id")) : 0;
}

/* ---- the span of time ------------------------------------------------------------------------ */

static int find_span(void *context, const struct gt_trace_event *event)
{
	struct cutter *cutter = context;
	int64_t step;

	if (!event->phase || !strchr("XBEbe", event->phase) || !event->has_ts ||
	    event->cat == GT_CAT_TRACE)
		return 0;
	cutter->first_ns = GT_MIN(cutter->first_ns, clamp(event->ts_ns));
	cutter->last_ns = GT_MAX(cutter->last_ns, end_of(event));
	if (!cutter->choice->has_steps ||
	    (event->cat != GT_CAT_ANNOTATION && event->cat != GT_CAT_CPU_OP) ||
	    !step_number(event, &step))
		return 0;
	cutter->lowest_step = GT_MIN(cutter->lowest_step, step);
	cutter->highest_step = GT_MAX(cutter->highest_step, step);
	if (is_chosen_step(cutter->choice, step)) {
		cutter->from_ns = GT_MIN(cutter->from_ns, clamp(event->ts_ns));
		cutter->to_ns = GT_MAX(cutter->to_ns, end_of(event));
	}
	return 0;
}

/* Both choices together are the time that both have. */
static int choose_span(struct cutter *cutter, struct gt_err *err)
{
	const struct gt_cut_choice *choice = cutter->choice;

	if (choice->has_steps && cutter->highest_step < cutter->lowest_step)
		return gt_err_set(err, -ENODATA, "there are no steps in it");
	if (choice->has_steps && cutter->to_ns < cutter->from_ns)
		return gt_err_set(err, -ENODATA, "its steps are %lld to %lld",
				  (long long)cutter->lowest_step, (long long)cutter->highest_step);
	if (!choice->has_steps) {
		cutter->from_ns = INT64_MIN;
		cutter->to_ns = INT64_MAX;
	}
	if (choice->has_time) {
		int64_t first_ns = cutter->first_ns == INT64_MAX ? 0 : cutter->first_ns;

		if (clamp(choice->from_ns) + first_ns > cutter->last_ns)
			return gt_err_set(err, -ENODATA, "it ends before that time");
		cutter->from_ns = GT_MAX(cutter->from_ns, first_ns + clamp(choice->from_ns));
		cutter->to_ns = GT_MIN(cutter->to_ns, first_ns + clamp(choice->to_ns));
	}
	if (cutter->to_ns < cutter->from_ns)
		return gt_err_set(err, -ENODATA, "the steps are not within that time");
	return 0;
}

/* ---- links ----------------------------------------------------------------------------------- */

static int mark(struct gt_id_map *map, int64_t id, uint32_t flags)
{
	int64_t *value = gt_id_map_find(map, id);

	if (!value && map->count >= MAX_IDS)
		return 0;
	if (!value)
		value = gt_id_map_put(map, id);
	if (!value)
		return -ENOMEM;
	*value |= flags;
	return 0;
}

static uint32_t marks(struct gt_id_map *map, int64_t id)
{
	const int64_t *value = gt_id_map_find(map, id);

	return value ? (uint32_t)*value : 0;
}

static int mark_gpu_work(struct cutter *cutter, const struct gt_trace_event *event,
			 int64_t correlation)
{
	uint32_t flags = GPU_SEEN;

	if (!device_wanted(cutter, event)) {
		if (event->pid.number >= 0 && event->pid.number < MAX_DEVICES)
			cutter->other_devices |= UINT64_C(1) << event->pid.number;
	} else {
		cutter->saw_device = true;
		flags |= category_wanted(cutter, event) ? GPU_WANTED : 0u;
	}
	return correlation ? mark(&cutter->correlations, correlation, flags) : 0;
}

static int mark_links(void *context, const struct gt_trace_event *event)
{
	struct cutter *cutter = context;
	bool inside = is_inside(cutter, event);
	int64_t id;

	if (is_arrow(event))
		return arrow_key(event, &id) ? mark(&cutter->arrows, id, inside ? INSIDE : OUTSIDE)
					     : 0;
	if (is_launch(event)) {
		uint32_t flags = LAUNCH_SEEN | (inside ? LAUNCH_IN : 0u);

		if (inside && category_wanted(cutter, event))
			flags |= LAUNCH_KEPT;
		id = int_arg(event, GT_STR("correlation"));
		return id ? mark(&cutter->correlations, id, flags) : 0;
	}
	if (is_gpu_work(event))
		return mark_gpu_work(cutter, event, int_arg(event, GT_STR("correlation")));
	if (event->cat == GT_CAT_ANNOTATION && event->phase == 'X') {
		id = int_arg(event, GT_STR("External id"));
		return id ? mark(&cutter->annotations, id, inside ? INSIDE : OUTSIDE) : 0;
	}
	return 0;
}

/* ---- the copy -------------------------------------------------------------------------------- */

static bool arrow_kept(struct cutter *cutter, const struct gt_trace_event *event)
{
	int64_t correlation = arrow_correlation(event), key;
	uint32_t flags = correlation ? marks(&cutter->correlations, correlation) : 0;

	if (flags & LAUNCH_SEEN) {
		if (cutter->choice->device >= 0 && event->phase == 'f' && event->pid.number >= 0 &&
		    event->pid.number < MAX_DEVICES && !event->pid.text.ptr &&
		    cutter->other_devices >> event->pid.number & 1)
			return false;
		return flags & LAUNCH_KEPT && (!(flags & GPU_SEEN) || flags & GPU_WANTED);
	}
	if (!category_wanted(cutter, event))
		return false;
	return is_inside(cutter, event) && arrow_key(event, &key) &&
	       !(marks(&cutter->arrows, key) & OUTSIDE);
}

static bool gpu_kept(struct cutter *cutter, const struct gt_trace_event *event)
{
	bool is_annotation = event->cat == GT_CAT_GPU_ANNOTATION;
	uint32_t flags;
	int64_t step;

	if (!device_wanted(cutter, event))
		return false;
	if (is_annotation && cutter->choice->has_steps && step_number(event, &step) &&
	    !is_chosen_step(cutter->choice, step))
		return false;
	if (is_annotation) {
		flags = marks(&cutter->annotations, int_arg(event, GT_STR("External id")));
		return flags ? flags & INSIDE : is_inside(cutter, event);
	}
	flags = marks(&cutter->correlations, int_arg(event, GT_STR("correlation")));
	return flags & LAUNCH_SEEN ? flags & LAUNCH_IN : is_inside(cutter, event);
}

static bool is_kept(struct cutter *cutter, const struct gt_trace_event *event)
{
	int64_t step;

	if (event->phase == 'M')
		return true;
	if (!event->phase)
		return false;
	if (is_arrow(event))
		return arrow_kept(cutter, event);
	if (!category_wanted(cutter, event))
		return false;
	if (is_on_gpu(event))
		return gpu_kept(cutter, event);
	/* The neighbours of a step may reach into it by the rounding of their times. */
	if (cutter->choice->has_steps && step_number(event, &step) &&
	    !is_chosen_step(cutter->choice, step))
		return false;
	return is_inside(cutter, event);
}

static int copy_event(void *context, const struct gt_trace_event *event)
{
	struct cutter *cutter = context;
	unsigned int flaws = 0;

	return is_kept(cutter, event) ? gt_trace_copy_event(cutter->copy, event->text, &flaws) : 0;
}

static int copy_member(void *context, struct gt_str key, struct gt_str raw)
{
	struct cutter *cutter = context;
	unsigned int flaws = 0;

	return gt_trace_copy_member(cutter->copy, key, raw, &flaws);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int read_trace(const char *path, const struct gt_trace_hooks *hooks,
		      struct gt_cut_result *ret, struct gt_err *err)
{
	struct gt_gz_reader *gz;
	int rc = gt_gz_open(&gz, path, err);

	if (rc)
		return rc;
	err->code = 0;
	rc = gt_trace_read(gz, hooks, &ret->read, err);
	ret->gz = *gt_gz_status(gz);
	gt_gz_close(gz);
	if (rc == -ENOMEM)
		return gt_err_set(err, rc, "out of memory");
	if (rc && !err->code)
		return gt_err_sys(err, rc, "cannot write the copy");
	return rc;
}

static int cut(struct cutter *cutter, const char *path, struct gt_cut_result *ret,
	       struct gt_err *err)
{
	struct gt_trace_hooks hooks = { .context = cutter };
	int rc = 0;

	if (cutter->has_span) {
		hooks.event = find_span;
		rc = read_trace(path, &hooks, ret, err);
		rc = rc ? rc : choose_span(cutter, err);
		ret->span_ns = (uint64_t)cutter->to_ns - (uint64_t)cutter->from_ns;
	}
	if (rc)
		return rc;
	hooks.event = mark_links;
	rc = read_trace(path, &hooks, ret, err);
	if (rc)
		return rc;
	if (cutter->choice->device >= 0 && !cutter->saw_device)
		return gt_err_set(err, -ENODATA, "it has no work of GPU %lld",
				  (long long)cutter->choice->device);
	hooks.event = copy_event;
	hooks.member = copy_member;
	rc = read_trace(path, &hooks, ret, err);
	ret->events = ret->read.events;
	ret->kept = gt_trace_copy_events(cutter->copy);
	return rc;
}

int gt_cut(const char *path, const struct gt_cut_choice *choice, struct gt_trace_copy *copy,
	   struct gt_cut_result *ret, struct gt_err *err)
{
	struct cutter cutter = {
		.choice = choice,
		.copy = copy,
		.has_span = choice->has_steps || choice->has_time,
		.from_ns = INT64_MAX,
		.to_ns = INT64_MIN,
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN,
		.lowest_step = INT64_MAX,
		.highest_step = INT64_MIN,
	};
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = cut(&cutter, path, ret, err);
	gt_id_map_release(&cutter.correlations);
	gt_id_map_release(&cutter.annotations);
	gt_id_map_release(&cutter.arrows);
	return rc;
}

int gt_cut_print_about(const struct gt_cut_choice *choice, const struct gt_cut_result *result,
		       struct gt_buf *out)
{
	gt_buf_printf(out,
		      "{\"by\":\"gtrace " GT_VERSION "\",\"what\":\"cut\",\"events\":%llu,"
		      "\"of_events\":%llu",
		      (unsigned long long)result->kept, (unsigned long long)result->events);
	if (choice->has_steps)
		gt_buf_printf(out, ",\"steps\":[%lld,%lld]", (long long)choice->first_step,
			      (long long)choice->last_step);
	if (choice->has_time)
		gt_buf_printf(out, ",\"time_ns\":[%lld,%lld]", (long long)choice->from_ns,
			      (long long)choice->to_ns);
	if (choice->device >= 0)
		gt_buf_printf(out, ",\"device\":%lld", (long long)choice->device);
	if (choice->categories) {
		gt_buf_text(out, ",\"categories\":");
		gt_safe_put_json(out,
				 (struct gt_str){ choice->categories, strlen(choice->categories) });
	}
	gt_buf_byte(out, '}');
	return out->failed ? -ENOMEM : 0;
}
