/*
 * train_ranges.c - ranges of the program that a tool is to trace: between calls of the profiler's
 * functions, or of NVTX.
 */
#include "train.h"
#include "profiler_api.h"
#include "truth.h"

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdlib.h>

static const char name[] = "to be traced";
static const char *kind;
static nvtxRangeId_t started;
static nvtxDomainHandle_t domain;

static void begin(void)
{
	const nvtxEventAttributes_t attributes = { .version = NVTX_VERSION,
						   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
						   .messageType = NVTX_MESSAGE_TYPE_ASCII,
						   .message.ascii = name };

	if (!strcmp(kind, "cuda")) {
		cudaProfilerStart();
		return;
	}
	if (!strcmp(kind, "driver")) {
		cuProfilerStart();
		return;
	}
	truth_range(name);
	if (!strcmp(kind, "nvtx"))
		nvtxRangePushA(name);
	else if (!strcmp(kind, "start"))
		started = nvtxRangeStartA(name);
	else
		nvtxDomainRangePushEx(domain, &attributes);
}

static void *end(void *arg)
{
	if (!strcmp(kind, "cuda"))
		cudaProfilerStop();
	else if (!strcmp(kind, "driver"))
		cuProfilerStop();
	else if (!strcmp(kind, "nvtx"))
		nvtxRangePop();
	else if (!strcmp(kind, "start"))
		nvtxRangeEnd(started);
	else
		nvtxDomainRangePop(domain);
	return arg;
}

static void end_by_another_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, end, NULL) || pthread_join(thread, NULL))
		exit(96);
}

void train_ranges(const struct train_options *options, char moment, uint64_t step)
{
	const char *at = options->ranges;

	kind = options->range;
	if (!domain && at && !strcmp(kind, "domain"))
		domain = nvtxDomainCreateA("train.capture");
	for (; at && *at; at += strspn(at, " ")) {
		bool begins = *at++ == '+', is_first = *at == 's';
		uint64_t number = is_first ? 0 : strtoull(at, NULL, 10);
		const char *flags = at + strspn(at, "s0123456789");
		size_t count = strcspn(flags, " ");
		char when = begins ? 'b' : 'e';

		if (memchr(flags, 'm', count))
			when = 'm';
		if (is_first)
			when = 's';
		at = flags + count;
		if (when != moment || number != step)
			continue;
		if (begins)
			begin();
		else if (memchr(flags, 't', count))
			end_by_another_thread();
		else
			end(NULL);
	}
}
