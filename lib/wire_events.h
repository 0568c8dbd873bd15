/*
 * wire_events.h - the event records in the arena, which the target's threads write and the
 * collector reads: the rules of wire.h, which includes it, hold here. A thread's chunks hold its
 * events in program order.
 */
#ifndef GT_WIRE_EVENTS_H
#define GT_WIRE_EVENTS_H

#include "base.h"

enum gt_event_type {
	GT_EV_END = 0, /* zero: nothing more in this chunk */
	GT_EV_STRING = 1,
	GT_EV_STEP = 2,
	GT_EV_CALL = 3,
	GT_EV_PUSH = 4,
	GT_EV_POP = 5,
	GT_EV_RANGE_START = 6,
	GT_EV_RANGE_END = 7,
	GT_EV_MARK = 8,
	GT_EV_THREAD_NAME = 9, /* struct gt_ev_name, ref: tid */
	GT_EV_POINTER = 10,    /* struct gt_ev_name, ref: kernel name pointer in the target */
	GT_EV_API_NAME = 11,   /* struct gt_ev_name, ref: domain << 32 | cbid (fall-back mode) */
	GT_EV_OP = 12,
	GT_EV_OP_END = 13,
	GT_EV_COMM = 14, /* written at any time, and read with the names */
	GT_EV_COLLECTIVE = 15,
	GT_EV_FRAME = 16,
	GT_EV_COMMS = 17,
	GT_EV_OWN_STEP = 18,
	GT_EV_MEMORY = 19,
};

/* Events, and what stands in one behind bytes of any length, begin at multiples of 8. */
#define GT_PAD8(bytes) (((bytes) + 7) & ~UINT32_C(7))

/* Every event begins so and is a multiple of 8 bytes long. */
struct gt_ev {
	uint16_t type;       /* enum gt_event_type */
	uint16_t size_bytes; /* of the whole event, at least sizeof(struct gt_ev) */
	uint32_t step;       /* the step the program was in when this began */
	uint64_t time_ns;    /* CLOCK_REALTIME when it began */
};

#define GT_STRING_MAX   (UINT32_C(1) << 20) /* bytes of one name; longer ones are cut */
#define GT_STRING_PIECE 16384               /* bytes of one GT_EV_STRING at most */

/* A piece of name number id. Pieces come in order, in one thread's stream, before the first use. */
struct gt_ev_string {
	struct gt_ev ev;
	uint32_t id; /* from 1, unique in the process */
	uint32_t total_bytes;
	uint32_t offset_bytes;
	uint32_t len_bytes; /* of bytes, which are padded to 8 */
	char bytes[];
};

/*
 * STEP: ev.step is the step that begins now. OWN_STEP: while captured ranges are the steps, one of
 * the program's own.
 */
struct gt_ev_step {
	struct gt_ev ev;
	uint32_t source; /* enum gt_step_source */
	uint32_t number; /* of the step that begins, as this source counts */
};

enum gt_call_class {
	GT_CALL_OTHER = 0,
	GT_CALL_KERNEL = 1, /* launches one kernel */
	GT_CALL_GRAPH = 2,  /* launches a graph: any number of GPU records, also none */
	GT_CALL_COPY = 3,
	GT_CALL_SET = 4,
	GT_CALL_SYNC = 5, /* blocks the host */
	GT_CALL_WAIT = 6, /* makes a stream wait */
	GT_CALL_ALLOC = 7,
};

#define GT_CALL_CAPTURED  UINT32_C(1) /* its stream was under capture: no GPU record will come */
#define GT_CALL_EMPTY     UINT32_C(2) /* zero bytes: no GPU record will come */
#define GT_CALL_FAILED    UINT32_C(4) /* returned an error */

#define GT_STREAM_UNKNOWN UINT32_MAX

