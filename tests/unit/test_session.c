#include "base.h"
#include "session.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64];

enum { RANKS = 8, ROUNDS = 20 };

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/gtrace-test-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof(command), "chmod u+w %s && rm -r %s", dir, dir);
	return system(command);
}

static void touch(const char *file)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static size_t count_files(void)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(stream);
	while ((entry = readdir(stream)))
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(stream);
	return count;
}

static struct gt_session *open_session(struct gt_session_config *config)
{
	struct gt_session *session;
	struct gt_err err;

	config->dir = dir;
	config->name = "train";
	if (gt_session_open(&session, config, &err) < 0)
		fail_msg("%s", err.msg);
	return session;
}

static void assert_path(struct gt_session *session, uint64_t client, uint32_t rank, uint32_t pid,
			uint64_t cycle, const char *want)
{
	char path[4096], full[4096];
	struct gt_err err;
	bool overwrite;

	snprintf(full, sizeof(full), "%s/%s", dir, want);
	assert_int_equal(gt_session_path(session, client, rank, pid, cycle, path, sizeof(path),
					 &overwrite, &err),
			 0);
	assert_string_equal(path, full);
	assert_false(overwrite);
}

static void names(void **state)
{
	struct gt_session_config config = { .cycles = false };
	struct gt_session *session = open_session(&config);

	(void)state;
	assert_path(session, 1, 0, 100, 1, "train-rank0.trace.json.gz");
	assert_path(session, 2, 7, 101, 1, "train-rank7.trace.json.gz");
	/* a second process of rank 0, and the first again */
	assert_path(session, 3, 0, 102, 1, "train-rank0-pid102.trace.json.gz");
	assert_path(session, 1, 0, 100, 1, "train-rank0.trace.json.gz");
	/* the first process after an exec, and after more of them */
	assert_path(session, 4, 0, 100, 1, "train-rank0-pid100.trace.json.gz");
	assert_path(session, 5, 0, 100, 1, "train-rank0-pid100-2.trace.json.gz");
	assert_path(session, 6, 0, 100, 1, "train-rank0-pid100-3.trace.json.gz");
	assert_path(session, 7, 0, 102, 1, "train-rank0-pid102-2.trace.json.gz");
	assert_path(session, 4, 0, 100, 2, "train-rank0-cycle2-pid100.trace.json.gz");
	assert_path(session, 5, 0, 100, 1, "train-rank0-pid100-2.trace.json.gz");
	assert_path(session, 5, 7, 100, 1, "train-rank7-pid100.trace.json.gz");
	gt_session_free(session);
	/* nothing is left behind */
	assert_int_equal(count_files(), 0);
}

static void cycles(void **state)
{
	struct gt_session_config config = { .cycles = true };
	struct gt_session *session = open_session(&config);

	(void)state;
	assert_path(session, 1, 0, 100, 1, "train-rank0-cycle1.trace.json.gz");
	assert_path(session, 1, 0, 100, 12, "train-rank0-cycle12.trace.json.gz");
	assert_path(session, 2, 0, 101, 2, "train-rank0-cycle2-pid101.trace.json.gz");
	gt_session_free(session);
}

/* Of a path in TensorBoard's folder: all but the time, which is returned. */
static unsigned long long folder_path(struct gt_session *session, uint64_t client, uint32_t pid,
				      const char *before)
{
	char path[4096], full[4096];
	unsigned long long ms;
	struct gt_err err;
	bool overwrite;
	char *end;

	assert_int_equal(
		gt_session_path(session, client, 3, pid, 1, path, sizeof(path), &overwrite, &err),
		0);
	snprintf(full, sizeof(full), "%s/%s", dir, before);
	assert_int_equal(strncmp(path, full, strlen(full)), 0);
	ms = strtoull(path + strlen(full), &end, 10);
	assert_string_equal(end, ".pt.trace.json.gz");
	return ms;
}

