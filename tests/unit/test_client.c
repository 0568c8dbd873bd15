/* test_client.c - the life of a client against scripted peers, with a recorder of our own. */
#include "base.h"
#include "client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- a recorder that counts and does as it is told ---- */

static struct {
	int refuse; /* gt_recorder_new() returns it */
	int phases, devices, drains, finishes, frees;
	bool died;
	bool flush_due;
	bool busy;         /* in a worker thread */
	bool interleaved;  /* something else was called meanwhile */
	uv_sem_t *entered; /* a drain tells that it has begun, */
	uv_sem_t *leave;   /* and waits for this */
	struct gt_recorder_report report;
	int rc;
	int arena_fd;
	char path[64];
} fake;

struct gt_recorder {
	struct gt_recorder_config config;
	struct gt_msg_hello hello;
};

int gt_recorder_new(struct gt_recorder **ret, int arena_fd, const struct gt_msg_hello *hello,
		    const struct gt_recorder_config *config, struct gt_err *err)
{
	if (fake.refuse) {
		close(arena_fd);
		return gt_err_set(err, fake.refuse, "it lies");
	}
	fake.arena_fd = arena_fd;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->config = *config;
	(*ret)->hello = *hello;
	return 0;
}

void gt_recorder_phase(struct gt_recorder *rec, const struct gt_msg_phase *phase)
{
	(void)rec;
	(void)phase;
	fake.phases++;
	fake.interleaved |= fake.busy;
}

void gt_recorder_device(struct gt_recorder *rec, const struct gt_msg_device *device)
{
	(void)rec;
	(void)device;
	fake.devices++;
	fake.interleaved |= fake.busy;
}

static int work(struct gt_recorder *rec, struct gt_recorder_report *report, struct gt_err *err)
{
	bool overwrite;

	fake.busy = true;
	rec->config.path_for(rec->config.ctx, &rec->hello, 1, fake.path, sizeof(fake.path),
			     &overwrite, err);
	if (fake.entered) {
		uv_sem_post(fake.entered);
		uv_sem_wait(fake.leave);
	}
	*report = fake.report;
	fake.busy = false;
	return fake.rc ? gt_err_set(err, fake.rc, "disk full") : 0;
}

int gt_recorder_drain(struct gt_recorder *rec, uint64_t now_ns, bool flush_due,
		      struct gt_recorder_report *report, struct gt_err *err)
{
	(void)now_ns;
	fake.drains++;
	fake.flush_due = flush_due;
	return work(rec, report, err);
}

int gt_recorder_finish(struct gt_recorder *rec, bool died, uint64_t now_ns,
		       struct gt_recorder_report *report, struct gt_err *err)
{
	(void)now_ns;
	fake.finishes++;
	fake.died = died;
	return work(rec, report, err);
}

void gt_recorder_free(struct gt_recorder *rec)
{
	if (!rec)
		return;
	close(fake.arena_fd);
	fake.frees++;
	free(rec);
}

/* ---- the owner ---- */

static struct {
	int phases, drained, closed, logs, failures, gone, released;
	char log[128];
	char failure[512];
	struct gt_client_info info; /* as last seen */
} seen;

static uv_loop_t loop;
static struct gt_client *client;
static int peer = -1; /* the other end */

static void on_phase(void *ctx, const struct gt_client_info *info, const struct gt_msg_phase *phase)
{
	(void)ctx;
	(void)phase;
	seen.info = *info;
	seen.phases++;
}

static void on_drained(void *ctx, const struct gt_client_info *info)
{
	(void)ctx;
	seen.info = *info;
	seen.drained++;
}

static void on_closed(void *ctx, const struct gt_client_info *info,
		      const struct gt_recorder_closed *closed)
{
	(void)ctx;
	(void)info;
	(void)closed;
	seen.closed++;
}

static void on_log(void *ctx, const struct gt_client_info *info, enum gt_log_level level,
		   const char *text, size_t len)
{
	(void)ctx;
	(void)info;
	(void)level;
	snprintf(seen.log, sizeof(seen.log), "%.*s", (int)len, text);
	seen.logs++;
}

static void on_failed(void *ctx, const struct gt_client_info *info, const struct gt_err *err)
{
	(void)ctx;
	(void)info;
	snprintf(seen.failure, sizeof(seen.failure), "%s", err->msg);
	seen.failures++;
}

