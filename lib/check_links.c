/*
 * check_links.c - launches, their GPU work and the arrows between them, by their correlation.
 */
#include "base.h"
#include "check_priv.h"
#include "host_call.h"

#include <stdlib.h>

#define MAX_LINKS (UINT32_C(768) << 10) /* 64 MiB with their table */
#define MAX_OPS   ((size_t)4 << 20)
/* Operators with one External id that are looked at. */
#define SAME_OPS_MAX 64
/* As slices of one thread overlap by the rounding of their times, so may an operator end early. */
#define ROUNDING_NS 1

struct gt_check_link *gt_check_link_at(struct gt_check_links *links, uint32_t number)
{
	return &((struct gt_check_link *)(void *)links->links.data)[number];
}

int gt_check_find_link(struct gt_checker *checker, int64_t correlation, uint32_t *ret)
{
	struct gt_check_links *links = &checker->links;
	int64_t *number = gt_id_map_find(&links->numbers, correlation);
	struct gt_check_link link = { .id = correlation,
				      .launch_slice = GT_CHECK_NOWHERE,
				      .gpu_slice = GT_CHECK_NOWHERE };

	*ret = GT_CHECK_NOWHERE;
	if (!number && links->numbers.count >= MAX_LINKS) {
		checker->check->health.not_compared++;
		return 0;
	}
	if (!number) {
		number = gt_id_map_put(&links->numbers, correlation);
		if (!number)
			return -ENOMEM;
		*number = links->numbers.count - 1;
		gt_buf_append(&links->links, &link, sizeof(link));
		if (links->links.failed)
			return -ENOMEM;
	}
	*ret = (uint32_t)*number;
	return 0;
}

