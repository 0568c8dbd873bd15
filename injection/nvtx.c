/*
 * nvtx.c - the NVTX door and the handlers of NVTX's CORE and CORE2 functions. Every shared object
 * that uses NVTX is a client of its own and calls InitializeInjectionNvtx2() with its own table.
 */
#include "nvtx.h"
#include "capture.h"
#include "nccl.h"
#include "nsight.h"
#include "py_stacks.h"

#include <pthread.h>
#include <stdlib.h>

/* Deeper ranges are not recorded, only counted: a byte a level is kept for each stack. */
#define DEPTH_MAX      512

#define LEVEL_RECORDED 1             /* its PUSH is in the arena, so its POP must be too */
#define LEVEL_STEP     NVTX_STEP     /* its end ends a step */
#define LEVEL_CAPTURED NVTX_CAPTURED /* and that of a captured range */
#define LEVEL_BITS     3

/* The open push/pop ranges of one thread in one domain. */
struct stack {
	struct stack *next; /* of this thread */
	const struct nvtx_name *domain;
	uint32_t depth;
	uint32_t steps_open; /* levels with LEVEL_STEP */
	uint8_t level[DEPTH_MAX];
};

/*
 * NVTX's default domain, whose handle is NULL; its id on the wire is 0. It is also the handle of
 * what has no name, or cannot be had: without memory, and in a fork-only child.
 */
static struct nvtx_name default_domain;

static const struct nvtx_name *captured_domain; /* NULL: any */

static __thread struct stack *stacks;
static pthread_key_t stacks_key; /* frees them when their thread ends */
static bool stacks_key_made;

static _Atomic uint64_t range_count;

static void free_stacks(void *first)
{
	struct stack *s = first, *next;

	stacks = NULL;
	for (; s; s = next) {
		next = s->next;
		free(s);
	}
}

static GT_NOINLINE struct stack *add_stack(const struct nvtx_name *domain)
{
	int saved_errno = errno;
	struct stack *s = calloc(1, sizeof(*s));

	if (s) {
		s->domain = domain;
		s->next = stacks;
		stacks = s;
		if (stacks_key_made)
			pthread_setspecific(stacks_key, s);
	}
	errno = saved_errno;
	return s;
}

/* The calling thread's stack in this domain; NULL without memory. A thread uses one to three. */
static struct stack *stack_of(const struct nvtx_name *domain)
{
	for (struct stack *s = stacks; s; s = s->next) {
		if (GT_LIKELY(s->domain == domain))
			return s;
	}
	return add_stack(domain);
}

struct nvtx_name *nvtx_domain_of(nvtxDomainHandle_t handle)
{
	return handle ? (struct nvtx_name *)handle : &default_domain;
}

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

/* ---- events ---- */

/* false when the domain's name did not reach the arena: its events would seem the default's. */
static bool domain_id(struct nvtx_name *domain, uint32_t *ret)
{
	*ret = domain == &default_domain ? 0 : nvtx_name_id(domain);
	return *ret || domain == &default_domain;
}

/* Write a PUSH, RANGE_START or MARK; true when it is in the arena. */
static bool put_range(enum gt_event_type type, struct nvtx_name *domain, uint64_t range_id,
		      const struct nvtx_text *text)
{
	uint32_t domain_name, name_id = 0, len = 0, size;
	uint32_t stack_id = type == GT_EV_PUSH ? inj_stack() : 0;
	struct gt_ev_range *ev;

	if (!domain_id(domain, &domain_name))
		return false;
	if (text->name)
		name_id = nvtx_name_id(text->name);
	else if (text->len_bytes > GT_INLINE_MAX)
		name_id = inj_intern(text->bytes, text->len_bytes);
	if (!name_id) /* short, or better cut than lost */
		len = (uint32_t)GT_MIN(text->len_bytes, GT_INLINE_MAX);
	size = (uint32_t)sizeof(*ev) + GT_PAD8(len);
	ev = inj_reserve(type, size);
	if (!ev)
		return false;
	ev->range_id = range_id;
	ev->domain_id = domain_name;
	ev->name_id = name_id;
	ev->len_bytes = len;
	ev->inputs_bytes = 0;
	ev->stack_id = stack_id;
	ev->reserved = 0;
	memcpy(ev->bytes, text->bytes, len);
	memset(ev->bytes + len, 0, size - sizeof(*ev) - len);
	inj_commit();
	return true;
}

