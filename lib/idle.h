/*
 * idle.h - why nothing ran on a GPU, from its first piece of work to the end of its last.
 *
 * The piece of work that ends a gap names its cause, with the call that launched it; of several
 * that begin together, the one that was launched first. Until the beginning of that call the host
 * was late, and from then on it is launch latency. While the host was late, the thread that made
 * the call may have waited for data or for communication: see host_waits.h. Where that call had
 * begun before the gap, the work was queued, and waited for what is not seen. Where the call is not
 * in the file nothing is known.
 */
#ifndef GT_IDLE_H
#define GT_IDLE_H

#include "base.h"
#include "host_waits.h"
#include "launches.h"

struct gt_idle { /* together: all that is idle */
	uint64_t host_late_ns;
	uint64_t launch_latency_ns;
	uint64_t queued_ns;
	uint64_t communication_ns;
	uint64_t data_loading_ns;
	uint64_t unknown_ns;
};

/* Of linked work and sorted waits. */
struct gt_idle gt_idle_of(const struct gt_launches *launches, const struct gt_launched_works *works,
			  const struct gt_host_waits *waits);

#endif
