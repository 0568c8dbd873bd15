/* What torch tells of its collectives, with and without what NCCL tells of its own. */
#include "base.h"
#include "nccl_calls.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(torch_alone),
		TEST(torch_and_nccl),
		TEST(inner_operator),
		TEST(torch_lists_and_peers),
	};

	return cmocka_run_group_tests_name("recorder_comms", tests, NULL, NULL);
}