static void tensorboard(void **state)
{
	struct gt_session_config config = { .tensorboard_host = "node/1.example" };
	struct gt_session *session = open_session(&config), *other;
	unsigned long long first, ms = 0;

	(void)state;
	first = folder_path(session, 1, 100, "train/node_1.example_rank3.");
	for (int i = 0; i < 20; i++) { /* many in one millisecond */
		unsigned long long last = i ? ms : first;

		ms = folder_path(session, 1, 100, "train/node_1.example_rank3.");
		assert_true(ms > last);
	}
	folder_path(session, 2, 101, "train/node_1.example_rank3-pid101.");
	/* held by a run, empty as it is */
	other = open_session(&config);
	assert_string_equal(gt_session_name(other), "train-2");
	gt_session_free(other);
	gt_session_free(session);
	/* nothing was written, and nothing is left behind */
	assert_int_equal(count_files(), 0);

	session = open_session(&config);
	touch("train/node_rank0.1.pt.trace.json.gz");
	touch("train-2");
	gt_session_free(session);
	session = open_session(&config);
	assert_string_equal(gt_session_name(session), "train-3");
	gt_session_free(session);
	config.force = true;
	session = open_session(&config);
	assert_string_equal(gt_session_name(session), "train");
	gt_session_free(session);
	assert_int_equal(count_files(), 2);
}

static void next_free_name(void **state)
{
	struct gt_session_config config = { .cycles = false };
	struct gt_session *session;

	(void)state;
	/* none of these is a trace of this name */
	touch("train-rankx.trace.json.gz");
	touch("train-rank0.trace.json");
	touch("train2-rank0.trace.json.gz");
	touch("train-rank.trace.json.gz");
	session = open_session(&config);
	assert_string_equal(gt_session_name(session), "train");
	gt_session_free(session);

	/* one file of any rank takes the name for all */
	touch("train-rank12-cycle3.trace.json.gz");
	touch("train-2-rank0-pid77.trace.json.gz");
	session = open_session(&config);
	assert_string_equal(gt_session_name(session), "train-3");
	assert_path(session, 1, 0, 100, 1, "train-3-rank0.trace.json.gz");
	gt_session_free(session);

	config.force = true;
	session = open_session(&config);
	assert_string_equal(gt_session_name(session), "train");
	gt_session_free(session);
}

static void runs_at_once(void **state)
{
	struct gt_session_config config = { .cycles = false };
	struct gt_session *first = open_session(&config), *second = open_session(&config);

	(void)state;
	assert_string_equal(gt_session_name(first), "train");
	assert_string_equal(gt_session_name(second), "train-2");
	gt_session_free(first);
	first = open_session(&config);
	assert_string_equal(gt_session_name(first), "train");
	gt_session_free(first);
	gt_session_free(second);
}

static void killed_run(void **state)
{
	struct gt_session_config config = { .cycles = false };
	struct gt_session *session;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		open_session(&config);
		_exit(0); /* without giving the name back */
	}
	waitpid(pid, NULL, 0);
	assert_int_equal(count_files(), 1);
	session = open_session(&config);
	assert_string_equal(gt_session_name(session), "train");
	gt_session_free(session);
	assert_int_equal(count_files(), 0);
}

static struct gt_session *open_rank(uint32_t rank, uint32_t world_size, const char *key,
				    bool unique)
{
	struct gt_session_config config = { .job = { .unique = unique,
						     .rank = { .rank = rank,
							       .world_size = world_size,
							       .source = GT_RANK_SLURM } } };

	snprintf(config.job.key, sizeof(config.job.key), "%s", key);
	return open_session(&config);
}

