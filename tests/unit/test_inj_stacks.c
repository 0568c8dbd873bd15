/* Python stacks, by frames laid out as those of CPython 3.12. */
#include "env.h"
#include "events.h"
#include "py_frames.h"
#include "py_stacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define FRAMES 400

struct fake_str {
	uint64_t refcount, type, len, hash;
	uint32_t state, unused;
	char bytes[64]; /* of an ASCII one; others have them 16 later */
};

struct fake_code {
	char head[68];
	int32_t first_line;
	char more[40];
	const struct fake_str *file, *function;
	char rest[64];
	char instructions[256];
};

struct fake_frame {
	const void *code;
	struct fake_frame *previous;
	void *unused[5];
	const char *at;
	char stack[6];
	char owner;
	char unused_too;
	const void *locals[1];
};

_Static_assert(offsetof(struct fake_code, file) == 112, "3.12");
_Static_assert(offsetof(struct fake_code, instructions) == 192, "3.12");
_Static_assert(offsetof(struct fake_frame, at) == 56, "3.12");
_Static_assert(offsetof(struct fake_frame, owner) == 70, "3.12");
_Static_assert(offsetof(struct fake_frame, locals) == 72, "3.12");

static struct fake_frame *current; /* _PyCFrame */
static struct {
	char head[56];
	struct fake_frame **cframe;
} thread = { .cframe = &current };

static struct fake_frame frames[FRAMES];
static struct fake_code codes[4];
static struct fake_str texts[8];
static uint32_t read_bytes, freed;

static void fake_dealloc(void *code)
{
	(void)code;
	freed++;
}

/* What is looked up by name. */
GT_EXPORT const char *Py_GetVersion(void);
GT_EXPORT void *PyGILState_GetThisThreadState(void);
GT_EXPORT int PyCode_Addr2Line(const struct fake_code *code, int offset);
GT_EXPORT extern struct {
	char head[32];
	int64_t basicsize, itemsize;
	void (*dealloc)(void *code);
} PyCode_Type;

typeof(PyCode_Type) PyCode_Type = { .basicsize = 192, .dealloc = fake_dealloc };

const char *Py_GetVersion(void)
{
	return "3.12.3 (main)";
}

void *PyGILState_GetThisThreadState(void)
{
	return &thread;
}

static uint32_t (*in_line_of)(void); /* called by the next one */
static uint32_t interrupting_stack;

int PyCode_Addr2Line(const struct fake_code *code, int offset)
{
	uint32_t (*handler)(void) = in_line_of;

	in_line_of = NULL;
	if (handler)
		interrupting_stack = handler();
	return code->first_line + offset / 2;
}

/* ---- the program ---- */

static const struct fake_str *ascii(const char *text)
{
	static size_t count;
	struct fake_str *str = &texts[count++];

	str->len = strlen(text);
	str->state = 0x64;
	memcpy(str->bytes, text, str->len);
	return str;
}

static void put_code(size_t n, const char *file, const char *function, int first_line)
{
	codes[n].file = ascii(file);
	codes[n].function = ascii(function);
	codes[n].first_line = first_line;
}

/* Call it, with the instruction it is at. */
static struct fake_frame *call(size_t code, int offset)
{
	struct fake_frame *frame = current ? current + 1 : frames;

	*frame = (struct fake_frame){ .code = &codes[code],
				      .previous = current,
				      .at = codes[code].instructions + offset };
	return current = frame;
}

static int begin(void **state)
{
	int fd;

	(void)state;
	inj_config.schedule = (struct gt_schedule)GT_SCHEDULE_DEFAULT;
	assert_int_equal(inj_arena_create(GT_ARENA_MIN_BYTES, GT_MODE_STEPS, &fd), 0);
	assert_int_equal(inj_events_init(), 0);
	assert_int_equal(inj_names_init(), 0);
	atomic_store(&inj_live.recording, 1);
	atomic_store(&inj_live.alive, 1);
	put_code(0, "/srv/train.py", "main", 3);
	put_code(1, "/srv/train.py", "step", 20);
	put_code(2, "/lib/torch/module.py", "_call", 100);
	assert_int_equal(inj_stack(), 0); /* not wanted so far */
	assert_int_equal(gtrace_inject_stack_text((char[1]){ 0 }, 1), 0);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	current = NULL;
	read_bytes = inj_self && inj_self->data ? inj_self->pos : 0;
	return 0;
}

/* The next new frame; NULL: there is none. */
static const struct gt_ev_frame *next_frame(void)
{
	while (inj_self && inj_self->data && read_bytes < inj_self->pos) {
		const struct gt_ev *ev = (const void *)(inj_self->data + read_bytes);

		read_bytes += ev->size_bytes;
		if (ev->type == GT_EV_FRAME)
			return (const void *)ev;
	}
	return NULL;
}

static uint32_t frames_written(void)
{
	uint32_t count = 0;

	while (next_frame())
		count++;
	return count;
}

/* ---- cases ---- */

/* With Python come those of CUDA calls, with torch those of operators, which know its path. */
static void wanted_in_two_parts(void **state)
{
	uint32_t id;

	(void)state;
	assert_int_equal(gtrace_inject_stacks_begin(1, "/nowhere/\n", NULL, 0), 1);
	call(0, 4);
	assert_int_equal(inj_call_stack(UINT64_MAX - 1), 0); /* not asked for */
	setenv(GT_ENV_BACKTRACE, "50", 1);
	assert_int_equal(gtrace_inject_stacks_begin(1, "/nowhere/\n", NULL, 0), 1);
	assert_int_equal(inj_call_stack(49999), 0);
	assert_null(next_frame());
	id = inj_call_stack(50000);
	assert_int_equal(next_frame()->file_id, inj_intern("/srv/train.py", 13));
	assert_int_equal(inj_stack(), 0);
	assert_int_equal(gtrace_inject_stacks_begin(1, "/srv/\n/lib/\n", &codes[2], 1), 1);
	assert_int_equal(inj_stack(), id);
	PyCode_Type.dealloc(&codes[0]); /* ours, and only once */
	assert_int_equal(freed, 1);
	freed = 0;
}

