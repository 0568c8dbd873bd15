/*
 * fake_torch.c - a libtorch_cpu.so for tests of the injection: one observer, and operators made by
 * the test. A context is let go of as a std::unique_ptr does it.
 */
#include "fake_torch.h"

#include <string.h>

struct context {
	void (*const *table)(struct context *);
};

/* Returned as C++ returns a std::unique_ptr, of which the first word is written: to a place that is
 * passed, as one so large is no value of registers. */
struct unique_ptr {
	struct context *context;
	void *rest[2];
};

typedef struct unique_ptr (*start_t)(const char *function);
typedef void (*end_t)(const char *function, struct context *context);

struct callback {
	start_t start;
	end_t end;
	double sampling_probability;
	bool scopes[10];
	bool needs[3];
};

#define NAMED(symbol)    __asm__(symbol) __attribute__((visibility("default")))
#define EXPORTED         __attribute__((visibility("default")))

#define FUNCTION_NAME_AT 104 /* not torch's: anything the injection does not look at */

EXPORTED struct fake_torch fake_torch = { .sequence_at = 200, .fwd_thread_at = 304, .bytes = 344 };

/* The tensor that is none. */
extern char undefined_tensor[] NAMED("_ZN3c1019UndefinedTensorImpl10_singletonE");
char undefined_tensor[8];

static struct callback observer;
static uint64_t threads;
static __thread uint64_t thread_number;

uint64_t add_callback(struct callback callback)
	NAMED("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
void enable_callback(uint64_t handle) NAMED("_ZN2at16reenableCallbackEm");
void disable_callback(uint64_t handle) NAMED("_ZN2at15disableCallbackEm");
const char *function_name(const char *function) NAMED("_ZNK2at14RecordFunction4nameEv");
uint64_t current_thread(void) NAMED("_ZN2at14RecordFunction15currentThreadIdEv");
void make_function(char *function, uint8_t scope)
	NAMED("_ZN2at14RecordFunctionC1ENS_11RecordScopeE");
void destroy_function(char *function) NAMED("_ZN2at14RecordFunctionD1Ev");

uint64_t add_callback(struct callback callback)
{
	observer = callback;
	fake_torch.registered++;
	fake_torch.needs_inputs = callback.needs[0];
	fake_torch.enabled = true;
	return 7;
}

static void set_enabled(uint64_t handle, bool enabled)
{
	if (handle != 7)
		return;
	fake_torch.enabled = enabled;
	fake_torch.switched++;
}

void enable_callback(uint64_t handle)
{
	set_enabled(handle, true);
}

void disable_callback(uint64_t handle)
{
	set_enabled(handle, false);
}

const char *function_name(const char *function)
{
	const char *name;

	memcpy(&name, function + FUNCTION_NAME_AT, sizeof(name));
	return name;
}

uint64_t current_thread(void)
{
	if (!thread_number)
		thread_number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return thread_number;
}

static void put_u64(char *function, uint16_t at, uint64_t value)
{
	memcpy(function + at, &value, sizeof(value));
}

void make_function(char *function, uint8_t scope)
{
	memset(function, 0, fake_torch.bytes);
	put_u64(function, 88, current_thread());
	function[96] = (char)scope;
	put_u64(function, fake_torch.sequence_at, UINT64_MAX);
	put_u64(function, fake_torch.fwd_thread_at, 0);
	put_u64(function, (uint16_t)(fake_torch.fwd_thread_at + 24), UINT64_MAX);
}

void destroy_function(char *function)
{
	(void)function;
}

EXPORTED void fake_op_begin(struct fake_op *op, uint8_t scope, const char *name, int64_t sequence,
			    uint64_t fwd_thread)
{
	op->context = NULL;
	make_function(op->function, scope);
	put_u64(op->function, FUNCTION_NAME_AT, (uint64_t)(uintptr_t)name);
	put_u64(op->function, fake_torch.sequence_at, (uint64_t)sequence);
	put_u64(op->function, fake_torch.fwd_thread_at, fwd_thread);
	op->name = fake_torch.enabled && !fake_torch.deaf && observer.scopes[scope] ? name : NULL;
	if (op->name)
		op->context = observer.start(op->function).context;
}

EXPORTED void fake_op_end(struct fake_op *op)
{
	struct context *context = op->context;

	if (!op->name)
		return;
	observer.end(op->function, context);
	if (context)
		context->table[1](context);
}