/* 0: *ret is the link, NULL when there are too many. */
static int find_link(struct gt_checker *checker, int64_t correlation, struct gt_check_link **ret)
{
	uint32_t number;
	int rc = gt_check_find_link(checker, correlation, &number);

	*ret = number == GT_CHECK_NOWHERE ? NULL : gt_check_link_at(&checker->links, number);
	return rc;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Names by which HTA finds launches. */
static bool is_counted_by_hta(struct gt_str name)
{
	static const struct gt_str names[] = {
		GT_STR("cudaLaunchKernel"),         GT_STR("cudaLaunchKernelExC"),
		GT_STR("cuLaunchKernel"),           GT_STR("cuLaunchKernelEx"),
		GT_STR("cudaMemcpyAsync"),          GT_STR("cudaMemsetAsync"),
		GT_STR("cudaGraphLaunch"),          GT_STR("hipLaunchKernel"),
		GT_STR("hipExtModuleLaunchKernel"), GT_STR("hipMemcpyAsync"),
		GT_STR("hipMemsetAsync"),           GT_STR("hipMemcpyWithStream"),
		GT_STR("hipGraphLaunch"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (gt_str_equal(name, names[i]))
			return true;
	}
	return false;
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

static uint32_t hash_of(int64_t id)
{
	return (uint32_t)((uint64_t)id ^ (uint64_t)id >> 32);
}

static int link_op(struct gt_checker *checker, const struct gt_check_event *e, int64_t external)
{
	struct gt_buf *ops = &checker->links.ops;
	struct gt_check_op op = { hash_of(external), e->slice };

	if (external && ops->len / sizeof(op) < MAX_OPS)
		gt_buf_append(ops, &op, sizeof(op));
	return ops->failed ? -ENOMEM : 0;
}

static int link_launch(struct gt_checker *checker, const struct gt_check_event *e,
		       int64_t correlation, int64_t external)
{
	struct gt_str name = e->event->name;
	bool launches = gt_call_launches(name);
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
		link->launch_slice = e->slice;
		link->launch_ns = e->event->ts_ns;
		link->launch_ext = external;
		link->is_counted = is_counted_by_hta(name);
	}
	link->is_launch |= launches;
	link->is_graph |= gt_call_launches_graph(name);
	link->launches += link->launches < UINT16_MAX;
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
		link->gpu_slice = e->slice;
		link->gpu_ns = e->event->ts_ns;
		link->gpu_ext = external;
	}
	link->gpus += link->gpus < UINT32_MAX;
	return 0;
}

/* What waits for the GPU has arrows, too. */
static int link_wait(struct gt_checker *checker, const struct gt_check_event *e,
		     int64_t correlation)
{
	struct gt_check_link *link;
	int rc = correlation > 0 ? find_link(checker, correlation, &link) : 0;

	if (!rc && correlation > 0 && link && !link->gpus)
		link->gpu_slice = e->slice;
	return rc;
}

int gt_check_link_event(struct gt_checker *checker, const struct gt_check_event *e)
{
	static const struct gt_str keys[] = { GT_STR("correlation"), GT_STR("External id") };
	struct gt_str values[ARRAY_SIZE(keys)];
	enum gt_trace_cat cat = e->event->cat;
	int64_t correlation = 0, external;

	gt_trace_event_args(e->event, keys, values, ARRAY_SIZE(keys));
	gt_json_int(values[0], &correlation);
	external = external_id(checker, e, values[1]);
	if (cat == GT_CAT_CPU_OP || cat == GT_CAT_ANNOTATION)
		return link_op(checker, e, external);
	if (cat == GT_CAT_RUNTIME || cat == GT_CAT_DRIVER)
		return link_launch(checker, e, correlation, external);
	if (gt_check_is_gpu_work(e->event))
		return link_gpu_work(checker, e, correlation, external);
	return gt_check_is_on_gpu(e->event) ? link_wait(checker, e, correlation) : 0;
}

/* ---- verdict --------------------------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	const struct gt_check_op *l = a, *r = b;

	if (l->id != r->id)
		return l->id < r->id ? -1 : 1;
	return (l->slice > r->slice) - (l->slice < r->slice);
}

enum op_place { OP_NOWHERE, OP_ELSEWHERE, OP_AROUND };

/* Where the operator with the External id of this launch is. */
static enum op_place find_op(const struct gt_checker *checker, const struct gt_check_link *link)
{
	const struct gt_check_slice *slices = (const void *)checker->tracks.slices.data;
	const struct gt_check_op *ops = (const void *)checker->links.ops.data;
	size_t count = checker->links.ops.len / sizeof(*ops), low = 0, high = count;
	uint32_t id = hash_of(link->launch_ext);

	if (count >= MAX_OPS)
		return OP_AROUND;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ops[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i < count && ops[i].id == id; i++) {
		const struct gt_check_slice *op, *launch;

		if (ops[i].slice == GT_CHECK_NOWHERE || link->launch_slice == GT_CHECK_NOWHERE ||
		    i - low >= SAME_OPS_MAX)
			return OP_AROUND;
		op = &slices[ops[i].slice];
		launch = &slices[link->launch_slice];
		if (op->track == launch->track && op->start_ns <= launch->start_ns + ROUNDING_NS &&
		    launch->start_ns <= op->end_ns + ROUNDING_NS)
			return OP_AROUND;
	}
	return low < count && ops[low].id == id ? OP_ELSEWHERE : OP_NOWHERE;
}

static void judge_external(struct gt_checker *checker, const struct gt_check_link *link)
{
	uint64_t launch = gt_check_event_of(checker, link->launch_slice);
	uint64_t gpu = gt_check_event_of(checker, link->gpu_slice);
	enum op_place place;

	if (!link->launch_ext != !link->gpu_ext)
		gt_check_add_at(checker, GT_CHECK_X_SIDES, link->gpu_ext ? launch : gpu, 1, NULL);
	else if (link->launch_ext != link->gpu_ext)
		gt_check_add_at(checker, GT_CHECK_X_DIFF, gpu, 1, "%lld, its launch has %lld",
				(long long)link->gpu_ext, (long long)link->launch_ext);
	place = link->launch_ext ? find_op(checker, link) : OP_AROUND;
	if (place == OP_NOWHERE && link->launch_ext == link->id)
		gt_check_add_at(checker, GT_CHECK_X_CORR, launch, 1, "External id %lld",
				(long long)link->launch_ext);
	else if (place != OP_AROUND)
		gt_check_add_at(checker, GT_CHECK_X_REF, launch, 1, "External id %lld",
				(long long)link->launch_ext);
}

static void judge_pair(struct gt_checker *checker, const struct gt_check_link *link)
{
	uint64_t launch = gt_check_event_of(checker, link->launch_slice);
	uint64_t gpu = gt_check_event_of(checker, link->gpu_slice);

	if (link->launches > 1)
		gt_check_add_at(checker, GT_CHECK_L_MULTI, launch, 1, "correlation %lld",
				(long long)link->id);
	if (link->gpus > 1 && !link->is_graph)
		gt_check_add_at(checker, GT_CHECK_L_FAN, launch, 1, "%u pieces", link->gpus);
	if (link->gpu_ns < link->launch_ns)
		gt_check_add_at(checker, GT_CHECK_L_TIME, gpu, 1, "%lld ns before event %llu",
				(long long)(link->launch_ns - link->gpu_ns),
				(unsigned long long)launch);
	if (!link->is_counted)
		gt_check_add_at(checker, GT_CHECK_L_NAME, launch, link->gpus, NULL);
	judge_external(checker, link);
}

static void judge_link(struct gt_checker *checker, const struct gt_check_link *link)
{
	struct gt_check_health *health = &checker->check->health;

	if (link->gpus && !link->launches) {
		health->gpu_without_launch += link->gpus;
		if (link->gpu_ns < checker->links.first_launch_ns)
			health->before_first_launch += link->gpus;
		gt_check_add_at(checker, GT_CHECK_L_KERNEL,
				gt_check_event_of(checker, link->gpu_slice), link->gpus,
				"correlation %lld", (long long)link->id);
	}
	if (link->is_launch && !link->gpus) {
		health->launches_without_gpu += link->launches;
		if (link->launch_ns > checker->links.last_gpu_ns)
			health->after_last_gpu += link->launches;
		gt_check_add_at(checker, GT_CHECK_L_LAUNCH,
				gt_check_event_of(checker, link->launch_slice), link->launches,
				NULL);
	}
	if (link->gpus && link->launches)
		judge_pair(checker, link);
}

void gt_check_links_finish(struct gt_checker *checker)
{
	struct gt_check_links *links = &checker->links;
	struct gt_check_health *health = &checker->check->health;
	size_t op_count = links->ops.len / sizeof(struct gt_check_op);

	if (op_count)
		qsort(links->ops.data, op_count, sizeof(struct gt_check_op), by_id);
	for (uint32_t i = 0; i < links->numbers.count; i++)
		judge_link(checker, gt_check_link_at(links, i));
	if (!health->gpu_ops)
		gt_check_add(checker, GT_CHECK_G_NONE, NULL, NULL);
	else if (health->gpu_without_launch == health->gpu_ops)
		gt_check_add(checker, GT_CHECK_L_NONE, NULL, NULL);
}

void gt_check_links_release(struct gt_check_links *links)
{
	gt_id_map_release(&links->numbers);
	gt_id_map_release(&links->flows);
	gt_buf_release(&links->links);
	gt_buf_release(&links->ops);
}
