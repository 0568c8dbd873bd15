/*
 * kernel_stats.c - see kernel_stats.h.
 */
#include "base.h"
#include "input_dims.h"
#include "kernel_stats.h"
#include "ops_priv.h"

#include <stdlib.h>

struct gt_kernel_work { /* until its operator is known */
	int64_t external;
	int64_t correlation;
	int64_t dur_ns;
	uint32_t kernel;
};

_Static_assert(sizeof(struct gt_kernel_work) == 32, "files hold millions of them");

static int grow(void *items, size_t *cap, size_t least, size_t size)
{
	void **array = items;
	size_t new_cap = *cap ? *cap * 2 : 64;
	char *grown;

	if (least <= *cap)
		return 0;
	new_cap = GT_MAX(new_cap, least);
	grown = realloc(*array, new_cap * size);
	if (!grown)
		return -ENOMEM;
	memset(grown + *cap * size, 0, (new_cap - *cap) * size);
	*array = grown;
	*cap = new_cap;
	return 0;
}

/* ---- configurations -------------------------------------------------------------------------- */

enum arg { GRID, BLOCK, REGISTERS, SHARED, OCCUPANCY, THEORETICAL, ARG_COUNT };

/* As Kineto writes them; up to 2021 there was only the theoretical occupancy. */
static const struct gt_str arg_keys[ARG_COUNT] = {
	[GRID] = GT_STR("grid"),
	[BLOCK] = GT_STR("block"),
	[REGISTERS] = GT_STR("registers per thread"),
	[SHARED] = GT_STR("shared memory"),
	[OCCUPANCY] = GT_STR("est. achieved occupancy %"),
	[THEORETICAL] = GT_STR("theoretical occupancy %"),
};

static uint32_t count_of(struct gt_str raw)
{
	int64_t value;

	return gt_json_int(raw, &value) && value >= 0 && value < GT_KERNEL_UNKNOWN
		       ? (uint32_t)value
		       : GT_KERNEL_UNKNOWN;
}

static void read_extent(struct gt_str raw, uint32_t ret[3])
{
	const char *at = raw.ptr;
	struct gt_dims dims;
	bool known = raw.len && gt_dims_next(&at, raw.ptr + raw.len, &dims) && dims.count == 3;

	for (size_t i = 0; i < 3; i++)
		known = known && dims.sizes[i] >= 0 && dims.sizes[i] < GT_KERNEL_UNKNOWN;
	for (size_t i = 0; i < 3; i++)
		ret[i] = known ? (uint32_t)dims.sizes[i] : GT_KERNEL_UNKNOWN;
}

static bool is_known(const struct gt_kernel_config *config)
{
	return config->grid[0] != GT_KERNEL_UNKNOWN || config->block[0] != GT_KERNEL_UNKNOWN ||
	       config->registers != GT_KERNEL_UNKNOWN || config->shared_bytes != GT_KERNEL_UNKNOWN;
}

static int add_config(struct gt_kernel_stats *stats, const struct gt_kernel_config *config,
		      uint64_t dur_ns)
{
	struct gt_kernel_stat *row = &stats->rows[config->kernel];
	struct gt_str key = { (const char *)config, sizeof(*config) };
	uint32_t before = stats->configs.count, number;

	if (before >= GT_KERNEL_CONFIGS_MAX) {
		/* Which of them are known already is not worth a look. */
		row->more_configs = true;
		return 0;
	}
	number = gt_intern(&stats->configs, key);
	if (number == GT_INTERN_FAILED ||
	    grow(&stats->config_ns, &stats->config_cap, number + 1U, sizeof(*stats->config_ns)) < 0)
		return -ENOMEM;
	row->configs += number == before;
	if (__builtin_add_overflow(stats->config_ns[number], dur_ns, &stats->config_ns[number]))
		stats->config_ns[number] = UINT64_MAX;
	return 0;
}

