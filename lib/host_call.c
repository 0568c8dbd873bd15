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
