#include "base.h"
#include "rank.h"

/* By enum gt_rank_source. PMIx gives no size of the job. */
static const struct {
	const char *rank;
	const char *world_size;
} launchers[] = {
	[GT_RANK_ENV] = { "RANK", "WORLD_SIZE" },
	[GT_RANK_OMPI] = { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	[GT_RANK_PMIX] = { "PMIX_RANK", NULL },
	[GT_RANK_PMI] = { "PMI_RANK", "PMI_SIZE" },
	[GT_RANK_SLURM] = { "SLURM_PROCID", "SLURM_NTASKS" },
};

/* text as a number below 2^31; false when it is anything else. */
static bool parse_number(const char *text, uint32_t *ret)
{
	uint64_t value = 0;
	size_t digits;

	if (!text)
		return false;
	for (digits = 0; text[digits] >= '0' && text[digits] <= '9' && digits < 10; digits++)
		value = value * 10 + (uint64_t)(text[digits] - '0');
	if (!digits || text[digits] || value > INT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

void gt_rank_from_env(char *(*lookup)(const char *name), struct gt_rank *ret)
{
	size_t i;

	*ret = (struct gt_rank){ .source = GT_RANK_NONE };
	for (i = 0; i < ARRAY_SIZE(launchers); i++) {
		if (!launchers[i].rank || !parse_number(lookup(launchers[i].rank), &ret->rank))
			continue;
		ret->source = (enum gt_rank_source)i;
		if (launchers[i].world_size)
			parse_number(lookup(launchers[i].world_size), &ret->world_size);
		return;
	}
}

const char *gt_rank_source_name(enum gt_rank_source source)
{
	if ((size_t)source >= ARRAY_SIZE(launchers) || !launchers[source].rank)
		return "none";
	return launchers[source].rank;
}
