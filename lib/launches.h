/*
 * launches.h - GPU work and the calls that launched it, linked when all of a trace was read: no
 * producer writes one right beside the other. Each takes 32 bytes.
 */
#ifndef GT_LAUNCHES_H
#define GT_LAUNCHES_H

#include "base.h"

struct gt_launch_call {
	int64_t correlation;
	int64_t start_ns;
	int64_t end_ns;
	uint32_t thread;
	uint32_t
		pieces : 29; /* of work that it launched, at most GT_PIECES_MAX; a graph has many */
	uint32_t is_ambiguous : 1; /* other calls have its correlation */
	uint32_t wants_work : 1;   /* it is to have a piece at least */
	uint32_t has_begun : 1;    /* a kernel of it was met: for gt_launch_stats_of() */
};

#define GT_PIECES_MAX ((UINT32_C(1) << 29) - 1)

struct gt_launches { /* { 0 } is empty */
	struct gt_launch_call *calls;
	size_t count;
	size_t cap;
	uint32_t *slots; /* while they are linked: the number of a call + 1, by correlation */
	size_t slot_count;
};

enum gt_launched_kind { GT_LAUNCHED_COMPUTE, GT_LAUNCHED_COMM, GT_LAUNCHED_MEMCPY };

struct gt_launched {
	int64_t start_ns;
	int64_t end_ns;
	/* Its correlation, 0: none; when linked: the number of the call + 1, 0: not known. */
	int64_t call;
	enum gt_launched_kind kind;
	bool is_kernel;
};

struct gt_launched_works { /* of one GPU; { 0 } is empty */
	struct gt_launched *items;
	size_t count;
	size_t cap;
};

/* A call with a correlation, whatever it does. 0 or -ENOMEM. */
int gt_launches_add(struct gt_launches *launches, const struct gt_launch_call *call);

/* 0 or -ENOMEM. */
int gt_launched_add(struct gt_launched_works *works, const struct gt_launched *work);

/* All calls are there. 0 or -ENOMEM. */
int gt_launches_index(struct gt_launches *launches);

/* After gt_launches_index(): link the work to its calls. A correlation of several calls links to
 * none. */
void gt_launches_link(struct gt_launches *launches, struct gt_launched_works *works);

/* By start. Producers write it nearly in order: a few runs are merged. 0 or -ENOMEM. */
int gt_launched_sort(struct gt_launched_works *works);

/* Of linked work; NULL: not known. */
static inline const struct gt_launch_call *gt_launch_of(const struct gt_launches *launches,
							const struct gt_launched *work)
{
	return work->call ? &launches->calls[work->call - 1] : NULL;
}

void gt_launches_release(struct gt_launches *launches);
void gt_launched_release(struct gt_launched_works *works);

#endif
