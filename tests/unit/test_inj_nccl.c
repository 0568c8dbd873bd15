/*
 * test_inj_nccl.c - what becomes of the payloads of NCCL's ranges, by a real client of NVTX's
 * headers and its payload extension. The rest of the injection is a stand-in.
 */
#include "nccl_payloads.h"

#include "inj_standin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);

static int reset(void **state)
{
	(void)state;
	standin_reset();
	return 0;
}

static const struct gt_ev_collective *collective(size_t at)
{
	assert_true(at < standin.event_count);
	assert_int_equal(standin.events[at].type, GT_EV_COLLECTIVE);
	return &standin.events[at].collective;
}

static const struct gt_ev_comm *comm(size_t at)
{
	assert_true(at < standin.event_count);
	assert_int_equal(standin.events[at].type, GT_EV_COMM);
	return &standin.events[at].comm;
}

static void call(unsigned int number, const void *payload, size_t size)
{
	nccl_push("ncclCall", number, payload, size);
	nccl_pop();
}

static void assert_call(size_t at, uint64_t hash, uint64_t bytes, int root, int reduction)
{
	assert_int_equal(collective(at)->hash, hash);
	assert_int_equal(collective(at)->bytes, bytes);
	assert_int_equal(collective(at)->root, root);
	assert_int_equal(collective(at)->reduction, reduction);
}

/* PUSH, COLLECTIVE, POP */
static void calls(void **state)
{
	struct nccl_message message = { UINT64_C(0xf00000000000000d), 4096, 2, 3 };

	(void)state;
	call(NCCL_ALL_GATHER, &message, 16);
	call(NCCL_ALL_REDUCE, &message, 24);
	call(NCCL_BROADCAST, &message, 24);
	call(NCCL_REDUCE, &message, 24);
	call(NCCL_SEND, &message, 24);
	assert_int_equal(standin.event_count, 15);
	assert_int_equal(collective(1)->call, GT_COLLECTIVE_ALL_GATHER);
	assert_int_equal(collective(1)->depth, 1);
	assert_call(1, message.hash, 4096, -1, -1);
	assert_int_equal(collective(4)->call, GT_COLLECTIVE_ALL_REDUCE);
	assert_call(4, message.hash, 4096, -1, 2);
	assert_call(7, message.hash, 4096, 2, -1);
	assert_call(10, message.hash, 4096, 2, 3);
	assert_int_equal(collective(13)->call, GT_COLLECTIVE_SEND);
	assert_call(13, message.hash, 4096, 2, -1);
}

static void calls_of_older_nccl(void **state)
{
	struct nccl_message message = { 0, 4096, 2, 3 };

	(void)state;
	call(NCCL_ALL_GATHER, &message.bytes, 8);
	call(NCCL_ALL_REDUCE, &message.bytes, 16);
	call(NCCL_REDUCE, &message.bytes, 16);
	assert_call(1, 0, 4096, -1, -1);
	assert_call(4, 0, 4096, -1, 2);
	assert_call(7, 0, 4096, 2, 3);
}

static void depth_of_the_range(void **state)
{
	struct nccl_message message = { 1, 8, 0, 0 };

	(void)state;
	nccl_push("outer", 0, NULL, SIZE_MAX);
	nccl_push("ncclAllGather", NCCL_ALL_GATHER, &message, 16);
	assert_int_equal(collective(2)->depth, 2);
	assert_int_equal(standin.events[1].range_id, 2);
	nccl_pop();
	nccl_pop();
}

/* Of memory that ends where the payload does: a read beyond it is seen by the sanitizers. */
static void hostile_call(unsigned int number, size_t size, size_t told)
{
	void *payload = malloc(size ? size : 1);

	assert_non_null(payload);
	memset(payload, 0x7f, size);
	call(number, payload, told);
	free(payload);
}

