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

	snprintf(full, sizeof(full), "%s/%s", dir, want);
	assert_int_equal(
		gt_session_path(session, client, rank, pid, cycle, path, sizeof(path), &err), 0);
	assert_string_equal(path, full);
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
	/* the first process after an exec */
	assert_path(session, 4, 0, 100, 1, "train-rank0-pid100.trace.json.gz");
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

/* One gtrace a rank, started by mpirun or srun: they must not evade each other's files. */
static void ranks_with_a_gtrace_each(void **state)
{
	struct gt_session_config config = { .rank = { .rank = 0, .source = GT_RANK_SLURM } };
	struct gt_session *rank0 = open_session(&config), *rank1;

	(void)state;
	touch("train-rank0.trace.json.gz");
	config.rank.rank = 1;
	rank1 = open_session(&config);
	assert_string_equal(gt_session_name(rank1), "train");
	gt_session_free(rank1);
	gt_session_free(rank0);

	config.rank.rank = 0;
	rank0 = open_session(&config);
	assert_string_equal(gt_session_name(rank0), "train-2");
	gt_session_free(rank0);
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
	chmod(dir, 0500);
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
	assert_true(rc == -ENOSPC || rc == -EFBIG);
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

	(void)state;
	assert_int_equal(gt_session_path(session, 1, 0, 1, 1, path, sizeof(path), &err),
			 -ENAMETOOLONG);
	gt_session_free(session);
	gt_session_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(cycles, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(next_free_name, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(runs_at_once, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(killed_run, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(ranks_with_a_gtrace_each, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(bad_directory, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(full_disk, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(long_path, make_dir, remove_dir),
		cmocka_unit_test(bad_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
