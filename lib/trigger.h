/*
 * trigger.h - a window on demand in all processes of a session at once: they agree on a step that
 * none of them has come to, without waiting for each other. Each takes the plan or is late for it;
 * when one is late it is taken back from all and tried again with more room. A process that ends or
 * does not answer is left out.
 */
#ifndef GT_TRIGGER_H
#define GT_TRIGGER_H

#include "base.h"
#include "collector.h"
#include "err.h"

#include <uv.h>

enum gt_trigger_at {
	GT_AT_SOON = 0,  /* as soon as all can */
	GT_AT_STEP = 1,  /* the first active step is this one */
	GT_AT_AFTER = 2, /* so many steps after the present one of the foremost process */
};

struct gt_trigger_request {
	uint64_t active;
	uint64_t warmup;
	enum gt_trigger_at at;
	uint64_t step;
	uint64_t cycle; /* its number is not below this */
	bool prepare;   /* it is decided on later, by gt_trigger_decide() */
};

struct gt_trigger_result {
	int rc; /* 0, or -errno with a message in err: nothing will be traced */
	struct gt_err err;
	bool late; /* that was since a process had come too far; its step: */
	uint64_t step;
	struct gt_plan plan;
	unsigned int ranks; /* processes with steps that take part */
};

struct gt_trigger {
	/* set by the caller before gt_trigger_start() */
	struct gt_collector *collector;
	const struct gt_schedule *schedule;
	void (*done)(void *ctx, const struct gt_trigger_result *result);
	/* A process that does steps is left out of it; may be called at any time. */
	void (*left_out)(void *ctx, const struct gt_client_info *client, const char *why);
	/* A rank on the GPU takes part, but was seen in no step so far: only steps give it a trace.
	 */
	void (*stepless)(void *ctx, const struct gt_client_info *client);
	void *ctx; /* of these */
	/* private */
	uv_timer_t timer;
	enum { GT_TRIGGER_IDLE, GT_TRIGGER_SAMPLE, GT_TRIGGER_ASK, GT_TRIGGER_DECIDE } state;
	struct gt_trigger_request request;
	struct gt_plan plan;
	unsigned int attempt;
	uint64_t sample_ns; /* when */
	uint64_t sample_step;
	uint64_t end_ms; /* so long answers are awaited, or the decision */
	uint64_t next_cycle;
};

void gt_trigger_start(struct gt_trigger *trigger, uv_loop_t *loop);

/*
 * Begin, unless that cannot be: -errno with a message. Then done is called, from the loop, some
 * milliseconds later and after some seconds at most; with request.prepare it waits for the decision
 * from then on, and takes the plan back when there is none within 15 s.
 */
int gt_trigger_begin(struct gt_trigger *trigger, const struct gt_trigger_request *request,
		     struct gt_err *err);

/*
 * Commit what was prepared, or take it back, also while it still is in the making: then done is not
 * called. false: there is nothing (any more).
 */
bool gt_trigger_decide(struct gt_trigger *trigger, bool commit);

/* End an agreement that is being reached, which is then done with this error; else nothing. */
void gt_trigger_give_up(struct gt_trigger *trigger, int code, const char *why);

/* For struct gt_collector. */
void gt_trigger_answered(struct gt_trigger *trigger, const struct gt_client_info *client);

/* The step of the foremost process, and how many of them do steps: of those that can be asked. */
uint64_t gt_trigger_step(const struct gt_trigger *trigger, unsigned int *ret_ranks);

/* The same of those that are traced, or else of those whose files are not complete yet. */
uint64_t gt_trigger_shown_step(const struct gt_trigger *trigger, unsigned int *ret_ranks);

/* The number that the next plan gets at least. */
uint64_t gt_trigger_next_cycle(const struct gt_trigger *trigger, uint64_t first_step);

/* Close the handle; the loop has to run once more. */
void gt_trigger_close(struct gt_trigger *trigger);

#endif
