/*
 * callbacks_rig.h - CUDA calls by callbacks, of a CUPTI that the test plays, and the events that
 * become of them.
 */
#ifndef CALLBACKS_RIG_H
#define CALLBACKS_RIG_H

#include "cupti_api.h"
#include "events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#define DRIVER  CUPTI_CB_DOMAIN_DRIVER_API
#define RUNTIME CUPTI_CB_DOMAIN_RUNTIME_API

enum { LAUNCH = 211, COPY = 41, GRAPH = 311, SYNC = 165, OTHER = 1, DRIVER_LAUNCH = 307 };
enum { START = 134, DRIVER_STOP = 305 }; /* of captured ranges */

/* ---- CUPTI ---- */

static struct {
	CUptiResult subscribe_result;
	CUpti_CallbackFunc callback;
	unsigned enabled;      /* callbacks */
	unsigned call_at;      /* a thread makes a call when so many are; 0: none does */
	bool left_out[2][512]; /* records of single calls: runtime, driver */
	uint64_t kinds;        /* bit mask */
	CUpti_ActivityThreadIdType thread_ids;
} cupti;

static inline CUptiResult CUPTIAPI get_name(CUpti_CallbackDomain domain, uint32_t cbid,
					    const char **name)
{
	static const struct {
		CUpti_CallbackDomain domain;
		uint32_t cbid;
		const char *name;
	} names[] = {
		{ RUNTIME, LAUNCH, "cudaLaunchKernel_v7000" },
		{ RUNTIME, COPY, "cudaMemcpyAsync_v3020" },
		{ RUNTIME, GRAPH, "cudaGraphLaunch_ptsz_v10000" },
		{ RUNTIME, SYNC, "cudaDeviceSynchronize_v3020" },
		{ RUNTIME, OTHER, "cudaDriverGetVersion_v3020" },
		{ RUNTIME, START, "cudaProfilerStart_v4000" },
		{ DRIVER, DRIVER_LAUNCH, "cuLaunchKernel" },
		{ DRIVER, DRIVER_STOP, "cuProfilerStop" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (names[i].domain != domain || names[i].cbid != cbid)
			continue;
		*name = names[i].name;
		return CUPTI_SUCCESS;
	}
	return CUPTI_ERROR_INVALID_PARAMETER;
}

static inline CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle *handle,
					     CUpti_CallbackFunc callback, void *arg)
{
	(void)handle;
	(void)arg;
	if (cupti.subscribe_result == CUPTI_SUCCESS)
		cupti.callback = callback;
	return cupti.subscribe_result;
}

static inline CUptiResult CUPTIAPI unsubscribe(CUpti_SubscriberHandle handle)
{
	(void)handle;
	cupti.callback = NULL;
	cupti.enabled = 0;
	return CUPTI_SUCCESS;
}

static void make_call(void);

static inline CUptiResult CUPTIAPI enable_callback(uint32_t on, CUpti_SubscriberHandle handle,
						   CUpti_CallbackDomain domain,
						   CUpti_CallbackId cbid)
{
	(void)handle;
	(void)domain;
	(void)cbid;
	cupti.enabled += on ? 1 : -1U;
	if (on && cupti.enabled == cupti.call_at)
		make_call();
	return CUPTI_SUCCESS;
}

/* As measured: without effect while the kind is off. */
static inline CUptiResult set_record(CUpti_ActivityKind kind, CUpti_CallbackId cbid, uint8_t on)
{
	if (cupti.kinds & UINT64_C(1) << kind && cbid < ARRAY_SIZE(cupti.left_out[0]))
		cupti.left_out[kind == CUPTI_ACTIVITY_KIND_DRIVER][cbid] = !on;
	return CUPTI_SUCCESS;
}

static inline CUptiResult CUPTIAPI set_runtime_record(CUpti_CallbackId cbid, uint8_t on)
{
	return set_record(CUPTI_ACTIVITY_KIND_RUNTIME, cbid, on);
}

static inline CUptiResult CUPTIAPI set_driver_record(CUpti_CallbackId cbid, uint8_t on)
{
	return set_record(CUPTI_ACTIVITY_KIND_DRIVER, cbid, on);
}

static inline CUptiResult CUPTIAPI get_stream(CUcontext context, CUstream stream,
					      uint8_t per_thread, uint32_t *ret)
{
	(void)context;
	*ret = (uint32_t)(uintptr_t)stream + 100U * per_thread;
	return CUPTI_SUCCESS;
}

