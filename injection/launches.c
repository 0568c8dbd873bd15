/*
 * launches.c - the CUDA calls of the program, by callbacks while a window is open. One event for
 * the outermost call: what it calls in turn belongs to it and has its correlation id.
 *
 * on_callback() runs on the program's threads in every traced call. It reads one thread-local
 * pointer and the clock twice, and writes one event.
 */
#include "calls.h"
#include "capture.h"
#include "clock.h"
#include "cupti_api.h"
#include "events.h"
#include "py_stacks.h"
#include "quiet.h"

/* More than any CUPTI has; 13.0 ends at 806 (driver) and 522 (runtime). */
#define CBID_MAX 2048

struct call {
	uint32_t name_id; /* GT_EV_STRING */
	struct inj_call_class class;
	enum inj_capture_call capture;
};

static struct call calls[CUPTI_CB_DOMAIN_RUNTIME_API + 1][CBID_MAX];
static const CUpti_CallbackDomain domains[] = { CUPTI_CB_DOMAIN_DRIVER_API,
						CUPTI_CB_DOMAIN_RUNTIME_API };

/* Those that begin and end captured ranges: of each domain two. */
static struct {
	CUpti_CallbackDomain domain;
	CUpti_CallbackId cbid;
} captures[4];
static size_t capture_count;

static enum { BY_NOTHING, BY_CALLBACKS, BY_RECORDS } how;
static bool listening; /* for captures, also while nothing else is wanted */
static bool subscribed;
static CUpti_SubscriberHandle subscriber;
static _Atomic bool graph_seen;

/* ---- the callback ---- */

/* The id that the records of a graph launched into this stream will carry. */
static uint32_t stream_of(const CUpti_CallbackData *data, const struct call *call)
{
	uint32_t id = GT_STREAM_UNKNOWN;
	CUstream stream;

	if (!inj_cupti.cuptiGetStreamIdEx || !data->functionParams)
		return id;
	/* cudaGraphLaunch(graph, stream) and its driver form alike */
	memcpy(&stream, (const char *)data->functionParams + sizeof(void *), sizeof(stream));
	if (inj_cupti.cuptiGetStreamIdEx(data->context, stream, call->class.per_thread_stream,
					 &id) != CUPTI_SUCCESS)
		id = GT_STREAM_UNKNOWN;
	return id;
}

static void on_enter(CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
		     const CUpti_CallbackData *data)
{
	struct inj_thread *self;
	struct inj_open_call *open;
	const struct call *call;
	uint32_t generation;

	if (!atomic_load_explicit(&inj_live.taking, memory_order_relaxed) ||
	    !atomic_load_explicit(&inj_live.heard, memory_order_acquire))
		return;
	self = inj_thread_self();
	if (!self)
		return;
	/*
	 * An inner call has the outer one's id, and the runtime calls the driver. Else the open one
	 * never ended: it is of a former subscription, or the program left it by longjmp.
	 */
	open = &self->open;
	generation = atomic_load_explicit(&inj_live.generation, memory_order_relaxed);
	if (open->generation == generation &&
	    (open->correlation == data->correlationId || open->domain > domain))
		return;
	call = &calls[domain][cbid];
	open->generation = generation;
	open->domain = (uint8_t)domain;
	open->cbid = cbid;
	open->correlation = data->correlationId;
	open->stream = GT_STREAM_UNKNOWN;
	open->context = 0;
	open->flags = 0;
	if (call->class.sizes && inj_call_is_empty(call->class.sizes, data->functionParams))
		open->flags = GT_CALL_EMPTY;
	if (call->class.klass == GT_CALL_GRAPH) {
		open->stream = stream_of(data, call);
		open->context = (uint8_t)data->contextUid;
		atomic_store_explicit(&graph_seen, true, memory_order_relaxed);
	}
	open->step = inj_step_now();
	open->start_ns = gt_clock_ns(CLOCK_REALTIME);
}

/* In the driver a launch is one call, whichever the program made. */
static bool is_launch(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	uint16_t klass = calls[domain][cbid].class.klass;

	return domain == CUPTI_CB_DOMAIN_DRIVER_API && klass != GT_CALL_OTHER &&
	       klass <= GT_CALL_SET;
}