static void on_gone(void *ctx, const struct gt_client_info *info)
{
	(void)ctx;
	seen.info = *info;
	seen.gone++;
}

static int path_for(void *ctx, const struct gt_client_info *info, uint64_t cycle, char *buf,
		    size_t len, bool *overwrite, struct gt_err *err)
{
	(void)ctx;
	(void)err;
	*overwrite = false;
	snprintf(buf, len, "client %d pid %u cycle %d", (int)info->id, info->hello.pid, (int)cycle);
	return 0;
}

static void on_released(void *owner, struct gt_client *released)
{
	(void)owner;
	assert_ptr_equal(released, client);
	client = NULL;
	seen.released++;
}

static const struct gt_client_ops ops = {
	.phase = on_phase,
	.drained = on_drained,
	.closed = on_closed,
	.log = on_log,
	.failed = on_failed,
	.gone = on_gone,
	.path_for = path_for,
};

static struct gt_client_config config = { .ops = &ops, .released = on_released };

/* The process that connects: a child that does nothing but live. */
static pid_t process = -1;

static void start_process(void)
{
	process = fork();
	if (!process) {
		close(peer);
		for (;;)
			pause();
	}
}

static void end_process(void)
{
	if (process < 0)
		return;
	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	process = -1;
}

static int connect_as(uid_t uid)
{
	struct ucred cred = { .pid = process, .uid = uid };
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	peer = fds[1];
	return gt_client_new(&client, 7, &loop, fds[0], &cred, &config, NULL);
}

static int start(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	memset(&seen, 0, sizeof(seen));
	config.uid = geteuid();
	start_process();
	return uv_loop_init(&loop) || connect_as(geteuid());
}

static int stop(void **state)
{
	(void)state;
	end_process();
	uv_run(&loop, UV_RUN_DEFAULT);
	close(peer);
	/* All handles are closed, everything is given back, each thing once. */
	if (uv_loop_close(&loop) || client || fake.interleaved || seen.released > 1)
		return -1;
	return fake.frees == fake.finishes ? 0 : -1;
}

static void run_until(const int *counter, int want)
{
	while (*counter < want)
		uv_run(&loop, UV_RUN_ONCE);
}

static void on_tick(uv_timer_t *timer)
{
	(void)timer;
	if (client)
		gt_client_tick(client);
}

/* ---- the peer ---- */

#define HDR(kind, bytes)                                                          \
	{                                                                         \
		.magic = GT_WIRE_MAGIC, .version = GT_WIRE_VERSION, .type = kind, \
		.size_bytes = (uint32_t)(bytes)                                   \
	}

/* Send size bytes with fd_count copies of a descriptor. */
static void send_with(const void *msg, size_t size, size_t fd_count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg, .iov_len = size };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;
	int fd = memfd_create("arena", MFD_CLOEXEC);
	size_t i;

	if (fd_count) {
		hdr.msg_control = &control;
		hdr.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&hdr);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		for (i = 0; i < fd_count; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &fd, sizeof(fd));
	}
	assert_int_equal(sendmsg(peer, &hdr, MSG_NOSIGNAL), size);
	close(fd);
}

static const struct gt_msg_hello hello = {
	.hdr = HDR(GT_MSG_HELLO, sizeof(struct gt_msg_hello)),
	.pid = 1,
	.rank = 3,
	.comm = "train",
};

static void send_hello(void)
{
	send_with(&hello, sizeof(hello), 1);
}

static void send_phase(uint32_t what)
{
	const struct gt_msg_phase phase = {
		.hdr = HDR(GT_MSG_PHASE, sizeof(phase)),
		.what = what,
		.cupti_version = 130001,
	};

	send_with(&phase, sizeof(phase), 0);
}

static void send_log(const char *text)
{
	struct gt_msg_log log = { .hdr = HDR(GT_MSG_LOG, sizeof(log)), .level = GT_LOG_WARN };

	log.len_bytes = (uint32_t)strlen(text);
	memcpy(log.text, text, log.len_bytes);
	send_with(&log, sizeof(log), 0);
}

static void send_bye(void)
{
	const struct gt_msg_cycle bye = { .hdr = HDR(GT_MSG_BYE, sizeof(bye)) };

	send_with(&bye, sizeof(bye), 0);
}

/* The next message for the target. */
static struct gt_msg_cycle receive(void)
{
	struct gt_msg_cycle msg = { .hdr.type = 0 };

