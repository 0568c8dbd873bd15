/*
 * gpu_time.c - see gpu_time.h.
 */
#include "base.h"
#include "gpu_time.h"

struct gt_gpu_time gt_gpu_time_of(uint64_t span_ns, const struct gt_intervals *compute,
				  const struct gt_intervals *comm,
				  const struct gt_intervals *memcpy)
{
	const struct gt_intervals *sets[] = { compute, comm, memcpy };
	uint64_t with_comm_ns = gt_intervals_union_ns(sets, 2);
	struct gt_gpu_time ret = {
		.span_ns = span_ns,
		.busy_ns = gt_intervals_union_ns(sets, 3),
		.compute_ns = gt_intervals_union_ns(sets, 1),
		.comm_ns = gt_intervals_union_ns(sets + 1, 1),
		.memcpy_ns = gt_intervals_union_ns(sets + 2, 1),
	};

	ret.exposed_comm_ns = with_comm_ns - ret.compute_ns;
	ret.exposed_memcpy_ns = ret.busy_ns - with_comm_ns;
	ret.idle_ns = ret.span_ns - ret.busy_ns;
	return ret;
}

static void add(uint64_t *sum, uint64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = UINT64_MAX;
}

void gt_gpu_time_add(struct gt_gpu_time *sum, const struct gt_gpu_time *more)
{
	add(&sum->span_ns, more->span_ns);
	add(&sum->busy_ns, more->busy_ns);
	add(&sum->compute_ns, more->compute_ns);
	add(&sum->comm_ns, more->comm_ns);
	add(&sum->exposed_comm_ns, more->exposed_comm_ns);
	add(&sum->memcpy_ns, more->memcpy_ns);
	add(&sum->exposed_memcpy_ns, more->exposed_memcpy_ns);
	add(&sum->idle_ns, more->idle_ns);
}
