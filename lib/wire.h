/*
 * wire.h - what the injection and the collector share: the messages on the Unix socket, the arena
 * (one sealed memfd a process) and the event records in it. man/gtrace-internals.7 explains it.
 *
 * Both sides run on one machine and come from one build: GT_WIRE_VERSION must be equal. Integers
 * are in native byte order. The collector trusts none of it.
 */
#ifndef GT_WIRE_H
#define GT_WIRE_H

#include "base.h"

#include <stdatomic.h>

#define GT_WIRE_MAGIC   UINT32_C(0x31525447) /* "GTR1" */
#define GT_WIRE_VERSION 7

/* ---- messages: one datagram each on a SOCK_SEQPACKET Unix socket ---- */

#define GT_MSG_MAX 4096 /* bytes of the largest message, header included */

enum gt_msg_type {
	/* target to collector */
	GT_MSG_HELLO = 1,  /* first, with the arena's descriptor (SCM_RIGHTS) */
	GT_MSG_PHASE = 2,  /* the control thread switched something; also a wake-up */
	GT_MSG_DEVICE = 3, /* one GPU's properties; before the first window ends */
	GT_MSG_LOG = 4,    /* a line for the user */
	GT_MSG_BYE = 5,    /* orderly end of the process */
	GT_MSG_RANK = 6,   /* the rank is another one than HELLO's */
	/* collector to target */
	GT_MSG_DRAINED = 32, /* every launch of this cycle has its GPU record: switch off */
	GT_MSG_STOP = 33,    /* close what is open, become inert; WHAT_OFF answers */
	GT_MSG_PLAN = 34,    /* a window on demand; answered by PLAN_TAKEN or PLAN_LATE */
	GT_MSG_CANCEL = 35,  /* take the plan of this cycle back, also when it has begun */
};

struct gt_msg_hdr {
	uint32_t magic;
	uint16_t version;
	uint16_t type;       /* enum gt_msg_type */
	uint32_t size_bytes; /* of the whole message, this header included */
	uint32_t reserved;   /* 0 */
};

enum gt_rank_source {
	GT_RANK_NONE = 0,
	GT_RANK_ENV = 1, /* RANK: torchrun and its like */
	GT_RANK_OMPI = 2,
	GT_RANK_PMIX = 3,
	GT_RANK_PMI = 4,
	GT_RANK_SLURM = 5,
	GT_RANK_TORCH = 6, /* torch.distributed's process group */
};

enum gt_door { GT_DOOR_CUDA = 1, GT_DOOR_NVTX = 2, GT_DOOR_PYTHON = 3, GT_DOOR_API = 4 };

/*
 * X(identifier, name): what marks steps, in rising order of authority: the highest one seen rules.
 * A program that trains may run inference within a step, so inference is below the optimizer; what
 * drives the whole loop is above what it may call; what the user chose is above all.
 */
#define GT_STEP_SOURCES(X)                                                             \
	X(NONE, "none") /* --step-source none, or nothing seen yet */                  \
	X(DIFFUSERS, "diffusers")                                                      \
	X(SGLANG, "sglang")                                                            \
	X(VLLM, "vllm")                                                                \
	X(OPTIMIZER, "optimizer")                                                      \
	X(DEEPSPEED, "deepspeed")                                                      \
	X(MEGATRON, "megatron")                                                        \
	X(JAX, "jax")                                                                  \
	X(LIGHTNING, "lightning")                                                      \
	X(TRANSFORMERS, "transformers")                                                \
	X(NVTX, "nvtx")                                                                \
	X(CALL, "call")       /* of the function of --step-call */                     \
	X(API, "api")         /* gtrace_step() of gtrace.h, gtrace.step() of Python */ \
	X(CAPTURE, "capture") /* the beginnings and ends of what --capture-range names */

#define GT_STEP_DEFINE(id, name) GT_STEP_##id,
enum gt_step_source { GT_STEP_SOURCES(GT_STEP_DEFINE) GT_STEP_SOURCE_MAX };
#undef GT_STEP_DEFINE

#define GT_KIND_MAX                                                                  \
	64 /* CUpti_ActivityKind values the size table covers; 13.0 defines up to 55 \
	    */

