#include "base.h"
#include "signals.h"
#include "witness.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static struct gt_signals signals;
static struct gt_witness witness;

static int start(void **state)
{
	(void)state;
	if (setpgid(0, 0) < 0) /* a group of our own: nobody else is signalled */
		return -1;
	return gt_signals_init(&signals, NULL) < 0 || gt_witness_start(&witness, NULL, NULL) < 0;
}

static int stop(void **state)
{
	struct signalfd_siginfo info;

	(void)state;
	gt_witness_stop(&witness);
	while (read(signals.fd, &info, sizeof(info)) > 0)
		;
	gt_signals_release(&signals);
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

/* Did the witness get this signal? */
static bool ask(const struct gt_witness_mark *mark)
{
	struct pollfd poll_fd = { .fd = witness.fd, .events = POLLIN };
	struct gt_witness_answer answer;

	assert_int_equal(gt_witness_ask(&witness, mark), 0);
	assert_int_equal(poll(&poll_fd, 1, 10000), 1);
	assert_int_equal(gt_witness_read(&witness, &answer), 0);
	assert_memory_equal(&answer.mark, mark, sizeof(*mark));
	assert_int_equal(gt_witness_read(&witness, &answer), -EAGAIN);
	return answer.seen;
}

static struct gt_witness_mark mark_of(int signo)
{
	return (struct gt_witness_mark){ .signo = signo, .code = SI_USER, .pid = getpid() };
}

static void alone(void **state)
{
	struct gt_witness_mark mark = mark_of(SIGTERM);

	(void)state;
	kill(getpid(), SIGTERM);
	assert_false(ask(&mark));
}

static void whole_group(void **state)
{
	const int sigs[] = { SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGUSR1, SIGRTMIN + 3 };
	struct gt_witness_mark mark;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sigs); i++) {
		mark = mark_of(sigs[i]);
		kill(0, sigs[i]);
		assert_true(ask(&mark));
		assert_false(ask(&mark)); /* it has been forgotten */
	}
}

/* The same signal number, but by somebody else, and another way. */
static void another_sender(void **state)
{
	struct gt_witness_mark mark = mark_of(SIGUSR1), other = mark_of(SIGUSR1);
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		kill(witness.pid, SIGUSR1);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	assert_false(ask(&mark));

	kill(witness.pid, SIGUSR1);
	other.code = SI_QUEUE;
	assert_false(ask(&other));
}

/* Queued ones are looked through. */
static void queued(void **state)
{
	struct gt_witness_mark mark = { .signo = SIGRTMIN, .code = SI_QUEUE, .pid = getpid() };
	union sigval value = { .sival_int = 1 };

	(void)state;
	kill(witness.pid, SIGRTMIN);
	sigqueue(witness.pid, SIGRTMIN, value);
	sigqueue(witness.pid, SIGRTMIN, value);
	assert_true(ask(&mark));
	assert_false(ask(&mark));
}

/* It goes on asking when the witness is gone, and says so. */
static void gone(void **state)
{
	struct gt_witness_mark mark = mark_of(SIGTERM);
	struct gt_witness_answer answer;
	siginfo_t info;

	(void)state;
	kill(witness.pid, SIGKILL);
	waitid(P_PID, (id_t)witness.pid, &info, WEXITED | WNOWAIT);
	assert_int_equal(gt_witness_ask(&witness, &mark), -EPIPE);
	assert_int_equal(gt_witness_read(&witness, &answer), -EPIPE);
}

/* From here on the kernel is one before 5.9: it has no close_range(). */
static void age_kernel(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(1);
}

/* Start it beside an open pipe, which it must not hold open. */
static bool starts_without(struct gt_witness *ret)
{
	struct pollfd end = { .events = POLLIN };
	int fds[2];

	if (pipe(fds) < 0 || gt_witness_start(ret, NULL, NULL) < 0)
		return false;
	close(fds[1]);
	end.fd = fds[0];
	return poll(&end, 1, 10000) == 1 && end.revents == POLLHUP;
}

/* It ends with gtrace, however that ends. */
static void check_end(bool old_kernel)
{
	struct pollfd pid_fd = { .events = POLLIN };
	struct gt_witness other;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		close(fds[0]);
		if (old_kernel)
			age_kernel();
		if (!starts_without(&other) || write(fds[1], &other.pid, sizeof(other.pid)) < 0)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &other.pid, sizeof(other.pid)), sizeof(other.pid));
	close(fds[0]);
	waitpid(pid, NULL, 0);
	pid_fd.fd = (int)syscall(SYS_pidfd_open, other.pid, 0);
	assert_true(pid_fd.fd < 0 || poll(&pid_fd, 1, 10000) == 1);
	close(pid_fd.fd);
}

static void ends_by_itself(void **state)
{
	(void)state;
	check_end(false);
}

static void ends_on_an_old_kernel(void **state)
{
	(void)state;
	check_end(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(alone, start, stop),
		cmocka_unit_test_setup_teardown(whole_group, start, stop),
		cmocka_unit_test_setup_teardown(another_sender, start, stop),
		cmocka_unit_test_setup_teardown(queued, start, stop),
		cmocka_unit_test_setup_teardown(gone, start, stop),
		cmocka_unit_test_setup_teardown(ends_by_itself, start, stop),
		cmocka_unit_test_setup_teardown(ends_on_an_old_kernel, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
