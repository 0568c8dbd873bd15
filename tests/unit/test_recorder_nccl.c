/* NCCL's calls on the kernels that they launched: by range, by group, by communicator. */
#include "base.h"
#include "recorder_rig.h"

#define NCCL       20 /* name id of the domain */
#define COMM       UINT64_C(0xfedcba9876543210)
#define OTHER_COMM UINT64_C(0x11)
#define THREAD     77

static double now_ms; /* of the next event */

static uint64_t tick(void)
{
	now_ms += .01;
	return AB_MS(now_ms);
}

static void begin(void)
{
	start();
	ab_string(&ab, MAIN, NCCL, "NCCL");
	steps_to(2);
	now_ms = 21;
}

static void comm(uint64_t hash, uint32_t size, int32_t rank, int32_t device)
{
	struct gt_ev_comm ev = {
		.ev = ab_ev(GT_EV_COMM, sizeof(ev), 0, 0),
		.hash = hash,
		.size = size,
		.rank = rank,
		.device = device,
	};

	ab_put(&ab, MAIN, &ev, sizeof(ev));
}

static void push(uint32_t tid, uint32_t depth, const char *function)
{
	ab_range(&ab, GT_EV_PUSH, tid, 2, tick(), NCCL, depth, function);
}

static void pop(uint32_t tid, uint32_t depth)
{
	ab_end(&ab, GT_EV_POP, tid, 2, tick(), NCCL, depth);
}

struct message {
	uint64_t hash, bytes;
	int32_t root, reduction;
};

static void told(uint32_t tid, uint32_t depth, uint32_t call, struct message message)
{
	struct gt_ev_collective ev = {
		.ev = ab_ev(GT_EV_COLLECTIVE, sizeof(ev), 2, tick()),
		.hash = message.hash,
		.bytes = message.bytes,
		.depth = depth,
		.call = call,
		.root = message.root,
		.reduction = message.reduction,
	};

	ab_put(&ab, tid, &ev, sizeof(ev));
}

/* A call of NCCL; correlation: of the kernel it launches, 0: none. */
static void call(uint32_t tid, uint32_t number, struct message message, uint32_t correlation)
{
	push(tid, 1, "ncclCall");
	told(tid, 1, number, message);
	if (correlation)
		ab_launch(&ab, tid, 2, correlation, tick());
	pop(tid, 1);
}

static void all_reduce(uint64_t hash, uint64_t bytes, uint32_t correlation)
{
	call(MAIN, GT_COLLECTIVE_ALL_REDUCE, (struct message){ hash, bytes, -1, 0 }, correlation);
}

static void group_start(void)
{
	push(MAIN, 1, "ncclGroupStart");
	pop(MAIN, 1);
}

static void group_end(uint32_t first, uint32_t last)
{
	push(MAIN, 1, "ncclGroupEnd");
	for (; first && first <= last; first++)
		ab_launch(&ab, MAIN, 2, first, tick());
	pop(MAIN, 1);
}

/* The window is over; kernels: correlations 1 to count. */
static void end(uint32_t count)
{
	for (uint32_t id = 1; id <= count; id++)
		ab_kernel(&ab, id, tick());
	ab_flush(&ab);
	steps_to(4);
	drain(45);
	close_cycle(50);
	finish(false, 70);
}

static void assert_args(uint32_t correlation, const char *args)
{
	assert_non_null(gpu_of(only_trace(), correlation));
	assert_string_equal(gpu_of(only_trace(), correlation)->args, args);
}

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

/* ---- what torch tells ---- */

enum { COMMS_NAME = 30, OTHER_NAME };

static void begin_torch(void)
{
	begin();
	ab_string(&ab, MAIN, COMMS_NAME, "record_param_comms");
	ab_string(&ab, MAIN, OTHER_NAME, "aten::copy_");
}

static void op(uint32_t depth, uint32_t name)
{
	ab_op(&ab, (struct ab_op){ .tid = MAIN,
				   .step = 2,
				   .name_id = name,
				   .depth = depth,
				   .thread = 1,
				   .sequence = -1,
				   .start_ns = tick() });
}

static void op_end(uint32_t depth)
{
	ab_op_end(&ab, MAIN, 2, tick(), depth);
}

struct comms {
	const int64_t *lists;
	const char *text;
	struct gt_ev_comms ev;
};

static void comms(struct comms comms)
{
	uint64_t buf[512] = { 0 };
	struct gt_ev_comms *ev = (void *)buf;
	size_t count = GT_MIN(comms.ev.in_splits, 30) + GT_MIN(comms.ev.out_splits, 30) +
		       GT_MIN(comms.ev.ranks, 30);
	size_t size = gt_comms_bytes(&comms.ev);

	*ev = comms.ev;
	ev->ev = ab_ev(GT_EV_COMMS, size, 2, tick());
	memcpy(ev->bytes, comms.lists, count * sizeof(int64_t));
	memcpy(ev->bytes + count * sizeof(int64_t), comms.text, strlen(comms.text));
	ab_put(&ab, MAIN, ev, size);
}

