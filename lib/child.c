#include "base.h"
#include "child.h"
#include "clock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRACE_MS 500  /* from SIGTERM to SIGKILL: what runs a program itself ends that one first */
#define STUCK_MS 2000 /* from SIGKILL to its end; beyond, the kernel holds it */

static int64_t now_ms(void)
{
	return (int64_t)gt_clock_ms(CLOCK_MONOTONIC);
}

static void __attribute__((noreturn))
be_child(int (*body)(void *ctx), void *ctx, int output, const struct gt_signals *signals)
{
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	gt_signals_restore(signals);
	_exit(body(ctx));
}

/* What has come so far. */
static void read_output(struct gt_child *child, int fd)
{
	char text[4096];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		if (child->output.len + (size_t)n <= GT_CHILD_OUTPUT_MAX)
			gt_buf_append(&child->output, text, (size_t)n);
}

/* Until it ends, until_ms has come or a signal asks for an end: true in the first case. */
static bool follow(struct gt_child *child, pid_t pid, int output, struct gt_signals *signals,
		   int64_t until_ms, int *ret_signal)
{
	struct pollfd fds[] = { { .fd = output, .events = POLLIN },
				{ .fd = signals->fd, .events = POLLIN } };
	int64_t left_ms;
	pid_t ended;

	for (;;) {
		read_output(child, output);
		ended = waitpid(pid, &child->status, WNOHANG);
		if (ended)
			return true;
		left_ms = until_ms - now_ms();
		if (left_ms <= 0 || *ret_signal)
			return false;
		if (poll(fds, ARRAY_SIZE(fds), (int)left_ms) > 0 && fds[1].revents)
			*ret_signal = gt_signals_take_end(signals);
		if (fds[0].revents & (POLLHUP | POLLERR))
			fds[0].fd = -1; /* it closed its output; its end is a signal */
	}
}

static void end_group(struct gt_child *child, pid_t pid, int output, struct gt_signals *signals)
{
	static const struct {
		int sig;
		int wait_ms;
	} steps[] = { { SIGTERM, GRACE_MS }, { SIGKILL, STUCK_MS } };
	int ignored;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		kill(-pid, steps[i].sig);
		ignored = 0;
		if (follow(child, pid, output, signals, now_ms() + steps[i].wait_ms, &ignored))
			return;
	}
	child->status = -1;
}

int gt_child_run(struct gt_child *ret, int (*body)(void *ctx), void *ctx,
		 struct gt_signals *signals, int timeout_ms, int *ret_signal, struct gt_err *err)
{
	int fds[2], code;
	pid_t pid;

	*ret = (struct gt_child){ .status = -1 };
	*ret_signal = 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return gt_err_sys(err, -errno, "cannot make a pipe");
	pid = fork();
	if (!pid)
		be_child(body, ctx, fds[1], signals);
	code = errno;
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return gt_err_sys(err, -code, "cannot fork");
	}
	setpgid(pid, pid); /* whoever of the two is first */
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	if (!follow(ret, pid, fds[0], signals, now_ms() + timeout_ms, ret_signal)) {
		ret->timed_out = !*ret_signal;
		end_group(ret, pid, fds[0], signals);
	}
	kill(-pid, SIGKILL); /* what it left */
	read_output(ret, fds[0]);
	close(fds[0]);
	return *ret_signal ? gt_err_set(err, -EINTR, "interrupted") : 0;
}

void gt_child_release(struct gt_child *child)
{
	gt_buf_release(&child->output);
}

bool gt_child_succeeded(const struct gt_child *child)
{
	return !child->timed_out && child->status >= 0 && WIFEXITED(child->status) &&
	       !WEXITSTATUS(child->status);
}
