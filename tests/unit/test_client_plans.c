/* Plans between the collector and one process: asked, answered, decided on. */
#include "base.h"
#include "client_owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <cmocka.h>

static const struct gt_plan plan = { .cycle = 2, .first_step = 40, .warmup = 1, .active = 3 };

static void say_hello(void)
{
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
}

static uint32_t plan_id; /* of the last one that was expected */

static void answer(uint32_t what, uint64_t id)
{
	const struct gt_msg_phase phase = {
		.hdr = PEER_HDR(GT_MSG_PHASE, sizeof(phase)),
		.what = what,
		.cycle = id,
		.value = 12,
	};

	peer_send(peer, &phase, sizeof(phase), 0);
}

/* A message may wait for a drain. */
static void run_until_told(void)
{
	char byte;

	while (recv(peer, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
		uv_run(&loop, UV_RUN_ONCE);
}

static void expect_plan(uint64_t cycle)
{
	struct gt_msg_plan msg;

	run_until_told();
	assert_int_equal(recv(peer, &msg, sizeof(msg), 0), sizeof(msg));
	assert_int_equal(msg.hdr.type, GT_MSG_PLAN);
	assert_int_equal(msg.hdr.size_bytes, sizeof(msg));
	assert_int_equal(msg.cycle, cycle);
	assert_int_equal(msg.first_step, 40);
	assert_int_equal(msg.warmup, 1);
	assert_int_equal(msg.active, 3);
	plan_id = msg.id;
}

static void expect_nothing(void)
{
	char byte;

	assert_int_equal(recv(peer, &byte, 1, MSG_DONTWAIT), -1);
}

static void expect_cancel(uint64_t cycle)
{
	struct gt_msg_cycle msg;

	run_until_told();
	msg = peer_receive(peer);
	assert_int_equal(msg.hdr.type, GT_MSG_CANCEL);
	assert_int_equal(msg.cycle, cycle);
}

static void run_a_drain(void)
{
	gt_client_tick(client);
	owner_run_until(&seen.drained, seen.drained + 1);
}

static void committed(void **state)
{
	(void)state;
	say_hello();
	assert_true(gt_client_propose(client, &plan));
	assert_int_equal(gt_client_info(client)->plan_state, GT_PLAN_ASKED);
	expect_plan(2);
	assert_true(fake.held);
	assert_int_equal(fake.wakes, 1);
	answer(GT_WHAT_PLAN_TAKEN, plan_id);
	owner_run_until(&seen.answers, 1);
	assert_int_equal(seen.answer, GT_PLAN_TAKEN);
	assert_int_equal(gt_client_info(client)->plan_step, 12);
	run_a_drain();
	assert_true(fake.held);
	gt_client_decide(client, true);
	run_a_drain();
	assert_false(fake.held);
	assert_int_equal(gt_client_info(client)->plans.list[0].first_step, 40);
	assert_int_equal(gt_client_info(client)->plan_state, GT_PLAN_NONE);
	expect_nothing();
	assert_int_equal(fake.phases, 0); /* answers are not the recorder's */
}

static void commit(void)
{
	say_hello();
	assert_true(gt_client_propose(client, &plan));
	expect_plan(2);
	answer(GT_WHAT_PLAN_TAKEN, plan_id);
	owner_run_until(&seen.answers, 1);
	gt_client_decide(client, true);
	assert_int_equal(gt_client_info(client)->awaited.active, 3);
}

/* cycle: from 1 */
static void close_file(uint64_t cycle)
{
	static struct gt_recorder_closed closed;

	closed = (struct gt_recorder_closed){ .cycle = cycle };
	fake_recorder_say((struct gt_recorder_report){ .closed = &closed, .closed_count = 1 });
	gt_client_tick(client);
	owner_run_until(&seen.closed, seen.closed + 1);
	fake_recorder_say((struct gt_recorder_report){ .step = 50 });
	run_a_drain();
}

/* From the decision on, until its file is closed. */
static void awaited(void **state)
{
	(void)state;
	commit();
	close_file(2); /* that of another window */
	assert_int_equal(gt_client_info(client)->awaited.first_step, 40);
	assert_int_equal(gt_client_info(client)->awaited.active, 3);
	close_file(3);
	assert_int_equal(gt_client_info(client)->awaited.active, 0);
}

/* It is killed before what was decided has come to the recorder. */
static void dies_before_its_window(void **state)
{
	(void)state;
	commit();
	owner_end_process();
	owner_run_until(&seen.gone, 1);
	assert_int_equal(seen.info.awaited.active, 3);
	assert_int_equal(seen.info.end, GT_CLIENT_KILLED);
}

static void taken_back(void **state)
{
	(void)state;
	say_hello();
	assert_true(gt_client_propose(client, &plan));
	expect_plan(2);
	answer(GT_WHAT_PLAN_LATE, plan_id);
	owner_run_until(&seen.answers, 1);
	assert_int_equal(seen.answer, GT_PLAN_LATE);
	gt_client_decide(client, true); /* it did not take it: there is nothing to commit */
	run_a_drain();
	expect_cancel(2);
	assert_false(fake.held);
	assert_int_equal(gt_client_info(client)->plans.list[0].active, 0);
	/* the next one has its number, and only the answer to it counts */
	assert_true(gt_client_propose(client, &plan));
	answer(GT_WHAT_PLAN_TAKEN, plan_id);
	peer_send_phase(peer, GT_WHAT_OPEN);
	owner_run_until(&seen.phases, 1);
	assert_int_equal(seen.answers, 1);
	expect_plan(2);
	gt_client_decide(client, false);
	run_a_drain();
	expect_cancel(2);
	answer(GT_WHAT_PLAN_TAKEN, plan_id); /* to what was taken back */
	peer_send_phase(peer, GT_WHAT_OPEN);
	owner_run_until(&seen.phases, 2);
	assert_int_equal(seen.answers, 1);
}

static void answers_to_another(void **state)
{
	(void)state;
	say_hello();
	answer(GT_WHAT_PLAN_TAKEN, 0); /* nobody asked */
	assert_true(gt_client_propose(client, &plan));
	expect_plan(2);
	answer(GT_WHAT_PLAN_TAKEN, plan_id + 1);
	answer(GT_WHAT_PLAN_TAKEN, plan_id);
	owner_run_until(&seen.answers, 1);
	answer(GT_WHAT_PLAN_LATE, plan_id); /* it has answered */
	peer_send_phase(peer, GT_WHAT_OPEN);
	owner_run_until(&seen.phases, 1);
	assert_int_equal(seen.answers, 1);
	assert_int_equal(gt_client_info(client)->plan_state, GT_PLAN_TAKEN);
}

static void dies_before_it_is_decided(void **state)
{
	(void)state;
	say_hello();
	assert_true(gt_client_propose(client, &plan));
	owner_end_process();
	owner_run_until(&seen.answers, 1);
	assert_int_equal(seen.answer, GT_PLAN_NONE);
	if (client) {
		assert_false(gt_client_propose(client, &plan));
		gt_client_decide(client, true);
	}
	owner_run_until(&seen.gone, 1);
}

static void is_not_there_yet(void **state)
{
	(void)state;
	assert_false(gt_client_propose(client, &plan)); /* before its hello */
	assert_int_equal(gt_client_step(client), 0);
	gt_client_decide(client, true);
	say_hello();
	fake.report.step = 7;
	assert_int_equal(gt_client_step(client), 7);
	expect_nothing();
}

static uv_sem_t entered, leave;

/* A worker thread has the recorder until end_drain(). */
static void begin_drain(void)
{
	uv_sem_init(&entered, 0);
	uv_sem_init(&leave, 0);
	fake.entered = &entered;
	fake.leave = &leave;
	gt_client_tick(client);
	uv_sem_wait(&entered);
}

static void end_drain(void)
{
	int drained = seen.drained;

	fake.entered = NULL;
	uv_sem_post(&leave);
	owner_run_until(&seen.drained, drained + 2);
	uv_sem_destroy(&entered);
	uv_sem_destroy(&leave);
}

/* The process does not hear of it either. */
static void waits_for_the_drain(void **state)
{
	(void)state;
	say_hello();
	begin_drain();
	/* one that is taken back at once never was */
	assert_true(gt_client_propose(client, &plan));
	gt_client_decide(client, false);
	assert_true(gt_client_propose(client, &plan));
	expect_nothing();
	assert_false(fake.held);
	end_drain();
	expect_plan(2);
	expect_nothing();
	assert_true(fake.held);
	gt_client_decide(client, false);
	run_a_drain();
}

static void take_one(void)
{
	say_hello();
	assert_true(gt_client_propose(client, &plan));
	expect_plan(2);
	answer(GT_WHAT_PLAN_TAKEN, plan_id);
	owner_run_until(&seen.answers, 1);
}

/* What is decided of one holds, whatever becomes of the next one meanwhile. */
static void decisions_wait_for_the_drain(void **state)
{
	(void)state;
	take_one();
	begin_drain();
	gt_client_decide(client, false);
	assert_true(gt_client_propose(client, &plan));
	gt_client_decide(client, false);
	assert_true(gt_client_propose(client, &plan));
	end_drain();
	expect_cancel(2);
	expect_plan(2);
	expect_nothing();
	assert_true(fake.held);
	gt_client_decide(client, false);
	run_a_drain();
}

static void a_commit_waits_for_the_drain(void **state)
{
	static const struct gt_plan next = { .cycle = 3, .first_step = 80, .active = 1 };

	(void)state;
	take_one();
	begin_drain();
	gt_client_decide(client, true);
	assert_true(gt_client_propose(client, &next));
	gt_client_decide(client, false);
	end_drain();
	expect_nothing();
	assert_false(fake.held);
	assert_int_equal(gt_client_info(client)->plans.list[0].first_step, 40);
	assert_int_equal(gt_client_info(client)->awaited.first_step, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OWNER_TEST(committed),
		OWNER_TEST(taken_back),
		OWNER_TEST(answers_to_another),
		OWNER_TEST(dies_before_it_is_decided),
		OWNER_TEST(is_not_there_yet),
		OWNER_TEST(waits_for_the_drain),
		OWNER_TEST(decisions_wait_for_the_drain),
		OWNER_TEST(a_commit_waits_for_the_drain),
		OWNER_TEST(awaited),
		OWNER_TEST(dies_before_its_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