static void put_end(enum gt_event_type type, struct nvtx_name *domain, uint64_t range_id)
{
	uint32_t stack_id = type == GT_EV_POP ? inj_stack() : 0;
	struct gt_ev_end *ev;
	uint32_t domain_name;

	if (!domain_id(domain, &domain_name))
		return;
	ev = inj_reserve(type, sizeof(*ev));
	if (!ev)
		return;
	ev->range_id = range_id;
	ev->domain_id = domain_name;
	ev->stack_id = stack_id;
	inj_commit();
}

/* A range or mark begins, which marks what it may. Returns which LEVEL_* it has. */
static uint8_t begin(enum gt_event_type type, struct nvtx_name *domain, uint64_t range_id,
		     struct nvtx_message message, uint8_t may_mark)
{
	bool recording = inj_recording();
	struct nvtx_text text;
	uint8_t level = 0;

	if (!recording && !nvtx_wanted_marks)
		return 0;
	nvtx_text_load(&text, message);
	if (captured_domain && domain != captured_domain)
		may_mark &= (uint8_t)~LEVEL_CAPTURED;
	if (nvtx_wanted_marks & may_mark)
		level = nvtx_text_marks(&text) & may_mark;
	if (level & LEVEL_CAPTURED) { /* it is a part of itself */
		inj_capture_range_begins();
		recording = inj_recording();
	}
	if (recording && put_range(type, domain, range_id, &text))
		level |= LEVEL_RECORDED;
	nvtx_text_release(&text);
	return level;
}

/*
 * A mark that is a step ends it. So does the end of a range that is the step, not its beginning:
 * step N is then the N-th range, and step 0 everything up to the first one's end.
 */
static void mark(struct nvtx_name *domain, struct nvtx_message message)
{
	if (inj_alive() && begin(GT_EV_MARK, domain, 0, message, LEVEL_STEP) & LEVEL_STEP)
		inj_step(GT_STEP_NVTX, 0);
}

/* Returns the level from 0, as NVTX wants it. */
int nvtx_push(struct nvtx_name *domain, struct nvtx_message message)
{
	struct stack *s = inj_alive() ? stack_of(domain) : NULL;
	uint8_t level;

	if (!s)
		return NVTX_NO_PUSH_POP_TRACKING;
	if (GT_LIKELY(s->depth < DEPTH_MAX)) {
		/* a step's range within a step's range is a part of the same step */
		level = begin(GT_EV_PUSH, domain, s->depth + 1, message,
			      s->steps_open ? LEVEL_CAPTURED : LEVEL_STEP | LEVEL_CAPTURED);
		s->level[s->depth] = level;
		s->steps_open += !!(level & LEVEL_STEP);
	}
	return (int)s->depth++;
}

int nvtx_pop(struct nvtx_name *domain)
{
	struct stack *s = inj_alive() ? stack_of(domain) : NULL;
	uint8_t level;

	if (!s)
		return NVTX_NO_PUSH_POP_TRACKING;
	if (!s->depth)
		return -1;
	if (GT_LIKELY(--s->depth < DEPTH_MAX)) {
		level = s->level[s->depth];
		/* also when recording has ended meanwhile: the collector has its PUSH */
		if (level & LEVEL_RECORDED)
			put_end(GT_EV_POP, domain, s->depth + 1);
		if (level & LEVEL_STEP) {
			s->steps_open--;
			inj_step(GT_STEP_NVTX, 0);
		}
		if (level & LEVEL_CAPTURED)
			inj_capture_range_ends();
	}
	return (int)s->depth;
}

/* The handle carries what nvtx_range_end() has to know, so that nothing is kept for an open range.
 */
nvtxRangeId_t nvtx_range_start(struct nvtx_name *domain, struct nvtx_message message)
{
	uint64_t id;

	if (!inj_alive())
		return 0;
	id = atomic_fetch_add_explicit(&range_count, 1, memory_order_relaxed) + 1;
	return id << LEVEL_BITS |
	       begin(GT_EV_RANGE_START, domain, id, message, LEVEL_STEP | LEVEL_CAPTURED);
}

void nvtx_range_end(struct nvtx_name *domain, nvtxRangeId_t handle)
{
	if (!inj_alive())
		return;
	if (handle & LEVEL_RECORDED)
		put_end(GT_EV_RANGE_END, domain, handle >> LEVEL_BITS);
	if (handle & LEVEL_STEP)
		inj_step(GT_STEP_NVTX, 0);
	if (handle & LEVEL_CAPTURED)
		inj_capture_range_ends();
}

