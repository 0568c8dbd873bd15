/*
 * rec_api.c - the fall-back mode: another tool holds CUPTI's callbacks, and calls come as RUNTIME
 * and DRIVER activity records. Those know no step and no range: both are found by time and thread.
 * Nor do they tell a captured launch, which then counts as one without GPU work.
 */
#include "base.h"
#include "rec_state.h"

void gt_rec_fall_back(struct gt_recorder *rec, uint64_t since_ns)
{
	/* Or it is said of what has ended since. */
	if (rec->fallback && (!rec->callbacks_ns || since_ns <= rec->callbacks_ns))
		return;
	rec->fallback = true;
	rec->fallback_ns = since_ns;
	rec->callbacks_ns = 0;
	gt_rec_remember_ranges(rec);
}

/* A call through the runtime has a record of either, with one id; the outer one names it. */
static bool same_call(const struct gt_launch *known, const struct gt_api_record *api)
{
	return (known->start_ns >= api->start_ns && known->end_ns <= api->end_ns) ||
	       (known->start_ns <= api->start_ns && known->end_ns >= api->end_ns);
}

static void fill(struct gt_recorder *rec, struct gt_window *window, struct gt_launch *launch,
		 const struct gt_api_record *api)
{
	uint64_t key = (uint64_t)(api->runtime ? 2 : 1) << 32 | api->cbid;

	launch->start_ns = api->start_ns;
	launch->end_ns = api->end_ns;
	launch->tid = api->tid;
	launch->cbid = api->cbid;
	launch->name_id = gt_map_get(&rec->api_names, key);
	launch->runtime = api->runtime;
	if (!window)
		return;
	launch->range = gt_range_history_find(&rec->history, api->tid, window->id, api->start_ns);
	launch->step = gt_window_step(rec, window, launch->step_number, api->start_ns);
	launch->external_id = gt_rec_enclosing_id(launch->range, launch->step, api->tid);
	window->last_ns = GT_MAX(window->last_ns, api->end_ns);
}

void gt_rec_api(struct gt_recorder *rec, const struct gt_api_record *api)
{
	uint64_t key = (uint64_t)(api->runtime ? 2 : 1) << 32 | api->cbid;
	uint32_t klass = gt_map_get(&rec->api_classes, key);
	struct gt_launch *known = gt_ring_find(&rec->launches, api->correlation);
	struct gt_launch launch = {
		.entry.correlation = api->correlation,
		.window = GT_WINDOW_NONE,
		.step_number = gt_steps_at(&rec->steps, api->start_ns),
		.stream = GT_STREAM_UNKNOWN,
		.graph = klass == GT_CALL_GRAPH,
		.worked = !gt_rec_is_launch(klass) || api->return_value,
	};
	struct gt_window *window;

	rec->newest_api_ns = GT_MAX(rec->newest_api_ns, api->start_ns);
	if (klass == GT_CALL_OTHER)
		return;
	if (known && same_call(known, api)) {
		if (api->runtime && !known->runtime && !known->written)
			fill(rec, NULL, known, api);
		return;
	}
	window = gt_windows_of_step(rec, launch.step_number, api->start_ns);
	gt_rec_heard(rec, api->correlation);
	if (window)
		launch.window = window->id;
	else if (launch.worked)
		return;
	fill(rec, window, &launch, api);
	gt_rec_launch(rec, &launch);
}