struct gt_msg_hello {
	struct gt_msg_hdr hdr;
	uint64_t arena_bytes;
	uint64_t realtime_ns; /* the clocks, read back to back */
	uint64_t monotonic_ns;
	uint32_t pid; /* as the target sees it; the peer's credentials rule */
	uint32_t ppid;
	uint32_t rank;
	uint32_t world_size; /* 0: not known */
	uint8_t rank_source; /* enum gt_rank_source */
	uint8_t door;        /* enum gt_door */
	uint8_t reserved[6];
	uint32_t cupti_version;             /* cuptiGetVersion(), 0 when there is no CUPTI (yet) */
	uint32_t driver_version;            /* cuDriverGetVersion(), e.g. 13000; 0 not known */
	uint32_t runtime_version;           /* 0 not known */
	uint16_t record_bytes[GT_KIND_MAX]; /* size of each activity record kind, 0: undefined */
	char comm[32];                      /* base name of the program, NUL-terminated */
	char python[16];                    /* "3.11.7", empty outside Python */
	char torch[32];                     /* "2.11.0+cu130", empty when not known */
};

enum gt_phase_what {
	GT_WHAT_ATTACHED = 1,    /* CUPTI found: versions and sizes in a second HELLO-like update */
	GT_WHAT_STEP_SOURCE = 2, /* value: enum gt_step_source, now frozen */
	GT_WHAT_OPEN = 3,  /* the first active step of the cycle began; value: its step number */
	GT_WHAT_CLOSE = 4, /* the cycle's last active step ended; value: number of the next step */
	GT_WHAT_OFF = 5,   /* kinds and callbacks are off; value: launches since they were on */
	GT_WHAT_YIELD = 6, /* closed early for the program's own torch.profiler */
	GT_WHAT_RESUME = 7,
	GT_WHAT_FALLBACK = 8, /* subscriber slot taken (error 39): API activity kinds instead */
	GT_WHAT_RECORDING_FULL = 9, /* the recording without steps reached its bound */
	GT_WHAT_NO_CUPTI = 10,      /* NVTX, steps and Python only */
	/* Answers to a plan; cycle: its id; value: the step the program is in. */
	GT_WHAT_PLAN_TAKEN = 11,
	GT_WHAT_PLAN_LATE = 12, /* the step in which it was to begin has begun */
	/* The program's own torch.profiler ruled as the cycle's first active step, value, began. */
	GT_WHAT_LEFT_OUT = 13,
};

struct gt_msg_phase {
	struct gt_msg_hdr hdr;
	uint32_t what; /* enum gt_phase_what */
	uint32_t reserved;
	uint64_t cycle; /* from 0 */
	uint64_t value;
	uint64_t time_ns; /* CLOCK_REALTIME */
	/* GT_WHAT_ATTACHED only */
	uint32_t cupti_version;
	uint32_t driver_version;
	uint32_t runtime_version;
	uint16_t record_bytes[GT_KIND_MAX];
};

struct gt_msg_device {
	struct gt_msg_hdr hdr;
	uint32_t id; /* CUDA ordinal, as CUPTI's deviceId */
	uint32_t compute_major;
	uint32_t compute_minor;
	uint32_t max_threads_per_block;
	uint32_t max_threads_per_multiprocessor;
	uint32_t regs_per_block;
	uint32_t regs_per_multiprocessor;
	uint32_t warp_size;
	uint32_t num_sms;
	uint32_t reserved;
	uint64_t total_global_mem;
	uint64_t shared_mem_per_block;
	uint64_t shared_mem_per_block_optin;
	uint64_t shared_mem_per_multiprocessor;
	char name[128];
};

enum gt_log_level { GT_LOG_DEBUG = 0, GT_LOG_INFO = 1, GT_LOG_WARN = 2, GT_LOG_ERROR = 3 };

struct gt_msg_log {
	struct gt_msg_hdr hdr;
	uint32_t level;     /* enum gt_log_level */
	uint32_t len_bytes; /* of text, no NUL */
	char text[1024];
};

struct gt_msg_rank { /* as in HELLO */
	struct gt_msg_hdr hdr;
	uint32_t rank;
	uint32_t world_size;
	uint32_t rank_source;
	uint32_t reserved;
};

struct gt_msg_cycle { /* DRAINED, STOP, CANCEL, BYE */
	struct gt_msg_hdr hdr;
	uint64_t cycle;
};

struct gt_msg_plan { /* see struct gt_plan */
	struct gt_msg_hdr hdr;
	uint64_t cycle;
	uint32_t first_step;
	uint32_t warmup;
	uint32_t active;
	uint32_t id; /* for the answer: one that was taken back may yet be answered */
};

/* ---- the arena ---- */

