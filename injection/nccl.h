/*
 * nccl.h - what NCCL tells in the payloads of its NVTX ranges.
 */
#ifndef INJ_NCCL_H
#define INJ_NCCL_H

#include "nvtx_names.h"

struct nccl_payload { /* nvtxPayloadData_t of nvtx3/nvToolsExtPayload.h */
	uint64_t schema_id;
	size_t size_bytes;
	const void *bytes;
};

/* A range of this domain was pushed, at depth (from 1). The payloads are valid during the call. */
void nccl_range_pushed(const struct nvtx_name *domain, const nvtxEventAttributes_t *attrib,
		       uint32_t depth);

/* A range of this domain ends with payloads. */
void nccl_range_popped(const struct nvtx_name *domain, const struct nccl_payload *payloads,
		       size_t count);

/* May the attributes of an event have payloads? */
static inline bool nccl_has_payload(const nvtxEventAttributes_t *attrib)
{
	return attrib && attrib->size >= sizeof(*attrib) &&
	       (uint32_t)attrib->payloadType == UINT32_C(0xdfbd0009); /* NVTX_PAYLOAD_TYPE_EXT */
}

#endif
