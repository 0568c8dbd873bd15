/*
 * check_flows.c - arrows between slices: each has one beginning and its ends, and those from a
 * launch stand on it and on its GPU work.
 */
#include "base.h"
#include "check_priv.h"
#include "json_reader.h"

#define MAX_FLOWS (UINT32_C(1) << 20)

/* In a number of gt_check_links.flows. */
#define ENDS_SHIFT 32
#define COUNT_MAX  INT64_C(0xffffff)

static bool is_launch_arrow(const struct gt_check_event *e)
{
	return gt_str_equal(e->event->cat_text, GT_STR("ac2g"));
}

static bool binds_enclosing(struct gt_str raw)
{
	char plain[GT_JSON_KEY_MAX];

	return gt_json_kind(raw) == GT_JSON_STRING &&
	       gt_str_equal(gt_json_key(gt_json_unquote(raw), plain), GT_STR("e"));
}

/* False: it cannot be told which arrow it belongs to. */
static bool check_form(struct gt_checker *checker, const struct gt_check_event *e)
{
	enum gt_json_kind kind = gt_json_kind(e->raw[GT_FIELD_ID]);
	bool is_right = kind == GT_JSON_NUMBER || (kind == GT_JSON_STRING && !is_launch_arrow(e));

	is_right &= e->event->cat != GT_CAT_NONE && e->raw[GT_FIELD_PID].len &&
		    e->raw[GT_FIELD_TID].len;
	if (!is_right || (is_launch_arrow(e) && !gt_str_equal(e->event->name, GT_STR("ac2g"))))
		gt_check_add(checker, GT_CHECK_F_FORM, e, NULL);
	if (e->event->phase == 'f' && !binds_enclosing(e->raw[GT_FIELD_BP]))
		gt_check_add(checker, GT_CHECK_F_BP, e, NULL);
	return is_right;
}

/* Of launches by other names, and from operators to those that differentiate them. */
static int count_other(struct gt_checker *checker, const struct gt_check_event *e)
{
	struct gt_id_map *flows = &checker->links.flows;
	struct gt_str cat = e->event->cat_text, id = e->raw[GT_FIELD_ID];
	uint64_t hash = gt_str_hash(gt_str_hash(GT_HASH_START, cat), id);
	int64_t *count;

	if (e->event->cat != GT_CAT_LAUNCH_FLOW && !gt_str_equal(cat, GT_STR("fwdbwd")))
		return 0;
	count = gt_id_map_find(flows, (int64_t)hash);
	if (!count && flows->count >= MAX_FLOWS) {
		checker->check->health.not_compared++;
		return 0;
	}
	if (!count)
		count = gt_id_map_put(flows, (int64_t)hash);
	if (!count)
		return -ENOMEM;
	if (e->event->phase == 's' && (*count & COUNT_MAX) < COUNT_MAX)
		++*count;
	if (e->event->phase == 'f' && *count >> ENDS_SHIFT < COUNT_MAX)
		*count += INT64_C(1) << ENDS_SHIFT;
	return 0;
}

int gt_check_flow_event(struct gt_checker *checker, const struct gt_check_event *e)
{
	struct gt_check_point *points = (void *)checker->tracks.points.data;
	struct gt_check_link *link;
	uint32_t number;
	int64_t id;
	int rc;

	if (!check_form(checker, e))
		return 0;
	if (!is_launch_arrow(e))
		return count_other(checker, e);
	if (!gt_json_int(e->raw[GT_FIELD_ID], &id))
		return 0;
	rc = gt_check_find_link(checker, id, &number);
	if (rc || number == GT_CHECK_NOWHERE)
		return rc;
	link = gt_check_link_at(&checker->links, number);
	if (e->event->phase == 's')
		link->starts += link->starts < UINT16_MAX;
	else
		link->ends += link->ends < UINT16_MAX;
	if (e->slice != GT_CHECK_NOWHERE)
		points[e->slice].link = number;
	return 0;
}

/* ---- verdict --------------------------------------------------------------------------------- */

/* second: beginnings and ends that are too many. */
static void judge_ends(struct gt_checker *checker, uint64_t event, uint64_t starts, uint64_t ends,
		       uint64_t second, const char *id)
{
	if (!starts != !ends)
		gt_check_add_at(checker, GT_CHECK_F_DANGLE, event, GT_MAX(starts, ends), "%s", id);
	if (second)
		gt_check_add_at(checker, GT_CHECK_F_DUP, event, second, "%s", id);
}

static void judge_launch(struct gt_checker *checker, const struct gt_check_link *link)
{
	uint64_t event =
		gt_check_event_of(checker, link->launches ? link->launch_slice : link->gpu_slice);
	uint64_t second = link->starts ? link->starts - 1u : 0;
	char id[32];

	snprintf(id, sizeof(id), "id %lld", (long long)link->id);
	if (link->ends > 1 && (!link->is_graph || link->ends > link->gpus))
		second += link->ends - 1u;
	judge_ends(checker, event, link->starts, link->ends, second, id);
	/* Up to PyTorch 1.11 arrows were called otherwise. */
	if (link->gpus && link->launches && !link->is_graph && (!link->starts || !link->ends) &&
	    !checker->check->findings[GT_CHECK_E_CATOLD].count)
		gt_check_add_at(checker, GT_CHECK_F_MISS,
				gt_check_event_of(checker, link->gpu_slice), link->gpus,
				"correlation %lld", (long long)link->id);
}

static void judge_other(struct gt_checker *checker, int64_t count)
{
	uint64_t starts = (uint64_t)(count & COUNT_MAX), ends = (uint64_t)count >> ENDS_SHIFT;

	judge_ends(checker, UINT64_MAX, starts, ends,
		   (starts ? starts - 1 : 0) + (ends ? ends - 1 : 0), "between operators");
}

static bool stands_on(const struct gt_checker *checker, const struct gt_check_point *point,
		      uint32_t slice)
{
	const struct gt_check_slice *slices = (const void *)checker->tracks.slices.data;

	return slices[slice].track == point->track && slices[slice].start_ns <= point->at_ns &&
	       point->at_ns <= slices[slice].end_ns;
}

/* Where one of several could be meant nothing is said, nor of GPUs without correlations. */
static bool is_lost(struct gt_checker *checker, const struct gt_check_point *point)
{
	const struct gt_check_link *link;

	if (point->link == GT_CHECK_NOWHERE)
		return false;
	link = gt_check_link_at(&checker->links, point->link);
	if (!link->starts || !link->ends)
		return false;
	if (point->event & 1)
		return !link->launches ||
		       (link->launches == 1 && link->launch_slice != GT_CHECK_NOWHERE &&
			!stands_on(checker, point, link->launch_slice));
	if (link->gpu_slice == GT_CHECK_NOWHERE)
		return !link->gpus && checker->check->health.gpu_ops;
	return link->gpus <= 1 && !stands_on(checker, point, link->gpu_slice);
}

void gt_check_flows_finish(struct gt_checker *checker)
{
	struct gt_check_links *links = &checker->links;
	struct gt_check_point *points = (void *)checker->tracks.points.data;
	size_t point_count = checker->tracks.points.len / sizeof(*points);

	for (uint32_t i = 0; i < links->numbers.count; i++)
		judge_launch(checker, gt_check_link_at(links, i));
	for (uint32_t i = 0; i < links->flows.slot_count; i++) {
		if (links->flows.slots[i].id)
			judge_other(checker, links->flows.slots[i].value);
	}
	for (size_t i = 0; i < point_count; i++)
		points[i].is_lost = is_lost(checker, &points[i]);
}
