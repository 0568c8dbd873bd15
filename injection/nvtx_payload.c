/*
 * nvtx_payload.c - the door of NVTX's payload extension. Its functions may end what the usual ones
 * began, and begin what those end: NCCL ends the ranges of its ncclCommInit* so.
 */
#include "nccl.h"
#include "nvtx.h"

/* As nvtx3/nvtxDetail/nvtxExtTypes.h has them; not all toolkits come with it. */
struct ext_segment {
	size_t id;
	size_t slot_count;
	intptr_t *slots;
};

struct ext_module {
	uint16_t nvtx_version;
	uint16_t struct_bytes;
	uint16_t module_id;
	uint16_t compat_id;
	size_t segment_count;
	struct ext_segment *segments;
	void *get_export;
	const void *info;
};

#define PAYLOAD_MODULE 2 /* NVTX_EXT_PAYLOAD_MODULEID */
#define PAYLOAD_COMPAT 1 /* the upper half of NVTX_EXT_PAYLOAD_COMPATID */

/* NVTX3EXT_CBID_nvtxRange…Payload of nvToolsExtPayload.h */
enum payload_slot { SLOT_PUSH = 3, SLOT_POP = 4, SLOT_START = 5, SLOT_END = 6, SLOT_MAX = 7 };

static int on_push(nvtxDomainHandle_t domain, const struct nccl_payload *payloads, size_t count)
{
	(void)payloads;
	(void)count;
	return nvtx_push(nvtx_domain_of(domain), (struct nvtx_message){ 0 });
}

static int on_pop(nvtxDomainHandle_t domain, const struct nccl_payload *payloads, size_t count)
{
	nccl_range_popped(nvtx_domain_of(domain), payloads, count);
	return nvtx_pop(nvtx_domain_of(domain));
}

static nvtxRangeId_t on_start(nvtxDomainHandle_t domain, const struct nccl_payload *payloads,
			      size_t count)
{
	(void)payloads;
	(void)count;
	return nvtx_range_start(nvtx_domain_of(domain), (struct nvtx_message){ 0 });
}

static void on_end(nvtxDomainHandle_t domain, nvtxRangeId_t id, const struct nccl_payload *payloads,
		   size_t count)
{
	(void)payloads;
	(void)count;
	nvtx_range_end(nvtx_domain_of(domain), id);
}

/* Called once by each client and extension; 0 makes that extension a no-op there for good. */
GT_EXPORT int InitializeInjectionNvtxExtension(struct ext_module *module);

GT_EXPORT int InitializeInjectionNvtxExtension(struct ext_module *module)
{
	intptr_t *slots;

	if (!module || module->struct_bytes < sizeof(*module) ||
	    module->module_id != PAYLOAD_MODULE || module->compat_id >> 8 != PAYLOAD_COMPAT ||
	    !module->segment_count || module->segments[0].slot_count < SLOT_MAX || !nvtx_start())
		return 0;
	slots = module->segments[0].slots;
	slots[SLOT_PUSH] = (intptr_t)on_push;
	slots[SLOT_POP] = (intptr_t)on_pop;
	slots[SLOT_START] = (intptr_t)on_start;
	slots[SLOT_END] = (intptr_t)on_end;
	return 1;
}
