/*
 * nccl_payloads.h - the payloads of NCCL's NVTX ranges, as NCCL 2.25 and newer lay them out
 * (nvtx_payload_schemas.h), for clients of NVTX's headers that do as NCCL does.
 */
#ifndef NCCL_PAYLOADS_H
#define NCCL_PAYLOADS_H

#include <nvtx3/nvToolsExtPayload.h>

#define NCCL_SCHEMA(call) ((UINT64_C(1) << 24) + (call))

/* NVTX_SID_* of NCCL's nvtx.h */
enum nccl_call {
	NCCL_COMM_INIT_RANK = 0,
	NCCL_COMM_INIT_ALL = 1,
	NCCL_ALL_GATHER = 4,
	NCCL_ALL_REDUCE = 5,
	NCCL_BROADCAST = 6,
	NCCL_REDUCE = 8,
	NCCL_SEND = 9,
	NCCL_RECV = 10,
	NCCL_COMM_INIT_RANK_CONFIG = 11,
	NCCL_COMM_SPLIT = 13,
};

struct nccl_comm_init { /* ncclCommInitRank() and its like */
	uint64_t hash;
	int size, rank, device;
};

struct nccl_comm_all { /* ncclCommInitAll() */
	uint64_t hash;
	int devices;
};

struct nccl_message { /* the calls; some have neither of the ints, some the first */
	uint64_t hash;
	size_t bytes;
	int first, second;
};

/* A range of NCCL's domain with this payload; SIZE_MAX: with none. */
static inline void nccl_push(const char *function, unsigned int call, const void *payload,
			     size_t size)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
	nvtxPayloadData_t data = { NCCL_SCHEMA(call), size, payload };
	nvtxEventAttributes_t attributes = {
		.version = NVTX_VERSION,
		.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
		.messageType = NVTX_MESSAGE_TYPE_REGISTERED,
		.message.registered = nvtxDomainRegisterStringA(domain, function),
	};

	if (size != SIZE_MAX) {
		attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
		attributes.payload.ullValue = (uintptr_t)&data;
		attributes.reserved0 = 1;
	}
	nvtxDomainRangePushEx(domain, &attributes);
}

static inline void nccl_pop(void)
{
	nvtxDomainRangePop(nvtxDomainCreateA("NCCL"));
}

/* It ends with a payload: as NCCL's since 2.26 that make communicators. */
static inline void nccl_pop_payload(unsigned int call, const void *payload, size_t size)
{
	nvtxPayloadData_t data = { NCCL_SCHEMA(call), size, payload };

	nvtxRangePopPayload(nvtxDomainCreateA("NCCL"), &data, 1);
}

#endif
