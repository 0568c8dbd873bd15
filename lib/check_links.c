/*
 * check_links.c - launches, their GPU work and the arrows between them, by their correlation.
 */
#include "base.h"
#include "check_priv.h"

#include <stdlib.h>

#define MAX_LINKS  (UINT32_C(768) << 10) /* 64 MiB with their table */
#define MAX_OP_IDS ((size_t)4 << 20)

static struct gt_check_link *link_at(struct gt_check_links *links, uint32_t index)
{
	return &((struct gt_check_link *)(void *)links->links.data)[index];
}

/* 0: *ret is the link, NULL when there are too many. */
static int find_link(struct gt_checker *checker, int64_t id, struct gt_check_link **ret)
{
	struct gt_check_links *links = &checker->links;
	int64_t *number = gt_id_map_find(&links->numbers, id);
	struct gt_check_link link = { .id = id };

	if (number) {
		*ret = link_at(links, (uint32_t)*number);
		return 0;
	}
	*ret = NULL;
	if (links->numbers.count >= MAX_LINKS) {
		checker->check->health.not_compared++;
		return 0;
	}
	number = gt_id_map_put(&links->numbers, id);
	if (!number)
		return -ENOMEM;
	*number = links->numbers.count - 1;
	gt_buf_append(&links->links, &link, sizeof(link));
	if (links->links.failed)
		return -ENOMEM;
	*ret = link_at(links, (uint32_t)*number);
	return 0;
}

static void count_one(uint16_t *count)
{
	*count += *count < UINT16_MAX;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_graph_launch(struct gt_str name)
{
	return gt_str_starts(name, GT_STR("cudaGraphLaunch")) ||
	       gt_str_starts(name, GT_STR("cuGraphLaunch")) ||
	       gt_str_starts(name, GT_STR("hipGraphLaunch"));
}

/* Does a CUDA or HIP call of this name put work on the GPU? */
static bool is_launch(struct gt_str name)
{
	if (!gt_str_starts(name, GT_STR("cu")) && !gt_str_starts(name, GT_STR("hip")))
		return false;
	if (is_graph_launch(name))
		return true;
	if (gt_str_has(name, GT_STR("Graph")) || gt_str_has(name, GT_STR("LaunchHostFunc")))
		return false;
	return gt_str_has(name, GT_STR("Launch")) || gt_str_has(name, GT_STR("Memcpy")) ||
	       gt_str_has(name, GT_STR("Memset"));
}

/* External id of an event, 0 when it has none. */
static int64_t external_id(struct gt_checker *checker, const struct gt_check_event *e,
			   struct gt_str raw)
{
	int64_t id = 0;

	if (!raw.len)
		return 0;
	if (!gt_json_int(raw, &id) || id <= 0) {
		gt_check_add(checker, GT_CHECK_X_ZERO, e, NULL);
		return 0;
	}
	return id;
}

static int link_op(struct gt_checker *checker, int64_t external)
{
	struct gt_buf *ids = &checker->links.op_ids;

	if (external && ids->len / sizeof(external) < MAX_OP_IDS)
		gt_buf_append(ids, &external, sizeof(external));
	return ids->failed ? -ENOMEM : 0;
}

static int link_launch(struct gt_checker *checker, const struct gt_check_event *e,
		       int64_t correlation, int64_t external)
{
	struct gt_str name = e->event->name;
	bool launches = is_launch(name);
	struct gt_check_link *link;
	int rc;

	if (launches) {
		checker->check->health.launches++;
		checker->links.first_launch_ns =
			GT_MIN(checker->links.first_launch_ns, e->event->ts_ns);
	}
	if (correlation <= 0) {
		if (launches) {
			checker->check->health.launches_without_gpu++;
			gt_check_add(checker, GT_CHECK_L_CORR, e, NULL);
			gt_check_add(checker, GT_CHECK_L_LAUNCH, e, NULL);
		}
		return 0;
	}
	rc = find_link(checker, correlation, &link);
	if (rc || !link)
		return rc;
	if (!link->launches) {
		link->launch_event = (uint32_t)e->number;
		link->launch_ns = e->event->ts_ns;
		link->launch_ext = external;
	}
	link->is_launch |= launches;
	link->is_graph |= is_graph_launch(name);
	count_one(&link->launches);
	return 0;
}

static int link_gpu_work(struct gt_checker *checker, const struct gt_check_event *e,
			 int64_t correlation, int64_t external)
{
	struct gt_check_link *link;
	int rc;

	checker->check->health.gpu_ops++;
	checker->links.last_gpu_ns = GT_MAX(checker->links.last_gpu_ns, e->event->ts_ns);
	if (correlation <= 0) {
		checker->check->health.gpu_without_launch++;
		return 0;
	}
	rc = find_link(checker, correlation, &link);
	if (rc || !link)
		return rc;
	if (!link->gpus || e->event->ts_ns < link->gpu_ns) {
		link->gpu_event = (uint32_t)e->number;
		link->gpu_ns = e->event->ts_ns;
		link->gpu_ext = external;
	}
	link->gpus += link->gpus < UINT32_MAX;
	return 0;
}

static int link_arrow(struct gt_checker *checker, const struct gt_check_event *e)
{
	struct gt_check_link *link;
	int64_t id;
	int rc;

	if (!gt_str_equal(e->event->cat_text, GT_STR("ac2g")) ||
	    !gt_json_int(e->raw[GT_FIELD_ID], &id))
		return 0;
	rc = find_link(checker, id, &link);
	if (!rc && link)
		count_one(e->event->phase == 's' ? &link->starts : &link->ends);
	return rc;
}

int gt_check_link_event(struct gt_checker *checker, const struct gt_check_event *e)
{
	static const struct gt_str keys[] = { GT_STR("correlation"), GT_STR("External id") };
	struct gt_str values[ARRAY_SIZE(keys)];
	enum gt_trace_cat cat = e->event->cat;
	int64_t correlation = 0, external;

	if (e->event->phase == 's' || e->event->phase == 'f')
		return link_arrow(checker, e);
	if (e->event->phase != 'X')
		return 0;
	gt_trace_event_args(e->event, keys, values, ARRAY_SIZE(keys));
	gt_json_int(values[0], &correlation);
	external = external_id(checker, e, values[1]);
	if (cat == GT_CAT_CPU_OP || cat == GT_CAT_ANNOTATION)
		return link_op(checker, external);
	if (cat == GT_CAT_RUNTIME || cat == GT_CAT_DRIVER)
		return link_launch(checker, e, correlation, external);
	if (gt_check_is_gpu_work(e->event))
		return link_gpu_work(checker, e, correlation, external);
	return 0;
}

/* ---- verdict --------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static bool op_has_id(const struct gt_check_links *links, int64_t id)
{
	return links->op_ids.len &&
	       bsearch(&id, links->op_ids.data, links->op_ids.len / sizeof(id), sizeof(id), by_id);
}

static void judge_external(struct gt_checker *checker, const struct gt_check_link *link)
{
	if (link->launch_ext && link->gpu_ext && link->launch_ext != link->gpu_ext)
		gt_check_add_at(checker, GT_CHECK_X_DIFF, link->gpu_event, 1,
				"%lld, its launch has %lld", (long long)link->gpu_ext,
				(long long)link->launch_ext);
	if (!link->launch_ext || op_has_id(&checker->links, link->launch_ext))
		return;
	gt_check_add_at(checker, link->launch_ext == link->id ? GT_CHECK_X_CORR : GT_CHECK_X_REF,
			link->launch_event, 1, "External id %lld", (long long)link->launch_ext);
}

static void judge_arrows(struct gt_checker *checker, const struct gt_check_link *link)
{
	uint64_t event = link->launches ? link->launch_event : link->gpu_event;
	bool known = link->launches || link->gpus;

	if (!link->starts != !link->ends)
		gt_check_add_at(checker, GT_CHECK_F_DANGLE, known ? event : UINT64_MAX,
				GT_MAX(link->starts, link->ends), "id %lld", (long long)link->id);
	if (link->starts > 1 || (link->ends > 1 && !link->is_graph))
		gt_check_add_at(checker, GT_CHECK_F_DUP, known ? event : UINT64_MAX,
				GT_MAX(link->starts, link->ends) - 1u, "id %lld",
				(long long)link->id);
	/* Up to PyTorch 1.11 arrows were called otherwise. */
	if (link->gpus && link->launches && !link->is_graph && (!link->starts || !link->ends) &&
	    !checker->check->findings[GT_CHECK_E_CATOLD].count)
		gt_check_add_at(checker, GT_CHECK_F_MISS, link->gpu_event, link->gpus,
				"correlation %lld", (long long)link->id);
}

