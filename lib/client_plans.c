/*
 * client_plans.c - plans of a client: proposed, answered by its process, decided on. The recorder
 * hears of a plan before the process does, which may be in its steps at once.
 */
#include "base.h"
#include "client_priv.h"
#include "message.h"

bool gt_client_can_plan(const struct gt_client *client)
{
	return gt_client_is_traced(client) && client->fd >= 0;
}

bool gt_client_propose(struct gt_client *client, const struct gt_plan *plan)
{
	if (!gt_client_can_plan(client))
		return false;
	client->plan = *plan;
	client->plan_id++;
	client->plan_new = true;
	client->info.plan_state = GT_PLAN_ASKED;
	client->kicked = true;
	gt_client_advance(client);
	return true;
}

void gt_client_decide(struct gt_client *client, bool commit)
{
	if (client->info.plan_state == GT_PLAN_NONE)
		return;
	if (client->plan_new) {
		client->plan_new = false; /* nobody knows of it; the one before may be decided on */
	} else {
		client->plan_decided = true;
		client->plan_commit = commit && client->info.plan_state == GT_PLAN_TAKEN;
		if (client->plan_commit)
			client->info.awaited = client->plan;
	}
	client->info.plan_state = GT_PLAN_NONE;
	client->kicked = true;
	gt_client_advance(client);
}

void gt_client_take_answer(struct gt_client *client, const struct gt_msg_phase *phase)
{
	if (client->info.plan_state != GT_PLAN_ASKED || phase->cycle != client->plan_id)
		return; /* to what was taken back meanwhile */
	client->info.plan_state = phase->what == GT_WHAT_PLAN_TAKEN ? GT_PLAN_TAKEN : GT_PLAN_LATE;
	client->info.plan_step = (uint32_t)phase->value;
	client->config->answered(client->config->owner, client);
}

/* Have the recorder know what became of the plan that it knows of. */
static void decide(struct gt_client *client)
{
	client->plan_decided = false;
	gt_recorder_decide(client->recorder, client->plan_commit);
	client->info.plans = *gt_recorder_plans(client->recorder);
}

void gt_client_drop_plan(struct gt_client *client)
{
	if (client->plan_decided) /* it may have lived to the end of its window */
		decide(client);
	if (client->info.plan_state == GT_PLAN_NONE)
		return;
	client->info.plan_state = GT_PLAN_NONE;
	client->config->answered(client->config->owner, client);
}

void gt_client_follow_plans(struct gt_client *client)
{
	if (client->plan_decided) {
		decide(client);
		if (!client->plan_commit && client->fd >= 0)
			gt_message_send(client->fd, GT_MSG_CANCEL, client->plan_was.cycle);
		gt_recorder_wake(client->recorder);
	}
	if (!client->plan_new)
		return;
	client->plan_new = false;
	client->plan_was = client->plan;
	gt_recorder_hold(client->recorder, &client->plan);
	if (client->fd >= 0 && !gt_message_send_plan(client->fd, &client->plan, client->plan_id)) {
		gt_recorder_wake(client->recorder);
		return;
	}
	gt_recorder_decide(client->recorder, false);
	gt_client_drop_plan(client);
}
