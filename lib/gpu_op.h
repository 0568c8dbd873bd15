/*
 * gpu_op.h - one piece of GPU work, decoded from a CUPTI activity record of whatever version.
 */
#ifndef GT_GPU_OP_H
#define GT_GPU_OP_H

#include "base.h"

enum gt_gpu_kind {
	GT_GPU_KERNEL = 1,
	GT_GPU_MEMCPY = 2,
	GT_GPU_MEMSET = 3,
	GT_GPU_PEER = 4,
	GT_GPU_GRAPH = 5
};

/* Fields that the record's version lacks are 0. Enumerations are CUPTI's. */
struct gt_gpu_op {
	enum gt_gpu_kind kind;
	uint64_t start_ns; /* CLOCK_REALTIME */
	uint64_t end_ns;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation;
	uint64_t graph_node_id;
	uint32_t graph_id;
	uint32_t channel;
	uint32_t channel_type;
	/* kernel */
	uint64_t name_ref; /* see GT_NAME_PTR_MIN in wire_events.h */
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t cluster[3];
	uint32_t registers_per_thread;
	uint32_t static_shared_bytes;
	uint32_t dynamic_shared_bytes;
	uint32_t shared_executed_bytes;
	uint64_t queued_ns; /* 0: not collected */
	int32_t priority;
	/* copy, set */
	uint64_t bytes;
	uint8_t copy_kind; /* CUpti_ActivityMemcpyKind */
	uint8_t src_kind;  /* CUpti_ActivityMemoryKind; memset: memory kind in dst_kind */
	uint8_t dst_kind;
	uint8_t copy_flags;
	uint32_t set_value;
	uint32_t src_device; /* peer */
	uint32_t dst_device;
	uint32_t src_context;
	uint32_t dst_context;
};

#endif
