/*
 * cupti_callback.c - the one subscriber and its callbacks, and the small questions.
 */
#include "cupti_sim.h"

#include <pthread.h>
#include <stdatomic.h>

#define CBID_MAX 1024

static const char *const driver_names[CBID_MAX] = {
#include "cupti_driver_names.h"
};

static const char *const runtime_names[CBID_MAX] = {
#include "cupti_runtime_names.h"
};

/* Atomic, since calls may still be told to a subscriber while the next one comes. */
struct CUpti_Subscriber_st {
	_Atomic(CUpti_CallbackFunc) callback;
	void *_Atomic user;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUpti_Subscriber_st the_subscriber;
static _Atomic bool subscribed;
static _Atomic bool enabled[CUPTI_CB_DOMAIN_SIZE][CBID_MAX];

static _Atomic bool settled;

void sim_callback_unsettle(void)
{
	atomic_store(&settled, false);
}

void sim_callback_settle(void)
{
	atomic_store(&settled, true);
	simgpu_tools_changed();
}

static bool wanted(CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	return atomic_load_explicit(&subscribed, memory_order_acquire) &&
	       atomic_load_explicit(&enabled[domain][cbid], memory_order_relaxed);
}

static void tell(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *data)
{
	CUpti_CallbackFunc callback = atomic_load(&the_subscriber.callback);

	callback(atomic_load(&the_subscriber.user), domain, cbid, data);
}

static void call_back(struct sim_call *call, CUpti_ApiCallbackSite site)
{
	const CUcontext context = simgpu_current_context();
	const CUpti_CallbackData data = {
		.callbackSite = site,
		.functionName = call->api->name,
		.functionParams = call->params,
		.functionReturnValue = call->result,
		.symbolName = call->symbol,
		.context = context,
		.contextUid = simgpu_context_uid(context),
		.correlationData = &call->data,
		.correlationId = call->correlation,
	};

	if (wanted(call->api->domain, call->api->cbid))
		tell(call->api->domain, call->api->cbid, &data);
}

static void on_enter(struct sim_call *call)
{
	call_back(call, CUPTI_API_ENTER);
}

static void on_exit_of(struct sim_call *call)
{
	call_back(call, CUPTI_API_EXIT);
	sim_activity_call(call);
}

static void on_resource(CUpti_CallbackIdResource cbid, CUpti_GraphData *graph)
{
	const CUpti_ResourceData data = { .context = simgpu_current_context(),
					  .resourceDescriptor = graph };

	if (wanted(CUPTI_CB_DOMAIN_RESOURCE, cbid))
		tell(CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}

static bool traces_graphs(void)
{
	return sim_activity_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
}

static bool on(void)
{
	const CUpti_CallbackId launch = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;

	return sim_activity_on(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) &&
	       (wanted(CUPTI_CB_DOMAIN_DRIVER_API, launch) ||
		sim_activity_on_call(CUPTI_CB_DOMAIN_DRIVER_API, launch));
}

static bool listening(void)
{
	return atomic_load(&settled) && on();
}

void sim_attach(void)
{
	static const struct sim_tools tools = {
		.enter = on_enter,
		.exit = on_exit_of,
		.work = sim_activity_work,
		.resource = on_resource,
		.traces_graphs = traces_graphs,
		.on = on,
		.listening = listening,
		.synchronized = sim_activity_sync,
	};

	simgpu_set_tools(&tools);
	sim_buffer_called();
}

/* ---- subscription ---- */

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *ret, CUpti_CallbackFunc callback, void *user)
{
	CUptiResult res = CUPTI_SUCCESS;

	if (!ret)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	if (atomic_load(&subscribed) || simgpu_faults()->subscriber_taken) {
		res = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	} else {
		atomic_store(&the_subscriber.callback, callback);
		atomic_store(&the_subscriber.user, user);
		atomic_store(&subscribed, true);
		*ret = &the_subscriber;
	}
	pthread_mutex_unlock(&lock);
	sim_attach();
	return res;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
	CUptiResult res = CUPTI_ERROR_INVALID_PARAMETER;

	pthread_mutex_lock(&lock);
	if (subscriber == &the_subscriber && atomic_load(&subscribed)) {
		atomic_store(&subscribed, false);
		for (size_t d = 0; d < CUPTI_CB_DOMAIN_SIZE; d++) {
			for (size_t i = 0; i < CBID_MAX; i++)
				atomic_store(&enabled[d][i], false);
		}
		res = CUPTI_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	simgpu_tools_changed();
	return res;
}

static bool valid(CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain)
{
	return subscriber == &the_subscriber && atomic_load(&subscribed) &&
	       domain > CUPTI_CB_DOMAIN_INVALID && domain < CUPTI_CB_DOMAIN_SIZE;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
				CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	if (!valid(subscriber, domain) || cbid >= CBID_MAX)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (enable)
		sim_callback_unsettle();
	atomic_store(&enabled[domain][cbid], enable != 0);
	if (!enable)
		simgpu_tools_changed();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
			      CUpti_CallbackDomain domain)
{
	if (!valid(subscriber, domain))
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < CBID_MAX; i++)
		atomic_store(&enabled[domain][i], enable != 0);
	if (enable)
		sim_callback_unsettle();
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **ret)
{
	const char *name = NULL;

	if (cbid < CBID_MAX && domain == CUPTI_CB_DOMAIN_DRIVER_API)
		name = driver_names[cbid];
	else if (cbid < CBID_MAX && domain == CUPTI_CB_DOMAIN_RUNTIME_API)
		name = runtime_names[cbid];
	if (!name)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*ret = name;
	return CUPTI_SUCCESS;
}

/* ---- questions ---- */

CUptiResult cuptiGetResultString(CUptiResult result, const char **ret)
{
	*ret = result ? "CUPTI_ERROR_SIMULATED" : "CUPTI_SUCCESS";
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **ret)
{
	return cuptiGetResultString(result, ret);
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
			       uint32_t *ret)
{
	return simgpu_stream_id(context, stream, per_thread, ret) ? CUPTI_SUCCESS
								  : CUPTI_ERROR_INVALID_STREAM;
}

CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *ret)
{
	return cuptiGetStreamIdEx(context, stream, 0, ret);
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *ret)
{
	return simgpu_context_device(context, ret) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *ret)
{
	*ret = simgpu_context_uid(context);
	return *ret ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *ret)
{
	*ret = simgpu_graph_id(graph);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t *ret)
{
	*ret = simgpu_graph_exec_id(exec);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *ret)
{
	*ret = simgpu_graph_node_id(node);
	return CUPTI_SUCCESS;
}
