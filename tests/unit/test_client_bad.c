/* test_client_bad.c - peers that break the protocol: it costs their own connection, and nothing
 * else. */
#include "base.h"
#include "client_owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static void expect_refusal(const char *want)
{
	owner_run_until(&seen.gone, 1);
	assert_int_equal(seen.failures, 1);
	if (!strstr(seen.failure, want))
		fail_msg("'%s' is not in '%s'", want, seen.failure);
	assert_int_equal(fake.finishes, fake.frees);
	/* its end of the connection is closed */
	assert_true(recv(peer, seen.log, 1, 0) <= 0);
}

static void expect_no_client(int error)
{
	int peer_of_good = peer;
	struct gt_client *good = client;

	assert_int_equal(owner_connect(geteuid()), error);
	assert_true(recv(peer, seen.log, 1, 0) <= 0);
	close(peer);
	peer = peer_of_good;
	client = good;
}

static void another_user(void **state)
{
	(void)state;
	config.uid = geteuid() + 1;
	expect_no_client(-EPERM);
}

/* 0 in SO_PEERCRED: it has no number here. A signal to 0 would be one to our own group. */
static void outside_of_the_pid_namespace(void **state)
{
	pid_t good = process;

	(void)state;
	process = 0;
	expect_no_client(-ESRCH);
	process = good;
}

static void garbage(void **state)
{
	(void)state;
	peer_send(peer, "garbage that is long enough for a header", 40, 0);
	expect_refusal("no message of gtrace");
}

static void too_short(void **state)
{
	(void)state;
	peer_send(peer, "x", 1, 0);
	expect_refusal("no message of gtrace");
}

static void oversized(void **state)
{
	static char big[GT_MSG_MAX + 1];
	const struct gt_msg_hdr hdr = PEER_HDR(GT_MSG_LOG, GT_MSG_MAX);

	(void)state;
	memcpy(big, &hdr, sizeof(hdr));
	peer_send(peer, big, sizeof(big), 0);
	expect_refusal("no message of gtrace");
}

static void other_version(void **state)
{
	struct gt_msg_hello other = peer_hello;

	(void)state;
	other.hdr.version = GT_WIRE_VERSION + 1;
	peer_send(peer, &other, sizeof(other), 1);
	expect_refusal("another version");
}

static void wrong_size(void **state)
{
	struct gt_msg_hello other = peer_hello;

	(void)state;
	other.hdr.size_bytes = sizeof(other) - 8;
	peer_send(peer, &other, sizeof(other) - 8, 1);
	expect_refusal("of type 1");
}

static void unknown_type(void **state)
{
	const struct gt_msg_hdr hdr = PEER_HDR(99, sizeof(hdr));

	(void)state;
	peer_send_hello(peer);
	peer_send(peer, &hdr, sizeof(hdr), 0);
	expect_refusal("of type 99");
}

static void log_that_is_longer_than_itself(void **state)
{
	struct gt_msg_log log = { .hdr = PEER_HDR(GT_MSG_LOG, sizeof(log)),
				  .len_bytes = sizeof(log.text) + 1 };

	(void)state;
	peer_send(peer, &log, sizeof(log), 0);
	expect_refusal("of type 4");
	assert_int_equal(seen.logs, 0);
}

static void no_hello(void **state)
{
	(void)state;
	peer_send_phase(peer, GT_WHAT_OPEN);
	expect_refusal("did not introduce itself");
}

static void hello_without_arena(void **state)
{
	(void)state;
	peer_send(peer, &peer_hello, sizeof(peer_hello), 0);
	expect_refusal("0 descriptors");
}

static void hello_with_many(void **state)
{
	(void)state;
	peer_send(peer, &peer_hello, sizeof(peer_hello), 8);
	expect_refusal("descriptors");
}

static void descriptor_with_another(void **state)
{
	const struct gt_msg_cycle bye = { .hdr = PEER_HDR(GT_MSG_BYE, sizeof(bye)) };

	(void)state;
	peer_send_hello(peer);
	peer_send(peer, &bye, sizeof(bye), 1);
	expect_refusal("1 descriptors");
}

static void two_hellos(void **state)
{
	(void)state;
	peer_send_hello(peer);
	peer_send_hello(peer);
	expect_refusal("twice");
}

static void arena_lies(void **state)
{
	(void)state;
	fake.refuse = -EPROTO;
	peer_send_hello(peer);
	expect_refusal("it lies");
}

static void floods_the_log(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		peer_send_log(peer, "again");
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
		assert_int_equal(owner_stop(state), 0);
		assert_true(before < 0 || count_fds() == before);
		before = count_fds();
		assert_int_equal(owner_start(state), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OWNER_TEST(another_user),
		OWNER_TEST(outside_of_the_pid_namespace),
		OWNER_TEST(garbage),
		OWNER_TEST(too_short),
		OWNER_TEST(oversized),
		OWNER_TEST(other_version),
		OWNER_TEST(wrong_size),
		OWNER_TEST(unknown_type),
		OWNER_TEST(log_that_is_longer_than_itself),
		OWNER_TEST(no_hello),
		OWNER_TEST(hello_without_arena),
		OWNER_TEST(hello_with_many),
		OWNER_TEST(descriptor_with_another),
		OWNER_TEST(two_hellos),
		OWNER_TEST(arena_lies),
		OWNER_TEST(floods_the_log),
		OWNER_TEST(leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
