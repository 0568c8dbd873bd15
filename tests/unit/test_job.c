#include "base.h"
#include "given_env.h"
#include "job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define job_of(...) (GIVE_ENV(__VA_ARGS__), gt_job_from_env(given_env, &job), job.key)

static struct gt_job job;

static void no_job(void **state)
{
	(void)state;
	assert_string_equal(job_of("SLURM_JOB_ID", "7", "PMIX_NAMESPACE", "x"), "");
	/* a batch script's own program */
	assert_string_equal(job_of("SLURM_JOB_ID", "7", "SLURM_PROCID", "0"), "");
	assert_false(job.unique);
}

static void numbered(void **state)
{
	(void)state;
	assert_string_equal(job_of("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "1", "SLURM_PROCID", "2"),
			    "SLURM_PROCID SLURM_JOB_ID=7 SLURM_STEP_ID=1");
	assert_true(job.unique);
	assert_int_equal(job.rank.rank, 2);
	/* the ranks of an mpirun can be in several steps */
	assert_string_equal(job_of("SLURM_JOB_ID", "7", "SLURM_STEP_ID", "1",
				   "OMPI_COMM_WORLD_RANK", "0", "PMIX_NAMESPACE", "1660747777"),
			    "OMPI_COMM_WORLD_RANK PMIX_NAMESPACE=1660747777");
	assert_true(job.unique);
}

static void torchrun(void **state)
{
	(void)state;
	assert_string_equal(job_of("RANK", "1", "WORLD_SIZE", "2", "LOCAL_WORLD_SIZE", "2",
				   "TORCHELASTIC_RUN_ID", "none", "TORCHELASTIC_RESTART_COUNT", "0",
				   "MASTER_ADDR", "localhost", "MASTER_PORT", "29500",
				   "TORCHELASTIC_ERROR_FILE",
				   "/tmp/torchelastic_a/none_b/attempt_0/1/error.json"),
			    "RANK start=/tmp/torchelastic_a/none_b TORCHELASTIC_RUN_ID=none "
			    "TORCHELASTIC_RESTART_COUNT=0 MASTER_ADDR=localhost MASTER_PORT=29500");
	assert_true(job.unique);
	/* On several machines each torchrun has a directory of its own. */
	assert_string_equal(job_of("RANK", "1", "WORLD_SIZE", "4", "LOCAL_WORLD_SIZE", "2",
				   "MASTER_PORT", "29500", "TORCHELASTIC_ERROR_FILE",
				   "/tmp/torchelastic_a/none_b/attempt_0/1/error.json"),
			    "RANK MASTER_PORT=29500");
	assert_false(job.unique);
}

static void odd_values(void **state)
{
	char address[2000];

	(void)state;
	assert_string_equal(job_of("RANK", "0", "MASTER_ADDR", "a\nb\x7f"),
			    "RANK MASTER_ADDR=a_b\x7f");
	memset(address, 'x', sizeof(address));
	snprintf(address + sizeof(address) - 4, 4, "end");
	job_of("RANK", "0", "TORCHELASTIC_RUN_ID", address, "MASTER_ADDR", address, "MASTER_PORT",
	       address);
	assert_true(strlen(job.key) < sizeof(job.key));
	assert_non_null(strstr(job.key, "end MASTER_ADDR=xxx"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_job),
		cmocka_unit_test(numbered),
		cmocka_unit_test(torchrun),
		cmocka_unit_test(odd_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
