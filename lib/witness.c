#include "base.h"
#include "witness.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Take what is pending of mark's signal number; true when the very signal asked for was among it.
 */
static bool consume(const struct gt_witness_mark *mark)
{
	struct timespec now = { 0, 0 };
	siginfo_t info;
	sigset_t set;
	bool seen = false;

	sigemptyset(&set);
	sigaddset(&set, mark->signo);
	while (sigtimedwait(&set, &info, &now) == mark->signo)
		if (info.si_code == mark->code && info.si_pid == mark->pid)
			seen = true;
	return seen;
}

/*
 * Who looks for gtrace by its name, as pkill does, is to find gtrace alone: a signal to both would
 * be taken for one to the whole group.
 */
static void change_name(void)
{
	static const char name[] = "signal-witness";
	char words[256], *args = program_invocation_name;
	ssize_t len;
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

	prctl(PR_SET_NAME, name);
	len = fd < 0 ? -1 : read(fd, words, sizeof(words));
	/* The words of the command line lie behind each other, and end with the last byte. */
	if (len > 0 && !memcmp(words, args, (size_t)len)) {
		size_t kept = GT_MIN((size_t)len - 1, sizeof(name) - 1);

		memcpy(args, name, kept);
		memset(args + kept, 0, (size_t)len - kept);
		while (args += len, (len = read(fd, words, sizeof(words))) > 0)
			memset(args, 0, (size_t)len);
	}
	if (fd >= 0)
		close(fd);
}

/* The whole life of the witness: it ends when gtrace, whatever way it ended, let go of the socket.
 */
static void __attribute__((noreturn)) testify(int fd, const struct gt_sockdir *sockdir)
{
	struct gt_witness_answer answer;

	change_name();
	while (read(fd, &answer.mark, sizeof(answer.mark)) == (ssize_t)sizeof(answer.mark)) {
		answer.seen = consume(&answer.mark);
		if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			break;
	}
	if (sockdir)
		gt_sockdir_remove(sockdir);
	_exit(0);
}

/* All descriptors but 0. */
static void close_others(void)
{
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (!syscall(SYS_close_range, 1, ~0u, 0))
		return;
	/* before Linux 5.9 */
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir))) {
		fd = (int)strtol(entry->d_name, NULL, 10);
		if (fd > 0 && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

int gt_witness_start(struct gt_witness *ret, const struct gt_sockdir *sockdir, struct gt_err *err)
{
	int fds[2], saved;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return gt_err_sys(err, -errno, "cannot make a socket pair");
	pid = fork();
	if (pid < 0) {
		saved = errno;
		close(fds[0]);
		close(fds[1]);
		return gt_err_sys(err, -saved, "cannot fork");
	}
	if (!pid) {
		/* Nothing of gtrace may live longer because the witness holds it open. */
		close(fds[0]);
		if (dup2(fds[1], 0) < 0)
			_exit(1);
		close_others();
		testify(0, sockdir);
	}
	close(fds[1]);
	*ret = (struct gt_witness){ .pid = pid, .fd = fds[0] };
	return 0;
}

int gt_witness_ask(struct gt_witness *witness, const struct gt_witness_mark *mark)
{
	ssize_t n = send(witness->fd, mark, sizeof(*mark), MSG_NOSIGNAL | MSG_DONTWAIT);

	return n < 0 ? -errno : 0;
}

int gt_witness_read(struct gt_witness *witness, struct gt_witness_answer *ret)
{
	struct gt_witness_answer answer;
	ssize_t n = recv(witness->fd, &answer, sizeof(answer), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -EPIPE;
	if (n != (ssize_t)sizeof(answer))
		return -EPIPE;
	*ret = answer;
	return 0;
}

bool gt_witness_is_mute(const struct gt_witness *witness)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)witness->pid, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT) <
		       0 ||
	       info.si_pid;
}

void gt_witness_stop(struct gt_witness *witness)
{
	close(witness->fd);
	kill(witness->pid, SIGKILL); /* it may be stopped, with its group */
	while (waitpid(witness->pid, NULL, 0) < 0 && errno == EINTR)
		;
}
