/*
 * graph.c - stream capture and graphs. A launch places every node after those it depends on, so
 * that independent branches overlap on the launching stream, as they do on a device.
 */
#include "driver.h"

#include <signal.h>
#include <stdlib.h>

static uint32_t last_graph_id;

static void tell(CUpti_CallbackIdResource cbid, CUpti_GraphData *data)
{
	const struct sim_tools *tools = sim_tools();

	if (tools)
		tools->resource(cbid, data);
}

static bool traces_graphs(void)
{
	const struct sim_tools *tools = sim_tools();

	return tools && tools->traces_graphs();
}

static struct CUgraph_st *graph_new(void)
{
	struct CUgraph_st *graph = calloc(1, sizeof(*graph));

	if (graph)
		graph->id = ++last_graph_id;
	return graph;
}

static void graph_free(struct CUgraph_st *graph)
{
	while (graph->first) {
		struct CUgraphNode_st *node = graph->first;

		graph->first = node->next;
		free(node);
	}
	free(graph);
}

static CUgraphNodeType node_type(enum sim_kind kind)
{
	switch (kind) {
	case SIM_KERNEL:
		return CU_GRAPH_NODE_TYPE_KERNEL;
	case SIM_COPY:
	case SIM_PEER:
		return CU_GRAPH_NODE_TYPE_MEMCPY;
	case SIM_SET:
		return CU_GRAPH_NODE_TYPE_MEMSET;
	default:
		return CU_GRAPH_NODE_TYPE_EMPTY;
	}
}

struct CUgraphNode_st *sim_graph_add(struct CUgraph_st *graph, const struct sim_work *work,
				     const struct sim_deps *deps)
{
	struct CUgraphNode_st *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->graph = graph;
	node->index = ++graph->count;
	node->type = node_type(work->kind);
	node->work = *work;
	node->deps = *deps;
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	return node;
}

/* ---- capture ---- */

static CUresult capture_begin(CUstream handle)
{
	struct CUstream_st *stream = sim_resolve(handle);
	struct CUgraph_st *graph;
	CUresult res = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&sim_lock);
	graph = graph_new();
	if (graph && !stream->capture && stream != stream->ctx->legacy) {
		stream->capture = graph;
		stream->capture_origin = true;
		stream->tail.count = 0;
		res = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sim_lock);
	return res;
}

static CUresult capture_end(CUstream handle, CUgraph *ret)
{
	struct CUstream_st *stream = sim_resolve(handle);
	struct CUgraph_st *graph;

	if (!stream || !stream->capture_origin)
		return CUDA_ERROR_ILLEGAL_STATE;
	pthread_mutex_lock(&sim_lock);
	graph = stream->capture;
	for (struct CUstream_st *s = stream->ctx->streams; s; s = s->next) {
		if (s->capture == graph)
			s->capture = NULL;
	}
	stream->capture_origin = false;
	pthread_mutex_unlock(&sim_lock);
	*ret = graph;
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream handle, CUstreamCaptureStatus *ret)
{
	struct CUstream_st *stream = sim_resolve(handle);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

DRIVER_API_PTSZ(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
		(stream, mode), capture_begin(stream))
DRIVER_API_PTSZ(cuStreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph),
		capture_end(stream, graph))
DRIVER_API_PTSZ(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
		(stream, status), is_capturing(stream, status))

/* ---- graphs ---- */

static CUresult graph_create(CUgraph *ret)
{
	CUpti_GraphData data = { 0 };

	pthread_mutex_lock(&sim_lock);
	*ret = graph_new();
	pthread_mutex_unlock(&sim_lock);
	if (!*ret)
		return CUDA_ERROR_OUT_OF_MEMORY;
	data.graph = *ret;
	tell(CUPTI_CBID_RESOURCE_GRAPH_CREATED, &data);
	return CUDA_SUCCESS;
}

static CUresult graph_destroy(CUgraph graph)
{
	graph_free(graph);
	return CUDA_SUCCESS;
}

/* The node of copy that stands where node stands in its own graph. */
static struct CUgraphNode_st *counterpart(struct CUgraph_st *copy,
					  const struct CUgraphNode_st *node)
{
	struct CUgraphNode_st *it = copy->first;

	while (it && it->index != node->index)
		it = it->next;
	return it;
}