struct gt_ev_call { /* an outermost CUDA call; written when it returns */
	struct gt_ev ev;
	uint64_t end_ns;
	uint32_t correlation; /* CUPTI's correlation id */
	uint32_t name_id;     /* GT_EV_STRING id of the name the program called */
	uint8_t domain;       /* 1 driver, 2 runtime (CUpti_CallbackDomain) */
	uint8_t context;      /* GRAPH: the low bits of CUPTI's context id */
	uint16_t klass;       /* enum gt_call_class */
	uint16_t cbid;
	uint16_t flags;    /* GT_CALL_* */
	uint32_t stack_id; /* of the Python code that made it; 0: none, or it was not long enough */
	uint32_t stream;   /* GRAPH: CUPTI's stream id, GT_STREAM_UNKNOWN otherwise */
};

/*
 * PUSH, RANGE_START, MARK. The text is name_id when that is not 0, else the inline bytes. Behind
 * the bytes, padded to 8, the inputs.
 */
#define GT_INLINE_MAX 1024
struct gt_ev_range {
	struct gt_ev ev;
	uint64_t range_id;  /* RANGE_START: its number; PUSH: its depth in the domain, from 1 */
	uint32_t domain_id; /* GT_EV_STRING id of the NVTX domain's name, 0: the default domain */
	uint32_t name_id;
	uint32_t len_bytes;    /* of bytes, which are padded to 8 */
	uint32_t inputs_bytes; /* of domain GT_DOMAIN_TORCH; 0: none */
	uint32_t stack_id;     /* PUSH: of the Python code that made it; 0: none */
	uint32_t reserved;
	char bytes[];
};

/*
 * POP ends the innermost open PUSH of this thread and domain; RANGE_END the range of that number.
 * A POP carries the depth of its PUSH, so that a lost event cannot shift all later pairs: PUSHes
 * left open at this depth (by a PUSH) or below it (by a POP) have lost their POP.
 */
struct gt_ev_end {
	struct gt_ev ev;
	uint64_t range_id; /* as in struct gt_ev_range */
	uint32_t domain_id;
	uint32_t stack_id; /* POP: likewise */
};

/* PUSH and POP with this domain are record_function() of torch: a stack of its own, without name.
 */
#define GT_DOMAIN_TORCH UINT32_MAX

/*
 * A torch operator begins: aten::add, a node of autograd's graph, an operator of the program. Those
 * of a thread nest; depth is as for PUSH, and a stack of its own.
 */
struct gt_ev_op {
	struct gt_ev ev;
	int64_t sequence;    /* autograd's, of the thread that ran the forward op; -1: none */
	uint32_t thread;     /* torch's own number of this thread, from 1 */
	uint32_t fwd_thread; /* likewise, of the thread of the forward op; 0: this is no backward */
	uint32_t name_id;    /* GT_EV_STRING id */
	uint32_t depth;      /* from 1 */
	uint32_t stack_id;   /* of the Python code that called it; 0: none */
	uint32_t inputs_bytes; /* of inputs, which are padded to 8 */
	char inputs[];         /* struct gt_input */
};

struct gt_ev_op_end {
	struct gt_ev ev;
	uint32_t depth; /* of its OP */
	uint32_t reserved;
};

/*
 * The inputs of an operator or of a torch range, one after the other, each aligned to 4. It tells
 * what PyTorch's own profiler does: a string, None, and all else is OTHER.
 */
struct gt_input {
	uint8_t tag; /* enum gt_input_tag */
	uint8_t item;
	uint8_t count;
	uint8_t flags;
};

enum gt_input_tag {
	GT_INPUT_OTHER = 0,
	GT_INPUT_TENSOR = 1,    /* item: c10::ScalarType; count: dimensions; its sizes follow */
	GT_INPUT_UNDEFINED = 2, /* a tensor without sizes: undefined, nested, of symbolic shape */
	GT_INPUT_BOOL = 3,      /* item: the value */
	GT_INPUT_INT = 4,       /* int64_t follows */
	GT_INPUT_DOUBLE = 5,    /* double follows */
	GT_INPUT_COMPLEX = 6,   /* two of them */
	GT_INPUT_LIST = 7,      /* count inputs follow: BOOL, INT, DOUBLE or COMPLEX */
	GT_INPUT_TENSORS = 8,   /* likewise: TENSOR or UNDEFINED */
	GT_INPUT_CUT = 9,       /* there are more, for which there was no room */
};

