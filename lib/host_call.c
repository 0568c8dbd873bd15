/*
 * host_call.c - see host_call.h.
 */
#include "base.h"
#include "host_call.h"

bool gt_call_blocks_host(struct gt_str name)
{
	static const struct gt_str words[] = {
		GT_STR("Memcpy"),         GT_STR("Malloc"),    GT_STR("Free"),
		GT_STR("MemAlloc"),       GT_STR("HostAlloc"), GT_STR("HostRegister"),
		GT_STR("HostUnregister"),
	};

	if (gt_str_has(name, GT_STR("Synchronize")))
		return true;
	if (gt_str_has(name, GT_STR("Async")) || gt_str_has(name, GT_STR("Graph")))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (gt_str_has(name, words[i]))
			return true;
	}
	return false;
}

bool gt_call_launches_graph(struct gt_str name)
{
	return gt_str_starts(name, GT_STR("cudaGraphLaunch")) ||
	       gt_str_starts(name, GT_STR("cuGraphLaunch")) ||
	       gt_str_starts(name, GT_STR("hipGraphLaunch"));
}

bool gt_call_launches(struct gt_str name)
{
	if (!gt_str_starts(name, GT_STR("cu")) && !gt_str_starts(name, GT_STR("hip")))
		return false;
	if (gt_call_launches_graph(name))
		return true;
	if (gt_str_has(name, GT_STR("Graph")) || gt_str_has(name, GT_STR("LaunchHostFunc")))
		return false;
	return gt_str_has(name, GT_STR("Launch")) || gt_str_has(name, GT_STR("Memcpy")) ||
	       gt_str_has(name, GT_STR("Memset"));
}