/* One gtrace a rank, started by mpirun or srun: they have one name, and nobody else has it. */
static void ranks_with_a_gtrace_each(void **state)
{
	struct gt_session_config other = { .force = false };
	struct gt_session *ranks[3], *alone, *later;

	(void)state;
	touch("train-rank7.trace.json.gz"); /* of a larger job */
	ranks[0] = open_rank(0, 3, "job 1", true);
	assert_string_equal(gt_session_name(ranks[0]), "train-2");
	/* written before the last rank came */
	touch("train-2-rank0.trace.json.gz");
	ranks[1] = open_rank(1, 3, "job 1", true);
	assert_string_equal(gt_session_name(ranks[1]), "train-2");
	alone = open_session(&other);
	assert_string_equal(gt_session_name(alone), "train-3");
	gt_session_free(alone);
	later = open_rank(1, 3, "job 2", true);
	assert_string_equal(gt_session_name(later), "train-3");
	gt_session_free(later);
	/* the others may have ended by then */
	gt_session_free(ranks[0]);
	gt_session_free(ranks[1]);
	ranks[2] = open_rank(2, 3, "job 1", true);
	assert_string_equal(gt_session_name(ranks[2]), "train-2");
	gt_session_free(ranks[2]);
	/* nothing is left of job 1, and of job 2 until its rank 0 and 2 come */
	assert_int_equal(count_files(), 3);
}

static void a_rank_again(void **state)
{
	struct gt_session *first = open_rank(0, 3, "job", true), *second;

	(void)state;
	second = open_rank(0, 3, "job", true);
	assert_string_equal(gt_session_name(second), "train-2");
	gt_session_free(second);
	touch("train-rank0.trace.json.gz");
	gt_session_free(first);
	second = open_rank(0, 3, "job", true);
	assert_string_equal(gt_session_name(second), "train-2");
	gt_session_free(second);
}

/* Not every launcher numbers its jobs: a killed one's rank 1 never came. */
static void killed_job(void **state)
{
	struct gt_session *session;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		open_rank(0, 3, "job", false);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	touch("train-rank0.trace.json.gz");
	session = open_rank(1, 3, "job", false);
	assert_string_equal(gt_session_name(session), "train-2");
	gt_session_free(session);
}

static void post(int fd)
{
	assert_int_equal(write(fd, "", 1), 1);
}

static void await(int fd)
{
	char c;

	assert_int_equal(read(fd, &c, 1), 1);
}

static void __attribute__((noreturn))
be_rank(uint32_t rank, const char *key, int go_fd, int end_fd, int name_fd)
{
	struct gt_session *session;
	int number = 1;

	await(go_fd);
	session = open_rank(rank, RANKS, key, true);
	sscanf(gt_session_name(session), "train-%d", &number);
	if (write(name_fd, &number, sizeof(number)) < 0)
		_exit(1);
	await(end_fd);
	gt_session_free(session);
	_exit(0);
}

/* All at once, again and again: the name is the same for all. In every other round some are gone
 * before others come. */
static void ranks_at_once(void **state)
{
	int go[2], end[2], names_of[2], number;
	char text[40];

	(void)state;
	assert_int_equal(pipe(go) | pipe(end) | pipe(names_of), 0);
	for (int round = 1; round <= ROUNDS; round++) {
		snprintf(text, sizeof(text), "job %d", round);
		for (uint32_t rank = 0; rank < RANKS; rank++)
			if (!fork())
				be_rank(rank, text, go[0], end[0], names_of[1]);
		for (int i = 0; i < RANKS; i++) {
			post(go[1]);
			if (round % 2)
				post(end[1]);
		}
		for (int i = 0; i < RANKS; i++) {
			assert_int_equal(read(names_of[0], &number, sizeof(number)),
					 sizeof(number));
			assert_int_equal(number, round);
		}
		for (int i = 0; i < RANKS && !(round % 2); i++)
			post(end[1]);
		for (int i = 0; i < RANKS; i++)
			wait(NULL);
		snprintf(text, sizeof(text), "train-%d-rank0.trace.json.gz", round);
		touch(round > 1 ? text : "train-rank0.trace.json.gz");
		assert_int_equal(count_files(), round); /* no claim is left */
	}
}

