/*
 * claim.h - a file that says which run has a name. The gtraces of one job, one a rank and perhaps
 * on several machines, share a claim; all others keep away from it.
 *
 * A claim is decided on under a lock of its file, and each holder has another lock while it lives,
 * so that what a killed run leaves is no claim. The file names the job and its ranks that came.
 */
#ifndef GT_CLAIM_H
#define GT_CLAIM_H

#include "base.h"
#include "job.h"

struct gt_claim {
	int fd;     /* -1: there is none */
	char *path; /* owned */
	const struct gt_job *job;
	bool locks; /* the file system has them; without, a claim is only what the file says */
	bool deciding;
	bool joined; /* another rank of this job has decided for it */
};

/*
 * What the claim at path is to this job (borrowed until the claim is closed):
 * 1: it can have it, the caller decides: gt_claim_hold() or gt_claim_close();
 * 0: another job has it, or this very rank has had it: the claim is closed; or -errno.
 */
int gt_claim_open(struct gt_claim *claim, const char *path, const struct gt_job *job);

/* Take it. 0 or -errno; it is to be closed in any case. */
int gt_claim_hold(struct gt_claim *claim);

/* Give it back; the file goes with the last holder, when every rank of the job has come. */
void gt_claim_close(struct gt_claim *claim);

#endif