static void on_exit_call(CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
			 const CUpti_CallbackData *data)
{
	struct inj_thread *self = inj_self;
	struct inj_open_call *open;
	const struct call *call;
	struct gt_ev_call *ev;
	uint64_t end_ns;
	uint32_t stack_id;
	int result = 0;

	if ((uintptr_t)self <= (uintptr_t)INJ_THREAD_LIMBO)
		return;
	/* The end of an inner call, or of one whose beginning was not heard. */
	open = &self->open;
	if (open->correlation != data->correlationId || open->cbid != cbid ||
	    open->domain != domain ||
	    open->generation != atomic_load_explicit(&inj_live.generation, memory_order_relaxed))
		return;
	open->generation = 0;
	call = &calls[domain][cbid];
	if (data->functionReturnValue)
		memcpy(&result, data->functionReturnValue, sizeof(result));

	end_ns = gt_clock_ns(CLOCK_REALTIME);
	stack_id = inj_call_stack(gt_sub(end_ns, open->start_ns));
	ev = inj_event_begin(self, sizeof(*ev));
	if (!ev)
		return;
	ev->ev.type = GT_EV_CALL;
	ev->ev.size_bytes = sizeof(*ev);
	ev->ev.step = open->step;
	ev->ev.time_ns = open->start_ns;
	ev->end_ns = end_ns;
	ev->correlation = open->correlation;
	ev->name_id = call->name_id;
	ev->domain = open->domain;
	ev->context = open->context;
	ev->klass = call->class.klass;
	ev->cbid = (uint16_t)cbid;
	ev->flags = (uint16_t)(open->flags | (result ? GT_CALL_FAILED : 0));
	ev->stack_id = stack_id;
	ev->stream = open->stream;
	inj_event_end(self);
	if (call->class.klass <= GT_CALL_SET && !ev->flags)
		atomic_store_explicit(&self->launches,
				      atomic_load_explicit(&self->launches, memory_order_relaxed) +
					      1,
				      memory_order_relaxed);
}

static void CUPTIAPI on_callback(void *arg, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
				 const void *data)
{
	const CUpti_CallbackData *info = data;
	struct inj_thread *self;

	(void)arg;
	if (GT_UNLIKELY(!inj_live_alive()))
		return;
	if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
		/* A call that makes a graph node is captured into a graph instead of run. */
		if ((uintptr_t)inj_self > (uintptr_t)INJ_THREAD_LIMBO)
			inj_self->open.flags |= GT_CALL_CAPTURED;
		return;
	}
	if (GT_UNLIKELY(domain > CUPTI_CB_DOMAIN_RUNTIME_API || cbid >= CBID_MAX))
		return;
	if (GT_UNLIKELY(calls[domain][cbid].capture)) {
		/* The work of Start and Stop itself is in no range. */
		if ((calls[domain][cbid].capture == INJ_CALL_BEGINS) ==
		    (info->callbackSite == CUPTI_API_EXIT))
			inj_capture_call(calls[domain][cbid].capture);
		return;
	}
	if (info->callbackSite == CUPTI_API_ENTER) {
		if (is_launch(domain, cbid) && (self = inj_thread_self()))
			inj_launch_begins(self, atomic_load_explicit(&inj_live.generation,
								     memory_order_relaxed));
		on_enter(domain, cbid, info);
	} else {
		on_exit_call(domain, cbid, info);
		if (is_launch(domain, cbid) && (uintptr_t)inj_self > (uintptr_t)INJ_THREAD_LIMBO)
			inj_launch_ends(inj_self);
	}
}

/* ---- which calls ---- */

void inj_launches_init(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
		for (uint32_t cbid = 1; cbid < CBID_MAX; cbid++) {
			struct call *call = &calls[domains[i]][cbid];
			char name[INJ_CALL_NAME_MAX];
			const char *text = NULL;

			if (inj_cupti.cuptiGetCallbackName(domains[i], cbid, &text) !=
				    CUPTI_SUCCESS ||
			    !text)
				continue;
			inj_call_classify(text, &call->class, name);
			call->capture = inj_capture_call_of(name);
			if (call->capture && capture_count < ARRAY_SIZE(captures)) {
				captures[capture_count].domain = domains[i];
				captures[capture_count++].cbid = cbid;
			}
			if (call->class.klass != GT_CALL_OTHER)
				call->name_id = inj_intern(name, strlen(name));
		}
	}
}

/* Calls set(domain, cbid) for every call of a class. Returns for how many it failed. */
static unsigned for_each_call(CUptiResult (*set)(CUpti_CallbackDomain, CUpti_CallbackId))
{
	unsigned failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(domains); i++)
		for (uint32_t cbid = 1; cbid < CBID_MAX; cbid++)
			if (calls[domains[i]][cbid].class.klass != GT_CALL_OTHER &&
			    set(domains[i], cbid) != CUPTI_SUCCESS)
				failed++;
	return failed;
}

static CUptiResult enable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	return inj_cupti.cuptiEnableCallback(1, subscriber, domain, cbid);
}

static CUptiResult disable_callback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	return inj_cupti.cuptiEnableCallback(0, subscriber, domain, cbid);
}

/* 0, or -EBUSY: another tool has the only place, or it cannot be had for another reason (said). */
static int subscribe(void)
{
	CUptiResult result;

	if (subscribed)
		return 0;
	if (!inj_cupti.cuptiSubscribe || !inj_cupti.cuptiUnsubscribe ||
	    !inj_cupti.cuptiEnableCallback)
		return -EBUSY;
	result = inj_cupti.cuptiSubscribe(&subscriber, on_callback, NULL);
	if (result != CUPTI_SUCCESS && result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED &&
	    result != CUPTI_ERROR_MAX_LIMIT_REACHED)
		inj_log(GT_LOG_WARN, "CUPTI does not report CUDA calls: %s (%d)",
			inj_cupti_error(result), (int)result);
	if (result != CUPTI_SUCCESS)
		return -EBUSY;
	subscribed = true;
	for (size_t i = 0; i < capture_count && inj_capture_hears(); i++)
		enable_callback(captures[i].domain, captures[i].cbid);
	return 0;
}