static void hostile_payloads(void **state)
{
	struct nccl_message message = { 1, 8, 0, 0 };
	nvtxEventAttributes_t attributes = { .version = NVTX_VERSION,
					     .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
					     .payloadType = NVTX_PAYLOAD_TYPE_EXT };
	nvtxPayloadData_t data[64];
	size_t at, size, told = 0;

	(void)state;
	/* each size of each call: none but the right two */
	for (unsigned int number = 0; number < 32; number++)
		for (size = 0; size <= 32; size++)
			hostile_call(number, size, size);
	for (at = 0; at < standin.event_count; at++)
		told += standin.events[at].type == GT_EV_COLLECTIVE;
	assert_int_equal(told, 2 * (1 + 17) + 8 * (1 + 9));

	standin.event_count = 0;
	call(NCCL_ALL_REDUCE, NULL, 24);
	nvtxDomainRangePushEx(nvtxDomainCreateA("NCCL"), &attributes); /* no payloads */
	nccl_pop();
	assert_int_equal(standin.event_count, 4);

	/* many, of which the first are read; and a number of them that lies */
	standin.event_count = 0;
	for (at = 0; at < ARRAY_SIZE(data); at++)
		data[at] = (nvtxPayloadData_t){ NCCL_SCHEMA(NCCL_ALL_GATHER), 16, &message };
	attributes.payload.ullValue = (uintptr_t)data;
	attributes.reserved0 = -1;
	nvtxDomainRangePushEx(nvtxDomainCreateA("NCCL"), &attributes);
	nccl_pop();
	assert_int_equal(standin.event_count, 2 + 16);

	/* no payload: of another type, another domain, shorter attributes */
	standin.event_count = 0;
	attributes.reserved0 = 1;
	nvtxDomainRangePushEx(nvtxDomainCreateA("NCC"), &attributes);
	nvtxDomainRangePop(nvtxDomainCreateA("NCC"));
	attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
	nvtxDomainRangePushEx(nvtxDomainCreateA("NCCL"), &attributes);
	nccl_pop();
	attributes.payloadType = NVTX_PAYLOAD_TYPE_EXT;
	attributes.size = (uint16_t)offsetof(nvtxEventAttributes_t, message);
	nvtxDomainRangePushEx(nvtxDomainCreateA("NCCL"), &attributes);
	nccl_pop();
	assert_int_equal(standin.event_count, 6);
}

static void not_recording(void **state)
{
	struct nccl_message message = { 1, 8, 0, 0 };

	(void)state;
	standin.recording = false;
	call(NCCL_ALL_GATHER, &message, 16);
	assert_int_equal(standin.event_count, 0);
	standin.recording = true;
	standin.arena_full = true;
	call(NCCL_ALL_GATHER, &message, 16);
	assert_int_equal(standin.event_count, 0);
}

/* Long before a window. */
static void communicators(void **state)
{
	struct nccl_comm_init init = { UINT64_C(0xabcdef0123456789), 8, 3, 1 };
	struct nccl_comm_all all = { 5, 4 };

	(void)state;
	standin.recording = false;
	nccl_push("ncclCommInitRank", 0, NULL, SIZE_MAX);
	nccl_pop_payload(NCCL_COMM_INIT_RANK, &init, sizeof(init));
	nccl_push("ncclCommInitRankConfig", 0, NULL, SIZE_MAX);
	nccl_pop_payload(NCCL_COMM_INIT_RANK_CONFIG, &init, sizeof(init));
	nccl_push("ncclCommInitAll", 0, NULL, SIZE_MAX);
	nccl_pop_payload(NCCL_COMM_INIT_ALL, &all, sizeof(all));
	assert_int_equal(standin.event_count, 3);
	assert_int_equal(comm(0)->hash, init.hash);
	assert_int_equal(comm(0)->size, 8);
	assert_int_equal(comm(0)->rank, 3);
	assert_int_equal(comm(0)->device, 1);
	assert_int_equal(comm(1)->size, 8);
	assert_int_equal(comm(2)->hash, 5);
	assert_int_equal(comm(2)->size, 4);
	assert_int_equal(comm(2)->rank, -1);

	/* of a split the payload tells about the parent */
	nccl_push("ncclCommSplit", 0, NULL, SIZE_MAX);
	nccl_pop_payload(NCCL_COMM_SPLIT, &init, sizeof(init));
	nccl_push("ncclCommInitRank", 0, NULL, SIZE_MAX);
	nccl_pop_payload(NCCL_COMM_INIT_RANK, &init, 12); /* of NCCL before 2.25 */
	nccl_push("ncclCommInitRank", 0, NULL, SIZE_MAX);
	nccl_pop_payload(NCCL_COMM_INIT_RANK, NULL, 24);
	assert_int_equal(standin.event_count, 3);
}

