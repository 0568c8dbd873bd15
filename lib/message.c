#include "base.h"
#include "message.h"

#include <sys/socket.h>
#include <unistd.h>

#define FDS_MAX 4 /* received with one message; more than one is refused, but has to be closed */

/* Is the size right for the type? */
static bool is_whole(const union gt_message *msg, size_t size)
{
	const size_t text = offsetof(struct gt_msg_log, text);

	switch (msg->hdr.type) {
	case GT_MSG_HELLO:
		return size == sizeof(msg->hello);
	case GT_MSG_PHASE:
		return size == sizeof(msg->phase);
	case GT_MSG_DEVICE:
		return size == sizeof(msg->device);
	case GT_MSG_RANK:
		return size == sizeof(msg->rank);
	case GT_MSG_BYE:
		return size == sizeof(msg->cycle);
	case GT_MSG_LOG:
		return size >= text && size <= sizeof(msg->log) &&
		       msg->log.len_bytes <= size - text;
	}
	return false;
}

int gt_message_check(union gt_message *msg, size_t size, size_t fd_count, struct gt_err *err)
{
	if (size < sizeof(msg->hdr) || msg->hdr.magic != GT_WIRE_MAGIC ||
	    msg->hdr.size_bytes != size)
		return gt_err_set(err, -EPROTO, "sent what is no message of gtrace");
	if (msg->hdr.version != GT_WIRE_VERSION)
		return gt_err_set(err, -EPROTO,
				  "has a libgtrace-inject.so of another version (protocol %u, "
				  "not %u)",
				  msg->hdr.version, GT_WIRE_VERSION);
	if (!is_whole(msg, size))
		return gt_err_set(err, -EPROTO, "sent a message of type %u and %zu bytes",
				  msg->hdr.type, size);
	if (fd_count != (msg->hdr.type == GT_MSG_HELLO))
		return gt_err_set(err, -EPROTO, "sent %zu descriptors with a message of type %u",
				  fd_count, msg->hdr.type);
	if (msg->hdr.type == GT_MSG_HELLO) {
		msg->hello.comm[sizeof(msg->hello.comm) - 1] = 0;
		msg->hello.python[sizeof(msg->hello.python) - 1] = 0;
		msg->hello.torch[sizeof(msg->hello.torch) - 1] = 0;
	} else if (msg->hdr.type == GT_MSG_DEVICE) {
		msg->device.name[sizeof(msg->device.name) - 1] = 0;
	}
	return 0;
}

static size_t received_fds(struct msghdr *hdr, int *fds)
{
	struct cmsghdr *control;
	size_t count = 0, bytes;

	for (control = CMSG_FIRSTHDR(hdr); control; control = CMSG_NXTHDR(hdr, control)) {
		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
			continue;
		bytes = GT_MIN(control->cmsg_len - CMSG_LEN(0), (FDS_MAX - count) * sizeof(int));
		memcpy(fds + count, CMSG_DATA(control), bytes);
		count += bytes / sizeof(int);
	}
	return count;
}

int gt_message_receive(int fd, union gt_message *ret, int *ret_fd, struct gt_err *err)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fds[FDS_MAX], rc;
	size_t fd_count;
	ssize_t n;

	*ret_fd = -1;
	n = recvmsg(fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* It ended without reading all it was sent; what it sent before that still comes. */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -EPIPE;
	fd_count = received_fds(&hdr, fds);
	if (!n && !fd_count)
		return -EPIPE;
	/* A truncated message is longer than any: no size fits it. */
	rc = gt_message_check(ret, hdr.msg_flags & MSG_TRUNC ? 0 : (size_t)n, fd_count, err);
	if (rc < 0) {
		while (fd_count > 0)
			close(fds[--fd_count]);
		return rc;
	}
	if (fd_count)
		*ret_fd = fds[0];
	return 1;
}

#define HEADER(type_, size)                                                                    \
	{                                                                                      \
		.magic = GT_WIRE_MAGIC, .version = GT_WIRE_VERSION, .type = (uint16_t)(type_), \
		.size_bytes = (uint32_t)(size),                                                \
	}

static int send_whole(int fd, const void *msg, size_t size)
{
	return send(fd, msg, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int gt_message_send(int fd, enum gt_msg_type type, uint64_t cycle)
{
	const struct gt_msg_cycle msg = { .hdr = HEADER(type, sizeof(msg)), .cycle = cycle };

	return send_whole(fd, &msg, sizeof(msg));
}

int gt_message_send_plan(int fd, const struct gt_plan *plan, uint32_t id)
{
	const struct gt_msg_plan msg = {
		.hdr = HEADER(GT_MSG_PLAN, sizeof(msg)),
		.cycle = plan->cycle,
		.first_step = plan->first_step,
		.warmup = plan->warmup,
		.active = plan->active,
		.id = id,
	};

	return send_whole(fd, &msg, sizeof(msg));
}