static void add_occupancy(struct gt_kernel_stat *row, const struct gt_str *args, int64_t dur_ns)
{
	double ns = (double)GT_MAX(dur_ns, 1);
	int64_t thousandths;

	if (!gt_json_scaled(args[OCCUPANCY], 3, &thousandths) &&
	    !gt_json_scaled(args[THEORETICAL], 3, &thousandths))
		return;
	row->occupancy_sum += (double)thousandths / 1000 * ns;
	row->occupancy_ns += ns;
}

static struct gt_kernel_config config_at(const struct gt_kernel_stats *stats, uint32_t number)
{
	struct gt_kernel_config ret;

	memcpy(&ret, gt_interned(&stats->configs, number).ptr, sizeof(ret));
	return ret;
}

static void find_configs(struct gt_kernel_stats *stats)
{
	for (uint32_t i = 0; i < stats->configs.count; i++) {
		struct gt_kernel_stat *row = &stats->rows[config_at(stats, i).kernel];

		if (!row->config || stats->config_ns[i] > stats->config_ns[row->config - 1])
			row->config = i + 1;
	}
}

/* ---- operators ------------------------------------------------------------------------------- */

#define AMBIGUOUS (-1)

/* Of several with an External id the first one counts; a correlation has no second one. */
static int name_id(struct gt_id_map *map, int64_t id, int64_t name, bool is_unique)
{
	int64_t *value = gt_id_map_put(map, id);

	if (!value)
		return -ENOMEM;
	if (!*value)
		*value = name;
	else if (is_unique && *value != name)
		*value = AMBIGUOUS;
	return 0;
}

int gt_kernel_stats_add_op(struct gt_kernel_stats *stats, const struct gt_trace_event *event)
{
	int64_t external = gt_ops_external_id(event);
	uint32_t name;

	if (!external)
		return 0;
	if (!gt_ops_name(stats->ops, event->name, &name))
		return -ENOMEM;
	return name_id(&stats->op_by_external, external, (int64_t)name + 1, false);
}

int gt_kernel_stats_add_call(void *context, const struct gt_op_slice *call, int64_t op)
{
	struct gt_kernel_stats *stats = context;
	bool is_external = call->id_kind == GT_ID_EXTERNAL;
	int64_t id = is_external ? call->id : gt_ops_call_id(call->id);

	if (op < 0 || call->id_kind == GT_ID_NONE)
		return 0;
	return name_id(&stats->op_by_call, id, op + 1, !is_external);
}

/* 0: not known. */
static int64_t op_of_work(struct gt_kernel_stats *stats, const struct gt_kernel_work *work)
{
	const int64_t *op = NULL;

	if (work->external) {
		op = gt_id_map_find(&stats->op_by_external, work->external);
		if (!op)
			op = gt_id_map_find(&stats->op_by_call, work->external);
	}
	if (!op && work->correlation)
		op = gt_id_map_find(&stats->op_by_call, gt_ops_call_id(work->correlation));
	return op && *op != AMBIGUOUS ? *op : 0;
}

/* Of a kernel and an operator, in a map. */
static int64_t pair_id(uint32_t kernel, int64_t op)
{
	return (int64_t)((uint64_t)kernel << 32 | (uint64_t)op);
}

static void find_ops(struct gt_kernel_stats *stats, const struct gt_id_map *pairs, int64_t *best_ns)
{
	for (uint32_t i = 0; i < pairs->slot_count; i++) {
		uint64_t pair = (uint64_t)pairs->slots[i].id;
		uint32_t kernel = (uint32_t)(pair >> 32), op = (uint32_t)pair;
		struct gt_kernel_stat *row;
		int64_t ns = pairs->slots[i].value;

		if (!pair)
			continue;
		row = &stats->rows[kernel];
		if (!row->ops++ || ns > best_ns[kernel] ||
		    (ns == best_ns[kernel] && op < row->op)) {
			row->op = op;
			best_ns[kernel] = ns;
		}
	}
}