static const int64_t two_ranks[] = { 0, 1 };

static const struct comms all_reduced = {
	.ev = { .depth = 1,
		.size = 2,
		.stride = 1,
		.rank = 1,
		.type = 6,
		.in_count = 4196352,
		.out_count = 4196352,
		.ranks = 2,
		.collective_bytes = 9,
		.group_bytes = 1,
		.description_bytes = 10 },
	.lists = two_ranks,
	.text = "allreduce0default_pg",
};

#define ALL_REDUCED                                                                                \
	",\"Collective name\":\"allreduce\",\"In msg nelems\":4196352,\"Out msg nelems\":4196352," \
	"\"Group size\":2,\"dtype\":\"Float\",\"In split size\":\"[]\",\"Out split size\":\"[]\"," \
	"\"Process Group Name\":\"0\",\"Process Group Description\":\"default_pg\","               \
	"\"Process Group Ranks\":\"[0, 1]\""

static const struct fake_op *only_op(void)
{
	assert_int_equal(only_trace()->op_count, 1);
	return &only_trace()->ops[0];
}

static void torch_alone(void **state)
{
	(void)state;
	begin_torch();
	op(1, COMMS_NAME);
	comms(all_reduced);
	ab_range(&ab, GT_EV_PUSH, MAIN, 2, tick(), GT_DOMAIN_TORCH, 1, "nccl:all_reduce");
	ab_launch(&ab, MAIN, 2, 1, tick());
	ab_end(&ab, GT_EV_POP, MAIN, 2, tick(), GT_DOMAIN_TORCH, 1);
	op_end(1);
	ab_launch(&ab, MAIN, 2, 2, tick());
	end(2);
	assert_args(1, ALL_REDUCED);
	assert_args(2, "");
	assert_string_equal(only_op()->args, ALL_REDUCED
			    ",\"Rank\":1,\"Global rank start\":0,\"Global rank stride\":1");
}

static void torch_and_nccl(void **state)
{
	(void)state;
	begin_torch();
	comm(COMM, 2, 1, 0);
	op(1, COMMS_NAME);
	comms(all_reduced);
	group_start();
	all_reduce(COMM, 16785408, 0);
	group_end(1, 1);
	op_end(1);
	end(1);
	assert_args(1, ALL_REDUCED ",\"Message bytes\":16785408,\"Rank\":1,\"Reduction\":\"sum\","
				   "\"Communicator\":\"0xfedcba9876543210\"");
}

/* Of the innermost operator only: one inside does something else. */
static void inner_operator(void **state)
{
	(void)state;
	begin_torch();
	op(1, COMMS_NAME);
	comms(all_reduced);
	op(2, OTHER_NAME);
	comms(all_reduced); /* of depth 1: not this one's */
	ab_launch(&ab, MAIN, 2, 1, tick());
	op_end(2);
	comms(all_reduced); /* once more */
	ab_launch(&ab, MAIN, 2, 2, tick());
	op_end(1);
	comms(all_reduced); /* of nothing */
	end(2);
	assert_args(1, "");
	assert_args(2, ALL_REDUCED);
}

static void torch_lists_and_peers(void **state)
{
	int64_t lists[90];
	struct comms long_ones = { .ev = { .depth = 1,
					   .first = -1,
					   .type = 200,
					   .in_splits = 31,
					   .out_splits = 30,
					   .ranks = 31,
					   .collective_bytes = 3 },
				   .lists = lists,
				   .text = "\"\xff\n" };
	struct comms sent = { .ev = { .depth = 1,
				      .rank = 1,
				      .size = 2,
				      .first = 4,
				      .stride = 2,
				      .ranks = 2,
				      .collective_bytes = 4 },
			      .lists = (const int64_t[]){ 4, 6 },
			      .text = "send" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		lists[i] = i % 30 == 29 ? INT64_MIN : 7;
	begin_torch();
	op(1, COMMS_NAME);
	comms(long_ones);
	op_end(1);
	op(1, COMMS_NAME);
	comms(sent);
	ab_launch(&ab, MAIN, 2, 1, tick());
	op_end(1);
	end(1);
	assert_int_equal(only_trace()->op_count, 2);
	assert_non_null(
		strstr(only_trace()->ops[0].args,
		       ",\"Collective name\":\"\\\"\xef\xbf\xbd\\n\",\"In msg nelems\":0,"));
	assert_non_null(
		strstr(only_trace()->ops[0].args,
		       "\"In split size\":\"[7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, "
		       "7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, ..., -9223372036854775808]\""));
	assert_non_null(strstr(gpu_of(only_trace(), 1)->args,
			       "\"Process Group Ranks\":\"[4, 6]\",\"Dst Rank\":6"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(single_calls),
		TEST(less_known),
		TEST(groups),
		TEST(mixed_group),
		TEST(threads),
		TEST(losses),
		TEST(many_calls),
		TEST(torch_alone),
		TEST(torch_and_nccl),
		TEST(inner_operator),
		TEST(torch_lists_and_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
