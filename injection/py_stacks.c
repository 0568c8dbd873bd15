/*
 * py_stacks.c - Python stacks as numbers. A frame is what it runs and where, and the number of what
 * called it; so stacks that begin alike share their beginning, and each frame is written once.
 *
 * What is known of a code object holds until that dies: then all that was made from it does. A
 * thread keeps its last stack: of the next one only what differs is looked up.
 */
#include "py_stacks.h"
#include "env.h"
#include "events.h"
#include "py_frames.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define FRAMES_MAX   (UINT32_C(1) << 17)
#define FRAME_SLOTS  (2 * FRAMES_MAX)
#define CODES_MAX    (UINT32_C(1) << 15)
#define CODE_SLOTS   (2 * CODES_MAX)
#define MODULES_MAX  (UINT32_C(1) << 13)
#define MODULE_SLOTS (2 * MODULES_MAX)
#define STORE_BYTES  (UINT64_C(16) << 20)
#define TEXT_MAX     4096

/* Of a deeper stack so many outer frames are left out that the rest begins at a multiple. */
#define CUT_UNIT (PY_FRAMES_MAX / 2)

struct code {
	const char *address;
	uint32_t file_id;
	uint32_t function_id;
	uint32_t first_line;
	_Atomic bool dead;
};

struct module {
	const char *address;
	const char *type;
	uint32_t class_id;
	uint32_t instance;
};

struct frame {
	const struct code *code; /* NULL: outer frames that were left out */
	struct py_frame python;
	uint32_t outer_id;
	uint32_t id;
};

struct inj_stack { /* the last one of a thread, its outermost frame first */
	bool busy; /* being read: what a signal handler calls meanwhile has none */
	uint64_t deaths;
	uint32_t depth;
	uint32_t cut; /* frames left out */
	struct py_frame frames[PY_FRAMES_MAX];
	uint32_t ids[PY_FRAMES_MAX];
};

_Atomic bool inj_stacks_on;
_Atomic uint64_t inj_long_call_ns = UINT64_MAX;

static _Atomic(const char *) problem;
static _Atomic uint64_t deaths; /* of code objects that are known */

/* Read without the lock; written with it. Slots are never emptied. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct frame *) frames[FRAME_SLOTS];
static _Atomic(struct code *) codes[CODE_SLOTS];
static uint32_t frame_count, code_count;

/* With the lock only. */
static struct module *modules[MODULE_SLOTS];
static uint32_t module_count;
static char *store;
static uint64_t store_used;
static char *prefixes; /* of file names, each with a line feed behind it */

static void *store_take(size_t bytes)
{
	void *ret = store + store_used;

	if (store_used + bytes > STORE_BYTES)
		return NULL;
	store_used += bytes;
	return ret;
}

