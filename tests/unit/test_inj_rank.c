/* The rank that the environment gives, and the one that the program says it has. */
#include "session_rig.h"

static void joins_groups(void)
{
	setenv(GT_ENV_STEP_SOURCE, "api", 1);
	setenv("WORLD_SIZE", "4", 1);
	setenv("RANK", "-1", 1);
	setenv("SLURM_PROCID", "2", 1);
	setenv("SLURM_NTASKS", "4", 1);
	gtrace_inject_rank(0, 1); /* smaller than the launcher's */
	gtrace_inject_rank(7, 7); /* no rank of it */
	check(inj_start(GT_DOOR_API));
	gtrace_inject_rank(2, 4); /* what is known */
	gtrace_inject_rank(1, 2);
	gtrace_inject_rank(9, 16);
	gtrace_inject_rank(9, 16);
}

static void tells_its_rank(void **state)
{
	union {
		struct gt_msg_hdr hdr;
		struct gt_msg_log log;
		struct gt_msg_rank rank;
		char room[GT_MSG_MAX];
	} msg;
	struct target target;

	(void)state;
	start(&target, joins_groups);
	meet(&target);
	assert_int_equal(target.hello.rank, 2);
	assert_int_equal(target.hello.world_size, 4);
	assert_int_equal(target.hello.rank_source, GT_RANK_SLURM);
	assert_int_equal(receive(&target, &msg), GT_MSG_LOG);
	assert_int_equal(msg.log.level, GT_LOG_WARN);
	assert_memory_equal(msg.log.text, "RANK=-1 is no rank: this process is rank 2",
			    strlen("RANK=-1 is no rank: this process is rank 2"));
	assert_int_equal(receive(&target, &msg), GT_MSG_RANK);
	assert_int_equal(msg.rank.rank, 9);
	assert_int_equal(msg.rank.world_size, 16);
	assert_int_equal(msg.rank.rank_source, GT_RANK_TORCH);
	assert_int_equal(receive(&target, &msg), GT_MSG_BYE);
	assert_int_equal(finish(&target), 0);
}

static void joins_early(void)
{
	setenv(GT_ENV_STEP_SOURCE, "api", 1);
	gtrace_inject_rank(1, 2);
	check(inj_start(GT_DOOR_API));
}

static void knows_its_rank(void **state)
{
	struct target target;

	(void)state;
	start(&target, joins_early);
	meet(&target);
	assert_int_equal(target.hello.rank, 1);
	assert_int_equal(target.hello.world_size, 2);
	assert_int_equal(target.hello.rank_source, GT_RANK_TORCH);
	assert_int_equal(finish(&target), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_its_rank),
		cmocka_unit_test(knows_its_rank),
	};

	return cmocka_run_group_tests(tests, listen_here, stop_listening);
}
