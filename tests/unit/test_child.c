/* Children with a time limit: each body ends, hangs or is killed, and nothing of it remains. */
#include "base.h"
#include "child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define SHORT_MS 50
#define LONG_MS  600000

static struct gt_signals signals;
static struct gt_child child;
static struct gt_err err;
static int sig;

static int run(int (*body)(void *ctx), void *ctx, int timeout_ms)
{
	return gt_child_run(&child, body, ctx, &signals, timeout_ms, &sig, &err);
}

static int set_up(void **state)
{
	(void)state;
	return gt_signals_init(&signals, &err);
}

static int tear_down(void **state)
{
	(void)state;
	gt_signals_release(&signals);
	signal(SIGTERM, SIG_DFL); /* or a failure of one test has the next ones hang */
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD ? 0 : -1;
}

static int talk(void *ctx)
{
	char byte;

	if (write(STDOUT_FILENO, "out ", 4) < 0 || write(STDERR_FILENO, ctx, strlen(ctx)) < 0)
		return 2;
	return read(STDIN_FILENO, &byte, 1) ? 3 : 0;
}

static void output_and_status(void **state)
{
	(void)state;
	assert_int_equal(run(talk, (void *)"err", LONG_MS), 0);
	assert_true(gt_child_succeeded(&child));
	assert_int_equal(child.output.len, 7);
	assert_memory_equal(child.output.data, "out err", 7);
	gt_child_release(&child);
}

static int exit_with(void *ctx)
{
	return *(int *)ctx;
}

static int crash(void *ctx)
{
	(void)ctx;
	return raise(SIGKILL);
}

static void failures(void **state)
{
	int status = 7;

	(void)state;
	assert_int_equal(run(exit_with, &status, LONG_MS), 0);
	assert_int_equal(WEXITSTATUS(child.status), 7);
	assert_false(gt_child_succeeded(&child));
	gt_child_release(&child);
	assert_int_equal(run(crash, NULL, LONG_MS), 0);
	assert_true(WIFSIGNALED(child.status));
	assert_false(child.timed_out);
	assert_false(gt_child_succeeded(&child));
	gt_child_release(&child);
}

static int hang(void *ctx)
{
	(void)ctx;
	while (pause() < 0)
		;
	return 0;
}

/* One that SIGTERM does not end is killed. */
static void time_limit(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		signal(SIGTERM, i ? SIG_IGN : SIG_DFL);
		assert_int_equal(run(hang, NULL, SHORT_MS), 0);
		assert_true(child.timed_out);
		assert_true(WIFSIGNALED(child.status));
		assert_int_equal(WTERMSIG(child.status), i ? SIGKILL : SIGTERM);
		assert_false(gt_child_succeeded(&child));
		gt_child_release(&child);
	}
	signal(SIGTERM, SIG_DFL);
}

static int flood(void *ctx)
{
	static const char text[4000];

	(void)ctx;
	for (int i = 0; i < 100; i++)
		if (write(STDOUT_FILENO, text, sizeof(text)) != sizeof(text))
			return 1;
	return 0;
}

/* More than is kept does not stop it. */
static void bounded_output(void **state)
{
	(void)state;
	assert_int_equal(run(flood, NULL, LONG_MS), 0);
	assert_true(gt_child_succeeded(&child));
	assert_in_range(child.output.len, GT_CHILD_OUTPUT_MAX - 4096, GT_CHILD_OUTPUT_MAX);
	gt_child_release(&child);
}

/* It leaves a process that holds the pipe of the test open, and its own output, too. */
static int leave_one(void *ctx)
{
	(void)ctx;
	if (!fork())
		for (;;)
			pause();
	return 0;
}

static void what_it_leaves_is_killed(void **state)
{
	int fds[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(run(leave_one, NULL, LONG_MS), 0);
	assert_true(gt_child_succeeded(&child));
	gt_child_release(&child);
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 0);
	close(fds[0]);
}

static int signal_parent(void *ctx)
{
	kill(getppid(), *(int *)ctx);
	return hang(NULL);
}

static void asked_to_end(void **state)
{
	int term = SIGTERM;

	(void)state;
	assert_int_equal(run(signal_parent, &term, LONG_MS), -EINTR);
	assert_int_equal(sig, SIGTERM);
	assert_false(child.timed_out);
	gt_child_release(&child);
}

/* As in a job in the background. */
static void an_ignored_signal_asks_nothing(void **state)
{
	int interrupt = SIGINT;

	(void)state;
	signal(SIGINT, SIG_IGN);
	assert_int_equal(run(signal_parent, &interrupt, SHORT_MS), 0);
	assert_int_equal(sig, 0);
	assert_true(child.timed_out);
	gt_child_release(&child);
	signal(SIGINT, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(output_and_status, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failures, set_up, tear_down),
		cmocka_unit_test_setup_teardown(time_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bounded_output, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_it_leaves_is_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(asked_to_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_ignored_signal_asks_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