/* Published at any time: threads are named when they start, long before a window. */
static void name_thread(uint32_t tid, struct nvtx_message message)
{
	struct gt_ev_name *ev = NULL;
	struct nvtx_text text;
	uint32_t name_id;

	if (!inj_alive())
		return;
	nvtx_text_load(&text, message);
	name_id = inj_intern(text.bytes, text.len_bytes);
	nvtx_text_release(&text);
	if (name_id)
		ev = inj_reserve(GT_EV_THREAD_NAME, sizeof(*ev));
	if (!ev)
		return;
	ev->ref = tid;
	ev->name_id = name_id;
	ev->klass = 0;
	inj_commit();
}

static struct nvtx_name *register_name(struct nvtx_message message)
{
	struct nvtx_name *name = NULL;
	struct nvtx_text text;

	if (inj_alive()) {
		nvtx_text_load(&text, message);
		if (text.len_bytes)
			name = nvtx_name_get(text.bytes, text.len_bytes);
		nvtx_text_release(&text);
	}
	return name ? name : &default_domain;
}

/* ---- NVTX's functions, one for each encoding ---- */

static void on_mark_ex(const nvtxEventAttributes_t *attrib)
{
	mark(&default_domain, message_of(attrib));
}

static void on_mark_a(const char *message)
{
	mark(&default_domain, ascii(message));
}

static void on_mark_w(const wchar_t *message)
{
	mark(&default_domain, wide(message));
}

static nvtxRangeId_t on_range_start_ex(const nvtxEventAttributes_t *attrib)
{
	return nvtx_range_start(&default_domain, message_of(attrib));
}

static nvtxRangeId_t on_range_start_a(const char *message)
{
	return nvtx_range_start(&default_domain, ascii(message));
}

static nvtxRangeId_t on_range_start_w(const wchar_t *message)
{
	return nvtx_range_start(&default_domain, wide(message));
}

static void on_range_end(nvtxRangeId_t handle)
{
	nvtx_range_end(&default_domain, handle);
}

static int on_range_push_ex(const nvtxEventAttributes_t *attrib)
{
	return nvtx_push(&default_domain, message_of(attrib));
}

static int on_range_push_a(const char *message)
{
	return nvtx_push(&default_domain, ascii(message));
}

static int on_range_push_w(const wchar_t *message)
{
	return nvtx_push(&default_domain, wide(message));
}

static int on_range_pop(void)
{
	return nvtx_pop(&default_domain);
}

static void on_name_os_thread_a(uint32_t tid, const char *name)
{
	name_thread(tid, ascii(name));
}

static void on_name_os_thread_w(uint32_t tid, const wchar_t *name)
{
	name_thread(tid, wide(name));
}

static void on_domain_mark_ex(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attrib)
{
	mark(nvtx_domain_of(domain), message_of(attrib));
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
	return (nvtxStringHandle_t)register_name(ascii(string));
}

static nvtxStringHandle_t on_domain_register_string_w(nvtxDomainHandle_t domain,
						      const wchar_t *string)
{
	(void)domain;
	return (nvtxStringHandle_t)register_name(wide(string));
}

static nvtxDomainHandle_t on_domain_create_a(const char *name)
{
	return (nvtxDomainHandle_t)register_name(ascii(name));
}

static nvtxDomainHandle_t on_domain_create_w(const wchar_t *name)
{
	return (nvtxDomainHandle_t)register_name(wide(name));
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

static void init_once(void)
{
	const char *domain = inj_capture_domain();

	nvtx_names_init();
	if (domain)
		captured_domain = *domain ? nvtx_name_get(domain, strlen(domain)) : &default_domain;
	stacks_key_made = !pthread_key_create(&stacks_key, free_stacks);
}

bool nvtx_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!inj_start(GT_DOOR_NVTX))
		return false;
	pthread_once(&once, init_once);
	return true;
}

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

/* ---- ranges of programs without NVTX ---- */

void gtrace_inject_push(const char *text)
{
	if (inj_nsight())
		inj_nsight_push(text);
	else if (nvtx_start())
		nvtx_push(&default_domain, ascii(text));
}

void gtrace_inject_pop(void)
{
	if (inj_nsight())
		inj_nsight_pop();
	else
		nvtx_pop(&default_domain);
}