static int finish_ops(struct gt_kernel_stats *stats)
{
	struct gt_id_map pairs = { 0 };
	int64_t *best_ns = calloc(stats->row_cap + 1, sizeof(*best_ns));
	int rc = best_ns ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < stats->work_count; i++) {
		const struct gt_kernel_work *work = &stats->works[i];
		int64_t op = op_of_work(stats, work);

		if (op)
			rc = gt_id_map_add(&pairs, pair_id(work->kernel, op), work->dur_ns);
	}
	if (!rc)
		find_ops(stats, &pairs, best_ns);
	free(best_ns);
	gt_id_map_release(&pairs);
	return rc;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static int add_work(struct gt_kernel_stats *stats, const struct gt_kernel_work *work)
{
	if (!work->external && !work->correlation)
		return 0;
	if (grow(&stats->works, &stats->work_cap, stats->work_count + 1, sizeof(*work)) < 0)
		return -ENOMEM;
	stats->works[stats->work_count++] = *work;
	return 0;
}

int gt_kernel_stats_add(struct gt_kernel_stats *stats, uint32_t kernel,
			const struct gt_trace_event *event, int64_t dur_ns, int64_t correlation)
{
	struct gt_kernel_config config = { .kernel = kernel };
	struct gt_kernel_work work = { .external = gt_ops_external_id(event),
				       .correlation = correlation,
				       .dur_ns = dur_ns,
				       .kernel = kernel };
	struct gt_str args[ARG_COUNT];
	int rc = 0;

	if (grow(&stats->rows, &stats->row_cap, kernel + (size_t)1, sizeof(*stats->rows)) < 0)
		return -ENOMEM;
	/* From 2022 to 2024 Kineto put the correlation there where there was no operator. */
	if (work.external == correlation)
		work.external = 0;
	gt_trace_event_args(event, arg_keys, args, ARG_COUNT);
	read_extent(args[GRID], config.grid);
	read_extent(args[BLOCK], config.block);
	config.registers = count_of(args[REGISTERS]);
	config.shared_bytes = count_of(args[SHARED]);
	if (is_known(&config))
		rc = add_config(stats, &config, (uint64_t)dur_ns);
	add_occupancy(&stats->rows[kernel], args, dur_ns);
	return rc ? rc : add_work(stats, &work);
}

int gt_kernel_stats_finish(struct gt_kernel_stats *stats)
{
	int rc = finish_ops(stats);

	find_configs(stats);
	free(stats->works);
	stats->works = NULL;
	stats->work_count = stats->work_cap = 0;
	gt_id_map_release(&stats->op_by_external);
	gt_id_map_release(&stats->op_by_call);
	return rc;
}

const struct gt_kernel_stat *gt_kernel_stat_of(const struct gt_kernel_stats *stats, uint32_t kernel)
{
	return kernel < stats->row_cap ? &stats->rows[kernel] : NULL;
}

struct gt_kernel_config gt_kernel_config_of(const struct gt_kernel_stats *stats,
					    const struct gt_kernel_stat *stat)
{
	struct gt_kernel_config ret;

	if (!stat->config) {
		memset(&ret, 0xff, sizeof(ret));
		return ret;
	}
	return config_at(stats, stat->config - 1);
}

struct gt_str gt_kernel_op_of(const struct gt_kernel_stats *stats,
			      const struct gt_kernel_stat *stat)
{
	return stat->op ? gt_interned(&stats->ops->names, stat->op - 1)
			: (struct gt_str){ NULL, 0 };
}

void gt_kernel_stats_release(struct gt_kernel_stats *stats)
{
	free(stats->rows);
	free(stats->config_ns);
	free(stats->works);
	gt_interner_release(&stats->configs);
	gt_id_map_release(&stats->op_by_external);
	gt_id_map_release(&stats->op_by_call);
}
