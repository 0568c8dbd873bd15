/*
 * nvtx.h - ranges of NVTX clients: nvtx.c has them, and the doors to them are there (the functions
 * every client has) and in nvtx_payload.c (those of NVTX's payload extension).
 */
#ifndef INJ_NVTX_H
#define INJ_NVTX_H

#include "nvtx_names.h"

/* A client calls: starts the session. false: no tracing here. */
bool nvtx_start(void);

struct nvtx_name *nvtx_domain_of(nvtxDomainHandle_t handle);

/* Each returns what NVTX's function of that name does. */
int nvtx_push(struct nvtx_name *domain, struct nvtx_message message);
int nvtx_pop(struct nvtx_name *domain);
nvtxRangeId_t nvtx_range_start(struct nvtx_name *domain, struct nvtx_message message);
void nvtx_range_end(struct nvtx_name *domain, nvtxRangeId_t handle);

#endif
