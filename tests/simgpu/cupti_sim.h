/*
 * cupti_sim.h - what the parts of the simulated libcupti share.
 */
#ifndef SIM_CUPTI_H
#define SIM_CUPTI_H

#include "sim.h"

#define SIM_RECORD_MAX  256 /* bytes of the largest record */
#define SIM_KIND_MAX    256
#define SIM_KIND_HIDDEN 61  /* has a size, but no header tells what it is */
#define SIM_KIND_ALIEN  200 /* likewise, and lies beyond every table */

struct sim_record {
	uint32_t size_bytes; /* 0: no such record */
	bool gpu;
	_Alignas(8) uint8_t bytes[SIM_RECORD_MAX];
};

/* cupti_record.c. The size of a record in the layout of the faults, 0: undefined kind. */
uint32_t sim_record_bytes(uint32_t kind);
void sim_record_work(struct sim_record *ret, const struct sim_work *work, uint32_t kernel_kind);
void sim_record_call(struct sim_record *ret, const struct sim_call *call, uint64_t end_ns,
		     uint32_t thread_id);
void sim_record_sync(struct sim_record *ret, const struct sim_call *call, uint32_t context,
		     uint32_t stream, CUpti_ActivitySynchronizationType type, uint64_t start_ns,
		     uint64_t end_ns);
void sim_record_opaque(struct sim_record *ret, uint32_t kind);
/* Set the times of a GPU record; complete is the device's own end. */
void sim_record_times(struct sim_record *record, uint64_t start_ns, uint64_t end_ns);

/* cupti_buffer.c. Put a record into the calling thread's buffer once due_ns has come. */
void sim_buffer_add(const struct sim_record *record, uint64_t due_ns);
void sim_buffer_count_drop(void);
void sim_buffer_start_worker(void);
void sim_buffer_called(void); /* CUPTI was */
/*
 * Kinds are disabled: as on real devices with CUPTI 13.0, a thread that began just now records
 * nothing from now on, if the faults say so.
 */
void sim_buffer_forget_young(void);

/* cupti_activity.c */
bool sim_activity_on(uint32_t kind);
bool sim_activity_on_call(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);
void sim_activity_call(const struct sim_call *call);
void sim_activity_work(const struct sim_work *work);
void sim_activity_sync(const struct sim_call *call, uint32_t context, uint32_t stream,
		       CUpti_ActivitySynchronizationType type, uint64_t start_ns);

/*
 * cupti_callback.c: listen to the simulated driver, as CUPTI 13.0 on an H200 does from any call on,
 * but for those of its version and of names, whether anything is on or not. Idempotent.
 */
void sim_attach(void);
/*
 * A tool that switches something on has not settled; it has when it flushes for the first time
 * after that. Only then it listens, as far as simgpu_wait_for_tools() is concerned.
 */
void sim_callback_unsettle(void);
void sim_callback_settle(void);

#endif
