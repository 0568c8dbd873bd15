/*
 * torch_abi.h - what gtrace knows of the inside of libtorch_cpu: the functions that observe
 * operators, by their mangled names, and where in an at::RecordFunction its fields are.
 *
 * Source: ATen/record_function.h of PyTorch 1.13 to 2.15. It says nothing of stability, so nothing
 * is taken on trust: a RecordFunction is made by torch itself and looked at before any is read.
 */
#ifndef INJ_TORCH_ABI_H
#define INJ_TORCH_ABI_H

#include "base.h"
#include "field.h"

/* at::RecordScope: only what is told apart. */
#define TORCH_SCOPE_USER  7 /* record_function() */
#define TORCH_SCOPE_COUNT 10

/* Stands in for at::ObserverContext, which torch deletes through the table; see torch_ops.c. */
struct torch_context {
	const void *const *vtable; /* two destructors: complete, and deleting */
};

/*
 * std::unique_ptr<ObserverContext> (*)(const RecordFunction &): the result is no plain value, so
 * the caller passes where it goes. On x86-64 that is a first argument, and returned. On aarch64 it
 * is in x8, where C does not see it; see torch_start().
 */
typedef struct torch_context **(*torch_start_t)(struct torch_context **ret, const char *function);
typedef void (*torch_end_t)(const char *function, struct torch_context *context);

struct torch_callback { /* at::RecordFunctionCallback, passed by value */
	torch_start_t start;
	torch_end_t end;
	double sampling_probability;
	bool scopes[TORCH_SCOPE_COUNT];
	bool needs_inputs;
	bool needs_outputs;
	bool needs_ids;
};

_Static_assert(sizeof(struct torch_callback) == 40, "at::RecordFunctionCallback");

/* Of torch_ops.c: an operator begins. *ret is what torch hands back at its end, or NULL. */
struct torch_context **torch_op_begins(struct torch_context **ret, const char *function);

/* The same as torch calls it. */
#ifdef __aarch64__
struct torch_context **torch_start(struct torch_context **ret, const char *function);
#else
#define torch_start torch_op_begins
#endif

struct torch_abi {
	uint64_t (*add)(struct torch_callback callback); /* returns its handle */
	void (*enable)(uint64_t handle);                 /* any thread: under a lock of torch's */
	void (*disable)(uint64_t handle);                /* likewise */
	const char *(*name)(const char *function);       /* borrowed; while the op runs */
	uint64_t (*thread)(void); /* torch's number of the calling thread, from 1 */
	const void *undefined; /* the c10::TensorImpl of a tensor that is none; NULL: not found */
	void *library;         /* of dlopen() */
	uint16_t sequence_at;
	uint16_t fwd_thread_at;
};

/*
 * Find torch in this process. NULL: it is there, and what *ret says is right. Else why it cannot be
 * observed, in words.
 */
const char *torch_abi_find(struct torch_abi *ret);

#define TORCH_THREAD_AT 88 /* uint64_t, torch's number of the thread */
#define TORCH_SCOPE_AT  96 /* uint8_t */

/* inputs_, of torch_inputs_count() c10::IValue, as long as the operator runs; may be NULL. */
static inline const char *torch_inputs(const char *function, const struct torch_abi *abi)
{
	return field_pointer(function, abi->sequence_at + 8);
}

static inline uint64_t torch_inputs_count(const char *function, const struct torch_abi *abi)
{
	return field_u64(function, abi->sequence_at + 16);
}

static inline uint8_t torch_scope(const char *function)
{
	return (uint8_t)function[TORCH_SCOPE_AT];
}

#endif
