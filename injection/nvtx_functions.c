/*
 * nvtx_functions.c - the NVTX door, and NVTX's CORE and CORE2 functions, one for each encoding.
 * Every shared object that uses NVTX is a client of its own and calls InitializeInjectionNvtx2()
 * with its own table.
 */
#include "nccl.h"
#include "nvtx.h"

static struct nvtx_message ascii(const char *message)
{
	return (struct nvtx_message){ NVTX_MESSAGE_TYPE_ASCII, { .ascii = message } };
}

static struct nvtx_message wide(const wchar_t *message)
{
	return (struct nvtx_message){ NVTX_MESSAGE_TYPE_UNICODE, { .unicode = message } };
}

static struct nvtx_message message_of(const nvtxEventAttributes_t *attrib)
{
	if (!attrib || attrib->size < offsetof(nvtxEventAttributes_t, message) + sizeof(void *))
		return ascii(NULL);
	return (struct nvtx_message){ attrib->messageType, attrib->message };
}

static void on_mark_ex(const nvtxEventAttributes_t *attrib)
{
	nvtx_mark(&nvtx_default_domain, message_of(attrib));
}

static void on_mark_a(const char *message)
{
	nvtx_mark(&nvtx_default_domain, ascii(message));
}

static void on_mark_w(const wchar_t *message)
{
	nvtx_mark(&nvtx_default_domain, wide(message));
}

static nvtxRangeId_t on_range_start_ex(const nvtxEventAttributes_t *attrib)
{
	return nvtx_range_start(&nvtx_default_domain, message_of(attrib));
}

static nvtxRangeId_t on_range_start_a(const char *message)
{
	return nvtx_range_start(&nvtx_default_domain, ascii(message));
}

static nvtxRangeId_t on_range_start_w(const wchar_t *message)
{
	return nvtx_range_start(&nvtx_default_domain, wide(message));
}

static void on_range_end(nvtxRangeId_t handle)
{
	nvtx_range_end(&nvtx_default_domain, handle);
}

static int on_range_push_ex(const nvtxEventAttributes_t *attrib)
{
	return nvtx_push(&nvtx_default_domain, message_of(attrib));
}

static int on_range_push_a(const char *message)
{
	return nvtx_push(&nvtx_default_domain, ascii(message));
}

static int on_range_push_w(const wchar_t *message)
{
	return nvtx_push(&nvtx_default_domain, wide(message));
}

static int on_range_pop(void)
{
	return nvtx_pop(&nvtx_default_domain);
}

static void on_name_os_thread_a(uint32_t tid, const char *name)
{
	nvtx_name_thread(tid, ascii(name));
}

static void on_name_os_thread_w(uint32_t tid, const wchar_t *name)
{
	nvtx_name_thread(tid, wide(name));
}

static void on_domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attrib)
{
	nvtx_mark(nvtx_domain_of(domain), message_of(attrib));
}

static nvtxRangeId_t on_domain_range_start_ex(nvtxDomainHandle_t domain,
					      const nvtxEventAttributes_t *attrib)
{
	return nvtx_range_start(nvtx_domain_of(domain), message_of(attrib));
}

static void on_domain_range_end(nvtxDomainHandle_t domain, nvtxRangeId_t handle)
{
	nvtx_range_end(nvtx_domain_of(domain), handle);
}

static int on_domain_range_push_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attrib)
{
	int level = nvtx_push(nvtx_domain_of(domain), message_of(attrib));

	if (GT_UNLIKELY(nccl_has_payload(attrib)) && level >= 0)
		nccl_range_pushed(nvtx_domain_of(domain), attrib, (uint32_t)level + 1);
	return level;
}

static int on_domain_range_pop(nvtxDomainHandle_t domain)
{
	return nvtx_pop(nvtx_domain_of(domain));
}

static nvtxStringHandle_t on_domain_register_string_a(nvtxDomainHandle_t domain, const char *string)
{
	(void)domain;
	return (nvtxStringHandle_t)nvtx_register(ascii(string));
}

static nvtxStringHandle_t on_domain_register_string_w(nvtxDomainHandle_t domain,
						      const wchar_t *string)
{
	(void)domain;
	return (nvtxStringHandle_t)nvtx_register(wide(string));
}

static nvtxDomainHandle_t on_domain_create_a(const char *name)
{
	return (nvtxDomainHandle_t)nvtx_register(ascii(name));
}

static nvtxDomainHandle_t on_domain_create_w(const wchar_t *name)
{
	return (nvtxDomainHandle_t)nvtx_register(wide(name));
}

#define CORE(name, handler)                                                              \
	{                                                                                \
		NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_##name, (NvtxFunctionPointer)handler \
	}
#define CORE2(name, handler)                                                               \
	{                                                                                  \
		NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_##name, (NvtxFunctionPointer)handler \
	}

/* NVTX makes the functions that have no handler do nothing. */
static const struct {
	NvtxCallbackModule module;
	unsigned int id;
	NvtxFunctionPointer handler;
} handlers[] = {
	CORE(MarkEx, on_mark_ex),
	CORE(MarkA, on_mark_a),
	CORE(MarkW, on_mark_w),
	CORE(RangeStartEx, on_range_start_ex),
	CORE(RangeStartA, on_range_start_a),
	CORE(RangeStartW, on_range_start_w),
	CORE(RangeEnd, on_range_end),
	CORE(RangePushEx, on_range_push_ex),
	CORE(RangePushA, on_range_push_a),
	CORE(RangePushW, on_range_push_w),
	CORE(RangePop, on_range_pop),
	CORE(NameOsThreadA, on_name_os_thread_a),
	CORE(NameOsThreadW, on_name_os_thread_w),
	CORE2(DomainMarkEx, on_domain_mark_ex),
	CORE2(DomainRangeStartEx, on_domain_range_start_ex),
	CORE2(DomainRangeEnd, on_domain_range_end),
	CORE2(DomainRangePushEx, on_domain_range_push_ex),
	CORE2(DomainRangePop, on_domain_range_pop),
	CORE2(DomainRegisterStringA, on_domain_register_string_a),
	CORE2(DomainRegisterStringW, on_domain_register_string_w),
	CORE2(DomainCreateA, on_domain_create_a),
	CORE2(DomainCreateW, on_domain_create_w),
};

/*
 * NVTX's door, called once by each client with its export table, while the client's other threads
 * spin: it must be quick and must not use NVTX. 0 makes NVTX a no-op in that client for good.
 */
GT_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);

GT_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table)
{
	const NvtxExportTableCallbacks *callbacks;
	NvtxFunctionTable table;
	unsigned int size;

	callbacks = get_export_table ? get_export_table(NVTX_ETID_CALLBACKS) : NULL;
	if (!callbacks || callbacks->struct_size < sizeof(*callbacks) || !nvtx_start())
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (callbacks->GetModuleFunctionTable(handlers[i].module, &table, &size) &&
		    handlers[i].id < size && table[handlers[i].id])
			*table[handlers[i].id] = handlers[i].handler;
	}
	return 1;
}
