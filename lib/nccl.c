#include "base.h"
#include "nccl.h"

#include "json_writer.h"

#include <inttypes.h>
#include <stdlib.h>

#define COMMS_MAX 1024
#define CALLS_MAX (UINT32_C(1) << 14)

/* ---- communicators ---- */

void gt_nccl_comm(struct gt_nccl *nccl, const struct gt_ev_comm *ev)
{
	bool ranked = ev->rank >= 0 && (uint32_t)ev->rank < ev->size && ev->device >= 0;

	if (!ev->hash || !ev->size || ev->size > INT32_MAX)
		return;
	if (!nccl->comms)
		nccl->comms = calloc(COMMS_MAX, sizeof(*nccl->comms));
	if (!nccl->comms)
		return;
	nccl->comms[nccl->comm_count++ % COMMS_MAX] = (struct gt_nccl_comm){
		.hash = ev->hash,
		.size = ev->size,
		.rank = ranked ? ev->rank : -1,
		.device = ranked ? ev->device : -1,
	};
}

/* The newest of this hash on this device, or else on any. NULL: not known. */
static const struct gt_nccl_comm *find_comm(const struct gt_nccl *nccl, uint64_t hash,
					    uint32_t device)
{
	const struct gt_nccl_comm *found = NULL;
	uint32_t i, count = GT_MIN(nccl->comm_count, COMMS_MAX);

	for (i = 1; hash && i <= count; i++) {
		const struct gt_nccl_comm *comm = &nccl->comms[(nccl->comm_count - i) % COMMS_MAX];

		if (comm->hash != hash)
			continue;
		if (comm->device >= 0 && (uint32_t)comm->device == device)
			return comm;
		if (!found)
			found = comm;
	}
	return found;
}

/* ---- ranges ---- */

bool gt_nccl_is_domain(struct gt_nccl *nccl, const struct gt_names *names, uint32_t domain_id)
{
	if (!domain_id || domain_id == GT_DOMAIN_TORCH)
		return false;
	if (!nccl->domain_id && gt_str_equal(gt_names_get(names, domain_id), GT_STR("NCCL")))
		nccl->domain_id = domain_id;
	return domain_id == nccl->domain_id;
}

/* What is not the same in both is not known of them. */
static void add_call(struct gt_nccl_call *group, const struct gt_nccl_call *call)
{
	if (!group->count) {
		*group = *call;
		return;
	}
	group->count += call->count;
	if (__builtin_add_overflow(group->bytes, call->bytes, &group->bytes))
		group->bytes = UINT64_MAX;
	if (group->hash != call->hash)
		group->hash = 0;
	if (group->call != call->call)
		group->call = 0;
	if (group->root != call->root)
		group->root = -1;
	if (group->reduction != call->reduction)
		group->reduction = -1;
}

/* Ranges at depth or deeper are over. */
static void end_ranges(struct gt_nccl_thread *thread, uint32_t depth)
{
	if (thread->call.count && depth <= thread->call_depth) {
		/* Outside of a group it launched, or failed, or its launch was lost. */
		if (depth == thread->call_depth && !thread->launched && thread->groups_open)
			add_call(&thread->group, &thread->call);
		thread->call.count = 0;
	}
	if (thread->end_depth && depth <= thread->end_depth) {
		/* Only the outermost one launches. */
		if (thread->launched)
			thread->groups_open = 0;
		if (!thread->groups_open)
			thread->group.count = 0;
		thread->end_depth = 0;
	}
}

void gt_nccl_push(struct gt_nccl_thread *thread, uint32_t depth, struct gt_str name)
{
	end_ranges(thread, depth);
	if (gt_str_equal(name, GT_STR("ncclGroupStart"))) {
		if (!thread->groups_open++)
			thread->group.count = 0;
	} else if (gt_str_equal(name, GT_STR("ncclGroupEnd")) && thread->groups_open) {
		thread->groups_open--;
		thread->end_depth = depth;
		thread->launched = false;
	}
	thread->last_depth = depth;
}

void gt_nccl_call(struct gt_nccl_thread *thread, const struct gt_ev_collective *ev)
{
	if (ev->depth != thread->last_depth)
		return; /* its PUSH was lost */
	thread->call = (struct gt_nccl_call){
		.count = 1,
		.hash = ev->hash,
		.bytes = ev->bytes,
		.call = ev->call,
		.root = ev->root >= 0 ? ev->root : -1,
		.reduction = ev->reduction >= 0 ? ev->reduction : -1,
	};
	thread->call_depth = ev->depth;
	thread->launched = false;
}

void gt_nccl_pop(struct gt_nccl_thread *thread, uint32_t depth)
{
	end_ranges(thread, depth);
	thread->last_depth = 0;
}

