/*
 * torch_abi.c - finds torch's observers, and makes sure of the layout of what they are shown.
 */
#include "torch_abi.h"
#include "library.h"

#include <dlfcn.h>

/*
 * What varies, by version and by the std::string that torch was built with (that of GCC 5 and
 * later, or the one before, as in PyPI's Linux wheels up to 2.5):
 *
 *                     new string         old string
 *   1.13 to 2.3       200, 248           176, 224
 *   2.4 to 2.15       200, 304           176, 280
 *
 * Found by offsetof in the headers of 1.13.1, 2.0.1, 2.1.2, 2.2.2, 2.3.1, 2.4.1, 2.5.1, 2.6.0,
 * 2.7.1, 2.8.0, 2.9.1, 2.10.0, 2.11.0, 2.12.0, 2.13.0, 2.14.0 and 2.15.0, for x86-64; on aarch64
 * the same types have the same sizes (2.8.0 was seen there, emulated). The second step is
 * kwinputs_, which came with 2.4. lib/doctor_python.c tells users of this range.
 */
static const struct layout {
	uint16_t sequence_at;   /* sequence_nr_; behind it inputs_, a pointer and a length */
	uint16_t fwd_thread_at; /* fwd_thread_id_ */
} layouts[] = {
	{ 200, 304 },
	{ 200, 248 },
	{ 176, 280 },
	{ 176, 224 },
};

/* From fwd_thread_id_ on: handle_, is_async_, debug_handle_, two flags; then the object ends. */
#define DEBUG_HANDLE_BEHIND 24
#define END_BEHIND          40

#define OBJECT_MAX          1024
#define FILL                0xa5

struct object {
	_Alignas(16) char bytes[OBJECT_MAX];
};

static bool untouched(const struct object *object, size_t from)
{
	for (size_t i = from; i < sizeof(object->bytes); i++) {
		if (object->bytes[i] != (char)FILL)
			return false;
	}
	return true;
}

/* Is this a fresh RecordFunction of this layout? Every field has its default value. */
static bool fits(const struct object *object, const struct layout *layout)
{
	return field_u64(object->bytes, layout->sequence_at) == UINT64_MAX &&
	       !field_u64(object->bytes, layout->sequence_at + 8) &&
	       !field_u64(object->bytes, layout->sequence_at + 16) &&
	       !field_u64(object->bytes, layout->fwd_thread_at) &&
	       field_u64(object->bytes, layout->fwd_thread_at + DEBUG_HANDLE_BEHIND) ==
		       UINT64_MAX &&
	       !untouched(object, layout->fwd_thread_at + DEBUG_HANDLE_BEHIND) &&
	       untouched(object, layout->fwd_thread_at + END_BEHIND);
}

/* Have torch make one and see which layout it has. */
static bool find_layout(struct torch_abi *abi, void (*make)(void *, uint8_t),
			void (*destroy)(void *))
{
	const struct layout *found = NULL;
	struct object object;

	memset(&object, FILL, sizeof(object));
	make(&object, TORCH_SCOPE_USER);
	if (torch_scope(object.bytes) == TORCH_SCOPE_USER &&
	    field_u64(object.bytes, TORCH_THREAD_AT) == abi->thread()) {
		for (size_t i = 0; i < ARRAY_SIZE(layouts) && !found; i++) {
			if (fits(&object, &layouts[i]))
				found = &layouts[i];
		}
	}
	destroy(&object);
	if (!found)
		return false;
	abi->sequence_at = found->sequence_at;
	abi->fwd_thread_at = found->fwd_thread_at;
	return true;
}

/* PyPI's library has this name, Debian's a version behind it. */
#define LIBRARY "libtorch_cpu.so"

#define SYMBOLS(X)                                                            \
	X(abi->add, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE") \
	X(abi->enable, "_ZN2at16reenableCallbackEm")                          \
	X(abi->disable, "_ZN2at15disableCallbackEm")                          \
	X(abi->name, "_ZNK2at14RecordFunction4nameEv")                        \
	X(abi->thread, "_ZN2at14RecordFunction15currentThreadIdEv")           \
	X(make, "_ZN2at14RecordFunctionC1ENS_11RecordScopeE")                 \
	X(destroy, "_ZN2at14RecordFunctionD1Ev")

/* Of libc10.so, which libtorch_cpu.so needs. */
#define UNDEFINED "_ZN3c1019UndefinedTensorImpl10_singletonE"

#ifdef __aarch64__
__asm__(".pushsection .text\n"
	".p2align 2\n"
	".hidden torch_start\n"
	".globl torch_start\n"
	".type torch_start, %function\n"
	"torch_start:\n"
	"	mov x1, x0\n"
	"	mov x0, x8\n"
	"	b torch_op_begins\n"
	".size torch_start, .-torch_start\n"
	".popsection");
#endif

const char *torch_abi_find(struct torch_abi *abi)
{
	void (*make)(void *object, uint8_t scope);
	void (*destroy)(void *object);
	struct inj_library library;

#if !defined(__x86_64__) && !defined(__aarch64__)
	return "that is known for x86-64 and aarch64 only";
#endif
	if (!inj_library_find(&library, LIBRARY))
		return "there is no " LIBRARY;
#define X(function, symbol)                                         \
	function = (typeof(function))dlsym(library.handle, symbol); \
	if (!function)                                              \
		return "this version of torch lacks what is needed";
	SYMBOLS(X)
#undef X
	abi->undefined = dlsym(library.handle, UNDEFINED);
	/* The handle is kept: torch stays as long as its observer. */
	abi->library = library.handle;
	return find_layout(abi, make, destroy) ? NULL : "this version of torch is not known";
}
