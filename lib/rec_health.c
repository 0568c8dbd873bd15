/*
 * rec_health.c - what the file of a window says of its own health: what it lacks, and what may be
 * wrong with it.
 */
#include "base.h"
#include "clock.h"
#include "rec_state.h"

#include <inttypes.h>
#include <math.h>

#define STEPS_AROUND     16 /* before and after a window, for its comparison */
#define CLOCK_RESIDUE_NS (1 * (int64_t)GT_NSEC_PER_MSEC)

int64_t gt_clock_offset_ns(void)
{
	uint64_t real_ns = gt_clock_ns(CLOCK_REALTIME);

	return (int64_t)(real_ns - gt_clock_ns(CLOCK_MONOTONIC));
}

uint64_t gt_health_losses(const struct gt_trace_health *health)
{
	return health->dropped_cupti + health->dropped_arena + health->dropped_ring +
	       health->dropped_names + health->bad_records + health->launches_without_gpu +
	       health->gpu_without_launch;
}

static size_t add_warnings(const struct gt_recorder *rec, const struct gt_window *window,
			   const struct gt_trace_health *health, const char *warnings[])
{
	int64_t residue = health->clock_residue_ns;
	size_t count = 0;

	if (window->cut && !window->yielded) /* then it is the reason */
		warnings[count++] = window->cut;
	if (residue > CLOCK_RESIDUE_NS || residue < -CLOCK_RESIDUE_NS)
		warnings[count++] = "the system's clock was set during the window";
	if (gt_window_fell_back(rec, window))
		warnings[count++] = "another tool holds CUPTI's callbacks: launches come from its "
				    "API records, which slow the program";
	warnings[count] = NULL;
	return count;
}

void gt_window_health(const struct gt_recorder *rec, const struct gt_window *window,
		      struct gt_trace_health *ret, const char *warnings[GT_WINDOW_WARNINGS])
{
	const struct gt_steps *steps = &rec->steps;
	const struct gt_arena_state *now = &rec->state, *began = &window->began;
	/* A captured range has no steps around it like its own. */
	bool whole = window->id == GT_WHOLE_ID || window->own_steps;

	*ret = (struct gt_trace_health){
		.fallback = gt_window_fell_back(rec, window),
		.dropped_cupti = now->dropped_cupti - began->dropped_cupti,
		.dropped_arena = now->dropped_arena - began->dropped_arena,
		.dropped_ring = now->dropped_events - began->dropped_events + rec->ranges.refused -
				window->began_refused,
		/* A name lost before the window is missing in it, too. */
		.dropped_names = now->dropped_names + rec->names.refused + rec->stacks.refused +
				 window->stacks_left_out + window->unnamed,
		.bad_records = rec->bad_records - window->began_bad,
		.launches_without_gpu = window->launches_without_gpu,
		.gpu_without_launch = window->gpu_without_launch,
		.captured_launches = window->captured,
		.step_before_ms = whole || !window->first_step
					  ? NAN
					  : gt_steps_median_ms(steps, 0, window->first_step - 1,
							       STEPS_AROUND),
		.step_active_ms = whole ? NAN
					: gt_steps_median_ms(steps, window->first_step,
							     window->last_step, SIZE_MAX),
		.step_after_ms = whole ? NAN
				       : gt_steps_median_ms(steps, window->last_step + 1,
							    window->last_step + STEPS_AROUND,
							    STEPS_AROUND),
		.clock_residue_ns = gt_clock_offset_ns() - window->began_clock_ns,
	};
	if (add_warnings(rec, window, ret, warnings))
		ret->warnings = warnings;
}

const char *gt_window_reason(const struct gt_recorder *rec, struct gt_window *window,
			     const struct gt_trace_health *health)
{
	const struct {
		uint64_t count;
		const char *one;
		const char *many;
	} losses[] = {
		{ health->dropped_arena, "GPU record found no room in the arena (--max-buffer)",
		  "GPU records found no room in the arena (--max-buffer)" },
		{ health->dropped_cupti, "GPU record was dropped by CUPTI",
		  "GPU records were dropped by CUPTI" },
		{ health->dropped_ring,
		  "event found no room in the arena (--max-buffer) or was nested too deep",
		  "events found no room in the arena (--max-buffer) or were nested too deep" },
		{ rec->ended ? window->untimed : 0,
		  "launch was not done by the GPU when the program ended",
		  "launches were not done by the GPU when the program ended" },
		{ health->launches_without_gpu, "launch has no GPU record",
		  "launches have no GPU record" },
		{ health->gpu_without_launch, "GPU record has no launch",
		  "GPU records have no launch" },
		{ health->bad_records, "record could not be used", "records could not be used" },
		{ window->stacks_left_out, "Python stack or function found no room in the file",
		  "Python stacks and functions found no room in the file" },
		{ health->dropped_names, "name was lost", "names were lost" },
	};
	size_t i;

	if (window->yielded)
		return window->cut;
	if (rec->no_cupti)
		return "CUPTI could not be used: there are no CUDA calls and no GPU work in it";
	if (gt_window_fell_back(rec, window) && rec->newest_api_ns < window->start_ns)
		return "no record of any call came, while another tool held CUPTI's callbacks";
	if (window->id != GT_WHOLE_ID && gt_rec_began_late(rec, window->first_step))
		return "CUPTI was not on yet when the window began";
	for (i = 0; i < ARRAY_SIZE(losses); i++) {
		if (!losses[i].count)
			continue;
		snprintf(window->reason, sizeof(window->reason), "%" PRIu64 " %s", losses[i].count,
			 losses[i].count == 1 ? losses[i].one : losses[i].many);
		return window->reason;
	}
	return NULL;
}
