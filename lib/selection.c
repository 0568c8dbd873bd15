/*
 * selection.c - see selection.h. One reading finds the span of time, one what is linked to what is
 * in it: no producer sorts its events.
 */
#include "base.h"
#include "buf.h"
#include "event_pairs.h"
#include "json_reader.h"
#include "selection.h"
#include "trace_event.h"

#include <sys/stat.h>

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
static bool is_inside(const struct gt_selection *selection, const struct gt_trace_event *event)
{
	int64_t start_ns = clamp(event->ts_ns);

	if (!selection->has_span)
		return true;
	if (!event->has_ts || start_ns >= selection->to_ns)
		return false;
	return start_ns >= selection->from_ns ||
	       (event->phase == 'X' && end_of(event) > selection->from_ns);
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

static bool is_chosen_step(const struct gt_choice *choice, int64_t step)
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

/* By where it ran. A GPU's events have its number as args.device or as their pid. */
static bool place_wanted(const struct gt_selection *selection, const struct gt_trace_event *event)
{
	const struct gt_choice *choice = selection->choice;

	return (choice->device < 0 || gt_trace_event_device(event) == choice->device) &&
	       (!choice->has_stream || gt_trace_event_stream(event) == choice->stream);
}

/* The next of the names that are listed with commas between them; false: that was all. */
static bool next_name(const char **at, struct gt_str *ret)
{
	size_t len;

	if (!*at)
		return false;
	len = strcspn(*at += strspn(*at, " "), ",");
	*ret = (struct gt_str){ *at, len };
	while (ret->len && ret->ptr[ret->len - 1] == ' ')
		ret->len--;
	*at = (*at)[len] ? *at + len + 1 : NULL;
	return true;
}

static bool has_category(const struct gt_trace_event *event, struct gt_str name)
{
	enum gt_trace_cat cat = gt_trace_cat_of(name);

	return gt_str_equal(event->cat_text, name) ||
	       (cat == event->cat && cat != GT_CAT_OTHER && cat != GT_CAT_NONE);
}

static bool category_wanted(const struct gt_selection *selection,
			    const struct gt_trace_event *event)
{
	const char *at = selection->choice->categories;
	struct gt_str name;

	while (next_name(&at, &name)) {
		if (has_category(event, name))
			return true;
	}
	return !selection->choice->categories;
}

/* Which of the names are those of an event; those beyond 64 count as if they were. */
static void note_category(struct gt_selection *selection, const struct gt_trace_event *event)
{
	const char *at = selection->choice->categories;
	struct gt_str name;

	selection->categories |= UINT64_C(1) << event->cat;
	for (unsigned int i = 0; i < 64 && next_name(&at, &name); i++) {
		if (!(selection->names_seen >> i & 1) && has_category(event, name))
			selection->names_seen |= UINT64_C(1) << i;
	}
}

/* An arrow's id may be any value. */
static bool arrow_key(const struct gt_trace_event *event, int64_t *ret)
{
	static const struct gt_str key = GT_STR("id");
	struct gt_trace_event as_args = { .args = event->text };
	struct gt_str id;

	gt_trace_event_args(&as_args, &key, &id, 1);
	*ret = (int64_t)gt_str_hash(gt_str_hash(GT_HASH_START, event->cat_text), id);
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
	struct gt_selection *selection = context;
	int64_t step;

	if (!event->phase || !strchr("XBEbe", event->phase) || !event->has_ts ||
	    event->cat == GT_CAT_TRACE)
		return 0;
	selection->first_ns = GT_MIN(selection->first_ns, clamp(event->ts_ns));
	selection->last_ns = GT_MAX(selection->last_ns, end_of(event));
	if (!selection->choice->has_steps ||
	    (event->cat != GT_CAT_ANNOTATION && event->cat != GT_CAT_CPU_OP) ||
	    !step_number(event, &step))
		return 0;
	selection->lowest_step = GT_MIN(selection->lowest_step, step);
	selection->highest_step = GT_MAX(selection->highest_step, step);
	if (is_chosen_step(selection->choice, step)) {
		selection->from_ns = GT_MIN(selection->from_ns, clamp(event->ts_ns));
		selection->to_ns = GT_MAX(selection->to_ns, end_of(event));
	}
	return 0;
}

/* Both choices together are the time that both have. */
static int choose_span(struct gt_selection *selection, struct gt_err *err)
{
	const struct gt_choice *choice = selection->choice;

	if (choice->has_steps && selection->highest_step < selection->lowest_step)
		return gt_err_set(err, -ENODATA, "there are no steps in it");
	if (choice->has_steps && selection->to_ns < selection->from_ns)
		return gt_err_set(err, -ENODATA, "its steps are %lld to %lld",
				  (long long)selection->lowest_step,
				  (long long)selection->highest_step);
	if (!choice->has_steps) {
		selection->from_ns = INT64_MIN;
		selection->to_ns = INT64_MAX;
	}
	if (choice->has_time) {
		int64_t first_ns = selection->first_ns == INT64_MAX ? 0 : selection->first_ns;

		if (clamp(choice->from_ns) + first_ns > selection->last_ns)
			return gt_err_set(err, -ENODATA, "it ends before that time");
		selection->from_ns = GT_MAX(selection->from_ns, first_ns + clamp(choice->from_ns));
		selection->to_ns = GT_MIN(selection->to_ns, first_ns + clamp(choice->to_ns));
	}
	if (selection->to_ns < selection->from_ns)
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

static int mark_gpu_work(struct gt_selection *selection, const struct gt_trace_event *event,
			 int64_t correlation)
{
	uint32_t flags = GPU_SEEN;

	if (!place_wanted(selection, event)) {
		if (event->pid.number >= 0 && event->pid.number < MAX_DEVICES)
			selection->other_devices |= UINT64_C(1) << event->pid.number;
	} else {
		selection->saw_work = true;
		flags |= category_wanted(selection, event) ? GPU_WANTED : 0u;
	}
	return correlation ? mark(&selection->correlations, correlation, flags) : 0;
}

static struct gt_event_span span_of(const struct gt_selection *selection)
{
	if (!selection->has_span)
		return (struct gt_event_span){ INT64_MIN, INT64_MAX };
	return (struct gt_event_span){ selection->from_ns, selection->to_ns };
}

static int mark_links(void *context, const struct gt_trace_event *event)
{
	struct gt_selection *selection = context;
	bool inside = is_inside(selection, event);
	int64_t id;

	if (selection->choice->categories && event->phase && event->phase != 'M')
		note_category(selection, event);
	if (gt_event_is_paired(event))
		return gt_event_pairs_note(&selection->pairs, event,
					   category_wanted(selection, event), span_of(selection));
	if (is_arrow(event))
		return arrow_key(event, &id)
			       ? mark(&selection->arrows, id, inside ? INSIDE : OUTSIDE)
			       : 0;
	if (is_launch(event)) {
		uint32_t flags = LAUNCH_SEEN | (inside ? LAUNCH_IN : 0u);

		if (inside && category_wanted(selection, event))
			flags |= LAUNCH_KEPT;
		id = int_arg(event, GT_STR("correlation"));
		return id ? mark(&selection->correlations, id, flags) : 0;
	}
	if (is_gpu_work(event))
		return mark_gpu_work(selection, event, int_arg(event, GT_STR("correlation")));
	if (event->cat == GT_CAT_ANNOTATION && event->phase == 'X') {
		id = int_arg(event, GT_STR("External id"));
		return id ? mark(&selection->annotations, id, inside ? INSIDE : OUTSIDE) : 0;
	}
	return 0;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static bool arrow_kept(struct gt_selection *selection, const struct gt_trace_event *event)
{
	int64_t correlation = arrow_correlation(event), key;
	uint32_t flags = correlation ? marks(&selection->correlations, correlation) : 0;

	if (flags & LAUNCH_SEEN) {
		if (selection->choice->device >= 0 && event->phase == 'f' &&
		    event->pid.number >= 0 && event->pid.number < MAX_DEVICES &&
		    !event->pid.text.ptr && selection->other_devices >> event->pid.number & 1)
			return false;
		if (flags & GPU_SEEN)
			return flags & LAUNCH_KEPT && flags & GPU_WANTED;
		/* The other end stands on work that goes by its own time. */
		return flags & LAUNCH_KEPT && arrow_key(event, &key) &&
		       !(marks(&selection->arrows, key) & OUTSIDE);
	}
	if (!category_wanted(selection, event))
		return false;
	return is_inside(selection, event) && arrow_key(event, &key) &&
	       !(marks(&selection->arrows, key) & OUTSIDE);
}

static bool gpu_kept(struct gt_selection *selection, const struct gt_trace_event *event)
{
	bool is_annotation = event->cat == GT_CAT_GPU_ANNOTATION;
	uint32_t flags;
	int64_t step;

	if (!place_wanted(selection, event))
		return false;
	selection->saw_work |= !is_annotation;
	if (is_annotation && selection->choice->has_steps && step_number(event, &step) &&
	    !is_chosen_step(selection->choice, step))
		return false;
	if (is_annotation) {
		flags = marks(&selection->annotations, int_arg(event, GT_STR("External id")));
		return flags ? flags & INSIDE : is_inside(selection, event);
	}
	flags = marks(&selection->correlations, int_arg(event, GT_STR("correlation")));
	return flags & LAUNCH_SEEN ? flags & LAUNCH_IN : is_inside(selection, event);
}

bool gt_selection_takes(struct gt_selection *selection, const struct gt_trace_event *event)
{
	int64_t step;

	if (event->phase == 'M')
		return true;
	if (!event->phase)
		return false;
	if (is_arrow(event))
		return arrow_kept(selection, event);
	if (gt_event_is_paired(event))
		return gt_event_pairs_take(&selection->pairs, event,
					   category_wanted(selection, event) &&
						   is_inside(selection, event));
	if (!category_wanted(selection, event))
		return false;
	if (is_on_gpu(event))
		return gpu_kept(selection, event);
	/* The neighbours of a step may reach into it by the rounding of their times. */
	if (selection->choice->has_steps && step_number(event, &step) &&
	    !is_chosen_step(selection->choice, step))
		return false;
	return is_inside(selection, event);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void gt_selection_init(struct gt_selection *selection, const struct gt_choice *choice)
{
	*selection = (struct gt_selection){
		.choice = choice,
		.has_span = choice->has_steps || choice->has_time,
		.from_ns = INT64_MAX,
		.to_ns = INT64_MIN,
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN,
		.lowest_step = INT64_MAX,
		.highest_step = INT64_MIN,
	};
}

static int read_trace(const char *path, const struct gt_trace_hooks *hooks, struct gt_err *err)
{
	struct gt_trace_stats stats;
	struct gt_gz_reader *gz;
	int rc = gt_gz_open(&gz, path, err);

	if (rc)
		return rc;
	rc = gt_trace_read(gz, hooks, &stats, err);
	gt_gz_close(gz);
	return rc == -ENOMEM ? gt_err_set(err, rc, "out of memory") : rc;
}

static bool is_pipe(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

int gt_selection_find(struct gt_selection *selection, const char *path, struct gt_err *err)
{
	struct gt_trace_hooks hooks = { .context = selection, .event = find_span };
	int rc = 0;

	/* The second reading would wait for a writer for ever, or find nothing. */
	if (is_pipe(path))
		return gt_err_set(err, -ESPIPE, "a pipe cannot be read twice");
	if (selection->has_span) {
		rc = read_trace(path, &hooks, err);
		rc = rc ? rc : choose_span(selection, err);
	}
	if (rc)
		return rc;
	hooks.event = mark_links;
	rc = read_trace(path, &hooks, err);
	gt_event_pairs_reread(&selection->pairs, span_of(selection));
	return rc;
}

static void print_categories(const struct gt_selection *selection, struct gt_buf *out)
{
	for (enum gt_trace_cat cat = 0; cat < GT_CAT_MAX; cat++) {
		const char *name = gt_trace_cat_name(cat);

		if (name && selection->categories >> cat & 1)
			gt_buf_printf(out, "%s%s", out->len ? ", " : ", but of ", name);
	}
}

/*
 * A name that no event has is a mistake, but for those that traces usually have, when others beside
 * them are there.
 */
static int check_categories(const struct gt_selection *selection, struct gt_err *err)
{
	const char *at = selection->choice->categories;
	struct gt_buf there = { 0 };
	struct gt_str name;

	for (unsigned int i = 0; i < 64 && next_name(&at, &name); i++) {
		if (selection->names_seen >> i & 1 ||
		    (selection->names_seen && gt_trace_cat_of(name) != GT_CAT_OTHER))
			continue;
		print_categories(selection, &there);
		gt_err_set(err, -ENODATA, "it has no event of category '%.*s'%.*s",
			   (int)GT_MIN(name.len, 100u), name.ptr, (int)there.len,
			   there.len ? there.data : "");
		gt_buf_release(&there);
		return -ENODATA;
	}
	return 0;
}

int gt_selection_check(const struct gt_selection *selection, struct gt_err *err)
{
	const struct gt_choice *choice = selection->choice;

	if (selection->saw_work || (choice->device < 0 && !choice->has_stream))
		return check_categories(selection, err);
	if (!choice->has_stream)
		return gt_err_set(err, -ENODATA, "it has no work of GPU %lld",
				  (long long)choice->device);
	if (choice->device < 0)
		return gt_err_set(err, -ENODATA, "it has no work on stream %lld",
				  (long long)choice->stream);
	return gt_err_set(err, -ENODATA, "it has no work on stream %lld of GPU %lld",
			  (long long)choice->stream, (long long)choice->device);
}

void gt_selection_release(struct gt_selection *selection)
{
	gt_id_map_release(&selection->correlations);
	gt_id_map_release(&selection->annotations);
	gt_id_map_release(&selection->arrows);
	gt_event_pairs_release(&selection->pairs);
}
