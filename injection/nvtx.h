/*
 * nvtx.h - ranges of NVTX clients: nvtx.c has them, and the doors to them are nvtx_functions.c (the
 * functions every client has) and nvtx_payload.c (those of NVTX's payload extension).
 */
#ifndef INJ_NVTX_H
#define INJ_NVTX_H

#include "nvtx_names.h"

/* A client calls: starts the session. false: no tracing here. */
bool nvtx_start(void);

/*
 * NVTX's default domain, whose handle is NULL. It is also the handle of what has no name, or cannot
 * be had: without memory, and in a fork-only child.
 */
extern struct nvtx_name nvtx_default_domain;

static inline struct nvtx_name *nvtx_domain_of(nvtxDomainHandle_t handle)
{
	return handle ? (struct nvtx_name *)handle : &nvtx_default_domain;
}

/* A string or a domain gets its handle. Never NULL. */
struct nvtx_name *nvtx_register(struct nvtx_message message);

void nvtx_name_thread(uint32_t tid, struct nvtx_message message);
void nvtx_mark(struct nvtx_name *domain, struct nvtx_message message);

/* Each returns what NVTX's function of that name does: these two a level, from 0. */
int nvtx_push(struct nvtx_name *domain, struct nvtx_message message);
int nvtx_pop(struct nvtx_name *domain);
nvtxRangeId_t nvtx_range_start(struct nvtx_name *domain, struct nvtx_message message);
void nvtx_range_end(struct nvtx_name *domain, nvtxRangeId_t handle);

#endif
