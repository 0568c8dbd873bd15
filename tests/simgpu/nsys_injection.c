/*
 * nsys_injection.c - what the stand-in for Nsight Systems injects: it holds CUPTI's subscription,
 * as the real one does, and writes into $FAKE_NSYS_LOG what it found in the environment, each call
 * of cudaProfilerStart and -Stop, how many launches came in between, and NVTX's ranges.
 */
#include "base.h"

#include <cupti.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

int InitializeInjection(void);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);

static _Atomic unsigned int captured; /* launches while it is told to record */
static _Atomic bool capturing;
static _Atomic uint64_t range_count;

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A line, in one write: several threads and processes have the file. */
static void put(const char *fmt, ...)
{
	const char *path = getenv("FAKE_NSYS_LOG");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
	char line[512];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	len = GT_MIN(len, (int)sizeof(line) - 2);
	line[len++] = '\n';
	if (fd >= 0 && write(fd, line, (size_t)len) < 0)
		_exit(3);
	if (fd >= 0)
		close(fd);
}

/* ---- CUDA ---- */

static void on_call(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
		    const CUpti_CallbackData *data)
{
	(void)user;
	if (data->callbackSite != CUPTI_API_ENTER)
		return;
	if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
		if (cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart) {
			captured = 0;
			capturing = true;
			put("start");
		} else if (cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStop) {
			capturing = false;
			put("stop %u", captured);
		}
	} else if (cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 && capturing) {
		captured++;
	} else if (cbid == CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000 ||
		   cbid == CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000) {
		put("runtime %s", data->functionName);
	}
}

static CUpti_SubscriberHandle subscriber;

static void subscribe(void)
{
	void *library = dlopen("libcupti.so.13", RTLD_NOW);
	__typeof__(cuptiSubscribe) *subscribe_to = dlsym(library, "cuptiSubscribe");
	__typeof__(cuptiEnableDomain) *enable = dlsym(library, "cuptiEnableDomain");
	CUptiResult result = subscribe_to
				     ? subscribe_to(&subscriber, (CUpti_CallbackFunc)on_call, NULL)
				     : CUPTI_ERROR_UNKNOWN;

	put("subscribe %d", (int)result);
	if (result || !enable || enable(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API) ||
	    enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API))
		put("no callbacks");
}

GT_EXPORT int InitializeInjection(void)
{
	static const char *const variables[] = {
		"NSYS_PROFILING_SESSION_ID", "NSYS_SESSION_TEMP_DIR", "QUADD_INJECTION_PROXY",
		"CUDA_INJECTION64_PATH",     "NVTX_INJECTION64_PATH", "LD_PRELOAD"
	};

	for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
		const char *value = getenv(variables[i]);

		put("env %s=%s", variables[i], value ? value : "");
	}
	subscribe();
	return 1;
}

/* ---- NVTX ---- */

struct domain {
	char name[64];
};

static const char *text_of(const nvtxEventAttributes_t *attrib)
{
	return attrib->messageType == NVTX_MESSAGE_TYPE_ASCII ? attrib->message.ascii : "?";
}

static const char *domain_name(nvtxDomainHandle_t domain)
{
	return domain ? ((struct domain *)domain)->name : "";
}

static nvtxDomainHandle_t on_domain_create(const char *name)
{
	struct domain *domain = calloc(1, sizeof(*domain));

	if (domain)
		snprintf(domain->name, sizeof(domain->name), "%s", name);
	return (nvtxDomainHandle_t)domain;
}

static int on_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attrib)
{
	put("push %d %s:%s", gettid(), domain_name(domain), text_of(attrib));
	return 0;
}

static int on_pop(nvtxDomainHandle_t domain)
{
	put("pop %d %s", gettid(), domain_name(domain));
	return 0;
}

static nvtxRangeId_t on_range_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attrib)
{
	nvtxRangeId_t id = atomic_fetch_add(&range_count, 1) + 1;

	put("begin %llu %s:%s", (unsigned long long)id, domain_name(domain), text_of(attrib));
	return id;
}

static void on_range_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
	put("end %llu %s", (unsigned long long)id, domain_name(domain));
}

GT_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table)
{
	const NvtxExportTableCallbacks *callbacks = get_export_table(NVTX_ETID_CALLBACKS);
	const struct {
		unsigned int id;
		NvtxFunctionPointer handler;
	} handlers[] = {
		{ NVTX_CBID_CORE2_DomainCreateA, (NvtxFunctionPointer)on_domain_create },
		{ NVTX_CBID_CORE2_DomainRangePushEx, (NvtxFunctionPointer)on_push },
		{ NVTX_CBID_CORE2_DomainRangePop, (NvtxFunctionPointer)on_pop },
		{ NVTX_CBID_CORE2_DomainRangeStartEx, (NvtxFunctionPointer)on_range_start },
		{ NVTX_CBID_CORE2_DomainRangeEnd, (NvtxFunctionPointer)on_range_end },
	};
	NvtxFunctionTable table;
	unsigned int size;

	if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
		if (handlers[i].id < size)
			*table[handlers[i].id] = handlers[i].handler;
	return 1;
}
