#include "base.h"
#include "rank.h"

/* By enum gt_rank_source. */
static const struct {
	const char *rank;
	const char *world_size;
} launchers[] = {
	[GT_RANK_ENV] = { "RANK", "WORLD_SIZE" },
	[GT_RANK_OMPI] = { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	[GT_RANK_PMIX] = { "PMIX_RANK", NULL },
	[GT_RANK_PMI] = { "PMI_RANK", "PMI_SIZE" },
	[GT_RANK_SLURM] = { "SLURM_PROCID", "SLURM_NTASKS" },
	[GT_RANK_TORCH] = { "torch.distributed", NULL }, /* no variable; told later */
};

/* text as a number below 2^31; false when it is anything else. */
static bool parse_number(const char *text, uint32_t *ret)
{
	uint64_t value = 0;
	size_t digits;

	if (!text)
		return false;
	for (digits = 0; gt_is_digit(text[digits]) && digits < 10; digits++)
		value = value * 10 + (uint64_t)(text[digits] - '0');
	if (!digits || text[digits] || value > INT32_MAX)
		return false;
	*ret = (uint32_t)value;
	return true;
}

/* In the script of a Slurm job, outside of its steps, SLURM_PROCID is 0 and tells nothing. */
static bool is_batch_script(char *(*lookup)(const char *name), const struct gt_rank *rank)
{
	return rank->source == GT_RANK_SLURM && !rank->rank && !lookup("SLURM_STEP_ID");
}

/* PMIx gives no size of the job; where Slurm started it, the ranks are those of srun. */
static const char *find_world_size(char *(*lookup)(const char *name), enum gt_rank_source source)
{
	const char *job = lookup("PMIX_NAMESPACE");

	if (source == GT_RANK_PMIX && job && !strncmp(job, "slurm.pmix.", 11))
		source = GT_RANK_SLURM;
	return launchers[source].world_size ? lookup(launchers[source].world_size) : NULL;
}

void gt_rank_from_env(char *(*lookup)(const char *name), struct gt_rank *ret)
{
	const char *refused = NULL, *text;
	size_t i;

	for (i = 0; i < GT_RANK_TORCH; i++) {
		*ret = (struct gt_rank){ .source = (enum gt_rank_source)i };
		text = launchers[i].rank ? lookup(launchers[i].rank) : NULL;
		if (!text || !*text)
			continue;
		if (!parse_number(text, &ret->rank))
			refused = refused ? refused : launchers[i].rank;
		else if (!is_batch_script(lookup, ret))
			break;
	}
	if (i == GT_RANK_TORCH)
		*ret = (struct gt_rank){ .source = GT_RANK_NONE };
	else
		parse_number(find_world_size(lookup, ret->source), &ret->world_size);
	if (ret->world_size <= ret->rank)
		ret->world_size = 0;
	ret->refused = refused;
}

const char *gt_rank_source_name(enum gt_rank_source source)
{
	if ((size_t)source >= ARRAY_SIZE(launchers) || !launchers[source].rank)
		return "none";
	return launchers[source].rank;
}