/* A process need not have the rank of its gtrace: the files of others are left alone. */
static void files_of_a_job(void **state)
{
	struct gt_session *first = open_rank(0, 3, "job", true),
			  *second = open_rank(1, 3, "job", true);

	(void)state;
	assert_path(first, 1, 0, 100, 1, "train-rank0.trace.json.gz");
	touch("train-rank0.trace.json.gz");
	assert_path(second, 1, 0, 100, 1, "train-rank0-pid100.trace.json.gz");
	touch("train-rank0-pid100.trace.json.gz");
	assert_path(first, 2, 0, 100, 1, "train-rank0-pid100-2.trace.json.gz");
	assert_path(second, 2, 1, 101, 1, "train-rank1.trace.json.gz");
	assert_int_equal(count_files(), 3); /* these, and the claim */
	gt_session_free(first);
	gt_session_free(second);
}

/* A file that somebody made after the name was chosen is theirs. */
static void taken_meanwhile(void **state)
{
	struct gt_session_config config = { .cycles = false };
	struct gt_session *session = open_session(&config);

	(void)state;
	touch("train-rank0.trace.json.gz");
	assert_path(session, 1, 0, 100, 1, "train-rank0-pid100.trace.json.gz");
	touch("train-rank0-pid100.trace.json.gz");
	assert_path(session, 1, 0, 100, 1, "train-rank0-pid100-2.trace.json.gz");
	gt_session_free(session);
}

static void assert_refused(const char *where, int want)
{
	struct gt_session_config config = { .dir = where, .name = "train" };
	struct gt_session *session = NULL;
	struct gt_err err;

	assert_int_equal(gt_session_open(&session, &config, &err), want);
	assert_null(session);
	assert_non_null(strstr(err.msg, where));
}

static void bad_directory(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/none", dir);
	assert_refused(path, -ENOENT);
	touch("file");
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_refused(path, -ENOTDIR);
	chmod(dir, 0555);
	if (!geteuid()) /* root may write anywhere */
		assert_int_equal(seteuid(65534), 0);
	assert_refused(dir, -EACCES);
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
}

static void full_disk(void **state)
{
	struct rlimit was, small;
	struct gt_session_config config = { .dir = dir, .name = "train" };
	struct gt_session *session;
	struct gt_err err;
	int rc;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	small = was;
	small.rlim_cur = 1000;
	setrlimit(RLIMIT_FSIZE, &small);
	rc = gt_session_open(&session, &config, &err);
	setrlimit(RLIMIT_FSIZE, &was);
	assert_int_equal(rc, -EFBIG);
	assert_non_null(strstr(gt_session_advice(rc), "limit"));
	assert_int_equal(count_files(), 0);
}

static void bad_names(void **state)
{
	char long_name[GT_SESSION_NAME_MAX + 2];
	struct gt_err err;

	(void)state;
	assert_int_equal(gt_session_check_name("", &err), -EINVAL);
	assert_int_equal(gt_session_check_name("a/b", &err), -EINVAL);
	assert_int_equal(gt_session_check_name("..", &err), -EINVAL);
	assert_int_equal(gt_session_check_name("a\nb", &err), -EINVAL);
	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = 0;
	assert_int_equal(gt_session_check_name(long_name, &err), -EINVAL);
	long_name[sizeof(long_name) - 2] = 0;
	assert_int_equal(gt_session_check_name(long_name, &err), 0);
	assert_int_equal(gt_session_check_name("caf\xc3\xa9 1", &err), 0);
}

static void long_path(void **state)
{
	struct gt_session_config config = { .cycles = false };
	struct gt_session *session = open_session(&config);
	char path[40];
	struct gt_err err;
	bool overwrite;

	(void)state;
	assert_int_equal(gt_session_path(session, 1, 0, 1, 1, path, sizeof(path), &overwrite, &err),
			 -ENAMETOOLONG);
	gt_session_free(session);
	gt_session_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(cycles, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(tensorboard, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(next_free_name, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(runs_at_once, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(killed_run, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(ranks_with_a_gtrace_each, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_rank_again, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(killed_job, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(ranks_at_once, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(files_of_a_job, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(taken_meanwhile, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(bad_directory, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(full_disk, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(long_path, make_dir, remove_dir),
		cmocka_unit_test(bad_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
