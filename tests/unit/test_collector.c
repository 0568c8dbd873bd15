/* test_collector.c - many processes at once, some of them bad. */
#include "base.h"
#include "collector.h"
#include "fake_recorder.h"
#include "peer.h"
#include "sockdir.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define RANKS 64

/* ---- the owner ---- */

static struct {
	int drained, failures, gone, idle;
	char failure[512];
} seen;

static uv_loop_t loop;
static struct gt_sockdir sockdir;
static struct gt_collector collector;
static int peers[RANKS];
static size_t peer_count;

static void on_drained(void *ctx, const struct gt_client_info *client)
{
	(void)ctx;
	(void)client;
	seen.drained++;
}

static void on_closed(void *ctx, const struct gt_client_info *client,
		      const struct gt_recorder_closed *closed)
{
	(void)ctx;
	(void)client;
	(void)closed;
}

static void on_failed(void *ctx, const struct gt_client_info *client, const struct gt_err *err)
{
	(void)ctx;
	(void)client;
	snprintf(seen.failure, sizeof(seen.failure), "%s", err->msg);
	seen.failures++;
}

static void on_gone(void *ctx, const struct gt_client_info *client)
{
	(void)ctx;
	(void)client;
	seen.gone++;
}

static void on_idle(void *ctx)
{
	(void)ctx;
	seen.idle++;
}

static int path_for(void *ctx, const struct gt_client_info *client, uint64_t cycle, char *buf,
		    size_t len, bool *overwrite, struct gt_err *err)
{
	(void)ctx;
	(void)cycle;
	(void)overwrite;
	(void)err;
	snprintf(buf, len, "%u", client->hello.rank);
	return 0;
}

static const struct gt_client_ops ops = {
	.drained = on_drained,
	.closed = on_closed,
	.failed = on_failed,
	.gone = on_gone,
	.path_for = path_for,
};

static int start(void **state)
{
	const char *bases[] = { "/tmp" };

	(void)state;
	memset(&seen, 0, sizeof(seen));
	fake_recorder_reset();
	peer_count = 0;
	if (gt_sockdir_open(&sockdir, bases, 1, NULL) < 0 || uv_loop_init(&loop) < 0)
		return -1;
	collector = (struct gt_collector){
		.listen_fd = sockdir.listen_fd,
		.ops = &ops,
		.idle = on_idle,
	};
	return gt_collector_start(&collector, &loop, NULL);
}

static void run_until(const int *counter, int want)
{
	while (*counter < want)
		uv_run(&loop, UV_RUN_ONCE);
}

static int stop(void **state)
{
	(void)state;
	if (collector.client_count) {
		gt_collector_stop(&collector, "a test");
		run_until(&seen.idle, 1);
	}
	gt_collector_close(&collector);
	uv_run(&loop, UV_RUN_DEFAULT);
	while (peer_count > 0)
		close(peers[--peer_count]);
	gt_sockdir_close(&sockdir);
	return uv_loop_close(&loop) || fake.alive;
}

/* ---- the peers ---- */

static int connect_peer(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path, sockdir.path, sizeof(addr.sun_path));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void send_hello(int fd, uint32_t rank)
{
	struct gt_msg_hello hello = peer_hello;

	hello.rank = rank;
	peer_send(fd, &hello, sizeof(hello), 1);
}

static void add_peers(uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		peers[peer_count] = connect_peer();
		send_hello(peers[peer_count++], count - 1 - i);
	}
}

static void many_ranks(void **state)
{
	(void)state;
	add_peers(RANKS);
	run_until(&seen.drained, RANKS);
	assert_int_equal(collector.client_count, RANKS);
	assert_int_equal(fake.alive, RANKS);
	assert_int_equal(seen.failures, 0);
}

static void one_bad_among_many(void **state)
{
	char byte;

	(void)state;
	add_peers(8);
	run_until(&seen.drained, 8);
	assert_int_equal(send(peers[3], "garbage", 7, 0), 7);
	run_until(&seen.gone, 1);
	assert_int_equal(seen.failures, 1);
	assert_int_equal(recv(peers[3], &byte, 1, 0), 0);
	assert_int_equal(collector.client_count, 7);
	/* the others go on */
	run_until(&seen.drained, seen.drained + 7);
	assert_int_equal(seen.gone, 1);
	assert_int_equal(recv(peers[4], &byte, 1, MSG_DONTWAIT), -1);
}

