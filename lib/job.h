/*
 * job.h - which job this rank belongs to: the gtraces of one job choose the name of its files
 * together, those of other jobs another one.
 */
#ifndef GT_JOB_H
#define GT_JOB_H

#include "base.h"
#include "rank.h"

struct gt_job {
	char key[256]; /* one line, the same for all ranks; empty: no launcher started this process
			*/
	bool unique;   /* no other job ever has this key */
	struct gt_rank rank;
};

/* All variables that tell a rank or its job, here and in rank.h; NULL-terminated. */
extern const char *const gt_job_variables[];

/* lookup is getenv() or a stand-in for it. */
void gt_job_from_env(char *(*lookup)(const char *name), struct gt_job *ret);

#endif
