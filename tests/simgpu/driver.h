/*
 * driver.h - the objects of the simulated driver, and the macros of its entry points. One lock
 * (sim_lock) guards them all; no callback into a tool is made under it.
 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "sim.h"

#include <pthread.h>
#include <stdatomic.h>

struct CUctx_st {
	uint32_t uid;
	int device;
	uint32_t next_stream_id;
	struct CUstream_st *streams; /* all of them, linked by next */
	struct CUstream_st *legacy;  /* the default stream */
	uint64_t legacy_ns;          /* end of all work on the default stream */
	uint64_t blocking_ns;        /* end of all work on the streams that synchronise with it */
	uint64_t all_ns;             /* end of all work */
};

#define SIM_DEPS_MAX 4

struct sim_deps {
	struct CUgraphNode_st *node[SIM_DEPS_MAX];
	unsigned int count;
};

struct CUstream_st {
	struct CUctx_st *ctx;
	uint32_t id;
	bool non_blocking;
	uint64_t end_ns;            /* end of the work submitted so far */
	struct CUgraph_st *capture; /* the graph under capture, NULL: none */
	bool capture_origin;        /* capture began on this stream */
	struct sim_deps tail;       /* capture: what the next node depends on */
	struct CUstream_st *next;
};

struct CUevent_st {
	struct CUctx_st *ctx;
	uint64_t time_ns;
	struct CUgraph_st *capture; /* recorded on a stream under capture */
	struct sim_deps tail;
};

struct CUgraphNode_st {
	struct CUgraph_st *graph;
	uint32_t index;
	CUgraphNodeType type;
	struct sim_work work; /* a template: times and ids are set at the launch */
	struct sim_deps deps;
	uint64_t end_ns; /* scratch of one launch */
	struct CUgraphNode_st *next;
};

struct CUgraph_st {
	uint32_t id;
	struct CUgraphNode_st *first;
	struct CUgraphNode_st *last;
	uint32_t count;
};

struct CUgraphExec_st {
	uint32_t id;
	struct CUgraph_st *graph; /* a copy of its own */
	bool traced;              /* GRAPH_TRACE was on when this was made */
};

extern pthread_mutex_t sim_lock;

/* device.c: of the calling thread; NULL: none. */
struct CUctx_st *sim_current(void);
const struct sim_call *sim_innermost(void);

/*
 * stream.c. sim_resolve: the stream behind a handle (default streams too), NULL: no such stream;
 * takes the lock. sim_place: lock held; the times of work of this length submitted now.
 */
struct CUstream_st *sim_resolve(CUstream handle);
struct CUstream_st *sim_stream_new(struct CUctx_st *ctx, bool non_blocking, bool is_default);
void sim_place(struct CUstream_st *stream, uint64_t duration_ns, uint64_t *start_ns,
	       uint64_t *end_ns);
void sim_sleep_until(uint64_t time_ns);

/* In the ptsz forms the NULL stream is the thread's own. */
CUstream sim_per_thread(CUstream stream);

/*
 * submit.c: put work on a stream, or into the graph that the stream is capturing. Sets its device,
 * context, stream and times, and tells the tools. wait: return when it is done.
 */
CUresult sim_submit(CUstream stream, struct sim_work *work, bool wait);
uint64_t sim_duration_ns(const struct sim_work *work);
void sim_execute(const struct sim_work *work);
void sim_emit(struct sim_work *work);

/* graph.c: lock held. */
struct CUgraphNode_st *sim_graph_add(struct CUgraph_st *graph, const struct sim_work *work,
				     const struct sim_deps *deps);

/* Who listens; NULL: nobody. */
const struct sim_tools *sim_tools(void);

#define DRIVER_CBID(fn) CUPTI_DRIVER_TRACE_CBID_##fn

/* DRIVER_API(name, (parameters), (arguments), expression of the result) */
#define DRIVER_API(fn, decl, args, ...)                                                         \
	SIM_ENTRY(fn, CUresult, CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_CBID(fn), fn##_params, decl, \
		  args, simgpu_ready(), NULL, __VA_ARGS__)

/* The same and its ptsz form; the stream parameter is called stream. */
#define DRIVER_API_PTSZ(fn, decl, args, ...)    \
	DRIVER_API(fn, decl, args, __VA_ARGS__) \
	DRIVER_API(fn##_ptsz, decl, args, (stream = sim_per_thread(stream), __VA_ARGS__))

/* Launches: with the name of the kernel. */
#define DRIVER_LAUNCH(fn, decl, args, kernel, ...)                                              \
	SIM_ENTRY(fn, CUresult, CUPTI_CB_DOMAIN_DRIVER_API, DRIVER_CBID(fn), fn##_params, decl, \
		  args, simgpu_ready(), simgpu_kernel_name(kernel), __VA_ARGS__)

struct sim_no_params {
	char unused;
};

#endif
