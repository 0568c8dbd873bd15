/*
 * nvtx.c - the ranges and marks of NVTX clients, and those of programs without NVTX: which step or
 * captured range they are, and what of them goes to the arena.
 */
#include "nvtx.h"
#include "capture.h"
#include "nsight.h"
#include "py_stacks.h"

#include <pthread.h>
#include <stdlib.h>

/* Deeper ranges are not recorded, which counts as a loss: a byte a level is kept for each stack. */
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

struct nvtx_name nvtx_default_domain; /* its id on the wire is 0 */

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

/* ---- events ---- */

/* false when the domain's name did not reach the arena: its events would seem the default's. */
static bool domain_id(struct nvtx_name *domain, uint32_t *ret)
{
	*ret = domain == &nvtx_default_domain ? 0 : nvtx_name_id(domain);
	return *ret || domain == &nvtx_default_domain;
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
void nvtx_mark(struct nvtx_name *domain, struct nvtx_message message)
{
	if (inj_alive() && begin(GT_EV_MARK, domain, 0, message, LEVEL_STEP) & LEVEL_STEP)
		inj_step(GT_STEP_NVTX, 0);
}

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
	} else if (inj_recording()) {
		inj_drop();
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
void nvtx_name_thread(uint32_t tid, struct nvtx_message message)
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

struct nvtx_name *nvtx_register(struct nvtx_message message)
{
	struct nvtx_name *name = NULL;
	struct nvtx_text text;

	if (inj_alive()) {
		nvtx_text_load(&text, message);
		if (text.len_bytes)
			name = nvtx_name_get(text.bytes, text.len_bytes);
		nvtx_text_release(&text);
	}
	return name ? name : &nvtx_default_domain;
}

static void init_once(void)
{
	const char *domain = inj_capture_domain();

	nvtx_names_init();
	if (domain)
		captured_domain = *domain ? nvtx_name_get(domain, strlen(domain))
					  : &nvtx_default_domain;
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

/* ---- ranges of programs without NVTX ---- */

void gtrace_inject_push(const char *text)
{
	if (inj_nsight())
		inj_nsight_push(text);
	else if (nvtx_start())
		nvtx_push(&nvtx_default_domain,
			  (struct nvtx_message){ NVTX_MESSAGE_TYPE_ASCII, { .ascii = text } });
}

void gtrace_inject_pop(void)
{
	if (inj_nsight())
		inj_nsight_pop();
	else
		nvtx_pop(&nvtx_default_domain);
}