static void unsubscribe(void)
{
	if (subscribed)
		inj_cupti.cuptiUnsubscribe(subscriber);
	subscribed = false;
}

static void hear_all(void)
{
	unsigned failed;

	atomic_fetch_add_explicit(&inj_live.generation, 1, memory_order_relaxed);
	failed = for_each_call(enable_callback);
	if (enable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) !=
	    CUPTI_SUCCESS)
		failed++;
	if (failed)
		inj_log(GT_LOG_WARN, "CUPTI does not report %u of the CUDA calls", failed);
}

static void hear_captures_only(void)
{
	for_each_call(disable_callback);
	disable_callback(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
}

void inj_launches_listen(bool on)
{
	static bool told;

	if (on == listening)
		return;
	listening = on;
	if (!on && how != BY_CALLBACKS)
		unsubscribe();
	if (!on || !subscribe() || told)
		return;
	told = true;
	inj_log(GT_LOG_WARN, "another tool holds CUPTI's callbacks: cudaProfilerStart() and "
			     "cudaProfilerStop() are not seen");
}

/* ---- the same by activity records ---- */

/* Allocations are many, and not worth a record. */
static bool is_recorded(CUpti_CallbackDomain domain, uint32_t cbid)
{
	uint16_t klass = calls[domain][cbid].class.klass;

	return klass != GT_CALL_OTHER && klass <= GT_CALL_SYNC;
}

/*
 * By default a kind records every call. The filter takes effect only while the kind is on: single
 * calls without it gave no record on an H200 with CUPTI 13.0, whatever the header says. From CUPTI
 * 12.5 on.
 */
static void leave_out_other_calls(void)
{
	if (!inj_cupti.cuptiActivityEnableRuntimeApi || !inj_cupti.cuptiActivityEnableDriverApi)
		return;
	for (uint32_t cbid = 1; cbid < CBID_MAX; cbid++) {
		if (!is_recorded(CUPTI_CB_DOMAIN_RUNTIME_API, cbid))
			inj_cupti.cuptiActivityEnableRuntimeApi(cbid, 0);
		if (!is_recorded(CUPTI_CB_DOMAIN_DRIVER_API, cbid))
			inj_cupti.cuptiActivityEnableDriverApi(cbid, 0);
	}
}

/* The records have callback ids for names. */
static CUptiResult publish_name(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	struct gt_ev_name *ev = inj_reserve(GT_EV_API_NAME, sizeof(*ev));

	if (!ev)
		return CUPTI_ERROR_OUT_OF_MEMORY;
	ev->ref = (uint64_t)domain << 32 | cbid;
	ev->name_id = calls[domain][cbid].name_id;
	ev->klass = calls[domain][cbid].class.klass;
	inj_commit();
	return CUPTI_SUCCESS;
}

static CUpti_ActivityThreadIdType former_thread_ids;

static int records_on(void)
{
	static bool published;

	if (!published)
		published = !for_each_call(publish_name);
	/* Records name threads as CUPTI is told to; what the program chose is put back. */
	if (inj_cupti.cuptiGetThreadIdType && inj_cupti.cuptiSetThreadIdType) {
		inj_cupti.cuptiGetThreadIdType(&former_thread_ids);
		inj_cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
	}
	if (inj_cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME) != CUPTI_SUCCESS ||
	    inj_cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER) != CUPTI_SUCCESS)
		return -EIO;
	leave_out_other_calls();
	return 0;
}

static void records_off(void)
{
	inj_cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME);
	inj_cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER);
	if (inj_cupti.cuptiGetThreadIdType && inj_cupti.cuptiSetThreadIdType)
		inj_cupti.cuptiSetThreadIdType(former_thread_ids);
}

/* ---- either ---- */

int inj_launches_on(void)
{
	if (!subscribe()) {
		hear_all();
		how = BY_CALLBACKS;
		atomic_store_explicit(&inj_live.heard, 1, memory_order_release);
		return 0;
	}
	how = BY_RECORDS;
	if (records_on() < 0)
		inj_log(GT_LOG_WARN, "CUPTI gives no records of CUDA calls either");
	return -EBUSY;
}

void inj_launches_off(void)
{
	if (how == BY_CALLBACKS && listening)
		hear_captures_only();
	else if (how == BY_CALLBACKS)
		unsubscribe();
	else if (how == BY_RECORDS)
		records_off();
	atomic_store_explicit(&inj_live.heard, 0, memory_order_relaxed);
	how = BY_NOTHING;
}

bool inj_launches_graph_seen(void)
{
	return atomic_load_explicit(&graph_seen, memory_order_relaxed);
}
