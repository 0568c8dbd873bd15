/*
 * transport.c - the Unix socket to the collector. The program may close any descriptor and open
 * another under its number, so that it is ours is made sure before each use.
 */
#include "session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_WAIT_MS 200
/* Ours is one from here on, or from half of those that the program may have; with few, any. */
#define DESCRIPTOR_MIN  512
#define DESCRIPTORS_FEW 64

static int sock = -1;
static dev_t sock_dev;
static ino_t sock_ino;

static bool ours(void)
{
	struct stat st;

	return sock >= 0 && !fstat(sock, &st) && S_ISSOCK(st.st_mode) && st.st_dev == sock_dev &&
	       st.st_ino == sock_ino;
}

/* Out of the way of programs that count on the lowest free numbers. */
static int move_up(int fd)
{
	struct rlimit limit;
	int up = -1;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur > DESCRIPTORS_FEW)
		up = fcntl(fd, F_DUPFD_CLOEXEC,
			   (int)GT_MIN(limit.rlim_cur / 2, (rlim_t)DESCRIPTOR_MIN));
	if (up < 0)
		return fd;
	close(fd);
	return up;
}

static void fill_header(void *msg, enum gt_msg_type type, uint32_t size_bytes)
{
	struct gt_msg_hdr *hdr = msg;

	*hdr = (struct gt_msg_hdr){ .magic = GT_WIRE_MAGIC,
				    .version = GT_WIRE_VERSION,
				    .type = (uint16_t)type,
				    .size_bytes = size_bytes };
}

static int send_hello(int fd, const struct gt_msg_hello *hello, int arena_fd)
{
	struct gt_msg_hello msg = *hello;
	struct iovec iov = { .iov_base = &msg, .iov_len = sizeof(msg) };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { .buf = { 0 } };
	struct msghdr hdr = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&hdr);

	fill_header(&msg, GT_MSG_HELLO, sizeof(msg));
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &arena_fd, sizeof(arena_fd));
	return sendmsg(fd, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int inj_transport_connect(const char *path, const struct gt_msg_hello *hello, int arena_fd)
{
	const struct timespec pause = { .tv_nsec = GT_NSEC_PER_MSEC };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, err = 0;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN: many processes start at once. There is nothing to poll for. */
	for (int i = 0; i < CONNECT_WAIT_MS; i++) {
		err = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
		if (err != -EAGAIN && err != -EINTR)
			break;
		nanosleep(&pause, NULL);
	}
	if (!err)
		err = send_hello(fd, hello, arena_fd);
	if (!err && fstat(fd, &st) < 0)
		err = -errno;
	if (err) {
		close(fd);
		return err;
	}
	sock_dev = st.st_dev;
	sock_ino = st.st_ino;
	sock = move_up(fd);
	return 0;
}

int inj_transport_send(enum gt_msg_type type, void *msg, uint32_t size_bytes, int wait_ms)
{
	struct pollfd pfd;

	if (!ours())
		return -EBADF;
	fill_header(msg, type, size_bytes);
	if (send(sock, msg, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 0;
	if (errno != EAGAIN || !wait_ms)
		return -errno;
	pfd = (struct pollfd){ .fd = sock, .events = POLLOUT };
	poll(&pfd, 1, wait_ms);
	if (!ours())
		return -EBADF;
	return send(sock, msg, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int inj_transport_recv(union inj_message *ret)
{
	ssize_t n;

	if (!ours())
		return -EBADF;
	n = recv(sock, ret, sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -EPIPE;
	if ((size_t)n < sizeof(ret->hdr) || ret->hdr.magic != GT_WIRE_MAGIC ||
	    ret->hdr.version != GT_WIRE_VERSION || !ret->hdr.type ||
	    (size_t)n != (ret->hdr.type == GT_MSG_PLAN ? sizeof(ret->plan) : sizeof(ret->cycle)))
		return -EPROTO;
	return ret->hdr.type;
}

void inj_transport_forget(void)
{
	if (ours())
		close(sock);
	sock = -1;
}
