/* Command lines of containers, and those that trace inside of them. */
#include "base.h"
#include "container_command.h"
#include "given_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const char *options[] = { "--active", "3" };
static struct gt_container_setup setup = {
	.program = "/usr/local/bin/gtrace",
	.injection = "/usr/local/lib/gtrace/libgtrace-inject.so",
	.output_dir = "/data/out",
	.options = (char *const *)options,
	.option_count = 2,
	.lookup = given_env,
};
static bool limited;
static char missing[512];

/* The words of a line without quotes. */
static size_t split(char *line, char **words)
{
	size_t count = 0;

	for (char *save, *word = strtok_r(line, " ", &save); word;
	     word = strtok_r(NULL, " ", &save))
		words[count++] = word;
	words[count] = NULL;
	return count;
}

static const char *runtime_of(const char *text)
{
	char line[512], *words[64];

	snprintf(line, sizeof(line), "%s", text);
	split(line, words);
	return gt_container_runtime(words);
}

#define MOUNTS                                                \
	"-v /usr/local/bin/gtrace:/opt/gtrace/bin/gtrace:ro " \
	"-v /usr/local/lib/gtrace:/opt/gtrace/lib/gtrace:ro -v /data/out:/traces "
#define BINDS                                                     \
	"--bind /usr/local/bin/gtrace:/opt/gtrace/bin/gtrace:ro " \
	"--bind /usr/local/lib/gtrace:/opt/gtrace/lib/gtrace:ro --bind /data/out:/traces "
#define LIST                                               \
	"/usr/local/bin/gtrace:/opt/gtrace/bin/gtrace:ro," \
	"/usr/local/lib/gtrace:/opt/gtrace/lib/gtrace:ro,/data/out:/traces "
#define RUN "/opt/gtrace/bin/gtrace run --active 3 -o /traces -- "

static void expect(const char *text, const char *expected)
{
	struct gt_buf out = { 0 }, lacks = { 0 };
	char line[512], *words[64];

	snprintf(line, sizeof(line), "%s", text);
	split(line, words);
	assert_int_equal(gt_container_command(words, &setup, &out, &lacks, &limited), 0);
	gt_buf_byte(&out, '\0');
	assert_string_equal(out.data, expected);
	snprintf(missing, sizeof(missing), "%.*s", (int)lacks.len, lacks.data);
	gt_buf_release(&out);
	gt_buf_release(&lacks);
}

static void recognized(void **state)
{
	(void)state;
	assert_string_equal(runtime_of("docker run image"), "docker");
	assert_string_equal(runtime_of("/usr/bin/docker --context x run image"), "docker");
	assert_string_equal(runtime_of("docker -H tcp://x container run image"), "docker");
	assert_string_equal(runtime_of("sudo -E docker run image"), "docker");
	assert_string_equal(runtime_of("podman exec name ls"), "podman");
	assert_string_equal(runtime_of("mpirun -n 4 apptainer exec image ./a"), "apptainer");
	assert_string_equal(runtime_of("srun -n 4 singularity run image"), "singularity");
	assert_string_equal(runtime_of("enroot start name"), "enroot");
	assert_string_equal(runtime_of("srun -n 4 --container-image=image ./a"), "srun");
	assert_string_equal(runtime_of("srun --label --container-name job ./a"), "srun");
	assert_null(runtime_of("docker"));
	assert_null(runtime_of("docker build -t run ."));
	assert_null(runtime_of("docker ps"));
	assert_null(runtime_of("enroot import docker://x"));
	assert_null(runtime_of("srun -n 4 ./a --container-image=image"));
	assert_null(runtime_of("python train.py docker run"));
	assert_null(runtime_of("./docker-train run"));
	assert_null(runtime_of("mpirun -n 4 ./a"));
}

static void docker(void **state)
{
	(void)state;
	expect("docker run image python t.py", "docker run " MOUNTS "image " RUN "python t.py");
	assert_string_equal(missing, "");
	assert_false(limited);
	/* options with a value, without one, joined ones, and those of the program */
	expect("docker run --rm -it --gpus all -v /a:/b -e=A=1 --shm-size=1g -w/src image sh -c x",
	       "docker run " MOUNTS
	       "--rm -it --gpus all -v /a:/b -e=A=1 --shm-size=1g -w/src image " RUN "sh -c x");
	expect("docker run -dp 80:80 -itu 1000 image ls -l",
	       "docker run " MOUNTS "-dp 80:80 -itu 1000 image " RUN "ls -l");
	expect("docker run -- image ls", "docker run " MOUNTS "-- image " RUN "ls");
	expect("docker run -m 2g image", "docker run " MOUNTS "-m 2g image " RUN "COMMAND");
	assert_true(limited);
	expect("docker run", "docker run " MOUNTS RUN "COMMAND");
	expect("docker run --name", "docker run " MOUNTS "--name " RUN "COMMAND");
}

