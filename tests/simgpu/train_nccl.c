/*
 * What NCCL does beside its work: ranges with payloads. One communicator of four ranks, of which
 * the program is rank 1, and in each step an all-reduce, and a group of a send and a receive.
 */
#include "train.h"
#include "truth.h"

#include "../unit/nccl_payloads.h"

#define COMM UINT64_C(0xc0ffee0000000001)

static void push(const char *function, unsigned int call, const struct nccl_message *message)
{
	nccl_push(function, call, message, message ? sizeof(*message) : SIZE_MAX);
	truth_range(function);
}

void train_nccl_init(void)
{
	const struct nccl_comm_init init = { COMM, 4, 1, 0 };

	push("ncclCommInitRankConfig", 0, NULL);
	nccl_pop_payload(NCCL_COMM_INIT_RANK_CONFIG, &init, sizeof(init));
}

void train_nccl_step(void (*launch)(void))
{
	const struct nccl_message reduced = { COMM, 4096, 4, 0 }; /* ncclAvg */
	const struct nccl_message sent = { COMM, 100, 2, 0 }, received = { COMM, 200, 0, 0 };

	push("ncclAllReduce", NCCL_ALL_REDUCE, &reduced);
	launch();
	nccl_pop();
	push("ncclGroupStart", 0, NULL);
	nccl_pop();
	push("ncclSend", NCCL_SEND, &sent);
	nccl_pop();
	push("ncclRecv", NCCL_RECV, &received);
	nccl_pop();
	push("ncclGroupEnd", 0, NULL);
	launch();
	nccl_pop();
}
