/*
 * session.h - what the files of the session share beyond inject.h.
 */
#ifndef INJ_SESSION_H
#define INJ_SESSION_H

#include "cupti_search.h"
#include "env.h"
#include "inject.h"
#include "rank.h"

#include <sys/un.h>

/* ---- inject.c ---- */

/* The largest page of a kernel that may run this. */
#ifdef __aarch64__
#define INJ_PAGE_MAX 65536
#else
#define INJ_PAGE_MAX 4096
#endif

/*
 * What the hot paths look at. The kernel zeroes this page in every child that fork() or a raw
 * clone() makes (MADV_WIPEONFORK), so that a child is inert before it runs anything of ours.
 */
struct inj_live {
	_Atomic uint32_t alive;      /* a session runs in this very process */
	_Atomic uint32_t recording;  /* events of ranges are wanted */
	_Atomic uint32_t taking;     /* CUDA calls are wanted */
	_Atomic uint32_t heard;      /* and all are heard of as they are made, by callbacks */
	_Atomic uint32_t generation; /* of the subscription to CUDA calls; set before heard */
	_Atomic uint32_t armed;      /* what this phase of the schedule wants is switched on */
	_Atomic uint32_t on;         /* CUPTI's kinds and callbacks are on */
	_Atomic uint32_t was_on;     /* or its kinds were, before: the first time takes longest */
	_Atomic uint32_t done;       /* the last request the control thread has dealt with */
} __attribute__((aligned(INJ_PAGE_MAX)));
extern struct inj_live inj_live;

/* Who sees it sees all that was set up before, such as inj_arena. */
static inline bool inj_live_alive(void)
{
	return atomic_load_explicit(&inj_live.alive, memory_order_acquire);
}

enum inj_capture {
	INJ_CAPTURE_AUTO, /* a cudaProfilerStart() before the first step */
	INJ_CAPTURE_NONE, /* steps and nothing else */
	INJ_CAPTURE_PROFILER,
	INJ_CAPTURE_NVTX,
	INJ_CAPTURE_TIME,
};

/* The environment, read once at entry. */
struct inj_config {
	struct gt_schedule schedule;
	struct gt_rank rank;
	uint32_t sources;        /* bit enum gt_step_source: marks that count */
	enum gt_arena_mode mode; /* at the start */
	enum inj_capture capture;
	uint64_t arena_bytes;
	bool graph_whole; /* one GPU record a graph launch instead of one a node */
	bool debug;
	bool nsight;        /* Nsight Systems records, see nsight.h */
	bool kineto_daemon; /* may have torch profile at any time, unannounced */
	bool quiet;         /* of it, only what goes wrong is said */
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char libcupti[1024];                /* empty: look for it */
	char cuda_dirs[GT_CUPTI_DIRS][512]; /* by gt_cupti_dir_vars */
	char step_range[GT_ENV_REGEX_MAX];  /* empty: none */
	char torch[32];                     /* its version, by its hook; empty: not known */
};
extern struct inj_config inj_config;

/* ---- arena.c ---- */

/* The arena as the collector sees it; set before inj_live.alive, never changed. */
extern struct gt_arena_hdr *inj_arena;

/* Make the arena and *ret_fd for it, the caller's. 0 or -errno. */
int inj_arena_create(uint64_t bytes, enum gt_arena_mode mode, int *ret_fd);

/* The first buffers for GPU work. false: there is no memory for them. */
bool inj_arena_attach(void);

/* Does the collector read the CUPTI chunks about as fast as flushes complete them? */
bool inj_arena_keeps_up(void);

/* The number of chunks of this pool. */
uint32_t inj_arena_chunks(enum gt_pool pool);

/* The one of this number. One that was never taken has the seq 0. */
struct gt_chunk *inj_chunk_at(enum gt_pool pool, uint32_t number);

/* Make some more of this pool's chunks ready. false when there are none left, or no memory. */
bool inj_arena_grow(enum gt_pool pool);