/* Into one that runs nothing can be mounted any more. */
/* A program for an entry point would be given gtrace for an argument. */
static void entry_points(void **state)
{
#define NONE "--entrypoint '' "
	(void)state;
	expect("docker run --entrypoint python image t.py",
	       "docker run " MOUNTS NONE "image " RUN "python t.py");
	expect("docker run --entrypoint=python --rm image t.py",
	       "docker run " MOUNTS NONE "--rm image " RUN "python t.py");
	expect("podman run --entrypoint bash image", "podman run " MOUNTS NONE "image " RUN "bash");
	expect("docker run --entrypoint= image ls", "docker run " MOUNTS NONE "image " RUN "ls");
	expect("docker run --entrypoint", "docker run " MOUNTS "--entrypoint " RUN "COMMAND");
}

static void rendezvous(void **state)
{
	(void)state;
	setup.rendezvous = "/shared/job";
	expect("docker run image ls",
	       "docker run " MOUNTS "-v /shared/job:/rendezvous image "
	       "/opt/gtrace/bin/gtrace run --active 3 --rendezvous /rendezvous -o /traces -- ls");
	setup.rendezvous = NULL;
}

static void enter(void **state)
{
	(void)state;
	expect("podman exec -it -w /x name python t.py",
	       "podman exec -it -w /x name " RUN "python t.py");
	assert_memory_equal(missing, MOUNTS, strlen(MOUNTS) - 1);
}

static void others(void **state)
{
	(void)state;
	expect("apptainer exec --nv -B /a image.sif python t.py",
	       "apptainer exec " BINDS "--nv -B /a image.sif " RUN "python t.py");
	expect("srun -N 2 --container-image image --pty bash -l",
	       "srun -N 2 --container-image image --pty --container-mounts=" LIST RUN "bash -l");
	expect("srun --container-mounts=/a:/b --container-image=i ./a",
	       "srun --container-mounts=/a:/b," LIST "--container-image=i " RUN "./a");
	expect("srun --container-image=i --container-mounts /a:/b ./a",
	       "srun --container-image=i --container-mounts=/a:/b," LIST RUN "./a");
}

static void ranks(void **state)
{
	(void)state;
	GIVE_ENV("SLURM_PROCID", "3");
	expect("docker run image ls", "docker run " MOUNTS "-e SLURM_PROCID image " RUN "ls");
	expect("apptainer exec image ls", "apptainer exec " BINDS "image " RUN "ls");
	GIVE_ENV(NULL);
	/* what a launcher will set */
	expect("/opt/bin/mpirun -n 2 podman run image ls",
	       "/opt/bin/mpirun -n 2 podman run " MOUNTS
	       "-e OMPI_COMM_WORLD_RANK -e OMPI_COMM_WORLD_SIZE -e OMPI_MCA_ess_base_jobid -e "
	       "PMIX_RANK "
	       "-e PMIX_NAMESPACE -e PMI_RANK -e PMI_SIZE image " RUN "ls");
	expect("sudo docker run image ls", "sudo docker run " MOUNTS "image " RUN "ls");
}

static void where_it_was_built(void **state)
{
	struct gt_container_setup installed = setup;

	(void)state;
	setup.program = "/src dir/build/gtrace";
	setup.injection = "/src dir/build/libgtrace-inject.so";
	setup.option_count = 0;
	expect("docker run image ls",
	       "docker run -v '/src dir/build:/opt/gtrace/bin:ro' -v /data/out:/traces image "
	       "/opt/gtrace/bin/gtrace run -o /traces -- ls");
	setup = installed;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recognized),   cmocka_unit_test(docker),
		cmocka_unit_test(entry_points), cmocka_unit_test(rendezvous),
		cmocka_unit_test(enter),        cmocka_unit_test(others),
		cmocka_unit_test(ranks),        cmocka_unit_test(where_it_was_built),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