/* The extension's functions and the usual ones end each other's ranges. */
static void pairs(void **state)
{
	nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
	nvtxRangeId_t id;

	(void)state;
	nccl_push("outer", 0, NULL, SIZE_MAX);
	assert_int_equal(nvtxRangePushPayload(domain, NULL, 0), 1);
	assert_int_equal(nvtxRangePopPayload(domain, NULL, 7), 1);
	assert_int_equal(nvtxRangePopPayload(domain, NULL, 0), 0);
	assert_int_equal(nvtxRangePopPayload(domain, NULL, 0), -1);
	id = nvtxRangeStartPayload(domain, NULL, 0);
	assert_true(id);
	nvtxRangeEnd(id);
	id = nvtxRangeStartA("usual");
	nvtxRangeEndPayload(NULL, id, NULL, 0);
	assert_int_equal(standin.event_count, 8);
	assert_int_equal(standin.events[3].range_id, 1);
	assert_int_equal(standin.events[7].type, GT_EV_RANGE_END);
	assert_int_equal(standin.events[7].range_id, standin.events[6].range_id);

	standin.alive = false;
	assert_int_equal(nvtxRangePopPayload(domain, NULL, 1), NVTX_NO_PUSH_POP_TRACKING);
}

static void other_extensions(void **state)
{
	intptr_t slots[8] = { 0 };
	nvtxExtModuleSegment_t segment = { 0, ARRAY_SIZE(slots), slots };
	nvtxExtModuleInfo_t module = { .structSize = sizeof(module),
				       .moduleId = NVTX_EXT_PAYLOAD_MODULEID,
				       .compatId = NVTX_EXT_PAYLOAD_COMPATID,
				       .segmentsCount = 1,
				       .segments = &segment };

	(void)state;
	assert_int_equal(InitializeInjectionNvtxExtension(NULL), 0);
	module.moduleId = 1;
	assert_int_equal(InitializeInjectionNvtxExtension(&module), 0);
	module.moduleId = NVTX_EXT_PAYLOAD_MODULEID;
	module.compatId = 0x0203;
	assert_int_equal(InitializeInjectionNvtxExtension(&module), 0);
	module.compatId = NVTX_EXT_PAYLOAD_COMPATID;
	segment.slotCount = NVTX3EXT_CBID_nvtxRangeEndPayload;
	assert_int_equal(InitializeInjectionNvtxExtension(&module), 0);
	assert_int_equal(slots[NVTX3EXT_CBID_nvtxRangePopPayload], 0);
	segment.slotCount = ARRAY_SIZE(slots);
	assert_int_equal(InitializeInjectionNvtxExtension(&module), 1);
	assert_int_not_equal(slots[NVTX3EXT_CBID_nvtxRangePopPayload], 0);
	assert_int_equal(slots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister], 0);
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls),         TEST(calls_of_older_nccl), TEST(depth_of_the_range),
		TEST(not_recording), TEST(hostile_payloads),    TEST(communicators),
		TEST(pairs),         TEST(other_extensions),
	};

	/* NVTX's headers look here when no NVTX_INJECTION64_PATH names a library */
	unsetenv("NVTX_INJECTION64_PATH");
	InitializeInjectionNvtx2_fnptr = InitializeInjectionNvtx2;
	InitializeInjectionNvtxExtension_fnptr = InitializeInjectionNvtxExtension;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