/* Take a free chunk of this pool, BUSY and in order; NULL when there is none. */
struct gt_chunk *inj_chunk_take(enum gt_pool pool, uint32_t tid);
void *inj_chunk_data(enum gt_pool pool, const struct gt_chunk *chunk);
/* Its owner writes no more: the collector's turn. */
void inj_chunk_done(struct gt_chunk *chunk, uint32_t used_bytes);
/* The BUSY buffer chunk that starts at data, NULL when data is no chunk of the pool. */
struct gt_chunk *inj_chunk_of(enum gt_pool pool, const void *data);

/* ---- names.c ---- */

int inj_names_init(void); /* 0 or -errno */

/* The id of a kernel's name, cached by its address too; 0 when it has none or it failed. */
uint32_t inj_intern_pointer(const char *name);

/* ---- transport.c ---- */

/*
 * Connect to the collector and say hello, with the arena's descriptor. Waits 200 ms at most for a
 * place in the collector's queue. 0 or -errno.
 */
int inj_transport_connect(const char *path, const struct gt_msg_hello *hello, int arena_fd);

/*
 * Send one message, whose header this fills. Never waits for more than wait_ms. 0; -EAGAIN when
 * there is no room; -EBADF when the program closed the descriptor; else the collector is gone.
 */
int inj_transport_send(enum gt_msg_type type, void *msg, uint32_t size_bytes, int wait_ms);

union inj_message { /* from the collector */
	struct gt_msg_hdr hdr;
	struct gt_msg_cycle cycle;
	struct gt_msg_plan plan;
};

/* The next message, its type > 0; 0 none; -EBADF and others as for send. */
int inj_transport_recv(union inj_message *ret);

void inj_transport_forget(void); /* fork child: drop the descriptor without a word */

/* ---- wake.c ---- */

/* Something changed: wake the control thread. The ticket is for inj_control_wait(). */
uint32_t inj_control_post(void);

/* Wait until the control thread has dealt with what was posted, timeout_ms at most. */
bool inj_control_wait(uint32_t ticket, uint32_t timeout_ms);

/* The control thread: what was posted up to 'handled' is dealt with; wait for more than was seen.
 */
void inj_control_next(uint32_t handled, uint32_t seen, uint32_t timeout_ms);

uint64_t inj_now_ms(void); /* CLOCK_MONOTONIC */

/* ---- control.c ---- */

int inj_control_start(void); /* 0 or -errno */

/* The first cuInit() is running on this thread: find CUPTI, switch on what is wanted by now. */
void inj_control_attach(void);

/* Have inj_control_exit() called before the exit handlers that CUDA has registered by now. */
void inj_exit_early(void);

/*
 * The program ends in an orderly way. Waits 200 ms at most, and only with a window open or while
 * the control thread is at work.
 */
void inj_control_exit(void);

/* ---- steps.c ---- */

int inj_steps_init(void); /* 0 or -errno: the regex */

/* What rules: that of the environment, unless the program's captured ranges took over. */
const struct gt_schedule *inj_steps_schedule(void);

/* Where this step is in it and in the plans. */
void inj_steps_at(uint64_t step, struct gt_sched_pos *ret);

/* Does a window come so soon after this step that CUPTI is to be called, if it never was? */
bool inj_steps_near(uint64_t step);
bool inj_steps_plan_near(const struct gt_plan *plan);

/*
 * Take a plan, unless the program is in the step in which it begins or past it: no mark comes in
 * between. *ret_step is the step it is in. From the control thread, as the next one.
 */
bool inj_steps_plan(const struct gt_plan *plan, uint32_t *ret_step);

/* Take the plan of this cycle back, if it is the newest. */
void inj_steps_cancel(uint64_t cycle);

/* The source of the steps once it cannot change any more, GT_STEP_NONE before. */
enum gt_step_source inj_steps_frozen(void);

/* ---- device.c ---- */

/* Find what follows in the program's libraries; on its thread, as the loader's lock may be held. */
void inj_device_init(void);

/* The function of that name in a library, or in the CUDA runtime, that the program has loaded. */
void *inj_find_loaded(const char *library, const char *name);
void *inj_find_runtime(const char *name);

uint32_t inj_driver_version(void);  /* cuDriverGetVersion(), 0 when not known */
uint32_t inj_runtime_version(void); /* of a mapped libcudart, 0 when not known */

/* Send the properties of every GPU. true when done, false when CUDA is not initialized yet. */
bool inj_devices_send(void);

#endif