	assert_int_equal(recv(peer, &msg, sizeof(msg), 0), sizeof(msg));
	assert_int_equal(msg.hdr.magic, GT_WIRE_MAGIC);
	assert_int_equal(msg.hdr.size_bytes, sizeof(msg));
	return msg;
}

/* ---- a good peer ---- */

static void whole_life(void **state)
{
	const struct gt_msg_device device = { .hdr = HDR(GT_MSG_DEVICE, sizeof(device)),
					      .name = "H100" };
	struct gt_recorder_closed closed = { .cycle = 1, .complete = true };

	(void)state;
	send_hello();
	send_phase(GT_WHAT_ATTACHED);
	send_with(&device, sizeof(device), 0);
	send_log("hello");
	run_until(&seen.drained, 1);
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

	fake.report = (struct gt_recorder_report){
		.step = 9,
		.phase = GT_PHASE_OVER,
		.gpu_ops = 100,
		.closed = &closed,
		.closed_count = 1,
	};
	send_bye();
	send_phase(GT_WHAT_OFF);
	run_until(&seen.closed, 1);
	assert_int_equal(seen.info.step, 9);
	assert_int_equal(seen.info.files, 1);
	assert_int_equal(fake.finishes, 0);
	fake.report.closed_count = 0;

	end_process();
	run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
	assert_false(fake.died);
	assert_int_equal(seen.released, 1);
	assert_int_equal(seen.failures, 0);
}

static void killed(void **state)
{
	(void)state;
	send_hello();
	run_until(&seen.drained, 1);
	end_process();
	run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
	assert_true(fake.died);
}

/* All that it said before its end counts, though nobody had time to listen. */
static void short_life(void **state)
{
	(void)state;
	send_hello();
	send_phase(GT_WHAT_OPEN);
	send_bye();
	end_process();
	run_until(&seen.gone, 1);
	assert_int_equal(fake.phases, 1);
	assert_int_equal(fake.finishes, 1);
	assert_false(fake.died);
}

/* It closes its descriptors, but lives on: its arena is still read. */
static void closes_socket(void **state)
{
	(void)state;
	send_hello();
	run_until(&seen.drained, 1);
	close(peer);
	peer = -1;
	gt_client_tick(client);
	run_until(&seen.drained, 2);
	gt_client_tick(client);
	run_until(&seen.drained, 3);
	assert_int_equal(fake.finishes, 0);
	end_process();
	run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
}

/* It ends with a message of ours unread: what it sent last must not be lost with it. */
static void ends_without_reading(void **state)
{
	(void)state;
	send_hello();
	fake.report = (struct gt_recorder_report){ .drained = true, .drained_cycle = 0 };
	run_until(&seen.drained, 1);
	fake.report.drained = false;
	send_phase(GT_WHAT_OFF);
	send_bye();
	close(peer);
	peer = -1;
	end_process();
	run_until(&seen.gone, 1);
	assert_int_equal(fake.phases, 1);
	assert_false(fake.died);
}

/* It executes another program, which connects anew. */
static void is_replaced(void **state)
{
	(void)state;
	send_hello();
	run_until(&seen.drained, 1);
	gt_client_replaced(client); /* while the old connection is open nothing happens */
	assert_int_equal(fake.finishes, 0);
	close(peer);
	peer = -1;
	run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
}

static void drained_is_told_once(void **state)
{
	struct gt_msg_cycle msg;

	(void)state;
	send_hello();
	fake.report = (struct gt_recorder_report){ .drained = true, .drained_cycle = 0 };
	run_until(&seen.drained, 1);
	msg = receive();
	assert_int_equal(msg.hdr.type, GT_MSG_DRAINED);
	assert_int_equal(msg.cycle, 0);
	gt_client_tick(client);
	run_until(&seen.drained, 2);
	assert_int_equal(recv(peer, &msg, sizeof(msg), 0), -1);
	assert_int_equal(errno, EAGAIN);
	fake.report.drained_cycle = 4;
	gt_client_tick(client);
	run_until(&seen.drained, 3);
	assert_int_equal(receive().cycle, 4);
}

