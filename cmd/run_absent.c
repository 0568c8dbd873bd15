#include "base.h"
#include "die.h"
#include "run_absent.h"
#include "step_marks.h"

#include <stdlib.h>

/* Longer than most steps are; said of one that others are ahead of by a window. */
#define STILL_MS 5000

struct run_absentee {
	char who[48];
	uint32_t step;
	enum gt_client_end end;
};

void run_absent_who(const struct gt_client_info *client, char *buf, size_t len)
{
	if (client->hello.rank_source == GT_RANK_NONE)
		snprintf(buf, len, "process %u", client->hello.pid);
	else
		snprintf(buf, len, "rank %u (process %u)", client->hello.rank, client->hello.pid);
}

/* "window 2, steps 60 to 62" */
static void describe_window(const struct gt_plan *plan, char *buf, size_t len)
{
	snprintf(buf, len, "window %llu, %s", (unsigned long long)plan->cycle + 1,
		 gt_steps_text(plan->first_step, (uint64_t)plan->first_step + plan->active - 1)
			 .text);
}

/* "rank 3 (process 4711) was killed in step 57" */
static void describe_end(const struct run_absentee *one, char *buf, size_t len)
{
	static const char *const ends[] = {
		[GT_CLIENT_ENDED] = "%s ended in step %u",
		[GT_CLIENT_KILLED] = "%s was killed in step %u",
		[GT_CLIENT_REPLACED] = "%s became another program in step %u",
		[GT_CLIENT_STOPPED] = "%s was in step %u when tracing ended",
		[GT_CLIENT_REFUSED] = "%s was given up in step %u",
	};

	snprintf(buf, len, ends[one->end], one->who, one->step);
}

static void say_absent(const struct gt_plan *plan, const struct run_absentee *one)
{
	char what[128], window[96];

	describe_end(one, what, sizeof(what));
	describe_window(plan, window, sizeof(window));
	warn("%s: it has no trace of %s", what, window);
}

/* The hindmost may be what the others waited for. */
static bool say_never_begun(const struct run_absent *absent)
{
	const struct run_absentee *last = absent->gone;
	char what[128], window[96], others[64] = "";
	uint32_t step = 0;

	if (!absent->gone_count)
		return false;
	for (size_t i = 1; i < absent->gone_count; i++)
		if (absent->gone[i].step < last->step)
			last = &absent->gone[i];
	for (size_t i = 0; i < absent->gone_count; i++)
		if (&absent->gone[i] != last)
			step = GT_MAX(step, absent->gone[i].step);
	if (absent->gone_count > 1)
		snprintf(others, sizeof(others), "; the other %zu came to step %u",
			 absent->gone_count - 1, step);
	describe_end(last, what, sizeof(what));
	describe_window(&absent->plan, window, sizeof(window));
	warn("%s, never began: %s%s", window, what, others);
	return true;
}

static void forget(struct run_absent *absent)
{
	free(absent->gone);
	free(absent->still);
	*absent = (struct run_absent){ .begun = false };
}

void run_absent_triggered(struct run_absent *absent, const struct gt_plan *plan)
{
	if (absent->plan.active && absent->plan.cycle == plan->cycle)
		return;
	run_absent_end(absent);
	absent->plan = *plan;
}

void run_absent_closed(struct run_absent *absent, uint64_t cycle)
{
	if (absent->begun || !absent->plan.active || cycle != absent->plan.cycle + 1)
		return;
	absent->begun = true;
	for (size_t i = 0; i < absent->gone_count; i++)
		say_absent(&absent->plan, &absent->gone[i]);
}

/* Launchers and helpers agree to windows, too, but never have steps. */
static bool is_absent(const struct gt_client_info *client)
{
	return client->awaited.active && client->step_source != GT_STEP_NONE;
}

void run_absent_gone(struct run_absent *absent, const struct gt_client_info *client)
{
	struct run_absentee one = { .step = client->step, .end = client->end }, *grown;

	if (!is_absent(client))
		return;
	run_absent_who(client, one.who, sizeof(one.who));
	if (!absent->plan.active || client->awaited.cycle > absent->plan.cycle)
		run_absent_triggered(absent, &client->awaited); /* of which it is told next */
	if (absent->begun || client->awaited.cycle < absent->plan.cycle) {
		say_absent(&client->awaited, &one);
		return;
	}
	grown = realloc(absent->gone, (absent->gone_count + 1) * sizeof(*grown));
	if (!grown)
		return;
	absent->gone = grown;
	grown[absent->gone_count++] = one;
}

/* true: for the first time. */
static bool note_still(struct run_absent *absent, uint64_t id)
{
	uint64_t *grown;

	for (size_t i = 0; i < absent->still_count; i++)
		if (absent->still[i] == id)
			return false;
	grown = realloc(absent->still, (absent->still_count + 1) * sizeof(*grown));
	if (!grown)
		return false;
	absent->still = grown;
	grown[absent->still_count++] = id;
	return true;
}

void run_absent_look(struct run_absent *absent, const struct gt_collector *collector,
		     uint64_t now_ms)
{
	char who[48], window[96];

	for (size_t i = 0; absent->begun && i < collector->client_count; i++) {
		const struct gt_client_info *client = gt_client_info(collector->clients[i]);

		if (!is_absent(client) || client->awaited.cycle != absent->plan.cycle ||
		    client->step >= client->awaited.first_step ||
		    now_ms - client->step_ms < STILL_MS || !note_still(absent, client->id))
			continue;
		run_absent_who(client, who, sizeof(who));
		describe_window(&absent->plan, window, sizeof(window));
		warn("%s stands still in step %u: it has no trace of %s, so far", who, client->step,
		     window);
	}
}

bool run_absent_end(struct run_absent *absent)
{
	bool never = !absent->begun && say_never_begun(absent);

	forget(absent);
	return never;
}
