/* NCCL's calls on the kernels that they launched: by range, by group, by communicator. */
#include "base.h"
#include "nccl_calls.h"

static void single_calls(void **state)
{
	(void)state;
	begin();
	comm(COMM, 8, 3, 0);
	all_reduce(COMM, 1 << 20, 1);
	call(MAIN, GT_COLLECTIVE_BROADCAST, (struct message){ COMM, 64, 5, -1 }, 2);
	call(MAIN, GT_COLLECTIVE_SEND, (struct message){ COMM, 32, 6, -1 }, 3);
	ab_launch(&ab, MAIN, 2, 4, tick()); /* of the program itself */
	end(4);
	assert_args(1, ",\"Collective name\":\"allreduce\",\"Group size\":8,"
		       "\"Message bytes\":1048576,\"Rank\":3,\"Reduction\":\"sum\","
		       "\"Communicator\":\"0xfedcba9876543210\"");
	assert_args(2, ",\"Collective name\":\"broadcast\",\"Group size\":8,\"Message bytes\":64,"
		       "\"Rank\":3,\"Root\":5,\"Communicator\":\"0xfedcba9876543210\"");
	assert_args(3, ",\"Collective name\":\"send\",\"Group size\":8,\"Message bytes\":32,"
		       "\"Rank\":3,\"Peer\":6,\"Communicator\":\"0xfedcba9876543210\"");
	assert_args(4, "");
	assert_true(only_trace()->health.complete);
}

/* Of what is not known nothing is said. */
static void less_known(void **state)
{
	(void)state;
	begin();
	comm(OTHER_COMM, 4, 1, 1); /* the kernels run on GPU 0 */
	comm(UINT64_C(0x22), 2, -1, -1);
	comm(UINT64_C(0x33), 2, 2, 0); /* no such rank */
	comm(UINT64_C(0x44), 0, 0, 0);
	all_reduce(0, 16, 1); /* NCCL before 2.25 */
	all_reduce(UINT64_C(0x99), 16, 2);
	call(MAIN, GT_COLLECTIVE_ALL_GATHER, (struct message){ OTHER_COMM, 16, -1, -1 }, 3);
	call(MAIN, GT_COLLECTIVE_ALL_GATHER, (struct message){ 0x22, 16, -1, -1 }, 4);
	call(MAIN, GT_COLLECTIVE_ALL_GATHER, (struct message){ 0x33, 16, -1, -1 }, 5);
	call(MAIN, GT_COLLECTIVE_ALL_GATHER, (struct message){ 0x44, 16, -1, -1 }, 6);
	call(MAIN, 999, (struct message){ 0, UINT64_MAX, 7, INT32_MAX }, 7);
	end(7);
	assert_args(1, ",\"Collective name\":\"allreduce\",\"Message bytes\":16,"
		       "\"Reduction\":\"sum\"");
	assert_args(2, ",\"Collective name\":\"allreduce\",\"Message bytes\":16,"
		       "\"Reduction\":\"sum\",\"Communicator\":\"0x99\"");
	assert_args(3, ",\"Collective name\":\"all_gather\",\"Group size\":4,\"Message bytes\":16,"
		       "\"Communicator\":\"0x11\"");
	assert_args(4, ",\"Collective name\":\"all_gather\",\"Group size\":2,\"Message bytes\":16,"
		       "\"Communicator\":\"0x22\"");
	assert_args(5, ",\"Collective name\":\"all_gather\",\"Group size\":2,\"Message bytes\":16,"
		       "\"Communicator\":\"0x33\"");
	assert_args(6, ",\"Collective name\":\"all_gather\",\"Message bytes\":16,"
		       "\"Communicator\":\"0x44\"");
	assert_args(7, ",\"Message bytes\":18446744073709551615,\"Root\":7,"
		       "\"Reduction\":\"custom\"");
}

static void groups(void **state)
{
	(void)state;
	begin();
	comm(COMM, 2, 0, 0);
	group_start(); /* PyTorch makes groups of one call, too */
	all_reduce(COMM, 100, 0);
	group_end(1, 1);
	group_start();
	call(MAIN, GT_COLLECTIVE_SEND, (struct message){ COMM, 10, 1, -1 }, 0);
	call(MAIN, GT_COLLECTIVE_RECV, (struct message){ COMM, 20, 1, -1 }, 0);
	group_end(2, 2);
	group_start();
	all_reduce(COMM, 1, 0);
	group_start(); /* groups nest */
	all_reduce(COMM, 2, 0);
	group_end(0, 0);
	all_reduce(COMM, 4, 0);
	ab_launch(&ab, MAIN, 2, 3, tick()); /* of the program, in between */
	group_end(4, 5);
	group_start(); /* nothing to do, and nothing left over */
	all_reduce(COMM, 1000, 0);
	group_end(0, 0);
	group_start();
	all_reduce(COMM, 7, 0);
	group_end(6, 6);
	ab_launch(&ab, MAIN, 2, 7, tick());
	end(7);
	assert_args(1, ",\"Collective name\":\"allreduce\",\"Group size\":2,\"Message bytes\":100,"
		       "\"Rank\":0,\"Reduction\":\"sum\",\"Communicator\":\"0xfedcba9876543210\"");
	assert_args(2, ",\"Group size\":2,\"Messages in group\":2,\"Bytes in group\":30,"
		       "\"Rank\":0,\"Communicator\":\"0xfedcba9876543210\"");
	assert_args(3, "");
	assert_args(4, ",\"Collective name\":\"allreduce\",\"Group size\":2,"
		       "\"Messages in group\":3,\"Bytes in group\":7,\"Rank\":0,"
		       "\"Reduction\":\"sum\",\"Communicator\":\"0xfedcba9876543210\"");
	assert_string_equal(gpu_of(only_trace(), 5)->args, gpu_of(only_trace(), 4)->args);
	assert_args(6, ",\"Collective name\":\"allreduce\",\"Group size\":2,\"Message bytes\":7,"
		       "\"Rank\":0,\"Reduction\":\"sum\",\"Communicator\":\"0xfedcba9876543210\"");
	assert_args(7, "");
}