/* Its receive buffer is full: the message waits. */
static void slow_peer(void **state)
{
	struct gt_msg_cycle msg;
	bool told = false;
	uint64_t cycle;

	(void)state;
	send_hello();
	fake.report.drained = true;
	for (cycle = 0; cycle < 2000; cycle++) {
		fake.report.drained_cycle = cycle;
		gt_client_tick(client);
		run_until(&seen.drained, (int)cycle + 1);
	}
	while (recv(peer, &msg, sizeof(msg), 0) > 0)
		told |= msg.cycle == 1999;
	assert_false(told);
	fake.report.drained = false;
	gt_client_tick(client);
	run_until(&seen.drained, 2001);
	assert_int_equal(receive().cycle, 1999);
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
	send_hello();
	uv_run(&loop, UV_RUN_ONCE);
	uv_sem_wait(&entered);
	for (i = 0; i < 5; i++)
		send_phase(GT_WHAT_OPEN);
	uv_run(&loop, UV_RUN_NOWAIT);
	gt_client_tick(client);
	assert_int_equal(fake.phases, 0);
	end_process();
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(fake.finishes, 0);
	uv_sem_post(&leave);
	uv_sem_post(&leave);
	run_until(&seen.gone, 1);
	assert_int_equal(fake.phases, 5);
	assert_int_equal(fake.finishes, 1);
	uv_sem_destroy(&entered);
	uv_sem_destroy(&leave);
}

static void flushes_while_open(void **state)
{
	(void)state;
	send_hello();
	run_until(&seen.drained, 1);
	assert_false(fake.flush_due);
	fake.report.open_cycle = 1;
	gt_client_tick(client);
	run_until(&seen.drained, 2);
	gt_client_tick(client);
	run_until(&seen.drained, 3);
	assert_true(fake.flush_due);
	gt_client_tick(client); /* at once: not due */
	run_until(&seen.drained, 4);
	assert_false(fake.flush_due);
}

/* What it still has to say counts. */
static void is_stopped(void **state)
{
	(void)state;
	send_hello();
	run_until(&seen.drained, 1);
	gt_client_stop(client);
	gt_client_stop(client);
	assert_int_equal(receive().hdr.type, GT_MSG_STOP);
	send_phase(GT_WHAT_CLOSE);
	run_until(&seen.phases, 1);
	assert_int_equal(fake.finishes, 0);
	send_phase(GT_WHAT_OFF);
	run_until(&seen.gone, 1);
	assert_int_equal(fake.phases, 2);
	assert_int_equal(fake.finishes, 1);
}

/* It is told to stop, and does nothing of the kind. */
static void does_not_stop(void **state)
{
	static uv_timer_t timer;

	(void)state;
	send_hello();
	run_until(&seen.drained, 1);
	gt_client_stop(client);
	uv_timer_init(&loop, &timer);
	uv_timer_start(&timer, on_tick, 20, 20);
	run_until(&seen.gone, 1);
	assert_int_equal(fake.finishes, 1);
	assert_true(fake.died);
	uv_close((uv_handle_t *)&timer, NULL);
}

static void trace_cannot_be_written(void **state)
{
	(void)state;
	send_hello();
	fake.rc = -ENOSPC;
	run_until(&seen.failures, 1);
	assert_string_equal(seen.failure, "disk full");
	gt_client_tick(client); /* it goes on, and is told of once */
	run_until(&seen.drained, 2);
	assert_int_equal(seen.failures, 1);
	fake.rc = 0;
	gt_client_tick(client);
	run_until(&seen.drained, 3);
	assert_int_equal(fake.finishes, 0);
}

/* ---- bad peers ---- */

static void expect_refusal(const char *want)
{
	run_until(&seen.gone, 1);
	assert_int_equal(seen.failures, 1);
	if (!strstr(seen.failure, want))
		fail_msg("'%s' is not in '%s'", want, seen.failure);
	assert_int_equal(fake.finishes, fake.frees);
	/* its end of the connection is closed */
	assert_true(recv(peer, seen.log, 1, 0) <= 0);
}

static void another_user(void **state)
{
	int peer_of_good = peer;
	struct gt_client *good = client;

	(void)state;
	config.uid = geteuid() + 1;
	assert_int_equal(connect_as(geteuid()), -EPERM);
	assert_true(recv(peer, seen.log, 1, 0) <= 0);
	close(peer);
	peer = peer_of_good;
	client = good;
}

static void garbage(void **state)
{
	(void)state;
	send_with("garbage that is long enough for a header", 40, 0);
	expect_refusal("no message of gtrace");
}

