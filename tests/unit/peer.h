/*
 * peer.h - the other end of a client's connection, in the tests: what an injection sends, and what
 * none should.
 */
#ifndef PEER_H
#define PEER_H

#include "base.h"
#include "wire.h"

#define PEER_HDR(kind, bytes)                                                     \
	{                                                                         \
		.magic = GT_WIRE_MAGIC, .version = GT_WIRE_VERSION, .type = kind, \
		.size_bytes = (uint32_t)(bytes)                                   \
	}

/* Of rank 3, called "train". */
extern const struct gt_msg_hello peer_hello;

/* Send size bytes, with fd_count (at most 8) descriptors of memory. */
void peer_send(int fd, const void *msg, size_t size, size_t fd_count);

void peer_send_hello(int fd);
void peer_send_phase(int fd, uint32_t what);
void peer_send_log(int fd, const char *text);
void peer_send_bye(int fd);

/* The next message for the target; it has to be there. */
struct gt_msg_cycle peer_receive(int fd);

#endif
