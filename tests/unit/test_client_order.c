/* Orders of what a process says and what is asked of it, in which the collector is late. */
#include "base.h"
#include "client_owner.h"
#include "clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static void send_phase(uint32_t what, uint64_t value, uint64_t cycle)
{
	const struct gt_msg_phase phase = {
		.hdr = PEER_HDR(GT_MSG_PHASE, sizeof(phase)),
		.what = what,
		.cycle = cycle,
		.value = value,
		.time_ns = gt_clock_ns(CLOCK_REALTIME),
	};

	peer_send(peer, &phase, sizeof(phase), 0);
}

static void start_traced(void)
{
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
}

/* gtrace was stopped (Ctrl-Z, a laptop's lid) from when it had accepted the connection until now.
 */
static void introduces_itself_meanwhile(void **state)
{
	(void)state;
	peer_send_hello(peer);
	loop.time += 3600000;
	gt_client_tick(client);
	owner_run_until(&seen.drained, 1);
	assert_int_equal(seen.gone, 0);
	assert_true(gt_client_is_traced(client));
}

static void says_nothing(void **state)
{
	(void)state;
	loop.time += 9000;
	gt_client_tick(client);
	assert_non_null(client);
	loop.time += 2000;
	gt_client_tick(client);
	assert_null(client);
	assert_int_equal(seen.gone, 1);
}

/* The first window is over, and the second has begun. All that was said of it when it is stopped.
 */
static void off_from_before_the_stop(void **state)
{
	(void)state;
	start_traced();
	send_phase(GT_WHAT_CLOSE, 4, 0);
	send_phase(GT_WHAT_OFF, 100, 0);
	send_phase(GT_WHAT_OPEN, 6, 1);
	gt_client_stop(client, "Ctrl-C");
	owner_run_until(&seen.phases, 3);
	for (int i = 0; i < 3 && client; i++) {
		gt_client_tick(client);
		uv_run(&loop, UV_RUN_ONCE);
	}
	assert_int_equal(fake.finishes, 0); /* its window is open, and it was just told */
	assert_non_null(client);
	assert_int_equal(peer_receive(peer).hdr.type, GT_MSG_STOP);
	send_phase(GT_WHAT_CLOSE, 7, 1);
	send_phase(GT_WHAT_OFF, 0, 1);
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
}

/* A drain knows what was said of that which it reads, and reads all of what was said to be over. */
static void messages_before_a_drain(void **state)
{
	int phases, looks, drained;

	(void)state;
	start_traced();
	phases = fake.phases;
	looks = fake.looks;
	drained = seen.drained;
	send_phase(GT_WHAT_YIELD, 3, 0);
	gt_client_tick(client);
	assert_int_equal(fake.phases, phases + 1);
	assert_int_equal(fake.looks, looks + 2);
	owner_run_until(&seen.drained, drained + 1);
}

/* ---- plans ---- */

static const struct gt_plan plan = { .cycle = 2, .first_step = 40, .warmup = 1, .active = 3 };
static uv_sem_t entered, leave;
static int commits;

/* It is decided while a drain is under way, in which the process goes through its window and ends.
 */
static void ends_before_the_decision_is_followed(void **state)
{
	struct gt_msg_plan msg;

	(void)state;
	start_traced();
	assert_true(gt_client_propose(client, &plan));
	while (recv(peer, &msg, sizeof(msg), MSG_DONTWAIT) < 0)
		uv_run(&loop, UV_RUN_ONCE);
	send_phase(GT_WHAT_PLAN_TAKEN, 12, msg.id);
	owner_run_until(&seen.answers, 1);
	assert_int_equal(seen.answer, GT_PLAN_TAKEN);
	assert_true(fake.held);
	while (seen.drained < 3) {
		gt_client_tick(client);
		uv_run(&loop, UV_RUN_ONCE);
	}
	uv_sem_init(&entered, 0);
	uv_sem_init(&leave, 0);
	fake.entered = &entered;
	fake.leave = &leave;
	gt_client_tick(client);
	uv_sem_wait(&entered);
	gt_client_decide(client, true); /* the user is told that it is triggered */
	commits = fake.plans_committed;
	fake.report.step = 50;
	peer_send_bye(peer);
	owner_end_process();
	uv_run(&loop, UV_RUN_NOWAIT); /* its end is heard of */
	fake.entered = NULL;
	uv_sem_post(&leave);
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
	assert_int_equal(fake.plans_committed, commits + 1); /* or its window is thrown away */
	uv_sem_destroy(&entered);
	uv_sem_destroy(&leave);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OWNER_TEST(introduces_itself_meanwhile),
		OWNER_TEST(says_nothing),
		OWNER_TEST(messages_before_a_drain),
		OWNER_TEST(off_from_before_the_stop),
		OWNER_TEST(ends_before_the_decision_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
