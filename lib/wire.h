/*
 * wire.h - what the injection and the collector share: the messages on the Unix socket, the arena
 * (one sealed memfd a process) and, in wire_events.h, the event records in it.
 * man/gtrace-internals.7 explains it.
 *
 * Both sides run on one machine and come from one build: GT_WIRE_VERSION must be equal. Integers
 * are in native byte order. The collector trusts none of it.
 */
#ifndef GT_WIRE_H
#define GT_WIRE_H

#include "base.h"
#include "wire_events.h"

#include <stdatomic.h>

#define GT_WIRE_MAGIC   UINT32_C(0x31525447) /* "GTR1" */
#define GT_WIRE_VERSION 10

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
	GT_MSG_DRAINED = 32, /* no GPU record is awaited any more, up to this cycle: switch off */
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

/* CUpti_ActivityKind values the size table covers; CUPTI 13.0 defines up to 55. */
#define GT_KIND_MAX 64
/* In the kind of a record whose buffer CUPTI has not handed over (measured with 13.0). */
#define GT_KIND_HELD (UINT32_C(1) << 31)

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
	GT_WHAT_CALLBACKS = 14, /* after FALLBACK: the slot is free again, and ours */
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
 * event chunk up to 'used', and a BUSY CUPTI chunk only when the process is gone or
 * has stopped.
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

struct gt_yield { /* as in struct gt_msg_phase */
	_Atomic uint32_t what;
	_Atomic uint64_t cycle;
	_Atomic uint64_t step;
	_Atomic uint64_t time_ns;
};
#define GT_YIELDS 8

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
	_Atomic uint32_t ended;  /* in order, as BYE says where there is still a socket */
	/*
	 * The windows that the program's own profiler took something from, as messages say where
	 * there is still a socket. The i-th is in yield[i % GT_YIELDS]; yields counts it then.
	 */
	_Atomic uint32_t yields;
	struct gt_yield yield[GT_YIELDS];
	_Atomic uint32_t keep_yielded; /* KEEP: it took something from the recording */
};

_Static_assert(sizeof(struct gt_msg_hdr) == 16, "wire ABI");
_Static_assert(sizeof(struct gt_msg_hello) <= GT_MSG_MAX, "wire ABI");
_Static_assert(sizeof(struct gt_msg_log) <= GT_MSG_MAX, "wire ABI");
_Static_assert(sizeof(struct gt_chunk) == 64, "wire ABI: one cache line");
_Static_assert(sizeof(struct gt_arena_hdr) <= GT_ARENA_DATA_ALIGN, "wire ABI");

#endif