/* A group of several communicators. */
static void mixed_group(void **state)
{
	(void)state;
	begin();
	comm(COMM, 2, 0, 0);
	comm(OTHER_COMM, 4, 0, 0);
	group_start();
	all_reduce(COMM, UINT64_MAX - 1, 0);
	all_reduce(OTHER_COMM, 5, 0);
	group_end(1, 1);
	end(1);
	assert_args(1, ",\"Collective name\":\"allreduce\",\"Messages in group\":2,"
		       "\"Bytes in group\":18446744073709551615,\"Reduction\":\"sum\"");
}

static void threads(void **state)
{
	struct message message = { COMM, 8, -1, -1 };

	(void)state;
	begin();
	push(MAIN, 1, "ncclAllGather");
	told(MAIN, 1, GT_COLLECTIVE_ALL_GATHER, message);
	ab_launch(&ab, THREAD, 2, 1, tick()); /* meanwhile, on another thread */
	ab_launch(&ab, MAIN, 2, 2, tick());
	pop(MAIN, 1);
	end(2);
	assert_args(1, "");
	assert_args(2, ",\"Collective name\":\"all_gather\",\"Message bytes\":8,"
		       "\"Communicator\":\"0xfedcba9876543210\"");
}

/* Events that were lost must not make others false. */
static void losses(void **state)
{
	struct message message = { COMM, 8, -1, -1 };

	(void)state;
	begin();
	group_start(); /* its end is lost */
	all_reduce(COMM, 1, 0);
	all_reduce(COMM, 2, 1);
	all_reduce(COMM, 4, 2);
	group_start(); /* likewise */
	group_start();
	all_reduce(COMM, 8, 0);
	group_end(3, 3);
	group_start();
	all_reduce(COMM, 16, 0);
	group_end(4, 4);
	all_reduce(COMM, 32, 0); /* of a group whose start was lost */
	group_end(5, 5);
	told(MAIN, 1, GT_COLLECTIVE_ALL_GATHER, message); /* without its PUSH */
	ab_launch(&ab, MAIN, 2, 6, tick());
	push(MAIN, 1, "ncclAllGather");
	told(MAIN, 2, GT_COLLECTIVE_ALL_GATHER, message);
	ab_launch(&ab, MAIN, 2, 7, tick());
	pop(MAIN, 1);
	push(MAIN, 1, "ncclAllGather"); /* its POP is lost */
	told(MAIN, 1, GT_COLLECTIVE_ALL_GATHER, message);
	push(MAIN, 1, "ncclGroupStart");
	ab_launch(&ab, MAIN, 2, 8, tick());
	pop(MAIN, 1);
	end(8);
	assert_non_null(strstr(gpu_of(only_trace(), 1)->args, "\"Message bytes\":2,"));
	assert_non_null(strstr(gpu_of(only_trace(), 2)->args, "\"Message bytes\":4,"));
	assert_non_null(strstr(gpu_of(only_trace(), 3)->args, "\"Message bytes\":8,"));
	assert_non_null(strstr(gpu_of(only_trace(), 4)->args, "\"Message bytes\":16,"));
	for (uint32_t id = 5; id <= 8; id++)
		assert_args(id, "");
}

/* More calls than are kept: the kernels of the oldest get no args, and all is bounded. */
static void many_calls(void **state)
{
	uint32_t i, count = 20000;

	(void)state;
	begin();
	for (i = 0; i < 3000; i++)
		comm(COMM + i, 2, 0, 0);
	fake_discard = true;
	for (i = 1; i <= count; i++) {
		all_reduce(COMM + 2999, i, i);
		if (i % 2000 == 0)
			drain(30);
	}
	fake_discard = false;
	end(1);
	assert_args(1, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(single_calls), TEST(less_known), TEST(groups),     TEST(mixed_group),
		TEST(threads),      TEST(losses),     TEST(many_calls),
	};

	return cmocka_run_group_tests_name("recorder_nccl", tests, NULL, NULL);
}