/* A signal handler calls while a stack is being read: what it calls has none. */
static void interrupted(void **state)
{
	(void)state;
	call(0, 4);
	assert_int_not_equal(inj_stack(), 0);
	call(1, 90); /* a new one */
	in_line_of = inj_stack;
	assert_int_not_equal(inj_stack(), 0);
	assert_null(in_line_of);
	assert_int_equal(interrupting_stack, 0);
}

static void each_frame_once(void **state)
{
	const struct gt_ev_frame *frame;
	uint32_t outer, id;

	(void)state;
	assert_int_equal(inj_stack(), 0); /* no Python code */
	call(0, 4);
	call(1, 2);
	id = inj_stack();
	frame = next_frame();
	assert_int_equal(frame->outer_id, 0);
	assert_int_equal(frame->line, 5);
	assert_int_equal(frame->first_line, 3);
	assert_int_equal(frame->file_id, inj_intern("train.py", 8));
	assert_int_equal(frame->function_id, inj_intern("main", 4));
	outer = frame->id;
	frame = next_frame();
	assert_int_equal(frame->outer_id, outer);
	assert_int_equal(frame->id, id);
	assert_int_equal(frame->line, 21);
	assert_int_equal(inj_stack(), id);
	current->at += 2; /* its next line */
	assert_int_not_equal(inj_stack(), id);
	assert_int_equal(next_frame()->outer_id, outer);
	current->at -= 2;
	assert_int_equal(inj_stack(), id);
	current = current->previous;
	assert_int_equal(inj_stack(), outer);
	assert_null(next_frame());
}

/* Those that the interpreter puts where C code calls it. */
static void c_frames_are_none(void **state)
{
	uint32_t id;

	(void)state;
	call(0, 4);
	call(1, 2);
	id = inj_stack();
	current = current->previous;
	call(0, 0)->owner = 3;
	current->code = NULL;
	call(1, 2);
	assert_int_equal(inj_stack(), id);
}

static void modules_have_numbers(void **state)
{
	struct {
		uint64_t refcount;
		const void *type;
	} first, second, other;
	struct {
		char head[24];
		const char *name;
	} types[2] = { { .name = "Linear" }, { .name = "ReLU" } };
	const struct {
		void *module;
		uint32_t instance;
		const char *name;
	} wanted[] = { { &first, 0, "Linear" }, { &second, 1, "Linear" }, { &other, 0, "ReLU" } };
	uint32_t ids[3];

	(void)state;
	first.type = second.type = &types[0];
	other.type = &types[1];
	call(0, 8);
	call(2, 2);
	for (size_t i = 0; i < 3; i++) {
		const struct gt_ev_frame *frame;

		current->locals[0] = wanted[i].module;
		ids[i] = inj_stack();
		do
			frame = next_frame();
		while (frame && frame->id != ids[i]);
		assert_non_null(frame);
		assert_int_equal(frame->instance, wanted[i].instance);
		assert_int_equal(frame->class_id,
				 inj_intern(wanted[i].name, strlen(wanted[i].name)));
	}
	current->locals[0] = &first;
	assert_int_equal(inj_stack(), ids[0]);
	first.type = &types[1]; /* another one at its address */
	assert_int_not_equal(inj_stack(), ids[0]);
	assert_int_equal(next_frame()->instance, 1);
}

/* A code object is freed and another one made at its address. */
static void addresses_are_used_again(void **state)
{
	static struct fake_code unseen;
	const struct gt_ev_frame *frame;
	uint32_t id;

	(void)state;
	put_code(3, "<made>", "f", 1);
	call(0, 4);
	call(3, 2);
	id = inj_stack();
	frames_written();
	PyCode_Type.dealloc(&codes[3]);
	assert_int_equal(freed, 1);
	codes[3].first_line = 50;
	assert_int_not_equal(inj_stack(), id);
	frame = next_frame();
	assert_int_equal(frame->first_line, 50);
	assert_int_equal(frame->line, 51);
	assert_null(next_frame());
	id = frame->id;
	assert_int_equal(inj_stack(), id);
	PyCode_Type.dealloc(&unseen);
	assert_int_equal(inj_stack(), id);
	assert_null(next_frame());
}

static void deep_ones_are_cut(void **state)
{
	uint32_t written = 0, count;

	(void)state;
	for (uint32_t depth = 1; depth <= 300; depth++) {
		const struct gt_ev_frame *frame, *last = NULL;
		uint32_t id;

		call(1, (int)(2 * (depth % 100)));
		id = inj_stack();
		assert_int_not_equal(id, 0);
		for (count = 0; (frame = next_frame()); count++)
			last = frame;
		written += count;
		if (last) {
			assert_int_equal(last->id, id);
			assert_int_equal(last->line, 20 + depth % 100);
		}
	}
	/* and share what is left of their outer part */
	assert_true(written > 300 && written < 300 + 5 * PY_FRAMES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(wanted_in_two_parts, setup),
		cmocka_unit_test_setup(each_frame_once, setup),
		cmocka_unit_test_setup(interrupted, setup),
		cmocka_unit_test_setup(c_frames_are_none, setup),
		cmocka_unit_test_setup(modules_have_numbers, setup),
		cmocka_unit_test_setup(addresses_are_used_again, setup),
		cmocka_unit_test_setup(deep_ones_are_cut, setup),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