/* What a launcher started last connects when the others have been told to end. */
static void killed_when_it_comes(void **state)
{
	int fds[2], status;
	char byte = 0;
	pid_t pid;

	(void)state;
	gt_collector_kill(&collector, SIGTERM);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		alarm(10);
		send_hello(connect_peer(), 0);
		if (write(fds[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	gt_collector_accept(&collector);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	close(fds[0]);
	close(fds[1]);
	run_until(&seen.idle, 1);
}

/* Processes that ended before anybody looked. */
static void gone_before_accepted(void **state)
{
	pid_t pid;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		pid = fork();
		if (!pid) {
			send_hello(connect_peer(), 0);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	gt_collector_accept(&collector);
	assert_int_equal(collector.client_count, 3);
	run_until(&seen.idle, 1);
	assert_int_equal(seen.gone, 3);
	assert_int_equal(seen.failures, 0);
	assert_int_equal(fake.alive, 0);
}

static void out_of_descriptors(void **state)
{
	struct rlimit was, none;

	(void)state;
	add_peers(2);
	run_until(&seen.drained, 2);
	getrlimit(RLIMIT_NOFILE, &was);
	none = was;
	peers[peer_count] = connect_peer();
	none.rlim_cur = (rlim_t)peers[peer_count] + 1;
	send_hello(peers[peer_count++], 5);
	setrlimit(RLIMIT_NOFILE, &none);
	run_until(&seen.failures, 1);
	assert_non_null(strstr(seen.failure, "Too many open files"));
	/* the others are served meanwhile, the complaint comes once */
	run_until(&seen.drained, seen.drained + 8);
	assert_int_equal(seen.failures, 1);
	assert_int_equal(collector.client_count, 2);
	setrlimit(RLIMIT_NOFILE, &was);
	while (collector.client_count < 3)
		uv_run(&loop, UV_RUN_ONCE);
}

/* Let every recorder say this from now on, and be heard. */
static void say(struct gt_recorder_report what)
{
	fake_recorder_say(what);
	/* A drain that was under way says the old; all take turns. */
	run_until(&seen.drained, seen.drained + 3 * (int)collector.client_count);
}

static void leader_and_completeness(void **state)
{
	struct gt_recorder_closed closed = { .cycle = 1, .complete = true };

	(void)state;
	assert_null(gt_collector_leader(&collector));
	add_peers(3); /* ranks 2, 1, 0 */
	run_until(&seen.drained, 3);
	assert_null(gt_collector_leader(&collector)); /* none has done a step */
	assert_false(gt_collector_is_complete(&collector));

	say((struct gt_recorder_report){ .step = 4, .phase = GT_PHASE_ACTIVE, .open_cycle = 1 });
	assert_int_equal(gt_collector_leader(&collector)->hello.rank, 0);
	assert_false(gt_collector_is_complete(&collector));

	say((struct gt_recorder_report){ .step = 7, .phase = GT_PHASE_OVER, .open_cycle = 1 });
	assert_false(gt_collector_is_complete(&collector)); /* records are still coming */

	say((struct gt_recorder_report){ .step = 8, .phase = GT_PHASE_OVER });
	assert_false(gt_collector_is_complete(&collector)); /* it never had a window */

	say((struct gt_recorder_report){
		.step = 9, .phase = GT_PHASE_OVER, .closed = &closed, .closed_count = 1 });
	assert_true(gt_collector_is_complete(&collector));
}

/* A recording without steps is complete once it reached its bound; otherwise the program ends. */
static void complete_without_steps(void **state)
{
	struct gt_recorder_closed closed = { .cycle = 1, .complete = true, .whole_run = true };

	(void)state;
	add_peers(1);
	run_until(&seen.drained, 1);
	say((struct gt_recorder_report){ .gpu_ops = 5, .closed = &closed, .closed_count = 1 });
	assert_false(gt_collector_is_complete(&collector));
	closed.bounded = true;
	say((struct gt_recorder_report){ .gpu_ops = 5, .closed = &closed, .closed_count = 1 });
	assert_true(gt_collector_is_complete(&collector));
}

/* The drain of the second one takes long, while it comes as far as the first one. */
static void not_complete_while_one_is_read(void **state)
{
	struct gt_recorder_closed closed = { .cycle = 1, .complete = true };
	uv_sem_t entered, leave;
	int drained;
	bool early;

	(void)state;
	add_peers(2);
	run_until(&seen.drained, 2);
	uv_sem_init(&entered, 0);
	uv_sem_init(&leave, 0);
	fake.entered = &entered;
	fake.leave = &leave;
	for (int i = 0; i < 2; i++)
		while (uv_sem_trywait(&entered))
			uv_run(&loop, UV_RUN_NOWAIT);
	fake.entered = NULL;
	drained = seen.drained;
	fake_recorder_say((struct gt_recorder_report){
		.step = 9, .phase = GT_PHASE_OVER, .closed = &closed, .closed_count = 1 });
	uv_sem_post(&leave); /* one of them */
	run_until(&seen.drained, drained + 1);
	assert_int_equal(gt_client_step(collector.clients[0]), 9);
	assert_int_equal(gt_client_step(collector.clients[1]), 9);
	early = gt_collector_is_complete(&collector);
	uv_sem_post(&leave);
	run_until(&seen.drained, drained + 4);
	assert_true(gt_collector_is_complete(&collector));
	/* Or 'gtrace run --then stop' ends the job, whose other file is not complete. */
	assert_false(early);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_ranks),
		TEST(one_bad_among_many),
		TEST(killed_when_it_comes),
		TEST(gone_before_accepted),
		TEST(out_of_descriptors),
		TEST(leader_and_completeness),
		TEST(complete_without_steps),
		TEST(not_complete_while_one_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