static inline CUptiResult CUPTIAPI get_thread_ids(CUpti_ActivityThreadIdType *ret)
{
	*ret = cupti.thread_ids;
	return CUPTI_SUCCESS;
}

static inline CUptiResult CUPTIAPI set_thread_ids(CUpti_ActivityThreadIdType type)
{
	cupti.thread_ids = type;
	return CUPTI_SUCCESS;
}

static inline CUptiResult CUPTIAPI enable_kind(CUpti_ActivityKind kind)
{
	cupti.kinds |= UINT64_C(1) << kind;
	return CUPTI_SUCCESS;
}

static inline CUptiResult CUPTIAPI disable_kind(CUpti_ActivityKind kind)
{
	cupti.kinds &= ~(UINT64_C(1) << kind);
	return CUPTI_SUCCESS;
}

/* ---- the program's calls ---- */

static int result;

static inline void call(CUpti_ApiCallbackSite site, CUpti_CallbackDomain domain,
			CUpti_CallbackId cbid, uint32_t correlation, const void *params)
{
	const CUpti_CallbackData data = { .callbackSite = site,
					  .functionParams = params,
					  .functionReturnValue = &result,
					  .contextUid = 0x102,
					  .correlationId = correlation };

	cupti.callback(NULL, domain, cbid, &data);
}

#define enter(domain, cbid, id) call(CUPTI_API_ENTER, domain, cbid, id, NULL)
#define leave(domain, cbid, id) call(CUPTI_API_EXIT, domain, cbid, id, NULL)

static inline void make_call(void)
{
	enter(RUNTIME, COPY, 1);
	leave(RUNTIME, COPY, 1);
}

static inline void add_graph_node(void)
{
	CUpti_ResourceData data = { .context = NULL };

	cupti.callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
		       &data);
}

static uint32_t read_bytes; /* of this thread's events */

/* Those since the last call. */
static inline const struct gt_ev_call *new_calls(unsigned *ret_count)
{
	const char *data = inj_self->data;
	uint32_t from = read_bytes;

	*ret_count = 0;
	read_bytes = inj_self->pos;
	for (uint32_t pos = from; pos < read_bytes; (*ret_count)++) {
		const struct gt_ev *ev = (const void *)(data + pos);

		assert_int_equal(ev->type, GT_EV_CALL);
		assert_int_equal(ev->size_bytes, sizeof(struct gt_ev_call));
		pos += ev->size_bytes;
	}
	return (const void *)(data + from);
}

static inline struct gt_ev_call the_call(void)
{
	unsigned count;
	const struct gt_ev_call *calls = new_calls(&count);

	assert_int_equal(count, 1);
	return *calls;
}

static inline void assert_no_call(void)
{
	unsigned count;

	new_calls(&count);
	assert_int_equal(count, 0);
}

static inline int subscribed(void **state)
{
	(void)state;
	read_bytes = inj_self->pos;
	result = 0;
	cupti.subscribe_result = CUPTI_SUCCESS;
	atomic_store(&inj_live.taking, 1);
	return inj_launches_on();
}

static inline int unsubscribed(void **state)
{
	(void)state;
	inj_launches_off();
	return cupti.callback || cupti.enabled;
}

static inline int create(void **state)
{
	int fd = -1;

	(void)state;
	inj_cupti.cuptiGetCallbackName = get_name;
	inj_cupti.cuptiSubscribe = subscribe;
	inj_cupti.cuptiUnsubscribe = unsubscribe;
	inj_cupti.cuptiEnableCallback = enable_callback;
	inj_cupti.cuptiActivityEnableRuntimeApi = set_runtime_record;
	inj_cupti.cuptiActivityEnableDriverApi = set_driver_record;
	inj_cupti.cuptiGetStreamIdEx = get_stream;
	inj_cupti.cuptiGetThreadIdType = get_thread_ids;
	inj_cupti.cuptiSetThreadIdType = set_thread_ids;
	inj_cupti.cuptiActivityEnable = enable_kind;
	inj_cupti.cuptiActivityDisable = disable_kind;
	if (inj_arena_create(GT_ARENA_MIN_BYTES, GT_MODE_STEPS, &fd) || inj_events_init() ||
	    inj_names_init())
		return -1;
	close(fd);
	atomic_store(&inj_live.alive, 1);
	inj_launches_init();
	return 0;
}

#define SUBSCRIBED(name) cmocka_unit_test_setup_teardown(name, subscribed, unsubscribed)

#endif
