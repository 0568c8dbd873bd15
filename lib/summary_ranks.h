/*
 * summary_ranks.h - the traces of the ranks of one job beside each other: a row a rank, the spread
 * of each figure, and which rank is the slowest. The files are read in parallel, each on its own;
 * of each remains only its row.
 */
#ifndef GT_SUMMARY_RANKS_H
#define GT_SUMMARY_RANKS_H

#include "base.h"
#include "buf.h"
#include "err.h"
#include "summary.h"
#include "trace_files.h"

struct gt_rank_row {
	const char *path; /* of the files that were given */
	int rc;           /* of gt_summary_load(); all else is 0 then */
	char *why;        /* what err said; of what can be read, why it is not complete, or NULL */
	bool is_lossy;
	bool is_own;  /* of gtrace, which says whether it is complete */
	int64_t rank; /* -1: not known */
	int64_t world_size;
	uint64_t events;
	struct gt_range steps; /* durations in ns */
	size_t gpu_count;
	struct gt_gpu_time gpu; /* all GPUs of the file together */
	struct gt_buf gpus;     /* as JSON */
};

/* What is wrong with all of the file; NULL: nothing is known. */
const char *gt_rank_row_problem(const struct gt_rank_row *row);

struct gt_summary_ranks {
	struct gt_rank_row *rows; /* by rank, those that cannot be read last */
	size_t count;
	size_t readable;
	const struct gt_rank_row *slowest; /* the longest median step, else GPU span; may be NULL */
	/* Waits least for others, where ranks communicate: the others may wait for it. NULL: none.
	 */
	const struct gt_rank_row *waited_for;
	uint64_t twice;   /* ranks that more than one file has */
	uint64_t missing; /* ranks below the world size that no file has */
	int64_t first_twice;
	int64_t first_missing;
};

/*
 * Read the files, in threads as many as the processors this process may use; only those of this
 * rank when it is not -1. files is borrowed. Files that are no traces have rows, too. 0 or -ENOMEM.
 */
int gt_summary_ranks_load(struct gt_summary_ranks **ret, const struct gt_trace_files *files,
			  int64_t rank, struct gt_err *err);

void gt_summary_ranks_free(struct gt_summary_ranks *ranks); /* may be NULL */

/* A file could not be read, or not all of it. */
bool gt_summary_ranks_is_lossy(const struct gt_summary_ranks *ranks);

/* 0 or -ENOMEM. title: what the files are of. */
int gt_summary_ranks_print(const struct gt_summary_ranks *ranks, const char *title,
			   const struct gt_summary_style *style, struct gt_buf *out);

#endif
