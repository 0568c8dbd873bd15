/*
 * train_profiler.c - the program's own profiler: what Kineto does in a process, reduced to its
 * footprint. It does not know about any other tool.
 */
#include "train.h"

#include <cupti.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define BUFFER_BYTES (1 << 20)

static struct {
	CUptiResult (*subscribe)(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *);
	CUptiResult (*unsubscribe)(CUpti_SubscriberHandle);
	CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc,
					  CUpti_BuffersCallbackCompleteFunc);
	CUptiResult (*register_clock)(CUpti_TimestampCallbackFunc);
	CUptiResult (*enable)(CUpti_ActivityKind);
	CUptiResult (*disable)(CUpti_ActivityKind);
	CUptiResult (*flush_all)(uint32_t);
	CUptiResult (*next_record)(uint8_t *, size_t, CUpti_Activity **);
	CUpti_SubscriberHandle subscriber;
	bool subscribed;
	_Atomic unsigned long kernels;
} cupti;

static const CUpti_ActivityKind kinds[] = { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
					    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
					    CUPTI_ACTIVITY_KIND_RUNTIME,
					    CUPTI_ACTIVITY_KIND_DRIVER };

static bool load(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW);
	const struct {
		const char *name;
		void *function;
	} symbols[] = {
		{ "cuptiSubscribe", &cupti.subscribe },
		{ "cuptiUnsubscribe", &cupti.unsubscribe },
		{ "cuptiActivityRegisterCallbacks", &cupti.register_callbacks },
		{ "cuptiActivityRegisterTimestampCallback", &cupti.register_clock },
		{ "cuptiActivityEnable", &cupti.enable },
		{ "cuptiActivityDisable", &cupti.disable },
		{ "cuptiActivityFlushAll", &cupti.flush_all },
		{ "cuptiActivityGetNextRecord", &cupti.next_record },
	};

	for (size_t i = 0; library && i < ARRAY_SIZE(symbols); i++)
		*(void **)symbols[i].function = dlsym(library, symbols[i].name);
	return library != NULL;
}

static void on_request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	*size = BUFFER_BYTES;
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*max_records = 0;
}

/* A buffer of another tool may come here too. Kineto leaves it alone; so does this. */
static void on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
			size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context;
	(void)stream;
	if (size != BUFFER_BYTES)
		return;
	while (cupti.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
		if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
			atomic_fetch_add(&cupti.kernels, 1);
	}
}

/* Kineto's is the processor's tick counter. */
static uint64_t ticks(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * GT_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
		    const void *data)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)data;
}

void train_profiler_start(void)
{
	CUptiResult res;

	if (!load())
		return;
	res = cupti.subscribe(&cupti.subscriber, on_call, NULL);
	cupti.subscribed = res == CUPTI_SUCCESS;
	printf("profiler: subscribe %d\n", (int)res);
	cupti.register_callbacks(on_request, on_complete);
	cupti.register_clock(ticks);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		cupti.enable(kinds[i]);
}

void train_profiler_stop(void)
{
	for (size_t i = 0; cupti.disable && i < ARRAY_SIZE(kinds); i++)
		cupti.disable(kinds[i]);
	if (cupti.flush_all)
		cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	if (cupti.subscribed)
		cupti.unsubscribe(cupti.subscriber);
	printf("profiler: %lu kernels\n", atomic_load(&cupti.kernels));
}
