/*
 * message.h - the messages of wire.h on a socket, as the collector receives and sends them.
 * Whatever is received has been checked: its type, its size, its descriptors, its lengths.
 */
#ifndef GT_MESSAGE_H
#define GT_MESSAGE_H

#include "base.h"
#include "err.h"
#include "schedule.h"
#include "wire.h"

union gt_message {
	struct gt_msg_hdr hdr;
	struct gt_msg_hello hello; /* its strings are terminated, as are those of device */
	struct gt_msg_phase phase;
	struct gt_msg_device device;
	struct gt_msg_rank rank;
	struct gt_msg_log log;
	struct gt_msg_cycle cycle;
	char bytes[GT_MSG_MAX];
};

/*
 * Check size bytes in msg, which came with fd_count descriptors. 0, or -EPROTO with a message that
 * goes on "process 4711 …".
 */
int gt_message_check(union gt_message *msg, size_t size, size_t fd_count, struct gt_err *err);

/*
 * Receive one message from a non-blocking socket: 1; 0 when there is none now; -EPIPE when the peer
 * closed its end; -EPROTO with a message as above. *ret_fd is the descriptor that came with a HELLO
 * (the caller's), else -1.
 */
int gt_message_receive(int fd, union gt_message *ret, int *ret_fd, struct gt_err *err);

/* Send DRAINED, STOP or CANCEL without waiting. 0 or -errno. */
int gt_message_send(int fd, enum gt_msg_type type, uint64_t cycle);

/* Send PLAN likewise. */
int gt_message_send_plan(int fd, const struct gt_plan *plan, uint32_t id);

#endif
