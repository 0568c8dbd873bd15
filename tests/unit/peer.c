#include "base.h"
#include "clock.h"
#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

const struct gt_msg_hello peer_hello = {
	.hdr = PEER_HDR(GT_MSG_HELLO, sizeof(struct gt_msg_hello)),
	.pid = 1,
	.rank = 3,
	.comm = "train",
};

void peer_send(int fd, const void *msg, size_t size, size_t fd_count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg, .iov_len = size };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;
	int memory = memfd_create("arena", MFD_CLOEXEC);
	size_t i;

	if (fd_count) {
		memset(&control, 0, sizeof(control));
		hdr.msg_control = &control;
		hdr.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&hdr);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		for (i = 0; i < fd_count; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &memory, sizeof(memory));
	}
	assert_int_equal(sendmsg(fd, &hdr, MSG_NOSIGNAL), size);
	close(memory);
}

void peer_send_hello(int fd)
{
	peer_send(fd, &peer_hello, sizeof(peer_hello), 1);
}

void peer_send_phase(int fd, uint32_t what)
{
	const struct gt_msg_phase phase = {
		.hdr = PEER_HDR(GT_MSG_PHASE, sizeof(phase)),
		.what = what,
		.time_ns = gt_clock_ns(CLOCK_REALTIME),
		.cupti_version = 130001,
	};

	peer_send(fd, &phase, sizeof(phase), 0);
}

void peer_send_log(int fd, const char *text)
{
	struct gt_msg_log log = { .hdr = PEER_HDR(GT_MSG_LOG, sizeof(log)), .level = GT_LOG_WARN };

	log.len_bytes = (uint32_t)strlen(text);
	memcpy(log.text, text, log.len_bytes);
	peer_send(fd, &log, sizeof(log), 0);
}

void peer_send_bye(int fd)
{
	const struct gt_msg_cycle bye = { .hdr = PEER_HDR(GT_MSG_BYE, sizeof(bye)) };

	peer_send(fd, &bye, sizeof(bye), 0);
}

struct gt_msg_cycle peer_receive(int fd)
{
	struct gt_msg_cycle msg = { .cycle = 0 };

	assert_int_equal(recv(fd, &msg, sizeof(msg), 0), sizeof(msg));
	assert_int_equal(msg.hdr.magic, GT_WIRE_MAGIC);
	assert_int_equal(msg.hdr.size_bytes, sizeof(msg));
	return msg;
}