static uint32_t keep_call(struct gt_nccl *nccl, struct gt_nccl_call *call)
{
	if (!nccl->calls)
		nccl->calls = calloc(CALLS_MAX, sizeof(*nccl->calls));
	if (!nccl->calls || !call->count)
		return 0;
	if (!call->id) {
		nccl->last_id += nccl->last_id == UINT32_MAX ? 2 : 1;
		call->id = nccl->last_id;
		nccl->calls[call->id % CALLS_MAX] = *call;
	}
	return call->id;
}

uint32_t gt_nccl_launch(struct gt_nccl *nccl, struct gt_nccl_thread *thread)
{
	if (thread->call.count) {
		/* In a group calls do not launch: one whose end was lost is open for ever. */
		thread->groups_open = 0;
		thread->group.count = 0;
		thread->launched = true;
		return keep_call(nccl, &thread->call);
	}
	if (!thread->end_depth)
		return 0;
	thread->launched = true;
	return keep_call(nccl, &thread->group);
}

/* ---- args ---- */

/* As PyTorch calls them. */
static const char *call_name(uint32_t call)
{
	static const char *const names[] = {
		[GT_COLLECTIVE_ALL_GATHER] = "all_gather",
		[GT_COLLECTIVE_ALL_REDUCE] = "allreduce",
		[GT_COLLECTIVE_BROADCAST] = "broadcast",
		[GT_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
		[GT_COLLECTIVE_REDUCE] = "reduce",
		[GT_COLLECTIVE_SEND] = "send",
		[GT_COLLECTIVE_RECV] = "recv",
		[GT_COLLECTIVE_ALL_TO_ALL] = "all_to_all",
		[GT_COLLECTIVE_GATHER] = "gather",
		[GT_COLLECTIVE_SCATTER] = "scatter",
	};

	return call < ARRAY_SIZE(names) ? names[call] : NULL;
}

/* ncclRedOp_t of nccl.h; larger ones are the program's own. */
static const char *reduction_name(int32_t reduction)
{
	static const char *const names[] = { "sum", "prod", "max", "min", "avg" };

	return (uint32_t)reduction < ARRAY_SIZE(names) ? names[reduction] : "custom";
}

static char *put_text(char *p, const char *text)
{
	return gt_json_put_str(p, gt_str_of(text));
}

char *gt_nccl_put_args(const struct gt_nccl *nccl, uint32_t id, uint32_t device, bool named,
		       char *p)
{
	const struct gt_nccl_call *call = nccl->calls ? &nccl->calls[id % CALLS_MAX] : NULL;
	const struct gt_nccl_comm *comm;
	const char *name;
	char hash[24];

	if (!id || !call || call->id != id)
		return p;
	name = named ? NULL : call_name(call->call);
	if (name)
		p = put_text(GT_JSON_PUT(p, ",\"Collective name\":"), name);
	comm = find_comm(nccl, call->hash, device);
	if (comm && !named)
		p = gt_json_put_u64(GT_JSON_PUT(p, ",\"Group size\":"), comm->size);
	if (call->count == 1) {
		p = gt_json_put_u64(GT_JSON_PUT(p, ",\"Message bytes\":"), call->bytes);
	} else {
		p = gt_json_put_u64(GT_JSON_PUT(p, ",\"Messages in group\":"), call->count);
		p = gt_json_put_u64(GT_JSON_PUT(p, ",\"Bytes in group\":"), call->bytes);
	}
	if (comm && comm->device >= 0 && (uint32_t)comm->device == device)
		p = gt_json_put_i64(GT_JSON_PUT(p, ",\"Rank\":"), comm->rank);
	if (call->root >= 0 &&
	    (call->call == GT_COLLECTIVE_SEND || call->call == GT_COLLECTIVE_RECV))
		p = gt_json_put_i64(GT_JSON_PUT(p, ",\"Peer\":"), call->root);
	else if (call->root >= 0 && call->call)
		p = gt_json_put_i64(GT_JSON_PUT(p, ",\"Root\":"), call->root);
	if (call->reduction >= 0)
		p = put_text(GT_JSON_PUT(p, ",\"Reduction\":"), reduction_name(call->reduction));
	if (call->hash) {
		snprintf(hash, sizeof(hash), "0x%" PRIx64, call->hash);
		p = put_text(GT_JSON_PUT(p, ",\"Communicator\":"), hash);
	}
	return p;
}

void gt_nccl_release(struct gt_nccl *nccl)
{
	free(nccl->comms);
	free(nccl->calls);
	*nccl = (struct gt_nccl){ 0 };
}
