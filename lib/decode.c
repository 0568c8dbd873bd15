#include "base.h"
#include "decode.h"

/* CUpti_ActivityKind */
enum {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_KERNEL = 3,
	KIND_DRIVER = 4,
	KIND_RUNTIME = 5,
	KIND_CONCURRENT_KERNEL = 10,
	KIND_MEMCPY2 = 22,
	KIND_GRAPH_TRACE = 51,
};

/* Sizes of the oldest layout each decoder below can read. */
#define KERNEL_BYTES      144 /* Kernel4 */
#define MEMCPY_BYTES      64
#define MEMCPY2_BYTES     72
#define MEMSET_BYTES      64
#define API_BYTES         40
#define GRAPH_TRACE_BYTES 48

struct record { /* a private copy */
	const unsigned char *bytes;
	size_t size;
};

static uint64_t field(struct record rec, size_t offset, size_t len)
{
	uint64_t value = 0;

	if (offset + len <= rec.size)
		memcpy(&value, rec.bytes + offset, len); /* little-endian, as all that runs CUDA */
	return value;
}

static uint8_t u8(struct record rec, size_t offset)
{
	return (uint8_t)field(rec, offset, 1);
}

static uint16_t u16(struct record rec, size_t offset)
{
	return (uint16_t)field(rec, offset, 2);
}

static uint32_t u32(struct record rec, size_t offset)
{
	return (uint32_t)field(rec, offset, 4);
}

static uint64_t u64(struct record rec, size_t offset)
{
	return field(rec, offset, 8);
}

static void decode_kernel(struct record rec, struct gt_gpu_op *op)
{
	size_t i;

	op->kind = GT_GPU_KERNEL;
	op->registers_per_thread = u16(rec, 6);
	op->start_ns = u64(rec, 16);
	op->end_ns = u64(rec, 24);
	op->device = u32(rec, 40);
	op->context = u32(rec, 44);
	op->stream = u32(rec, 48);
	for (i = 0; i < 3; i++) {
		op->grid[i] = u32(rec, 52 + 4 * i);
		op->block[i] = u32(rec, 64 + 4 * i);
		op->cluster[i] = u32(rec, 176 + 4 * i); /* Kernel8, 11.8 */
	}
	op->static_shared_bytes = u32(rec, 76);
	op->dynamic_shared_bytes = u32(rec, 80);
	op->correlation = u32(rec, 92);
	op->name_ref = u64(rec, 104);
	op->queued_ns = u64(rec, 120);
	op->shared_executed_bytes = u32(rec, 140);
	op->graph_node_id = u64(rec, 144); /* Kernel5, 11.0 */
	op->graph_id = u32(rec, 156);
	op->channel = u32(rec, 168); /* Kernel7, 11.6 */
	op->channel_type = u32(rec, 172);
}

/* channel: offset of channelID; it was padding in layouts shorter than channel + 8. */
static void decode_transfer(struct record rec, struct gt_gpu_op *op, size_t node, size_t channel)
{
	op->bytes = u64(rec, 8);
	op->start_ns = u64(rec, 16);
	op->end_ns = u64(rec, 24);
	op->device = u32(rec, 32);
	op->context = u32(rec, 36);
	op->stream = u32(rec, 40);
	op->graph_node_id = u64(rec, node);
	op->graph_id = u32(rec, node + 8);
	if (rec.size >= channel + 8) {
		op->channel = u32(rec, channel);
		op->channel_type = u32(rec, channel + 4);
	}
}

static void decode_memcpy(struct record rec, struct gt_gpu_op *op)
{
	op->kind = GT_GPU_MEMCPY;
	decode_transfer(rec, op, 64, 76);
	op->copy_kind = u8(rec, 4);
	op->src_kind = u8(rec, 5);
	op->dst_kind = u8(rec, 6);
	op->copy_flags = u8(rec, 7);
	op->correlation = u32(rec, 44);
}

static void decode_peer(struct record rec, struct gt_gpu_op *op)
{
	op->kind = GT_GPU_PEER;
	decode_transfer(rec, op, 72, 84);
	op->copy_kind = u8(rec, 4);
	op->src_kind = u8(rec, 5);
	op->dst_kind = u8(rec, 6);
	op->copy_flags = u8(rec, 7);
	op->src_device = u32(rec, 44);
	op->src_context = u32(rec, 48);
	op->dst_device = u32(rec, 52);
	op->dst_context = u32(rec, 56);
	op->correlation = u32(rec, 60);
}

