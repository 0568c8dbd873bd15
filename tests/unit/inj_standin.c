/*
 * inj_standin.c - the core's functions, for tests of one part of the injection.
 */
#include "inj_standin.h"
#include "capture.h"
#include "nsight.h"
#include "py_stacks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct standin standin;

static char names[64][4096]; /* id - 1 */
static uint32_t name_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(8) char reserved[sizeof(struct gt_ev_range) + GT_INLINE_MAX];

void standin_reset(void)
{
	memset(&standin, 0, sizeof(standin));
	standin.alive = standin.recording = true;
}

const char *standin_name(uint32_t id)
{
	assert_in_range(id, 1, name_count);
	return names[id - 1];
}

bool inj_start(enum gt_door door)
{
	(void)door;
	standin.starts++;
	return standin.alive;
}

struct inj_config inj_config; /* without Nsight Systems */

void inj_nsight_push(const char *name)
{
	fail_msg("range '%s' for Nsight Systems", name);
}

void inj_nsight_pop(void)
{
	fail_msg("the end of a range for Nsight Systems");
}

bool inj_alive(void)
{
	return standin.alive;
}

bool inj_recording(void)
{
	return standin.recording;
}

_Atomic bool inj_stacks_on = true;

uint32_t inj_stack_take(void)
{
	return STANDIN_STACK;
}

/* Holds the lock until inj_commit(): here, one event at a time. */
void *inj_reserve(enum gt_event_type type, uint32_t size_bytes)
{
	if (standin.arena_full)
		return NULL;
	pthread_mutex_lock(&lock);
	assert_int_equal(size_bytes % 8, 0);
	assert_true(size_bytes <= sizeof(reserved));
	assert_true((type >= GT_EV_PUSH && type <= GT_EV_THREAD_NAME) || type == GT_EV_COMM ||
		    type == GT_EV_COLLECTIVE);
	memset(reserved, 0xff, sizeof(reserved));
	*(struct gt_ev *)reserved =
		(struct gt_ev){ .type = (uint16_t)type, .size_bytes = (uint16_t)size_bytes };
	return reserved;
}

static void keep_range(struct standin_event *event, const struct gt_ev_range *range)
{
	uint32_t len = range->len_bytes;

	assert_int_equal(range->inputs_bytes, 0);
	assert_int_equal(range->stack_id, range->ev.type == GT_EV_PUSH ? STANDIN_STACK : 0);
	assert_int_equal(range->reserved, 0);
	assert_int_equal(range->ev.size_bytes, sizeof(*range) + ((len + 7) & ~7U));
	for (uint32_t i = len; i % 8; i++)
		assert_int_equal(range->bytes[i], 0);
	event->range_id = range->range_id;
	event->domain_id = range->domain_id;
	event->name_id = range->name_id;
	memcpy(event->text, range->bytes, len);
}

void inj_commit(void)
{
	const struct gt_ev *ev = (const void *)reserved;
	const struct gt_ev_end *end = (const void *)reserved;
	const struct gt_ev_name *name = (const void *)reserved;
	struct standin_event *event = &standin.events[standin.event_count++];

	assert_true(standin.event_count < STANDIN_EVENTS_MAX);
	memset(event, 0, sizeof(*event));
	event->type = ev->type;
	if (ev->type == GT_EV_POP || ev->type == GT_EV_RANGE_END) {
		assert_int_equal(end->stack_id, ev->type == GT_EV_POP ? STANDIN_STACK : 0);
		event->range_id = end->range_id;
		event->domain_id = end->domain_id;
	} else if (ev->type == GT_EV_THREAD_NAME) {
		assert_int_equal(name->klass, 0);
		event->range_id = name->ref;
		event->name_id = name->name_id;
	} else if (ev->type == GT_EV_COMM) {
		memcpy(&event->comm, ev, sizeof(event->comm));
	} else if (ev->type == GT_EV_COLLECTIVE) {
		memcpy(&event->collective, ev, sizeof(event->collective));
	} else {
		keep_range(event, (const void *)reserved);
	}
	pthread_mutex_unlock(&lock);
}

uint32_t inj_intern(const char *bytes, size_t len)
{
	uint32_t id;

	if (standin.intern_fails)
		return 0;
	pthread_mutex_lock(&lock);
	assert_true(len < sizeof(names[0]));
	for (id = 0; id < name_count; id++) {
		if (strlen(names[id]) == len && !memcmp(names[id], bytes, len))
			break;
	}
	if (id == name_count) {
		assert_true(id < ARRAY_SIZE(names));
		memcpy(names[id], bytes, len);
		name_count++;
	}
	pthread_mutex_unlock(&lock);
	return id + 1;
}

void inj_drop(void)
{
	standin.drops++;
}

void inj_step(enum gt_step_source source, uint64_t key)
{
	assert_int_equal(source, GT_STEP_NVTX);
	assert_int_equal(key, 0);
	standin.steps++;
}

bool inj_capture_is_name(const char *bytes, size_t len)
{
	standin.regex_runs++;
	return len >= 7 && !memcmp(bytes, "capture", 7);
}

const char *inj_capture_domain(void)
{
	return "of captures";
}

/* As the real one, the first one switches recording on. */
void inj_capture_range_begins(void)
{
	standin.captures++;
	standin.recording = true;
}

void inj_capture_range_ends(void)
{
	standin.captures--;
	standin.recording = false;
}

bool inj_is_step_name(const char *bytes, size_t len)
{
	standin.regex_runs++;
	return len >= 4 && !memcmp(bytes, "step", 4);
}
