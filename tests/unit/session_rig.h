/*
 * session_rig.h - both ends of a session for tests of the injection: a child that is the program,
 * and its collector, which is the test.
 */
#ifndef SESSION_RIG_H
#define SESSION_RIG_H

#include "in_child.h"
#include "inject.h"
#include "env.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define WAIT_MS 20000 /* far beyond what a busy machine needs; a lost message ends a test here */

static char dir[] = "/tmp/gtrace-test-XXXXXX";
static char path[64];
static int listener = -1;

struct target {
	pid_t pid;
	int sock;
	int arena_fd;
	int go[2]; /* the child reads a byte before each of its parts */
	struct gt_msg_hello hello;
	struct gt_arena_hdr *arena;
};

static inline int listen_here(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return listener < 0 || bind(listener, (struct sockaddr *)&addr, sizeof(addr)) ||
	       listen(listener, 8);
}

static inline int stop_listening(void **state)
{
	(void)state;
	close(listener);
	unlink(path);
	return rmdir(dir);
}

/* ---- the program ---- */

static int go_fd;

static inline void wait_for_go(void)
{
	char byte;

	if (read(go_fd, &byte, 1) != 1)
		_exit(99);
}

static inline void run_child(void (*program)(void))
{
	setenv(GT_ENV_SOCKET, path, 1);
	program();
	exit(0); /* with its handlers, as a program ends */
}

/* ---- the collector ---- */

static inline void start(struct target *ret, void (*program)(void))
{
	assert_int_equal(pipe(ret->go), 0);
	ret->pid = fork();
	if (!ret->pid) {
		close(listener);
		close(ret->go[1]);
		go_fd = ret->go[0];
		run_child(program);
	}
	close(ret->go[0]);
	ret->sock = -1;
}

static inline void go(struct target *target)
{
	assert_int_equal(write(target->go[1], "", 1), 1);
}

static inline bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, WAIT_MS) == 1;
}

/* The next message's type, 0 when the other end is closed. */
static inline int receive(struct target *target, void *msg)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = msg, .iov_len = GT_MSG_MAX };
	struct msghdr hdr = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	const struct gt_msg_hdr *got = msg;
	struct cmsghdr *cmsg;
	ssize_t n;

	assert_true(readable(target->sock));
	n = recvmsg(target->sock, &hdr, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return 0;
	assert_int_equal(got->magic, GT_WIRE_MAGIC);
	assert_int_equal(got->version, GT_WIRE_VERSION);
	assert_int_equal(got->size_bytes, n);
	cmsg = CMSG_FIRSTHDR(&hdr);
	if (cmsg)
		memcpy(&target->arena_fd, CMSG_DATA(cmsg), sizeof(int));
	return got->type;
}

static inline void meet(struct target *target)
{
	char msg[GT_MSG_MAX];

	assert_true(readable(listener));
	target->sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(target->sock >= 0);
	target->arena_fd = -1;
	assert_int_equal(receive(target, msg), GT_MSG_HELLO);
	memcpy(&target->hello, msg, sizeof(target->hello));
	assert_true(target->arena_fd >= 0);
	target->arena = mmap(NULL, target->hello.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			     target->arena_fd, 0);
	assert_ptr_not_equal(target->arena, MAP_FAILED);
	close(target->arena_fd);
}

/* Skip messages up to the next about what the program did. */
static inline struct gt_msg_phase next_phase(struct target *target, enum gt_phase_what what)
{
	char msg[GT_MSG_MAX];
	struct gt_msg_phase phase;
	int type;

	do {
		type = receive(target, msg);
		assert_int_not_equal(type, 0);
		memcpy(&phase, msg, sizeof(phase));
	} while (type != GT_MSG_PHASE || phase.what != what);
	return phase;
}

static inline int finish(struct target *target)
{
	int status;

	assert_int_equal(waitpid(target->pid, &status, 0), target->pid);
	if (target->sock >= 0) {
		close(target->sock);
		munmap(target->arena, target->hello.arena_bytes);
	}
	close(target->go[1]);
	return status;
}

#endif