#define GT_ARENA_NAME       "gtrace-arena"               /* of its memory file */
#define GT_ARENA_MAGIC      UINT64_C(0x31414e4552415447) /* "GTARENA1" */
#define GT_ARENA_DATA_ALIGN 65536 /* the largest page: a chunk is backed by itself */
#define GT_ARENA_MIN_BYTES  (UINT64_C(4) << 20)
#define GT_ARENA_MAX_BYTES  (UINT64_C(4) << 30)
#define GT_CUPTI_CHUNK      (UINT32_C(1) << 18) /* one CUPTI buffer: each launching thread has one */
#define GT_EVENT_CHUNK      (UINT32_C(1) << 16) /* a piece of one thread's event stream */

enum gt_pool { GT_POOL_CUPTI = 0, GT_POOL_EVENT = 1, GT_POOL_MAX = 2 };

/*
 * A chunk's life: FREE -(target: compare-and-swap)-> BUSY -(target)-> DONE -(collector)-> FREE.
 * The collector zeroes used_bytes, and the whole of a CUPTI chunk, before it frees
 * it. A chunk that is not backed with memory yet is BUSY with nothing used. It may read a BUSY
 * event chunk up to 'used', and a BUSY CUPTI chunk only when the process is gone.
 */
enum gt_chunk_state { GT_CHUNK_FREE = 0, GT_CHUNK_BUSY = 1, GT_CHUNK_DONE = 2 };

struct gt_chunk {
	_Atomic uint32_t state; /* enum gt_chunk_state */
	_Atomic uint32_t
		used_bytes; /* valid bytes; event chunks: stored (release) after each event */
	uint32_t tid;       /* event chunks: the thread; CUPTI chunks: 0 */
	uint32_t reserved;
	_Atomic uint64_t seq; /* order of acquisition in this process, from 1 */
	uint64_t reserved2[5];
};

struct gt_pool_desc {
	uint64_t table_offset; /* of count struct gt_chunk */
	uint64_t data_offset;  /* of count * chunk_bytes */
	uint32_t count;
	uint32_t chunk_bytes;
};

enum gt_arena_mode {
	GT_MODE_KEEP = 1,  /* auto, no step seen yet: the arena itself is the recording */
	GT_MODE_STEPS = 2, /* step marks drive the schedule */
	GT_MODE_WHOLE = 3, /* --step-source none: everything is ProfilerStep#0 */
};

struct gt_arena_hdr {
	uint64_t magic;
	uint32_t version;   /* GT_WIRE_VERSION */
	uint32_t hdr_bytes; /* sizeof(struct gt_arena_hdr) */
	uint64_t arena_bytes;
	struct gt_pool_desc pool[GT_POOL_MAX];
	_Atomic uint32_t mode; /* enum gt_arena_mode; KEEP turns into STEPS with the first mark */
	_Atomic uint32_t step_source; /* enum gt_step_source that rules */
	_Atomic uint32_t step;        /* step the program is in; stored with release */
	_Atomic uint32_t keep_full;   /* KEEP: the bound was reached, recording stopped */
	/* losses, since the start of the process */
	_Atomic uint64_t dropped_cupti;  /* cuptiActivityGetNumDroppedRecords */
	_Atomic uint64_t dropped_arena;  /* GPU records in buffers that found no free chunk */
	_Atomic uint64_t dropped_events; /* events that found no free chunk */
	_Atomic uint64_t dropped_names;  /* names and stacks that found no room */
	_Atomic uint64_t seq;            /* next gt_chunk.seq */
	_Atomic uint64_t late_step; /* 1 + the last step that began before CUPTI was on for it */
	_Atomic uint64_t ops_full;  /* KEEP: operators have had their share, theirs stopped */
	/* A counter, and a futex: who adds to it wakes the control thread. */
	_Atomic uint32_t request;
	_Atomic uint32_t forked; /* the target's: what only forked from it has been told of */
};

/* ---- events: a thread's chunks hold its events in program order ---- */

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
	uint16_t domain;      /* 1 driver, 2 runtime (CUpti_CallbackDomain) */
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

_Static_assert(sizeof(struct gt_msg_hdr) == 16, "wire ABI");
_Static_assert(sizeof(struct gt_msg_hello) <= GT_MSG_MAX, "wire ABI");
_Static_assert(sizeof(struct gt_msg_log) <= GT_MSG_MAX, "wire ABI");
_Static_assert(sizeof(struct gt_chunk) == 64, "wire ABI: one cache line");
_Static_assert(sizeof(struct gt_arena_hdr) <= GT_ARENA_DATA_ALIGN, "wire ABI");
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
