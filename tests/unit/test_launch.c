#include "base.h"
#include "launch.h"
#include "signals.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct gt_signals signals;

static int block_signals(void **state)
{
	(void)state;
	return gt_signals_init(&signals, NULL);
}

static int unblock_signals(void **state)
{
	(void)state;
	gt_signals_release(&signals);
	return 0;
}

/* What a program prints; its wait status. */
static int output_of(char *const *argv, char *const *environment, char *buf, size_t len)
{
	int fds[2], saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), status, rc;
	struct gt_launch launch;
	struct gt_err err;
	size_t used = 0;
	ssize_t n;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	dup2(fds[1], STDOUT_FILENO);
	rc = gt_launch(&launch, argv, environment, &signals, &err);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fds[1]);
	assert_int_equal(rc, 0);
	while (used + 1 < len && (n = read(fds[0], buf + used, len - 1 - used)) > 0)
		used += (size_t)n;
	buf[used] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(launch.pid, &status, 0), launch.pid);
	return status;
}

static int output_of_shell(const char *command, char *const *environment, char *buf, size_t len)
{
	char sh[] = "sh", c[] = "-c", copy[256], *argv[] = { sh, c, copy, NULL };

	snprintf(copy, sizeof(copy), "%s", command);
	return output_of(argv, environment, buf, len);
}

static void status_and_output(void **state)
{
	char out[64];
	int status = output_of_shell("echo hello; exit 7", environ, out, sizeof(out));

	(void)state;
	assert_string_equal(out, "hello\n");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	status = output_of_shell("kill -TERM $$", environ, out, sizeof(out));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
}

static uint64_t mask_of(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	assert_non_null(line);
	return strtoull(line + strlen(name), NULL, 16);
}

/* The target starts with the mask and the dispositions that gtrace was given: nohup's, say. */
static void inherits_signals(void **state)
{
	char cat[] = "cat", path[] = "/proc/self/status", *argv[] = { cat, path, NULL };
	char text[4096];
	sigset_t set;

	(void)state;
	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	assert_int_equal(gt_signals_init(&signals, NULL), 0);
	output_of(argv, environ, text, sizeof(text));
	gt_signals_release(&signals);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(mask_of(text, "SigBlk:"), UINT64_C(1) << (SIGUSR1 - 1));
	assert_int_equal(mask_of(text, "SigCgt:"), 0);
	assert_int_equal(mask_of(text, "SigIgn:") & (1 << (SIGHUP - 1)), 1 << (SIGHUP - 1));
	assert_int_equal(mask_of(text, "SigIgn:") & (1 << (SIGCHLD - 1)), 1 << (SIGCHLD - 1));
	assert_int_equal(mask_of(text, "SigIgn:") & (1 << (SIGPIPE - 1)), 0);
}

static size_t count_fds(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void inherits_no_descriptor(void **state)
{
	char ls[] = "ls", path[] = "/proc/self/fd", *argv[] = { ls, path, NULL };
	char before[512], after[512];
	FILE *plain = popen("ls /proc/self/fd", "r");

	(void)state;
	before[fread(before, 1, sizeof(before) - 1, plain)] = 0;
	pclose(plain);
	output_of(argv, environ, after, sizeof(after));
	assert_int_equal(count_fds(after), count_fds(before));
}

static void assert_fails(const char *program, int want, bool want_exec_failed)
{
	char *argv[] = { (char *)(uintptr_t)program, NULL };
	struct gt_launch launch;
	struct gt_err err;

	assert_int_equal(gt_launch(&launch, argv, environ, &signals, &err), want);
	assert_int_equal(launch.exec_failed, want_exec_failed);
	assert_int_equal(launch.pid, -1);
	assert_non_null(strstr(err.msg, program));
	/* no child is left */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void not_executable(void **state)
{
	(void)state;
	assert_fails("gtrace-no-such-program", -ENOENT, true);
	assert_fails("/no/such/program", -ENOENT, true);
	assert_fails("/etc/passwd", -EACCES, true);
	assert_fails("/", -EACCES, true);
}

static void environment(void **state)
{
	char a[] = "A=1", ab[] = "AB=2", b[] = "B=3", odd[] = "odd", again[] = "A=4";
	char gone[] = "D=5";
	char *base[] = { a, ab, b, odd, again, gone, NULL };
	const struct gt_envvar vars[] = { { "A", "new" }, { "C", "" }, { "D", NULL } };
	char **env = gt_environment_new(base, vars, ARRAY_SIZE(vars)), out[128];

	(void)state;
	assert_string_equal(env[0], "AB=2");
	assert_string_equal(env[1], "B=3");
	assert_string_equal(env[2], "odd");
	assert_string_equal(env[3], "A=new");
	assert_string_equal(env[4], "C=");
	assert_null(env[5]);
	output_of_shell("echo $A $AB $B", env, out, sizeof(out));
	assert_string_equal(out, "new 2 3\n");
	gt_environment_free(env);
	gt_environment_free(NULL);
}

/* What came before there was a target to pass it on to. */
static void takes_end(void **state)
{
	(void)state;
	assert_int_equal(gt_signals_take_end(&signals), 0);
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGCHLD);
	assert_int_equal(gt_signals_take_end(&signals), 0);
	kill(getpid(), SIGTERM);
	assert_int_equal(gt_signals_take_end(&signals), SIGTERM);
	assert_int_equal(gt_signals_take_end(&signals), 0);
	signal(SIGHUP, SIG_IGN); /* nohup */
	kill(getpid(), SIGHUP);
	assert_int_equal(gt_signals_take_end(&signals), 0);
	signal(SIGHUP, SIG_DFL);
}

/* gtrace dies of what its target died of, without a core. */
static void dies_of(void **state)
{
	const int sigs[] = { SIGTERM, SIGKILL, SIGSEGV, SIGINT, SIGPIPE, SIGRTMIN + 1 };
	size_t i;
	pid_t pid;
	int status;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sigs); i++) {
		pid = fork();
		if (!pid) {
			signal(SIGINT, SIG_IGN); /* nohup's, say: a default is needed to die */
			gt_signals_die_of(sigs[i]);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), sigs[i]);
		assert_false(WCOREDUMP(status));
	}
}

/* Stops like a job under a shell does, and goes on with all signals blocked as before. */
static void stops_self(void **state)
{
	sigset_t mask;
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		setpgid(0, 0); /* not orphaned: its parent's group is of the same session */
		gt_signals_stop_self(SIGTSTP);
		sigprocmask(SIG_BLOCK, NULL, &mask);
		_exit(sigismember(&mask, SIGTSTP) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(WSTOPSIG(status), SIGTSTP);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(status_and_output, block_signals, unblock_signals),
		cmocka_unit_test(inherits_signals),
		cmocka_unit_test_setup_teardown(inherits_no_descriptor, block_signals,
						unblock_signals),
		cmocka_unit_test_setup_teardown(not_executable, block_signals, unblock_signals),
		cmocka_unit_test_setup_teardown(environment, block_signals, unblock_signals),
		cmocka_unit_test_setup_teardown(takes_end, block_signals, unblock_signals),
		cmocka_unit_test_setup_teardown(dies_of, block_signals, unblock_signals),
		cmocka_unit_test_setup_teardown(stops_self, block_signals, unblock_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
