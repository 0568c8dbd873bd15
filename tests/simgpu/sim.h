/*
 * sim.h - what the three stand-in libraries share. libcuda.so.1 holds the simulation: devices,
 * streams and a timeline on which the end of every piece of work is known when it is submitted.
 * libcudart.so.13 calls it as the real runtime calls the driver, libcupti.so.13 observes it.
 *
 * The entry points have the ABI of the CUDA 13.0 headers. Work is not executed: only its times are
 * computed, and copies move bytes when they are submitted.
 */
#ifndef SIM_H
#define SIM_H

#include "base.h"

#include <cuda.h>
#include <cupti.h>

#define SIM_DEVICES_MAX 8
#define SIM_DEFAULT_ID  7  /* CUPTI's id of a context's default stream, as on real devices */
#define SIM_FIRST_ID    13 /* of the first stream that a program creates */

/* ---- faults.c: the environment variable SIMGPU_FAULTS ---- */

/* Record layouts: those of CUDA 11.8, 12.0, 12.8, 13.0 and 13.3. */
enum sim_layout { SIM_11_8, SIM_12_0, SIM_12_8, SIM_13_0, SIM_13_3, SIM_LAYOUT_MAX };

/* X(field, default, meaning). "name=N" or "name" (1) in the list; N may end in us, ms or s (ns). */
#define SIM_FAULTS(X)                                                                            \
	X(devices, 2, "how many devices there are")                                              \
	X(driver, 13000, "what cuDriverGetVersion says")                                         \
	X(no_device, 0, "cuInit fails with CUDA_ERROR_NO_DEVICE")                                \
	X(init_error, 0, "cuInit fails with this error")                                         \
	X(init_hangs, 0, "cuInit never returns, and only SIGKILL ends it")                       \
	X(init_crashes, 0, "cuInit ends the process by SIGKILL")                                 \
	X(context_error, 0, "cuDevicePrimaryCtxRetain fails with this error")                    \
	X(no_compiler, 0, "cuModuleLoadData fails with CUDA_ERROR_JIT_COMPILER_NOT_FOUND")       \
	X(slow, 1, "every duration on the device is N times as long")                            \
	X(hostile_names, 0, "kernel names get quotes, newlines, bad UTF-8 or 64 KiB")            \
	X(drop, 0, "every Nth GPU record is dropped (and counted as CUPTI counts)")              \
	X(lose, 0, "every Nth GPU record never comes, and nobody counts it")                     \
	X(zero_time, 0, "every Nth GPU record has start and end 0")                              \
	X(end_before_start, 0, "every Nth GPU record ends before it starts")                     \
	X(unknown_kind, 0, "a record of the undocumented kind 61 before every Nth")              \
	X(alien_kind, 0, "a record of kind 200, beyond any table, before every Nth")             \
	X(late, 0, "records are complete this long after the work has ended")                    \
	X(withhold, 0, "a flush keeps the buffers of threads that have work in flight")          \
	X(in_place, 0, "records are in their buffers from the launch on, marked until it comes") \
	X(async_flush, 0, "cuptiActivityFlushAll returns before the buffers do")                 \
	X(slow_call, 0, "the first call of CUPTI, whichever it is, takes this long")             \
	X(slow_enable, 0, "the first cuptiActivityEnable takes this long")                       \
	X(forget_young, 0, "cuptiActivityDisable loses threads that began less than this ago")   \
	X(subscriber_taken, 0, "cuptiSubscribe fails with error 39")                             \
	X(enable_fails, 0, "cuptiActivityEnable fails with CUPTI_ERROR_INSUFFICIENT_PRIVILEGES") \
	X(report, 0,                                                                             \
	  "say on stderr when CUPTI is first called, and then what became of the records")       \
	X(foreign_buffers, 0, "bufferCompleted is also called with a buffer never requested")

struct sim_faults {
	enum sim_layout layout; /* record_sizes=11.8 … */
#define SIM_FAULT_FIELD(name, value, help) uint64_t name;
	SIM_FAULTS(SIM_FAULT_FIELD)
#undef SIM_FAULT_FIELD
};

/* Parsed at the first call. */
const struct sim_faults *simgpu_faults(void);

/* ---- calls: every entry point announces itself ---- */

struct sim_api {
	CUpti_CallbackDomain domain;
	CUpti_CallbackId cbid;
	const char *name;
};

