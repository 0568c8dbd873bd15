/* fuzz_message.c - messages of peers: what passes the check may be read without looking. */
#include "base.h"
#include "message.h"
#include "must.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_terminated(const char *text, size_t len)
{
	return memchr(text, 0, len) != NULL;
}

/* The first byte is the number of descriptors. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union gt_message *msg;
	size_t fd_count;

	if (!size)
		return 0;
	fd_count = *data++;
	size = GT_MIN(size - 1, sizeof(*msg));
	msg = calloc(1, sizeof(*msg));
	must(msg);
	memcpy(msg, data, size);
	if (gt_message_check(msg, size, fd_count, NULL)) {
		free(msg);
		return 0;
	}
	must(fd_count == (msg->hdr.type == GT_MSG_HELLO));
	switch (msg->hdr.type) {
	case GT_MSG_HELLO:
		must(is_terminated(msg->hello.comm, sizeof(msg->hello.comm)));
		must(is_terminated(msg->hello.python, sizeof(msg->hello.python)));
		must(is_terminated(msg->hello.torch, sizeof(msg->hello.torch)));
		break;
	case GT_MSG_DEVICE:
		must(is_terminated(msg->device.name, sizeof(msg->device.name)));
		break;
	case GT_MSG_LOG:
		must(offsetof(struct gt_msg_log, text) + msg->log.len_bytes <= size);
		break;
	case GT_MSG_PHASE:
	case GT_MSG_RANK:
	case GT_MSG_BYE:
		break;
	default:
		abort();
	}
	free(msg);
	return 0;
}
