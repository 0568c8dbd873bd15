/* test_client.c - the life of a client whose peer keeps to the protocol. */
#include "base.h"
#include "client_owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static void whole_life(void **state)
{
	const struct gt_msg_device device = { .hdr = PEER_HDR(GT_MSG_DEVICE, sizeof(device)),
					      .name = "H100" };
	const struct gt_msg_rank rank = { .hdr = PEER_HDR(GT_MSG_RANK, sizeof(rank)),
					  .rank = 5,
					  .world_size = 8,
					  .rank_source = GT_RANK_TORCH };
	struct gt_recorder_closed closed = { .cycle = 1, .complete = true };

	(void)state;
	peer_send_hello(peer);
	peer_send_phase(peer, GT_WHAT_ATTACHED);
	peer_send(peer, &device, sizeof(device), 0);
	peer_send_log(peer, "hello");
	owner_run_until(&seen.drained, 1);
	assert_int_equal(seen.info.id, 7);
	assert_int_equal(seen.info.hello.rank, 3);
	assert_int_equal(seen.info.hello.pid, process); /* not what it says */
	assert_int_equal(seen.info.hello.cupti_version, 130001);
	assert_int_equal(seen.info.device_count, 1);
	assert_string_equal(seen.info.device.name, "H100");
	assert_string_equal(seen.log, "hello");
	assert_int_equal(seen.phases, 1);
	assert_int_equal(fake.devices, 1);
	assert_memory_equal(fake.path, "client 7 pid ", 13);

	peer_send(peer, &rank, sizeof(rank), 0);
	fake.report = (struct gt_recorder_report){
		.step = 9,
		.phase = GT_PHASE_OVER,
		.gpu_ops = 100,
		.closed = &closed,
		.closed_count = 1,
	};
	peer_send_bye(peer);
	peer_send_phase(peer, GT_WHAT_OFF);
	owner_run_until(&seen.closed, 1);
	assert_int_equal(seen.info.step, 9);
	assert_int_equal(seen.info.hello.rank, 5);
	assert_int_equal(seen.info.hello.world_size, 8);
	assert_int_equal(seen.info.hello.rank_source, GT_RANK_TORCH);
	assert_int_equal(fake.rank, 5);
	assert_int_equal(seen.info.files, 1);
	assert_int_equal(fake.finishes, 0);
	fake.report.closed_count = 0;

	owner_end_process();
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
	assert_int_equal(fake.end, GT_END_ORDERLY);
	assert_int_equal(seen.released, 1);
	assert_int_equal(seen.failures, 0);
}

static void killed(void **state)
{
	(void)state;
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
	owner_end_process();
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
	assert_int_equal(fake.end, GT_END_DIED);
}

/* It has closed the socket, as daemons do, but not its arena. */
static void ended_without_a_word(void **state)
{
	(void)state;
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
	fake.ended = true;
	owner_end_process();
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.end, GT_END_ORDERLY);
	assert_int_equal(seen.info.end, GT_CLIENT_ENDED);
}

/* All that it said before its end counts, though nobody had time to listen. */
static void short_life(void **state)
{
	(void)state;
	peer_send_hello(peer);
	peer_send_phase(peer, GT_WHAT_OPEN);
	peer_send_bye(peer);
	owner_end_process();
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.phases, 1);
	assert_int_equal(fake.finishes, 1);
	assert_int_equal(fake.end, GT_END_ORDERLY);
}

/* It closes its descriptors, but lives on: its arena is still read. */
static void closes_socket(void **state)
{
	(void)state;
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
	owner_close_peer();
	gt_client_tick(client);
	owner_run_until(&seen.drained, 2);
	gt_client_tick(client);
	owner_run_until(&seen.drained, 3);
	assert_int_equal(fake.finishes, 0);
	owner_end_process();
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
}

/* It ends with a message of ours unread: what it sent last must not be lost with it. */
static void ends_without_reading(void **state)
{
	(void)state;
	peer_send_hello(peer);
	fake.report = (struct gt_recorder_report){ .drained = true, .drained_cycle = 0 };
	owner_run_until(&seen.drained, 1);
	fake.report.drained = false;
	peer_send_phase(peer, GT_WHAT_OFF);
	peer_send_bye(peer);
	owner_close_peer();
	owner_end_process();
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.phases, 1);
	assert_int_equal(fake.end, GT_END_ORDERLY);
}

/* It executes another program, which connects anew. */
static void is_replaced(void **state)
{
	(void)state;
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
	gt_client_replaced(client); /* while the old connection is open nothing happens */
	assert_int_equal(fake.finishes, 0);
	owner_close_peer();
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
	assert_int_equal(fake.end, GT_END_EXEC);
}

static void drained_is_told_once(void **state)
{
	struct gt_msg_cycle msg;

	(void)state;
	peer_send_hello(peer);
	fake.report = (struct gt_recorder_report){ .drained = true, .drained_cycle = 0 };
	owner_run_until(&seen.drained, 1);
	msg = peer_receive(peer);
	assert_int_equal(msg.hdr.type, GT_MSG_DRAINED);
	assert_int_equal(msg.cycle, 0);
	assert_int_equal(fake.wakes, 1); /* to read it at once */
	gt_client_tick(client);
	owner_run_until(&seen.drained, 2);
	assert_int_equal(recv(peer, &msg, sizeof(msg), 0), -1);
	assert_int_equal(errno, EAGAIN);
	fake.report.drained_cycle = 4;
	gt_client_tick(client);
	owner_run_until(&seen.drained, 3);
	assert_int_equal(peer_receive(peer).cycle, 4);
}