struct sim_call { /* on the stack of the entry point */
	const struct sim_api *api;
	const void *params;
	void *result;
	const char *symbol; /* of the kernel, launches only */
	struct sim_call *parent;
	uint32_t correlation; /* that of the outermost call */
	uint64_t start_ns;
	uint64_t data; /* CUpti_CallbackData.correlationData */
};

void simgpu_enter(struct sim_call *call, const struct sim_api *api, const void *params,
		  void *result, const char *symbol);
void simgpu_exit(struct sim_call *call);

/* CUDA_SUCCESS, or why no call may be made: before cuInit, in InitializeInjection, after fork. */
CUresult simgpu_ready(void);

/* ---- GPU work ---- */

enum sim_kind { SIM_KERNEL, SIM_COPY, SIM_PEER, SIM_SET, SIM_EMPTY, SIM_GRAPH };

struct sim_work {
	enum sim_kind kind;
	uint64_t start_ns; /* CLOCK_REALTIME */
	uint64_t end_ns;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation;
	uint32_t graph_id;
	uint64_t graph_node_id;
	const char *name;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_bytes;
	uint64_t bytes;
	uint8_t copy_kind; /* CUpti_ActivityMemcpyKind */
	uint8_t src_kind;  /* CUpti_ActivityMemoryKind */
	uint8_t dst_kind;
	bool async;
	uint32_t value;
	CUdeviceptr dst;
	CUdeviceptr src;
	uint32_t src_device; /* SIM_PEER */
	uint32_t dst_device;
	uint32_t src_context;
	uint32_t dst_context;
};

/* What libcupti.so.13 hears. No lock is held during these. */
struct sim_tools {
	void (*enter)(struct sim_call *call);
	void (*exit)(struct sim_call *call);
	void (*work)(const struct sim_work *work);
	void (*resource)(CUpti_CallbackIdResource cbid, CUpti_GraphData *graph);
	bool (*traces_graphs)(void); /* is CUPTI_ACTIVITY_KIND_GRAPH_TRACE on? */
	bool (*on)(void);            /* kernels are recorded, and their launches told */
	bool (*listening)(void);     /* and the tool has done what it does then */
	void (*synchronized)(const struct sim_call *call, uint32_t context, uint32_t stream,
			     CUpti_ActivitySynchronizationType type, uint64_t start_ns);
};

void simgpu_set_tools(const struct sim_tools *tools);

/* libcupti.so.13: what on() and listening() say may have changed. */
void simgpu_tools_changed(void);

/*
 * For programs, found by dlsym(): wait until a tool listens, or is off, 10 s at most. One that is
 * on but does not listen yet is neither: for what was before it may still go off. With it a test
 * knows that the tool's own threads have done what they have to, however busy the machine is.
 */
void simgpu_wait_for_tools(int listening);

uint64_t simgpu_now_ns(void);

/* So many pieces of work were given to the devices. */
uint64_t simgpu_work(void);

/* For CUPTI's questions. 0 or an id; false: no such object. */
uint32_t simgpu_context_uid(CUcontext ctx);
bool simgpu_context_device(CUcontext ctx, uint32_t *ret);
bool simgpu_stream_id(CUcontext ctx, CUstream stream, bool per_thread, uint32_t *ret);
CUcontext simgpu_current_context(void);
uint32_t simgpu_graph_id(CUgraph graph);
uint32_t simgpu_graph_exec_id(CUgraphExec exec);
uint64_t simgpu_graph_node_id(CUgraphNode node);
const char *simgpu_kernel_name(const void *kernel);

/* ---- macros that define entry points ---- */

#define SIM_LIST(...) __VA_ARGS__

#define SIM_ENTRY(fn, ret_t, domain_, cbid_, params_t, decl, args, ready, symbol, ...)   \
	ret_t fn decl;                                                                   \
	ret_t fn decl                                                                    \
	{                                                                                \
		static const struct sim_api sim_api_ = { domain_, cbid_, #fn };          \
		const params_t sim_params_ = { SIM_LIST args };                          \
		ret_t sim_result_ = (ret_t)(ready);                                      \
		if (sim_result_)                                                         \
			return sim_result_;                                              \
		struct sim_call sim_call_;                                               \
		simgpu_enter(&sim_call_, &sim_api_, &sim_params_, &sim_result_, symbol); \
		sim_result_ = (ret_t)(__VA_ARGS__);                                      \
		simgpu_exit(&sim_call_);                                                 \
		return sim_result_;                                                      \
	}

#endif