/* Flags of TENSOR: its sizes are uint32_t, or with WIDE int64_t; with STRIDES as many strides
 * follow. Else it is contiguous: each stride is the product of the sizes behind, 0 counting as 1.
 * With NO_STRIDES (sparse) there are none. */
#define GT_INPUT_WIDE       1
#define GT_INPUT_STRIDES    2
#define GT_INPUT_NO_STRIDES 4
/* Of TENSORS: there are more than are told of; count is 0. */
#define GT_INPUT_LONG     8

#define GT_INPUTS_MAX     4096
#define GT_INPUT_DIMS_MAX 64 /* as PyTorch's */
#define GT_INPUT_LIST_MAX 30 /* PyTorch's profiler shows no longer ones */

/* A communicator of NCCL was made. Those of one process on several GPUs have one hash. */
struct gt_ev_comm {
	struct gt_ev ev;
	uint64_t hash; /* NCCL's, the same in all its ranks */
	uint32_t size; /* its ranks */
	int32_t rank;  /* in it; -1: not known, nor is the device */
	int32_t device;
	uint32_t reserved;
};

/* As NCCL's own numbers of its calls (NVTX_SID_* in its nvtx.h). */
enum gt_collective_call {
	GT_COLLECTIVE_ALL_GATHER = 4,
	GT_COLLECTIVE_ALL_REDUCE = 5,
	GT_COLLECTIVE_BROADCAST = 6,
	GT_COLLECTIVE_REDUCE_SCATTER = 7,
	GT_COLLECTIVE_REDUCE = 8,
	GT_COLLECTIVE_SEND = 9,
	GT_COLLECTIVE_RECV = 10,
	GT_COLLECTIVE_ALL_TO_ALL = 16,
	GT_COLLECTIVE_GATHER = 17,
	GT_COLLECTIVE_SCATTER = 18,
};

/* What NCCL tells of the call whose PUSH the thread wrote last. */
struct gt_ev_collective {
	struct gt_ev ev;
	uint64_t hash;  /* of the communicator; 0: not known (before NCCL 2.26) */
	uint64_t bytes; /* of the message, as NCCL counts it */
	uint32_t depth; /* of the PUSH, in its domain */
	uint32_t call;  /* enum gt_collective_call */
	int32_t root;   /* a rank of the communicator: root or, of SEND and RECV, peer; -1: none */
	int32_t reduction; /* ncclRedOp_t; -1: none */
};

/*
 * A frame of a Python stack, which is an innermost frame and what called it: its number stands for
 * the whole. Like a string, before the first use and once.
 */
struct gt_ev_frame {
	struct gt_ev ev;
	uint32_t id;          /* from 1, unique in the process */
	uint32_t outer_id;    /* of the frame that called it, lower than id; 0: none */
	uint32_t file_id;     /* GT_EV_STRING ids */
	uint32_t function_id; /* 0: outer frames that were left out */
	uint32_t line;        /* that it is at */
	uint32_t first_line;  /* of the function */
	uint32_t class_id;    /* it calls an nn.Module, of this class (GT_EV_STRING id); 0: none */
	uint32_t instance;    /* number of the module in its class, from 0 */
};

/*
 * What torch.distributed tells of a collective; behind the OP that it belongs to. The bytes are
 * three lists of int64_t, and then three strings, in the order of the fields with their lengths.
 * A count of GT_COMMS_LIST_MAX + 1 stands for any that is larger than GT_COMMS_LIST_MAX; so many
 * numbers are there then, of which the last one is the list's last.
 */
