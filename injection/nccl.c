/*
 * nccl.c - payloads of NCCL's ranges. Each has the id and the layout of one of the schemas in
 * NCCL's nvtx_payload_schemas.h, which have been the same since NCCL 2.25. Before, those of calls
 * lacked their first member, the communicator; those of communicators then are of no use.
 */
#include "nccl.h"
#include "field.h"

#define SCHEMA_FIRST (UINT64_C(1) << 24) /* NVTX_PAYLOAD_ENTRY_TYPE_SCHEMA_ID_STATIC_START */
#define PAYLOADS_MAX 16

/* NVTX_SID_* of nvtx.h that are no calls of enum gt_collective_call. */
#define COMM_INIT_RANK          0
#define COMM_INIT_ALL           1
#define COMM_INIT_RANK_CONFIG   11
#define COMM_INIT_RANK_SCALABLE 12

/* Behind the communicator come the bytes, and then at most two ints. */
#define AT_HASH   0
#define AT_BYTES  8
#define AT_FIRST  16
#define AT_SECOND 20

/* The sizes include what aligns the structures to 8. */
static const struct layout {
	uint8_t size_bytes; /* 0: no call of this number */
	uint8_t root_at;    /* 0: it has none */
	uint8_t reduction_at;
} layouts[] = {
	[GT_COLLECTIVE_ALL_GATHER] = { 16, 0, 0 },
	[GT_COLLECTIVE_ALL_REDUCE] = { 24, 0, AT_FIRST },
	[GT_COLLECTIVE_BROADCAST] = { 24, AT_FIRST, 0 },
	[GT_COLLECTIVE_REDUCE_SCATTER] = { 24, 0, AT_FIRST },
	[GT_COLLECTIVE_REDUCE] = { 24, AT_FIRST, AT_SECOND },
	[GT_COLLECTIVE_SEND] = { 24, AT_FIRST, 0 },
	[GT_COLLECTIVE_RECV] = { 24, AT_FIRST, 0 },
	[GT_COLLECTIVE_ALL_TO_ALL] = { 16, 0, 0 },
	[GT_COLLECTIVE_GATHER] = { 24, AT_FIRST, 0 },
	[GT_COLLECTIVE_SCATTER] = { 24, AT_FIRST, 0 },
};

static bool is_nccl(const struct nvtx_name *domain)
{
	return domain->len_bytes == 4 && !memcmp(domain->bytes, "NCCL", 4);
}

/* ---- calls ---- */

static void put_call(const struct nccl_payload *payload, uint32_t depth)
{
	uint64_t call = payload->schema_id - SCHEMA_FIRST;
	const struct layout *layout = call < ARRAY_SIZE(layouts) ? &layouts[call] : NULL;
	char bytes[AT_SECOND + 4] = { 0 };
	struct gt_ev_collective *ev;
	size_t missing = 0;

	if (!layout || !layout->size_bytes || !payload->bytes || payload->size_bytes == SIZE_MAX)
		return;
	if (payload->size_bytes == layout->size_bytes - sizeof(uint64_t))
		missing = sizeof(uint64_t);
	else if (payload->size_bytes < layout->size_bytes)
		return;
	memcpy(bytes + missing, payload->bytes, layout->size_bytes - missing);
	ev = inj_reserve(GT_EV_COLLECTIVE, sizeof(*ev));
	if (!ev)
		return;
	ev->hash = field_u64(bytes, AT_HASH);
	ev->bytes = field_u64(bytes, AT_BYTES);
	ev->depth = depth;
	ev->call = (uint32_t)call;
	ev->root = layout->root_at ? field_int(bytes, layout->root_at) : -1;
	ev->reduction = layout->reduction_at ? field_int(bytes, layout->reduction_at) : -1;
	inj_commit();
}

void nccl_range_pushed(const struct nvtx_name *domain, const nvtxEventAttributes_t *attrib,
		       uint32_t depth)
{
	const struct nccl_payload *payloads = (const void *)(uintptr_t)attrib->payload.ullValue;
	size_t count = (uint32_t)attrib->reserved0;

	if (!payloads || !inj_recording() || !is_nccl(domain))
		return;
	for (size_t i = 0; i < count && i < PAYLOADS_MAX; i++)
		put_call(&payloads[i], depth);
}

/* ---- communicators ---- */

/*
 * Communicators that were split off or shrunk are not told of: their payloads give the size and
 * rank of the one that they came from.
 */
static void put_comm(const struct nccl_payload *payload)
{
	struct gt_ev_comm comm = { .rank = -1, .device = -1 }, *ev;
	const char *bytes = payload->bytes;

	if (!bytes || payload->size_bytes == SIZE_MAX)
		return;
	switch (payload->schema_id - SCHEMA_FIRST) {
	case COMM_INIT_RANK:
	case COMM_INIT_RANK_CONFIG:
	case COMM_INIT_RANK_SCALABLE:
		if (payload->size_bytes < 20)
			return;
		comm.rank = field_int(bytes, 12);
		comm.device = field_int(bytes, 16);
		break;
	case COMM_INIT_ALL:
		if (payload->size_bytes < 12)
			return;
		break;
	default:
		return;
	}
	comm.hash = field_u64(bytes, 0);
	comm.size = (uint32_t)field_int(bytes, 8);
	ev = inj_reserve(GT_EV_COMM, sizeof(*ev));
	if (!ev)
		return;
	comm.ev = ev->ev;
	*ev = comm;
	inj_commit();
}

void nccl_range_popped(const struct nvtx_name *domain, const struct nccl_payload *payloads,
		       size_t count)
{
	if (!payloads || !inj_alive() || !is_nccl(domain))
		return;
	for (size_t i = 0; i < count && i < PAYLOADS_MAX; i++)
		put_comm(&payloads[i]);
}
