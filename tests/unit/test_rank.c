#include "base.h"
#include "given_env.h"
#include "rank.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define assert_rank(want_source, want_rank, want_world, ...)  \
	do {                                                  \
		GIVE_ENV(__VA_ARGS__);                        \
		struct gt_rank got;                           \
		gt_rank_from_env(given_env, &got);            \
		assert_int_equal(got.source, want_source);    \
		assert_int_equal(got.rank, want_rank);        \
		assert_int_equal(got.world_size, want_world); \
	} while (0)

static void launchers(void **state)
{
	(void)state;
	assert_rank(GT_RANK_NONE, 0, 0, "HOME", "/root");
	assert_rank(GT_RANK_ENV, 3, 8, "RANK", "3", "WORLD_SIZE", "8");
	assert_rank(GT_RANK_OMPI, 1, 2, "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2");
	assert_rank(GT_RANK_PMIX, 5, 0, "PMIX_RANK", "5", "SLURM_PROCID", "1", "SLURM_NTASKS", "8");
	assert_rank(GT_RANK_PMIX, 5, 8, "PMIX_RANK", "5", "PMIX_NAMESPACE", "slurm.pmix.7.0",
		    "SLURM_PROCID", "5", "SLURM_NTASKS", "8");
	assert_rank(GT_RANK_PMI, 5, 6, "PMI_RANK", "5", "PMI_SIZE", "6");
	assert_rank(GT_RANK_SLURM, 63, 64, "SLURM_PROCID", "63", "SLURM_NTASKS", "64");
	assert_rank(GT_RANK_SLURM, 0, 64, "SLURM_PROCID", "0", "SLURM_NTASKS", "64",
		    "SLURM_STEP_ID", "0");
	/* what runs in the batch script itself is no rank of its steps */
	assert_rank(GT_RANK_NONE, 0, 0, "SLURM_PROCID", "0", "SLURM_NTASKS", "64");
}

static void order(void **state)
{
	(void)state;
	/* mpirun inside a Slurm job */
	assert_rank(GT_RANK_OMPI, 1, 2, "SLURM_PROCID", "0", "SLURM_NTASKS", "1",
		    "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "PMIX_RANK", "7");
	/* torchrun inside mpirun */
	assert_rank(GT_RANK_ENV, 9, 0, "OMPI_COMM_WORLD_RANK", "1", "RANK", "9");
}

static void not_a_number(void **state)
{
	(void)state;
	assert_rank(GT_RANK_PMI, 2, 0, "RANK", "", "PMIX_RANK", "-1", "PMI_RANK", "2");
	assert_rank(GT_RANK_NONE, 0, 0, "RANK", "1x");
	assert_rank(GT_RANK_NONE, 0, 0, "RANK", " 1");
	assert_rank(GT_RANK_ENV, INT32_MAX, 0, "RANK", "2147483647", "WORLD_SIZE", "many");
	assert_rank(GT_RANK_NONE, 0, 0, "RANK", "2147483648");
	assert_rank(GT_RANK_NONE, 0, 0, "RANK", "99999999999999999999");
}

static void no_room_in_the_world(void **state)
{
	(void)state;
	assert_rank(GT_RANK_ENV, 8, 0, "RANK", "8", "WORLD_SIZE", "8");
	assert_rank(GT_RANK_ENV, 0, 0, "RANK", "0", "WORLD_SIZE", "0");
}

#define assert_refused(want, ...)                                          \
	do {                                                               \
		GIVE_ENV(__VA_ARGS__);                                     \
		struct gt_rank got;                                        \
		gt_rank_from_env(given_env, &got);                         \
		assert_string_equal(got.refused ? got.refused : "", want); \
	} while (0)

static void said_when_refused(void **state)
{
	(void)state;
	assert_refused("", "RANK", "1", "SLURM_PROCID", "-1");
	assert_refused("", "RANK", "", "HOME", "/root");
	assert_refused("", "SLURM_PROCID", "0");
	assert_refused("RANK", "RANK", "-1");
	assert_refused("RANK", "RANK", "abc", "PMI_RANK", "x", "SLURM_PROCID", "1");
	assert_refused("SLURM_PROCID", "SLURM_PROCID", "99999999999");
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(gt_rank_source_name(GT_RANK_OMPI), "OMPI_COMM_WORLD_RANK");
	assert_string_equal(gt_rank_source_name(GT_RANK_NONE), "none");
	assert_string_equal(gt_rank_source_name((enum gt_rank_source)77), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launchers),         cmocka_unit_test(order),
		cmocka_unit_test(not_a_number),      cmocka_unit_test(no_room_in_the_world),
		cmocka_unit_test(said_when_refused), cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