/* Its receive buffer is full: the message waits. */
static void slow_peer(void **state)
{
	struct gt_msg_cycle msg;
	bool told = false;
	uint64_t cycle;

	(void)state;
	peer_send_hello(peer);
	fake.report.drained = true;
	for (cycle = 0; cycle < 2000; cycle++) {
		fake.report.drained_cycle = cycle;
		gt_client_tick(client);
		owner_run_until(&seen.drained, (int)cycle + 1);
	}
	while (recv(peer, &msg, sizeof(msg), 0) > 0)
		told |= msg.cycle == 1999;
	assert_false(told);
	fake.report.drained = false;
	gt_client_tick(client);
	owner_run_until(&seen.drained, 2001);
	assert_int_equal(peer_receive(peer).cycle, 1999);
	assert_int_equal(seen.failures, 0);
}

/* Messages that come while a worker thread has the recorder wait until it is back. */
static void messages_while_busy(void **state)
{
	uv_sem_t entered, leave;
	int i;

	(void)state;
	uv_sem_init(&entered, 0);
	uv_sem_init(&leave, 0);
	fake.entered = &entered;
	fake.leave = &leave;
	peer_send_hello(peer);
	uv_run(&loop, UV_RUN_ONCE);
	uv_sem_wait(&entered);
	for (i = 0; i < 5; i++)
		peer_send_phase(peer, GT_WHAT_OPEN);
	uv_run(&loop, UV_RUN_NOWAIT);
	gt_client_tick(client);
	assert_int_equal(fake.phases, 0);
	owner_end_process();
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(fake.finishes, 0);
	uv_sem_post(&leave);
	uv_sem_post(&leave);
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.phases, 5);
	assert_int_equal(fake.finishes, 1);
	uv_sem_destroy(&entered);
	uv_sem_destroy(&leave);
}

static void flushes_while_open(void **state)
{
	uint64_t flushed_ms;
	bool at_once;

	(void)state;
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
	assert_false(fake.flush_due);
	assert_int_equal(seen.hurries, 0);
	fake.report.open_cycle = 1;
	gt_client_tick(client);
	owner_run_until(&seen.drained, 2);
	assert_int_equal(seen.hurries, 1);
	flushed_ms = uv_now(&loop);
	gt_client_tick(client);
	owner_run_until(&seen.drained, 3);
	assert_true(fake.flush_due);
	/* Not due so soon; a busy machine may have taken its time. */
	at_once = uv_now(&loop) - flushed_ms < 100;
	gt_client_tick(client);
	owner_run_until(&seen.drained, 4);
	assert_int_equal(fake.flush_due, !at_once);
	assert_int_equal(seen.hurries, 1);
	fake.report.closing = true;
	gt_client_tick(client);
	owner_run_until(&seen.drained, 5);
	assert_int_equal(seen.hurries, 2);
	assert_true(gt_client_info(client)->closing);
	gt_client_tick(client);
	owner_run_until(&seen.drained, 6);
	assert_int_equal(seen.hurries, 2);
}

/* What it still has to say counts. */
static void is_stopped(void **state)
{
	(void)state;
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
	gt_client_stop(client, "a test");
	gt_client_stop(client, "a test");
	assert_int_equal(peer_receive(peer).hdr.type, GT_MSG_STOP);
	peer_send_phase(peer, GT_WHAT_CLOSE);
	owner_run_until(&seen.phases, 1);
	assert_int_equal(fake.finishes, 0);
	peer_send_phase(peer, GT_WHAT_OFF);
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.phases, 2);
	assert_int_equal(fake.finishes, 1);
}

/* It is told to stop, and does nothing of the kind. */
static void does_not_stop(void **state)
{
	static uv_timer_t timer;

	(void)state;
	peer_send_hello(peer);
	owner_run_until(&seen.drained, 1);
	gt_client_stop(client, "a test");
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, owner_tick, 20, 20);
	owner_run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
	assert_int_equal(fake.end, GT_END_DIED);
	uv_close((uv_handle_t *)&timer, NULL);
}

static void trace_cannot_be_written(void **state)
{
	(void)state;
	peer_send_hello(peer);
	fake.rc = -ENOSPC;
	owner_run_until(&seen.failures, 1);
	assert_string_equal(seen.failure, "disk full");
	gt_client_tick(client); /* it goes on, and is told of once */
	owner_run_until(&seen.drained, 2);
	assert_int_equal(seen.failures, 1);
	fake.rc = 0;
	gt_client_tick(client);
	owner_run_until(&seen.drained, 3);
	assert_int_equal(fake.finishes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OWNER_TEST(whole_life),
		OWNER_TEST(killed),
		OWNER_TEST(ended_without_a_word),
		OWNER_TEST(short_life),
		OWNER_TEST(closes_socket),
		OWNER_TEST(ends_without_reading),
		OWNER_TEST(is_replaced),
		OWNER_TEST(drained_is_told_once),
		OWNER_TEST(slow_peer),
		OWNER_TEST(messages_while_busy),
		OWNER_TEST(flushes_while_open),
		OWNER_TEST(is_stopped),
		OWNER_TEST(does_not_stop),
		OWNER_TEST(trace_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
