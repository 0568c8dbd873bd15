#include "base.h"
#include "target.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/* Ends the target. Taken last of all that is pending, since the others have lower numbers. */
#define END SIGRTMAX

/* What a target got, from its mouth. */
struct report {
	int signo;
	int code;
	int value;
};

static struct gt_signals signals;
static struct gt_witness witness;
static struct gt_target target;
static uv_loop_t loop;
static struct report reports[32];
static size_t report_count;
static int report_fd;
static int wait_status;
static int interrupted_by;

static void on_ended(struct gt_target *ended, int status)
{
	(void)ended;
	wait_status = status;
	uv_stop(&loop);
}

static void on_interrupted(struct gt_target *ended, int sig)
{
	(void)ended;
	interrupted_by = sig;
	uv_stop(&loop);
}

/* Take every signal and report it; exit with 3 after END. */
static void __attribute__((noreturn)) collect_signals(int fd)
{
	struct report report = { 0 };
	siginfo_t info;
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (write(fd, &report, sizeof(report)) < 0) /* ready */
		_exit(1);
	do {
		sigwaitinfo(&all, &info);
		report = (struct report){ info.si_signo, info.si_code, info.si_value.sival_int };
		if (write(fd, &report, sizeof(report)) < 0)
			_exit(1);
	} while (info.si_signo != END);
	_exit(3);
}