static void judge_link(struct gt_checker *checker, const struct gt_check_link *link)
{
	struct gt_check_health *health = &checker->check->health;

	if (link->gpus && !link->launches) {
		health->gpu_without_launch += link->gpus;
		if (link->gpu_ns < checker->links.first_launch_ns)
			health->before_first_launch += link->gpus;
		gt_check_add_at(checker, GT_CHECK_L_KERNEL, link->gpu_event, link->gpus,
				"correlation %lld", (long long)link->id);
	}
	if (link->is_launch && !link->gpus) {
		health->launches_without_gpu += link->launches;
		if (link->launch_ns > checker->links.last_gpu_ns)
			health->after_last_gpu += link->launches;
		gt_check_add_at(checker, GT_CHECK_L_LAUNCH, link->launch_event, link->launches,
				NULL);
	}
	if (link->gpus && link->launches) {
		if (link->launches > 1)
			gt_check_add_at(checker, GT_CHECK_L_MULTI, link->launch_event, 1,
					"correlation %lld", (long long)link->id);
		if (link->gpus > 1 && !link->is_graph)
			gt_check_add_at(checker, GT_CHECK_L_FAN, link->launch_event, 1, "%u pieces",
					link->gpus);
		if (link->gpu_ns < link->launch_ns)
			gt_check_add_at(checker, GT_CHECK_L_TIME, link->gpu_event, 1,
					"%lld ns before event %u",
					(long long)(link->launch_ns - link->gpu_ns),
					link->launch_event);
		judge_external(checker, link);
	}
	judge_arrows(checker, link);
}

void gt_check_links_finish(struct gt_checker *checker)
{
	struct gt_check_links *links = &checker->links;
	struct gt_check_health *health = &checker->check->health;

	if (links->op_ids.len)
		qsort(links->op_ids.data, links->op_ids.len / sizeof(int64_t), sizeof(int64_t),
		      by_id);
	for (uint32_t i = 0; i < links->numbers.count; i++)
		judge_link(checker, link_at(links, i));
	if (!health->gpu_ops)
		gt_check_add(checker, GT_CHECK_G_NONE, NULL, NULL);
	else if (health->gpu_without_launch == health->gpu_ops)
		gt_check_add(checker, GT_CHECK_L_NONE, NULL, NULL);
}

void gt_check_links_release(struct gt_check_links *links)
{
	gt_id_map_release(&links->numbers);
	gt_buf_release(&links->links);
	gt_buf_release(&links->op_ids);
}
