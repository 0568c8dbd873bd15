/*
 * cupti_api.h - the CUPTI library of this process: found at run time, called through a table. What
 * a CUPTI of another age than our headers lacks or has more of is settled here.
 */
#ifndef INJ_CUPTI_API_H
#define INJ_CUPTI_API_H

#include "session.h"

#include <cupti.h>

#define INJ_CUPTI_REQUIRED(X)             \
	X(cuptiGetVersion)                \
	X(cuptiGetCallbackName)           \
	X(cuptiActivityRegisterCallbacks) \
	X(cuptiActivityEnable)            \
	X(cuptiActivityDisable)           \
	X(cuptiActivityFlushAll)          \
	X(cuptiActivityGetNextRecord)

/* What comes without one of these is said where it is used. */
#define INJ_CUPTI_OPTIONAL(X)                     \
	X(cuptiActivitySetAttribute)              \
	X(cuptiActivityGetNumDroppedRecords)      \
	X(cuptiActivityEnableRuntimeApi)          \
	X(cuptiActivityEnableDriverApi)           \
	X(cuptiSubscribe)                         \
	X(cuptiUnsubscribe)                       \
	X(cuptiEnableCallback)                    \
	X(cuptiGetStreamIdEx)                     \
	X(cuptiActivityRegisterTimestampCallback) \
	X(cuptiGetTimestamp)                      \
	X(cuptiGetThreadIdType)                   \
	X(cuptiSetThreadIdType)

struct inj_cupti {
#define INJ_CUPTI_MEMBER(name) __typeof__(name) *name;
	INJ_CUPTI_REQUIRED(INJ_CUPTI_MEMBER)
	INJ_CUPTI_OPTIONAL(INJ_CUPTI_MEMBER)
#undef INJ_CUPTI_MEMBER
	uint32_t version;                   /* cuptiGetVersion() */
	uint16_t record_bytes[GT_KIND_MAX]; /* size of each activity record kind, 0: undefined */
};

/* Filled by inj_cupti_load(), constant afterwards. */
extern struct inj_cupti inj_cupti;

/* Find and open CUPTI. false when there is none that can be used; the reason has been said. */
bool inj_cupti_load(void);

/* The sizes of the activity records of the CUPTI whose cuptiActivityGetNextRecord() this is. */
void inj_cupti_probe_records(__typeof__(cuptiActivityGetNextRecord) *next_record,
			     uint16_t ret_bytes[GT_KIND_MAX]);

/* Like CUPTI's own error texts, short. */
const char *inj_cupti_error(CUptiResult result);

/* ---- activity.c: GPU work through activity buffers ---- */

/*
 * Have CUPTI's records come into our buffers, every time before any kind is enabled: another tool
 * may have registered its own since, and what a thread records goes on into the buffer it has. 0 or
 * -EIO, said.
 */
int inj_activity_take(void);

/* Our kinds. 0 or -EIO, said. */
int inj_activity_on(void);
void inj_activity_off(void);

/*
 * Before any context exists: switch on what traces graphs as wholes, if that is wanted. prearm:
 * have CUPTI do now what it does at its first call and when a kind is first enabled.
 */
void inj_activity_attach(bool prearm);

/*
 * CUPTI's first call, if there was none, which is what takes its time. It takes no kind, for one
 * that is disabled soon after a thread's first launch loses that thread; nor the buffers, which may
 * be those of a profiler that tells nobody.
 */
void inj_activity_prepare(void);

/*
 * Trace graphs node by node from now on, so that nothing is on and CUPTI asks for no buffers. After
 * inj_activity_off(). The second is for the program's own profiler, and says so.
 */
void inj_activity_end_graphs(void);
void inj_activity_yield(void);

/* Take what is complete; forced: also what is not. Counts CUPTI's losses. */
void inj_activity_flush(bool forced);

/*
 * Tell the collector the names of kernels in buffers that CUPTI still holds, for it to read them
 * where they are. On one thread at a time.
 */
void inj_activity_name_held(void);

/* A buffer was asked for: the GPU has something to do. */
bool inj_activity_seen(void);

/* Buffers that came back with records, since the start. */
uint32_t inj_activity_buffers(void);

/* ---- launches.c: CUDA calls through callbacks ---- */

/* Sort all callback ids by the names this CUPTI gives them. Once. */
void inj_launches_init(void);

/*
 * Subscribe. When that cannot be had (another tool has the only place), the API's activity records
 * do instead, which cost more. 0, or -EBUSY in this case.
 */
int inj_launches_on(void);
void inj_launches_off(void);

/*
 * Hear of the calls that begin and end captured ranges, or do not, while nothing else is on: as
 * long as that lasts no other tool can subscribe. When one has the place already, that is said.
 */
void inj_launches_listen(bool on);

/* Was a graph launched? */
bool inj_launches_graph_seen(void);

#endif
