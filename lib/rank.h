/*
 * rank.h - which process of a distributed job this is, from what its launcher left in the
 * environment. Shared by the injection, which sends it, and by 'gtrace run', which names files.
 */
#ifndef GT_RANK_H
#define GT_RANK_H

#include "base.h"
#include "wire.h"

struct gt_rank {
	uint32_t rank;       /* 0 when source is GT_RANK_NONE */
	uint32_t world_size; /* 0: not known */
	enum gt_rank_source source;
	const char *refused; /* the first variable that is set and holds no rank; NULL: none is */
};

/*
 * The first of RANK, OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK and SLURM_PROCID that is a number:
 * an mpirun inside a Slurm job must win. A world that has no room for the rank is not known. lookup
 * is getenv() or a stand-in for it.
 */
void gt_rank_from_env(char *(*lookup)(const char *name), struct gt_rank *ret);

/* The variable that gave the rank, or "torch.distributed"; "none" for GT_RANK_NONE. */
const char *gt_rank_source_name(enum gt_rank_source source);

#endif