static CUresult instantiate(CUgraphExec *ret, CUgraph graph)
{
	struct CUgraphExec_st *exec = calloc(1, sizeof(*exec));
	CUpti_GraphData data = { .graph = graph };

	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim_lock);
	exec->graph = graph_new();
	for (const struct CUgraphNode_st *node = graph->first; node; node = node->next) {
		struct CUgraphNode_st *copy = sim_graph_add(exec->graph, &node->work, &node->deps);

		for (unsigned int i = 0; i < copy->deps.count; i++)
			copy->deps.node[i] = counterpart(exec->graph, copy->deps.node[i]);
	}
	exec->id = exec->graph->id;
	exec->traced = traces_graphs();
	pthread_mutex_unlock(&sim_lock);
	*ret = exec;
	data.graphExec = exec;
	for (struct CUgraphNode_st *node = exec->graph->first; node; node = node->next) {
		data.node = node;
		data.nodeType = node->type;
		tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &data);
	}
	tell(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, &data);
	return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec exec)
{
	graph_free(exec->graph);
	free(exec);
	return CUDA_SUCCESS;
}

/* Lock held. The whole is placed as one piece of work; the nodes lie inside it. */
static uint64_t place_nodes(struct CUgraph_st *graph, uint64_t start_ns)
{
	uint64_t end_ns = start_ns;

	for (struct CUgraphNode_st *node = graph->first; node; node = node->next) {
		uint64_t at = start_ns;

		for (unsigned int i = 0; i < node->deps.count; i++)
			at = GT_MAX(at, node->deps.node[i]->end_ns);
		node->work.start_ns = at;
		node->work.end_ns = node->end_ns = at + sim_duration_ns(&node->work);
		end_ns = GT_MAX(end_ns, node->end_ns);
	}
	return end_ns;
}

static CUresult graph_launch(CUgraphExec exec, CUstream handle)
{
	struct CUstream_st *stream = sim_resolve(handle);
	struct sim_work whole = { .kind = SIM_GRAPH };
	struct sim_work *nodes;
	uint32_t count = 0;

	if (!stream || !exec)
		return CUDA_ERROR_INVALID_HANDLE;
	if (traces_graphs() && !exec->traced) {
		/* Seen on an H200 with CUPTI 13.0.85. */
		fprintf(stderr, "simgpu: GRAPH_TRACE enabled after this graph was instantiated\n");
		raise(SIGSEGV);
	}
	nodes = calloc(exec->graph->count + 1, sizeof(*nodes));
	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&sim_lock);
	sim_place(stream, place_nodes(exec->graph, 0), &whole.start_ns, &whole.end_ns);
	whole.device = (uint32_t)stream->ctx->device;
	whole.context = stream->ctx->uid;
	whole.stream = stream->id;
	whole.graph_id = exec->id;
	for (const struct CUgraphNode_st *node = exec->graph->first; node; node = node->next) {
		struct sim_work *work = &nodes[count++];

		*work = node->work;
		work->start_ns += whole.start_ns;
		work->end_ns += whole.start_ns;
		work->device = whole.device;
		work->context = whole.context;
		work->stream = whole.stream;
		work->graph_id = exec->id;
		work->graph_node_id = simgpu_graph_node_id((CUgraphNode)node);
	}
	pthread_mutex_unlock(&sim_lock);

	for (uint32_t i = 0; i < count; i++) {
		sim_execute(&nodes[i]);
		sim_emit(&nodes[i]);
	}
	if (count > 0)
		sim_emit(&whole);
	free(nodes);
	return CUDA_SUCCESS;
}

DRIVER_API(cuGraphCreate, (CUgraph * graph, unsigned int flags), (graph, flags),
	   graph_create(graph))
DRIVER_API(cuGraphDestroy, (CUgraph graph), (graph), graph_destroy(graph))
DRIVER_API(cuGraphInstantiateWithFlags,
	   (CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags),
	   instantiate(exec, graph))
DRIVER_API(cuGraphExecDestroy, (CUgraphExec exec), (exec), exec_destroy(exec))
DRIVER_API_PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream),
		graph_launch(exec, stream))

/* ---- CUPTI's questions ---- */

uint32_t simgpu_graph_id(CUgraph graph)
{
	return graph->id;
}

uint32_t simgpu_graph_exec_id(CUgraphExec exec)
{
	return exec->id;
}

uint64_t simgpu_graph_node_id(CUgraphNode node)
{
	return (uint64_t)node->graph->id << 32 | node->index;
}