static void too_short(void **state)
{
	(void)state;
	send_with("x", 1, 0);
	expect_refusal("no message of gtrace");
}

static void oversized(void **state)
{
	static char big[GT_MSG_MAX + 1];
	const struct gt_msg_hdr hdr = HDR(GT_MSG_LOG, GT_MSG_MAX);

	(void)state;
	memcpy(big, &hdr, sizeof(hdr));
	send_with(big, sizeof(big), 0);
	expect_refusal("no message of gtrace");
}

static void other_version(void **state)
{
	struct gt_msg_hello other = hello;

	(void)state;
	other.hdr.version = GT_WIRE_VERSION + 1;
	send_with(&other, sizeof(other), 1);
	expect_refusal("another version");
}

static void wrong_size(void **state)
{
	struct gt_msg_hello other = hello;

	(void)state;
	other.hdr.size_bytes = sizeof(other) - 8;
	send_with(&other, sizeof(other) - 8, 1);
	expect_refusal("of type 1");
}

static void unknown_type(void **state)
{
	const struct gt_msg_hdr hdr = HDR(99, sizeof(hdr));

	(void)state;
	send_hello();
	send_with(&hdr, sizeof(hdr), 0);
	expect_refusal("of type 99");
}

static void log_that_is_longer_than_itself(void **state)
{
	struct gt_msg_log log = { .hdr = HDR(GT_MSG_LOG, sizeof(log)),
				  .len_bytes = sizeof(log.text) + 1 };

	(void)state;
	send_with(&log, sizeof(log), 0);
	expect_refusal("of type 4");
	assert_int_equal(seen.logs, 0);
}

static void no_hello(void **state)
{
	(void)state;
	send_phase(GT_WHAT_OPEN);
	expect_refusal("did not introduce itself");
}

static void hello_without_arena(void **state)
{
	(void)state;
	send_with(&hello, sizeof(hello), 0);
	expect_refusal("0 descriptors");
}

static void hello_with_many(void **state)
{
	(void)state;
	send_with(&hello, sizeof(hello), 8);
	expect_refusal("descriptors");
}

static void descriptor_with_another(void **state)
{
	const struct gt_msg_cycle bye = { .hdr = HDR(GT_MSG_BYE, sizeof(bye)) };

	(void)state;
	send_hello();
	send_with(&bye, sizeof(bye), 1);
	expect_refusal("1 descriptors");
}

static void two_hellos(void **state)
{
	(void)state;
	send_hello();
	send_hello();
	expect_refusal("twice");
}

static void arena_lies(void **state)
{
	(void)state;
	fake.refuse = -EPROTO;
	send_hello();
	expect_refusal("it lies");
}

static void floods_the_log(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		send_log("again");
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	assert_int_equal(seen.logs, 101);
	assert_non_null(strstr(seen.log, "left out"));
	assert_int_equal(seen.failures, 0);
}

/* No descriptor may be left over by what was refused: the same number as before. */
static int count_fds(void)
{
	int fd = dup(0);

	close(fd);
	return fd; /* the lowest free one */
}

static void leaks_nothing(void **state)
{
	void (*const bad[])(void **) = { hello_with_many, descriptor_with_another, two_hellos,
					 arena_lies };
	int before = -1;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		bad[i](state);
		assert_int_equal(stop(state), 0);
		peer = -1;
		assert_true(before < 0 || count_fds() == before);
		before = count_fds();
		assert_int_equal(start(state), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(whole_life),
		TEST(killed),
		TEST(short_life),
		TEST(closes_socket),
		TEST(ends_without_reading),
		TEST(is_replaced),
		TEST(drained_is_told_once),
		TEST(slow_peer),
		TEST(messages_while_busy),
		TEST(flushes_while_open),
		TEST(is_stopped),
		TEST(does_not_stop),
		TEST(trace_cannot_be_written),
		TEST(another_user),
		TEST(garbage),
		TEST(too_short),
		TEST(oversized),
		TEST(other_version),
		TEST(wrong_size),
		TEST(unknown_type),
		TEST(log_that_is_longer_than_itself),
		TEST(no_hello),
		TEST(hello_without_arena),
		TEST(hello_with_many),
		TEST(descriptor_with_another),
		TEST(two_hellos),
		TEST(arena_lies),
		TEST(floods_the_log),
		TEST(leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