#define GT_COMMS_LIST_MAX 30
struct gt_ev_comms {
	struct gt_ev ev;
	uint32_t depth; /* of its OP */
	int32_t rank;   /* in the process group; or the peer of send and recv */
	int32_t size;   /* of the process group */
	int32_t first;  /* global rank of its first one; -1: not known */
	int32_t stride; /* to the next one; 0: not known */
	uint8_t type;   /* c10::ScalarType */
	uint8_t reserved[3];
	int64_t in_count; /* elements */
	int64_t out_count;
	uint16_t in_splits;
	uint16_t out_splits;
	uint16_t ranks; /* global ones */
	uint16_t collective_bytes;
	uint16_t group_bytes;
	uint16_t description_bytes;
	uint32_t reserved2;
	char bytes[];
};

/* The size of the whole event. */
static inline uint32_t gt_comms_bytes(const struct gt_ev_comms *ev)
{
	uint32_t numbers = (uint32_t)GT_MIN(ev->in_splits, GT_COMMS_LIST_MAX) +
			   (uint32_t)GT_MIN(ev->out_splits, GT_COMMS_LIST_MAX) +
			   (uint32_t)GT_MIN(ev->ranks, GT_COMMS_LIST_MAX);
	uint32_t chars = (uint32_t)ev->collective_bytes + ev->group_bytes + ev->description_bytes;

	return (uint32_t)sizeof(*ev) + numbers * (uint32_t)sizeof(int64_t) + GT_PAD8(chars);
}

/* An allocator of torch handed out a block, took one back, or had no memory for one. */
struct gt_ev_memory {
	struct gt_ev ev;
	uint64_t address;   /* of the block; 0: there was no memory for it */
	int64_t bytes;      /* of the block; negative: it was taken back */
	uint64_t allocated; /* bytes of the device that are handed out now, as the allocator says */
	uint64_t reserved;  /* bytes that the allocator has of it, likewise */
	uint32_t since_step; /* the CPU's, taken back: in which it was handed out; else ev.step */
	int8_t device_type;  /* c10::DeviceType */
	int8_t device;       /* its number; -1: the type has one only */
	uint8_t failed;      /* 1: there was no memory */
	uint8_t reserved2;
};

struct gt_ev_name { /* THREAD_NAME, POINTER, API_NAME */
	struct gt_ev ev;
	uint64_t ref;
	uint32_t name_id;
	uint32_t klass; /* API_NAME: enum gt_call_class; 0 otherwise */
};

/*
 * A kernel record's name field below this is a GT_EV_STRING id the injection put there; at or
 * above it, a pointer of the target that POINTER events resolve (buffers of a killed process). The
 * heap of a program that is no PIE, such as Debian's python3, is in the lowest 4 GiB.
 */
#define GT_NAME_PTR_MIN UINT64_C(0x20000)

_Static_assert(sizeof(struct gt_ev) == 16, "wire ABI");
_Static_assert(sizeof(struct gt_ev_string) == 32, "wire ABI");
_Static_assert(sizeof(struct gt_ev_call) == 48, "wire ABI");
_Static_assert(sizeof(struct gt_ev_range) == 48, "wire ABI");
_Static_assert(sizeof(struct gt_ev_frame) == 48, "wire ABI");
_Static_assert(sizeof(struct gt_ev_end) == 32, "wire ABI");
_Static_assert(sizeof(struct gt_ev_op) == 48, "wire ABI");
_Static_assert(sizeof(struct gt_ev_op_end) == 24, "wire ABI");
_Static_assert(sizeof(struct gt_input) == 4, "wire ABI");
_Static_assert(sizeof(struct gt_ev_comm) == 40, "wire ABI");
_Static_assert(sizeof(struct gt_ev_collective) == 48, "wire ABI");
_Static_assert(sizeof(struct gt_ev_comms) == 72, "wire ABI");
_Static_assert(sizeof(struct gt_ev_memory) == 56, "wire ABI");

#endif
