/* CUDA calls by callbacks, of a CUPTI that this file plays. */
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

static CUptiResult CUPTIAPI get_name(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
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

static CUptiResult CUPTIAPI subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc callback,
				      void *arg)
{
	(void)handle;
	(void)arg;
	if (cupti.subscribe_result == CUPTI_SUCCESS)
		cupti.callback = callback;
	return cupti.subscribe_result;
}

static CUptiResult CUPTIAPI unsubscribe(CUpti_SubscriberHandle handle)
{
	(void)handle;
	cupti.callback = NULL;
	cupti.enabled = 0;
	return CUPTI_SUCCESS;
}

static void make_call(void);

static CUptiResult CUPTIAPI enable_callback(uint32_t on, CUpti_SubscriberHandle handle,
					    CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
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
static CUptiResult set_record(CUpti_ActivityKind kind, CUpti_CallbackId cbid, uint8_t on)
{
	if (cupti.kinds & UINT64_C(1) << kind && cbid < ARRAY_SIZE(cupti.left_out[0]))
		cupti.left_out[kind == CUPTI_ACTIVITY_KIND_DRIVER][cbid] = !on;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI set_runtime_record(CUpti_CallbackId cbid, uint8_t on)
{
	return set_record(CUPTI_ACTIVITY_KIND_RUNTIME, cbid, on);
}

static CUptiResult CUPTIAPI set_driver_record(CUpti_CallbackId cbid, uint8_t on)
{
	return set_record(CUPTI_ACTIVITY_KIND_DRIVER, cbid, on);
}

static CUptiResult CUPTIAPI get_stream(CUcontext context, CUstream stream, uint8_t per_thread,
				       uint32_t *ret)
{
	(void)context;
	*ret = (uint32_t)(uintptr_t)stream + 100U * per_thread;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI get_thread_ids(CUpti_ActivityThreadIdType *ret)
{
	*ret = cupti.thread_ids;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI set_thread_ids(CUpti_ActivityThreadIdType type)
{
	cupti.thread_ids = type;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI enable_kind(CUpti_ActivityKind kind)
{
	cupti.kinds |= UINT64_C(1) << kind;
	return CUPTI_SUCCESS;
}

static CUptiResult CUPTIAPI disable_kind(CUpti_ActivityKind kind)
{
	cupti.kinds &= ~(UINT64_C(1) << kind);
	return CUPTI_SUCCESS;
}

/* ---- the program's calls ---- */

static int result;

static void call(CUpti_ApiCallbackSite site, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
		 uint32_t correlation, const void *params)
{
	const CUpti_CallbackData data = { .callbackSite = site,
					  .functionParams = params,
					  .functionReturnValue = &result,
					  .correlationId = correlation };

	cupti.callback(NULL, domain, cbid, &data);
}

#define enter(domain, cbid, id) call(CUPTI_API_ENTER, domain, cbid, id, NULL)
#define leave(domain, cbid, id) call(CUPTI_API_EXIT, domain, cbid, id, NULL)

static void make_call(void)
{
	enter(RUNTIME, COPY, 1);
	leave(RUNTIME, COPY, 1);
}

static void add_graph_node(void)
{
	CUpti_ResourceData data = { .context = NULL };

	cupti.callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
		       &data);
}

static uint32_t read_bytes; /* of this thread's events */

/* Those since the last call. */
static const struct gt_ev_call *new_calls(unsigned *ret_count)
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

static struct gt_ev_call the_call(void)
{
	unsigned count;
	const struct gt_ev_call *calls = new_calls(&count);

	assert_int_equal(count, 1);
	return *calls;
}

static void assert_no_call(void)
{
	unsigned count;

	new_calls(&count);
	assert_int_equal(count, 0);
}

static int subscribed(void **state)
{
	(void)state;
	read_bytes = inj_self->pos;
	result = 0;
	cupti.subscribe_result = CUPTI_SUCCESS;
	atomic_store(&inj_live.taking, 1);
	return inj_launches_on();
}

static int unsubscribed(void **state)
{
	(void)state;
	inj_launches_off();
	return cupti.callback || cupti.enabled;
}

/* ---- one event a call ---- */

static void outermost_call(void **state)
{
	struct gt_ev_call ev;

	(void)state;
	assert_int_equal(cupti.enabled, 6); /* five names and the graph nodes */
	atomic_store(&inj_arena->step, 5);
	enter(RUNTIME, LAUNCH, 77);
	enter(DRIVER, DRIVER_LAUNCH, 77);
	atomic_store(&inj_arena->step, 6); /* another thread's mark in between */
	leave(DRIVER, DRIVER_LAUNCH, 77);
	assert_no_call();
	leave(RUNTIME, LAUNCH, 77);
	ev = the_call();
	assert_int_equal(ev.ev.step, 5);
	assert_true(ev.ev.time_ns && ev.end_ns >= ev.ev.time_ns);
	assert_int_equal(ev.correlation, 77);
	assert_int_equal(ev.name_id, inj_intern("cudaLaunchKernel", 16));
	assert_int_equal(ev.domain, 2);
	assert_int_equal(ev.cbid, LAUNCH);
	assert_int_equal(ev.klass, GT_CALL_KERNEL);
	assert_int_equal(ev.flags, 0);
	assert_int_equal(ev.stream, GT_STREAM_UNKNOWN);

	enter(DRIVER, DRIVER_LAUNCH, 78);
	leave(DRIVER, DRIVER_LAUNCH, 78);
	ev = the_call();
	assert_int_equal(ev.domain, 1);
	assert_int_equal(ev.name_id, inj_intern("cuLaunchKernel", 14));
}

static void inner_calls_with_ids_of_their_own(void **state)
{
	(void)state;
	enter(RUNTIME, COPY, 10);
	enter(DRIVER, DRIVER_LAUNCH, 11);
	leave(DRIVER, DRIVER_LAUNCH, 11);
	enter(DRIVER, DRIVER_LAUNCH, 12);
	leave(DRIVER, DRIVER_LAUNCH, 12);
	leave(RUNTIME, COPY, 10);
	assert_int_equal(the_call().correlation, 10);
}

static void flags_of_a_call(void **state)
{
	const struct {
		void *dst;
		const void *src;
		size_t count;
	} empty = { 0 };
	const void *graph_params[] = { NULL, (void *)3 };
	struct gt_ev_call ev;

	(void)state;
	enter(RUNTIME, LAUNCH, 1);
	add_graph_node();
	leave(RUNTIME, LAUNCH, 1);
	assert_int_equal(the_call().flags, GT_CALL_CAPTURED);

	/* a node outside of any call does not touch the next one */
	add_graph_node();
	enter(RUNTIME, LAUNCH, 2);
	leave(RUNTIME, LAUNCH, 2);
	assert_int_equal(the_call().flags, 0);

	call(CUPTI_API_ENTER, RUNTIME, COPY, 3, &empty);
	call(CUPTI_API_EXIT, RUNTIME, COPY, 3, &empty);
	assert_int_equal(the_call().flags, GT_CALL_EMPTY);

	result = 1;
	enter(RUNTIME, LAUNCH, 4);
	leave(RUNTIME, LAUNCH, 4);
	assert_int_equal(the_call().flags, GT_CALL_FAILED);

	result = 0;
	call(CUPTI_API_ENTER, RUNTIME, GRAPH, 5, graph_params);
	call(CUPTI_API_EXIT, RUNTIME, GRAPH, 5, graph_params);
	ev = the_call();
	assert_int_equal(ev.klass, GT_CALL_GRAPH);
	assert_int_equal(ev.stream, 103);
	assert_true(inj_launches_graph_seen());
}

static void calls_not_heard_in_full(void **state)
{
	(void)state;
	/* under way when we came */
	leave(RUNTIME, LAUNCH, 1);
	assert_no_call();

	/* begun before the window closed, ended after: it is the window's */
	enter(RUNTIME, LAUNCH, 2);
	atomic_store(&inj_live.taking, 0);
	enter(RUNTIME, COPY, 3);
	leave(RUNTIME, COPY, 3);
	leave(RUNTIME, LAUNCH, 2);
	assert_int_equal(the_call().correlation, 2);

	/* the end was not heard, and is not to be taken for one of the next subscription */
	atomic_store(&inj_live.taking, 1);
	enter(RUNTIME, LAUNCH, 4);
	inj_launches_off();
	assert_int_equal(inj_launches_on(), 0);
	leave(RUNTIME, LAUNCH, 4);
	assert_no_call();
	enter(RUNTIME, SYNC, 5);
	leave(RUNTIME, SYNC, 5);
	assert_int_equal(the_call().correlation, 5);

	/* left by longjmp */
	enter(RUNTIME, LAUNCH, 6);
	enter(RUNTIME, SYNC, 7);
	leave(RUNTIME, SYNC, 7);
	assert_int_equal(the_call().correlation, 7);
}

static void interrupted_call(void **state)
{
	uint64_t dropped = inj_arena->dropped_events;

	(void)state;
	/* A signal handler launches while an event is being written. */
	assert_non_null(inj_reserve(GT_EV_CALL, sizeof(struct gt_ev_call)));
	enter(RUNTIME, LAUNCH, 1);
	leave(RUNTIME, LAUNCH, 1);
	inj_commit();
	assert_int_equal(the_call().ev.type, GT_EV_CALL);
	assert_int_equal(inj_arena->dropped_events, dropped + 1);
}

static void launches_are_counted(void **state)
{
	uint64_t before = inj_launches_total();

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		enter(RUNTIME, LAUNCH, i);
		leave(RUNTIME, LAUNCH, i);
		enter(RUNTIME, SYNC, i);
		leave(RUNTIME, SYNC, i);
	}
	enter(RUNTIME, LAUNCH, 9);
	add_graph_node();
	leave(RUNTIME, LAUNCH, 9);
	assert_int_equal(inj_launches_total(), before + 5);
}

#define API_KINDS \
	(UINT64_C(1) << CUPTI_ACTIVITY_KIND_RUNTIME | UINT64_C(1) << CUPTI_ACTIVITY_KIND_DRIVER)

static void place_is_taken(void **state)
{
	static const CUptiResult results[] = { CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
					       CUPTI_ERROR_MAX_LIMIT_REACHED };

	(void)state;
	cupti.thread_ids = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		uint64_t events = inj_events_total();

		cupti.subscribe_result = results[i];
		assert_int_equal(inj_launches_on(), -EBUSY);
		assert_null(cupti.callback);
		assert_int_equal(cupti.kinds, API_KINDS);
		assert_false(cupti.left_out[0][LAUNCH]);
		assert_false(cupti.left_out[0][SYNC]);
		assert_true(cupti.left_out[0][OTHER]);
		assert_false(cupti.left_out[1][DRIVER_LAUNCH]);
		assert_int_equal(cupti.thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
		/* what the callback ids in the records mean, once */
		assert_int_equal(inj_events_total(), events + (i ? 0 : 5));
		inj_launches_off();
		assert_int_equal(cupti.kinds, 0);
		assert_int_equal(cupti.thread_ids, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
	}
	/* without the filter: the kinds as a whole */
	inj_cupti.cuptiActivityEnableRuntimeApi = NULL;
	assert_int_equal(inj_launches_on(), -EBUSY);
	assert_int_equal(cupti.kinds, API_KINDS);
	inj_launches_off();
	assert_int_equal(cupti.kinds, 0);
	inj_cupti.cuptiActivityEnableRuntimeApi = set_runtime_record;
}

/* One that is made while not all of them are heard of: the first to count is one after which none
 * is missing. */
static void call_while_subscribing(void **state)
{
	(void)state;
	inj_launches_off();
	cupti.call_at = 2;
	assert_int_equal(inj_launches_on(), 0);
	cupti.call_at = 0;
	assert_no_call();
	enter(RUNTIME, LAUNCH, 2);
	leave(RUNTIME, LAUNCH, 2);
	assert_int_equal(the_call().correlation, 2);
}

/* The calls that begin and end captured ranges, while nothing else is wanted. */
static void captures_alone(void **state)
{
	(void)state;
	cupti.subscribe_result = CUPTI_SUCCESS;
	inj_config.capture = INJ_CAPTURE_PROFILER;
	inj_config.schedule = (struct gt_schedule)GT_SCHEDULE_CAPTURE;
	inj_config.sources = 1U << GT_STEP_CAPTURE;
	atomic_store(&inj_arena->step, 0);
	inj_launches_listen(true);
	assert_non_null(cupti.callback);
	assert_int_equal(cupti.enabled, 2);
	assert_false(inj_live.heard);
	enter(RUNTIME, START, 1); /* a range begins when it returns */
	assert_int_equal(inj_arena->step, 0);
	leave(RUNTIME, START, 1);
	assert_int_equal(inj_arena->step, 2);
	assert_int_equal(inj_launches_on(), 0);
	assert_int_equal(cupti.enabled, 8);
	enter(DRIVER, DRIVER_STOP, 2); /* and ends when it is called */
	assert_int_equal(inj_arena->step, 3);
	leave(DRIVER, DRIVER_STOP, 2);
	assert_int_equal(inj_arena->step, 3);
	inj_launches_off();
	assert_int_equal(cupti.enabled, 2);
	assert_non_null(cupti.callback);
	inj_launches_listen(false);
	assert_null(cupti.callback);
}

static void captures_when_the_place_is_taken(void **state)
{
	(void)state;
	cupti.subscribe_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	inj_launches_listen(true);
	assert_null(cupti.callback);
	cupti.subscribe_result = CUPTI_SUCCESS;
	/* Not asked for again and again, but once the program's profiler is gone. */
	inj_launches_listen(true);
	assert_null(cupti.callback);
	inj_launches_listen(false);
	inj_launches_listen(true);
	assert_int_equal(cupti.enabled, 2);
	/* Given up in the middle of a window: when that is over. */
	assert_int_equal(inj_launches_on(), 0);
	inj_launches_listen(false);
	assert_int_equal(cupti.enabled, 8);
	inj_launches_off();
	assert_null(cupti.callback);
}

static int create(void **state)
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

int main(void)
{
#define SUBSCRIBED(name) cmocka_unit_test_setup_teardown(name, subscribed, unsubscribed)
	const struct CMUnitTest tests[] = {
		SUBSCRIBED(outermost_call),
		SUBSCRIBED(inner_calls_with_ids_of_their_own),
		SUBSCRIBED(flags_of_a_call),
		SUBSCRIBED(calls_not_heard_in_full),
		SUBSCRIBED(interrupted_call),
		SUBSCRIBED(launches_are_counted),
		SUBSCRIBED(call_while_subscribing),
		cmocka_unit_test(place_is_taken),
		cmocka_unit_test(captures_alone),
		cmocka_unit_test(captures_when_the_place_is_taken),
	};

	return cmocka_run_group_tests(tests, create, NULL);
}