/* What was taken last, clear again. */
static void store_give_back(void *memory, size_t bytes)
{
	memset(memory, 0, bytes);
	store_used -= bytes;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static uint64_t mix_pointer(uint64_t hash, const void *pointer)
{
	return mix(hash, (uintptr_t)pointer);
}

static bool is_dead(const struct code *code)
{
	return code && atomic_load_explicit(&code->dead, memory_order_acquire);
}

/* ---- code objects ---- */

static uint32_t code_slot(const char *address)
{
	return (uint32_t)mix_pointer(0, address) % CODE_SLOTS;
}

/* The place of this code object, or the empty one where it belongs. */
static _Atomic(struct code *) *code_place(const char *address)
{
	uint32_t slot = code_slot(address);
	struct code *code;

	while ((code = atomic_load_explicit(&codes[slot], memory_order_acquire)) &&
	       code->address != address)
		slot = (slot + 1) % CODE_SLOTS;
	return &codes[slot];
}

/* By the thread that frees it, which has the GIL. Another object may have this address next. */
static void code_died(const char *address)
{
	struct code *code = atomic_load_explicit(code_place(address), memory_order_acquire);

	if (!code || is_dead(code))
		return;
	atomic_store_explicit(&code->dead, true, memory_order_release);
	atomic_fetch_add_explicit(&deaths, 1, memory_order_release);
}

/* Without the directory it was imported from, as torch.profiler has it. */
static const char *strip_prefix(const char *file, size_t len)
{
	size_t longest = 0;

	for (const char *prefix = prefixes, *end; (end = strchr(prefix, '\n')); prefix = end + 1) {
		size_t prefix_len = (size_t)(end - prefix);

		if (prefix_len > longest && prefix_len < len && !memcmp(file, prefix, prefix_len))
			longest = prefix_len;
	}
	return file + longest;
}

static const struct code *code_of(const char *address)
{
	_Atomic(struct code *) *place = code_place(address);
	struct code *code = atomic_load_explicit(place, memory_order_relaxed);
	char text[TEXT_MAX];
	const char *file;
	bool is_new;
	size_t len;

	if (code && !is_dead(code))
		return code;
	if (!code && code_count >= CODES_MAX)
		return NULL;
	is_new = !code;
	code = store_take(sizeof(*code));
	if (!code)
		return NULL;
	code->address = address;
	code->first_line = (uint32_t)py_code_first_line(address);
	len = py_code_file(address, text, sizeof(text));
	file = strip_prefix(text, len);
	code->file_id = inj_intern(file, len - (size_t)(file - text));
	len = py_code_function(address, text, sizeof(text));
	code->function_id = inj_intern(text, len);
	if (!code->file_id || !code->function_id) {
		store_give_back(code, sizeof(*code));
		return NULL;
	}
	code_count += is_new;
	atomic_store_explicit(place, code, memory_order_release);
	return code;
}

/* ---- modules ---- */

/* Of a module; without address: of a class, whose instance is how many of it there are. */
static struct module *module_find(const char *address, const char *type)
{
	uint32_t slot = (uint32_t)mix_pointer(mix_pointer(0, type), address) % MODULE_SLOTS;
	struct module *module;

	for (; (module = modules[slot]); slot = (slot + 1) % MODULE_SLOTS)
		if (module->address == address && module->type == type)
			return module;
	module = module_count < MODULES_MAX ? store_take(sizeof(*module)) : NULL;
	if (!module)
		return NULL;
	*module = (struct module){ .address = address, .type = type };
	modules[slot] = module;
	module_count++;
	return module;
}

/* Counted by class, in the order in which they are first seen, as torch.profiler does. */
static const struct module *module_of(const struct py_frame *frame)
{
	struct module *class = module_find(NULL, frame->type);
	struct module *module = module_find(frame->module, frame->type);
	const char *name = py_type_name(frame->type);

	if (!class || !module)
		return NULL;
	if (!class->class_id)
		class->class_id = inj_intern(name, strlen(name));
	if (!module->class_id) {
		module->class_id = class->class_id;
		module->instance = class->instance++;
	}
	return module;
}

/* ---- frames ---- */

/* The frame, dead or not; NULL: *ret_place is where it belongs. */
static struct frame *frame_find(uint32_t outer_id, const struct py_frame *python,
				_Atomic(struct frame *) **ret_place)
{
	uint64_t hash =
		mix_pointer(mix(mix_pointer(outer_id, python->code), python->at), python->module);
	uint32_t slot = (uint32_t)(hash % FRAME_SLOTS);
	struct frame *frame;

	/* Never more than half of the slots are in use, so there is an empty one. */
	while ((frame = atomic_load_explicit(&frames[slot], memory_order_acquire)) &&
	       !(frame->outer_id == outer_id && py_frame_same(&frame->python, python)))
		slot = (slot + 1) % FRAME_SLOTS;
	*ret_place = &frames[slot];
	return frame;
}

static bool publish(const struct frame *frame, uint32_t line, const struct module *module)
{
	struct gt_ev_frame *ev = inj_reserve(GT_EV_FRAME, sizeof(*ev));

	if (!ev)
		return false;
	ev->id = frame->id;
	ev->outer_id = frame->outer_id;
	ev->file_id = frame->code ? frame->code->file_id : 0;
	ev->function_id = frame->code ? frame->code->function_id : 0;
	ev->line = line;
	ev->first_line = frame->code ? frame->code->first_line : 0;
	ev->class_id = module ? module->class_id : 0;
	ev->instance = module ? module->instance : 0;
	inj_commit();
	return true;
}

static struct frame *frame_new(uint32_t outer_id, const struct py_frame *python)
{
	const struct code *code = python->code ? code_of(python->code) : NULL;
	const struct module *module = python->module ? module_of(python) : NULL;
	struct frame *frame;

	if ((python->code && !code) || frame_count >= FRAMES_MAX)
		return NULL;
	frame = store_take(sizeof(*frame));
	if (!frame)
		return NULL;
	*frame = (struct frame){
		.code = code,
		.python = *python,
		.outer_id = outer_id,
		.id = frame_count + 1,
	};
	if (!publish(frame, code ? (uint32_t)py_code_line(python) : 0, module)) {
		store_give_back(frame, sizeof(*frame));
		return NULL;
	}
	frame_count++;
	return frame;
}

/* 0: there is no room for it (counted). */
static uint32_t frame_add(uint32_t outer_id, const struct py_frame *python)
{
	_Atomic(struct frame *) *place;
	struct frame *frame;

	pthread_mutex_lock(&lock);
	frame = frame_find(outer_id, python, &place);
	if (!frame || is_dead(frame->code)) {
		frame = frame_new(outer_id, python);
		if (frame)
			atomic_store_explicit(place, frame, memory_order_release);
		else
			atomic_fetch_add_explicit(&inj_arena->dropped_names, 1,
						  memory_order_relaxed);
	}
	pthread_mutex_unlock(&lock);
	return frame ? frame->id : 0;
}

static uint32_t frame_id(uint32_t outer_id, const struct py_frame *python)
{
	_Atomic(struct frame *) *place;
	const struct frame *frame = frame_find(outer_id, python, &place);

	return frame && !is_dead(frame->code) ? frame->id : frame_add(outer_id, python);
}

/* ---- stacks ---- */

static struct inj_stack *last_stack(struct inj_thread *self)
{
	if (!self->stack)
		self->stack = calloc(1, sizeof(*self->stack));
	return self->stack;
}

static uint32_t take(struct inj_stack *last)
{
	static const struct py_frame left_out;
	struct py_frame now[PY_FRAMES_MAX];
	uint64_t died = atomic_load_explicit(&deaths, memory_order_acquire);
	uint32_t depth, cut = 0, i = 0, id;

	/* An operator within another mostly has the same stack. */
	if (last->deaths == died && last->depth && !last->cut &&
	    py_frames_are(last->frames, last->depth))
		return last->ids[last->depth - 1];
	depth = py_frames_walk(now);
	if (depth > PY_FRAMES_MAX)
		cut = (depth - CUT_UNIT - 1) / CUT_UNIT * CUT_UNIT;
	depth -= cut;
	if (last->deaths == died && last->cut == cut)
		while (i < depth && i < last->depth &&
		       py_frame_same(&last->frames[i], &now[depth - 1 - i]))
			i++;
	last->deaths = died;
	last->cut = cut;
	id = i ? last->ids[i - 1] : cut ? frame_id(0, &left_out) : 0;
	for (; i < depth && (id || !(i | cut)); i++) {
		last->frames[i] = now[depth - 1 - i];
		last->ids[i] = id = frame_id(id, &last->frames[i]);
	}
	/* Where there was no room for a frame, the next stack tries again. */
	last->depth = id ? i : 0;
	return id;
}

uint32_t inj_stack_take(void)
{
	struct inj_thread *self = inj_thread_self();
	struct inj_stack *last = self ? last_stack(self) : NULL;
	uint32_t id;

	if (!last || last->busy)
		return 0;
	last->busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	id = take(last);
	atomic_signal_fence(memory_order_seq_cst);
	last->busy = false;
	return id;
}

/* ---- switching on ---- */

int gtrace_inject_stack_text(char *buf, int size)
{
	static bool found;
	struct py_frame now[PY_FRAMES_MAX];
	char file[TEXT_MAX], function[TEXT_MAX];
	const char *why = found ? NULL : py_frames_find();
	uint32_t depth;
	int used = 0;

	if (why) {
		atomic_store(&problem, why);
		return -1;
	}
	found = true;
	depth = GT_MIN(py_frames_walk(now), (uint32_t)PY_FRAMES_MAX);
	for (uint32_t i = 0; i < depth && used < size; i++)
		used += snprintf(buf + used, (size_t)(size - used), "%zu %d %d %d %.*s %.*s\n",
				 (size_t)now[i].code, py_code_lasti(&now[i]), py_code_line(&now[i]),
				 py_code_first_line(now[i].code),
				 (int)py_code_function(now[i].code, function, sizeof(function)),
				 function, (int)py_code_file(now[i].code, file, sizeof(file)),
				 file);
	return GT_MIN(used, size);
}

static bool make_store(void)
{
	void *made = store ? NULL
			   : mmap(NULL, STORE_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (made == MAP_FAILED)
		return false;
	if (made) {
		store = made;
		py_code_watch(code_died);
	}
	return true;
}

/* CUDA calls that last so long are asked for. UINT64_MAX: none is. */
static uint64_t long_call_ns(void)
{
	const char *text = getenv(GT_ENV_BACKTRACE);

	return text ? strtoull(text, NULL, 10) * GT_NSEC_PER_USEC : UINT64_MAX;
}

int gtrace_inject_stacks_begin(int equal, const char *paths, const void *module_call,
			       int of_operators)
{
	char *given = strdup(paths);

	if (!equal || !given || !make_store()) {
		atomic_store(&problem, equal ? "there is no memory"
					     : "its frames are not where they were expected");
		free(given);
		return 0;
	}
	pthread_mutex_lock(&lock);
	free(prefixes);
	prefixes = given;
	pthread_mutex_unlock(&lock);
	if (of_operators) {
		py_frames_set_module_call(module_call);
		atomic_store(&inj_stacks_on, true);
	}
	atomic_store(&inj_long_call_ns, long_call_ns());
	return 1;
}

void inj_stacks_follow(void)
{
	const char *why = atomic_load(&problem) ? atomic_exchange(&problem, NULL) : NULL;

	if (why)
		inj_log(GT_LOG_WARN, "Python stacks will not be in the trace: %s", why);
}