/* gtrace's side, with body as its target; fd is where it reports. */
static void start_with(void (*body)(int fd))
{
	struct report ready;
	int fds[2];

	assert_int_equal(setpgid(0, 0), 0);
	assert_int_equal(gt_signals_init(&signals, NULL), 0);
	assert_int_equal(gt_witness_start(&witness, NULL, NULL), 0);
	assert_int_equal(pipe(fds), 0);
	memset(&target, 0, sizeof(target));
	target.signals = &signals;
	target.witness = &witness;
	target.ended = on_ended;
	target.interrupted = on_interrupted;
	target.pid = fork();
	if (!target.pid) {
		gt_signals_restore(&signals);
		body(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	report_fd = fds[0];
	report_count = 0;
	assert_int_equal(read(report_fd, &ready, sizeof(ready)), sizeof(ready));
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(gt_target_start(&target, &loop, NULL), 0);
}

static int start(void **state)
{
	(void)state;
	start_with(collect_signals);
	return 0;
}

static bool is_asking(void)
{
	size_t i;

	for (i = 0; i < GT_TARGET_QUESTIONS; i++)
		if (target.questions[i].open)
			return true;
	return false;
}

/* Until what was sent has been noticed and decided upon. */
static void run_until_decided(void)
{
	do
		uv_run(&loop, UV_RUN_ONCE);
	while (is_asking());
}

static void run_until_ended(void)
{
	ssize_t len;

	uv_run(&loop, UV_RUN_DEFAULT);
	len = read(report_fd, reports, sizeof(reports));
	report_count = len < 0 ? 0 : (size_t)len / sizeof(reports[0]);
}

static size_t count(int signo)
{
	size_t i, found = 0;

	for (i = 0; i < report_count; i++)
		found += reports[i].signo == signo;
	return found;
}

static int stop(void **state)
{
	(void)state;
	close(report_fd);
	gt_target_close(&target);
	uv_run(&loop, UV_RUN_DEFAULT);
	gt_witness_stop(&witness);
	gt_signals_release(&signals);
	return uv_loop_close(&loop);
}

static void passes_on(void **state)
{
	(void)state;
	kill(getpid(), SIGUSR1);
	run_until_decided();
	assert_false(target.asked_to_end);
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGHUP);
	run_until_decided();
	assert_true(target.asked_to_end);
	kill(getpid(), END);
	run_until_ended();
	assert_int_equal(report_count, 4);
	assert_int_equal(count(SIGUSR1), 1);
	assert_int_equal(count(SIGTERM), 1);
	assert_int_equal(count(SIGHUP), 1);
	assert_int_equal(count(END), 1);
	assert_true(WIFEXITED(wait_status));
	assert_int_equal(WEXITSTATUS(wait_status), 3);
}

static void not_twice(void **state)
{
	(void)state;
	kill(0, SIGUSR1);
	kill(0, SIGINT);
	kill(0, SIGRTMIN + 2);
	run_until_decided();
	/* Once more: the witness has forgotten the first. Of a kind that the target queues. */
	kill(0, SIGRTMIN + 2);
	run_until_decided();
	kill(target.pid, END);
	run_until_ended();
	assert_int_equal(count(SIGUSR1), 1);
	assert_int_equal(count(SIGINT), 1);
	assert_int_equal(count(SIGRTMIN + 2), 2);
	assert_int_equal(count(END), 1);
}

/* A launcher that signals each process by itself, gtrace before the others. */
static void one_after_the_other(void **state)
{
	(void)state;
	kill(getpid(), SIGUSR1);
	uv_run(&loop, UV_RUN_ONCE); /* gtrace knows already */
	assert_true(is_asking());
	kill(target.pid, SIGUSR1);
	kill(witness.pid, SIGUSR1);
	run_until_decided();
	kill(target.pid, END);
	run_until_ended();
	assert_int_equal(count(SIGUSR1), 1);
}

/* gtrace had no time for long, but the witness had. */
static void answer_that_is_read_late(void **state)
{
	struct pollfd answer = { .fd = witness.fd, .events = POLLIN };
	size_t i;

	(void)state;
	kill(0, SIGUSR1);
	uv_run(&loop, UV_RUN_ONCE);
	assert_true(is_asking());
	assert_int_equal(poll(&answer, 1, -1), 1);
	for (i = 0; i < GT_TARGET_QUESTIONS; i++)
		target.questions[i].signal_ms -= 1000;
	uv_timer_start(&target.timer, target.timer.timer_cb, 0, 1); /* due before it is read */
	run_until_decided();
	kill(target.pid, END);
	run_until_ended();
	assert_int_equal(count(SIGUSR1), 1);
}

static void queued_with_value(void **state)
{
	const union sigval values[] = { { .sival_int = 42 }, { .sival_int = 43 } };

	(void)state;
	sigqueue(getpid(), SIGRTMIN, values[0]);
	sigqueue(getpid(), SIGRTMIN, values[1]);
	run_until_decided();
	kill(getpid(), END);
	run_until_ended();
	assert_int_equal(report_count, 3);
	assert_int_equal(reports[0].signo, SIGRTMIN);
	assert_int_equal(reports[0].code, SI_QUEUE);
	assert_int_equal(reports[0].value, 42);
	assert_int_equal(reports[1].value, 43);
}

static void without_witness(void **state)
{
	(void)state;
	kill(witness.pid, SIGKILL);
	kill(getpid(), END);
	run_until_ended();
	assert_int_equal(count(END), 1);
}

static void stopped_witness(void **state)
{
	(void)state;
	kill(witness.pid, SIGSTOP);
	kill(getpid(), END);
	run_until_ended();
	assert_int_equal(count(END), 1);
}

static void more_than_it_can_ask_for(void **state)
{
	const union sigval value = { .sival_int = 1 };
	int i;

	(void)state;
	for (i = 0; i < GT_TARGET_QUESTIONS + 4; i++)
		sigqueue(getpid(), SIGRTMIN + i, value);
	run_until_decided();
	kill(target.pid, END);
	run_until_ended();
	assert_int_equal(report_count, GT_TARGET_QUESTIONS + 4 + 1);
}

static void after_the_end(void **state)
{
	(void)state;
	kill(getpid(), END);
	run_until_ended();
	kill(getpid(), SIGINT);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(interrupted_by, SIGINT);
}

/* A terminal of another size, a job that goes on: nobody means an end by these. */
static void no_end_after_the_end(void **state)
{
	static const int signos[] = { SIGWINCH, SIGCONT, SIGURG };

	(void)state;
	kill(getpid(), END);
	run_until_ended();
	interrupted_by = 0;
	for (size_t i = 0; i < ARRAY_SIZE(signos); i++)
		kill(getpid(), signos[i]);
	for (int i = 0; i < 3; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(interrupted_by, 0);
}

/* A program that signals its parent means whoever started gtrace, not itself. */
static void signal_parent(int fd)
{
	kill(getppid(), SIGUSR2);
	collect_signals(fd);
}

static void from_the_target(void **state)
{
	(void)state;
	start_with(signal_parent);
	run_until_decided();
	kill(target.pid, END);
	run_until_ended();
	assert_int_equal(count(SIGUSR2), 0);
	assert_int_equal(stop(NULL), 0);
}

static void die_by_segv(int fd)
{
	struct report report = { 0 };

	if (write(fd, &report, sizeof(report)) < 0)
		_exit(1);
	signal(SIGSEGV, SIG_DFL); /* the test's own handler */
	raise(SIGSEGV);
}

static void fatal_signal(void **state)
{
	(void)state;
	start_with(die_by_segv);
	run_until_ended();
	assert_true(WIFSIGNALED(wait_status));
	assert_int_equal(WTERMSIG(wait_status), SIGSEGV);
	assert_int_equal(stop(NULL), 0);
}

/* ---- job control: gtrace and all in a child, this process is the shell ---- */

static void stop_once(int fd)
{
	struct report report = { 0 };

	if (write(fd, &report, sizeof(report)) < 0)
		_exit(1);
	raise(SIGTSTP);
	_exit(5);
}

static pid_t start_job(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	start_with(stop_once);
	uv_run(&loop, UV_RUN_DEFAULT);
	if (stop(NULL) < 0)
		_exit(1);
	_exit(WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 1);
}

static void assert_job(pid_t continued)
{
	pid_t job = start_job();
	int status;

	assert_int_equal(waitpid(job, &status, WUNTRACED), job);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(WSTOPSIG(status), SIGTSTP);
	kill(continued < 0 ? -job : job, SIGCONT);
	assert_int_equal(waitpid(job, &status, 0), job);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
}

static void job_control(void **state)
{
	(void)state;
	assert_job(-1); /* fg: the whole group is continued */
	assert_job(1);  /* gtrace alone is */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(passes_on, start, stop),
		cmocka_unit_test_setup_teardown(not_twice, start, stop),
		cmocka_unit_test_setup_teardown(one_after_the_other, start, stop),
		cmocka_unit_test_setup_teardown(answer_that_is_read_late, start, stop),
		cmocka_unit_test_setup_teardown(queued_with_value, start, stop),
		cmocka_unit_test_setup_teardown(without_witness, start, stop),
		cmocka_unit_test_setup_teardown(stopped_witness, start, stop),
		cmocka_unit_test_setup_teardown(more_than_it_can_ask_for, start, stop),
		cmocka_unit_test_setup_teardown(after_the_end, start, stop),
		cmocka_unit_test_setup_teardown(no_end_after_the_end, start, stop),
		cmocka_unit_test(from_the_target),
		cmocka_unit_test(fatal_signal),
		cmocka_unit_test(job_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