static void decode_memset(struct record rec, struct gt_gpu_op *op)
{
	op->kind = GT_GPU_MEMSET;
	decode_transfer(rec, op, 64, 76);
	op->set_value = u32(rec, 4);
	op->correlation = u32(rec, 44);
	op->dst_kind = (uint8_t)u16(rec, 50);
}

static void decode_graph(struct record rec, struct gt_gpu_op *op)
{
	op->kind = GT_GPU_GRAPH;
	op->correlation = u32(rec, 4);
	op->start_ns = u64(rec, 8);
	op->end_ns = u64(rec, 16);
	op->device = u32(rec, 24);
	op->graph_id = u32(rec, 28);
	op->context = u32(rec, 32);
	op->stream = u32(rec, 36);
}

static void decode_api(struct record rec, struct gt_api_record *api)
{
	api->cbid = u32(rec, 4);
	api->start_ns = u64(rec, 8);
	api->end_ns = u64(rec, 16);
	api->pid = u32(rec, 24);
	api->tid = u32(rec, 28);
	api->correlation = u32(rec, 32);
	api->return_value = u32(rec, 36);
}

static const struct decoder {
	uint16_t min_bytes;
	void (*decode)(struct record rec, struct gt_gpu_op *op);
} decoders[GT_KIND_MAX] = {
	[KIND_MEMCPY] = { MEMCPY_BYTES, decode_memcpy },
	[KIND_MEMSET] = { MEMSET_BYTES, decode_memset },
	[KIND_KERNEL] = { KERNEL_BYTES, decode_kernel },
	[KIND_CONCURRENT_KERNEL] = { KERNEL_BYTES, decode_kernel },
	[KIND_MEMCPY2] = { MEMCPY2_BYTES, decode_peer },
	[KIND_GRAPH_TRACE] = { GRAPH_TRACE_BYTES, decode_graph },
	[KIND_DRIVER] = { API_BYTES, NULL },
	[KIND_RUNTIME] = { API_BYTES, NULL },
};

void gt_record_sizes(uint16_t ret[GT_KIND_MAX], const uint16_t from[GT_KIND_MAX])
{
	size_t i;

	ret[0] = 0;
	for (i = 1; i < GT_KIND_MAX; i++) {
		uint16_t min_bytes = GT_MAX(decoders[i].min_bytes, 8);

		ret[i] = from[i] >= min_bytes && from[i] <= GT_RECORD_MAX && !(from[i] % 8)
				 ? from[i]
				 : 0;
	}
}

int gt_record_next(struct gt_record_cursor *cur, struct gt_record *ret)
{
	uint64_t copy[GT_RECORD_MAX / 8];
	struct record rec = { .bytes = (const unsigned char *)copy };
	size_t left = (size_t)(cur->end - cur->pos);
	uint32_t kind;

	if (left < 8)
		return 0;
	memcpy(&kind, cur->pos, sizeof(kind));
	kind &= ~GT_KIND_HELD;
	if (!kind)
		return 0;
	if (kind >= GT_KIND_MAX || !cur->record_bytes[kind])
		return -EBADMSG;
	rec.size = cur->record_bytes[kind];
	if (rec.size > left)
		return 0;
	memcpy(copy, cur->pos, rec.size);
	cur->pos += rec.size;

	if (kind == KIND_RUNTIME || kind == KIND_DRIVER) {
		ret->type = GT_RECORD_API;
		ret->api = (struct gt_api_record){ .runtime = kind == KIND_RUNTIME };
		decode_api(rec, &ret->api);
	} else if (decoders[kind].decode) {
		ret->op = (struct gt_gpu_op){ 0 };
		decoders[kind].decode(rec, &ret->op);
		if (!ret->op.start_ns)
			ret->type = GT_RECORD_UNTIMED;
		else if (!ret->op.end_ns)
			ret->type = GT_RECORD_RUNNING;
		else
			ret->type = ret->op.start_ns <= ret->op.end_ns ? GT_RECORD_GPU
								       : GT_RECORD_UNTIMED;
	} else {
		ret->type = GT_RECORD_OTHER;
	}
	return 1;
}
