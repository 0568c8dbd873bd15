#include "base.h"
#include "job.h"

#define VALUE_MAX 80

/*
 * The number of a job, by what all its ranks have. The first one found rules: an mpirun inside a
 * Slurm job has ranks in several of its steps. Open MPI before 4.1 gives no namespace.
 */
static const struct {
	const char *number;
	const char *part; /* NULL: there is none */
} numbers[] = {
	{ "PMIX_NAMESPACE", NULL },
	{ "OMPI_MCA_ess_base_jobid", NULL },
	{ "PALS_APID", NULL },
	{ "SLURM_JOB_ID", "SLURM_STEP_ID" },
};

const char *const gt_job_variables[] = {
	"RANK",
	"WORLD_SIZE",
	"LOCAL_WORLD_SIZE",
	"MASTER_ADDR",
	"MASTER_PORT",
	"TORCHELASTIC_RUN_ID",
	"TORCHELASTIC_RESTART_COUNT",
	"TORCHELASTIC_ERROR_FILE",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"OMPI_MCA_ess_base_jobid",
	"PMIX_RANK",
	"PMIX_NAMESPACE",
	"PMI_RANK",
	"PMI_SIZE",
	"PALS_APID",
	"SLURM_PROCID",
	"SLURM_NTASKS",
	"SLURM_JOB_ID",
	"SLURM_STEP_ID",
	NULL,
};

/* Where torchrun has no number of its own, two jobs after each other can be alike in these. */
static const char *const torch_names[] = {
	"TORCHELASTIC_RUN_ID",
	"TORCHELASTIC_RESTART_COUNT",
	"MASTER_ADDR",
	"MASTER_PORT",
};

static void add(struct gt_job *job, const char *name, const char *value, size_t value_len)
{
	size_t len = strlen(job->key);

	/* Of a long path the end tells more. */
	if (value_len > VALUE_MAX)
		value += value_len - VALUE_MAX;
	snprintf(job->key + len, sizeof(job->key) - len, " %s=%.*s", name,
		 (int)GT_MIN(value_len, (size_t)VALUE_MAX), value);
}

static void add_number(struct gt_job *job, char *(*lookup)(const char *name))
{
	const char *number, *part;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers) && !job->unique; i++) {
		number = lookup(numbers[i].number);
		part = numbers[i].part ? lookup(numbers[i].part) : "";
		if (!number || !*number || !part)
			continue;
		add(job, numbers[i].number, number, strlen(number));
		if (*part)
			add(job, numbers[i].part, part, strlen(part));
		job->unique = true;
	}
}

/* torchrun makes a directory for each of its starts on a machine: .../attempt_0/RANK/error.json */
static void add_torchrun(struct gt_job *job, char *(*lookup)(const char *name))
{
	const char *local = lookup("LOCAL_WORLD_SIZE"), *world = lookup("WORLD_SIZE");
	const char *file = lookup("TORCHELASTIC_ERROR_FILE"), *value;
	const char *end = file ? strstr(file, "/attempt_") : NULL;
	size_t i;

	if (end && local && world && !strcmp(local, world)) {
		add(job, "start", file, (size_t)(end - file));
		job->unique = true;
	}
	for (i = 0; i < ARRAY_SIZE(torch_names); i++) {
		value = lookup(torch_names[i]);
		if (value)
			add(job, torch_names[i], value, strlen(value));
	}
}

void gt_job_from_env(char *(*lookup)(const char *name), struct gt_job *ret)
{
	char *c;

	*ret = (struct gt_job){ .unique = false };
	gt_rank_from_env(lookup, &ret->rank);
	if (ret->rank.source == GT_RANK_NONE)
		return;
	snprintf(ret->key, sizeof(ret->key), "%s", gt_rank_source_name(ret->rank.source));
	add_number(ret, lookup);
	if (ret->rank.source == GT_RANK_ENV)
		add_torchrun(ret, lookup);
	for (c = ret->key; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = '_';
}
