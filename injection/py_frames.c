/*
 * py_frames.c - where CPython keeps its frames, by version. Its structures are not part of its API,
 * but do not change within a minor version: the first release candidate freezes them. Nothing is
 * taken on trust all the same: see gtrace_inject_stack_text(), which compares a walk with what
 * Python says.
 */
#include "py_frames.h"
#include "field.h"
#include "utf8.h"

#include <dlfcn.h>
#include <stdlib.h>

#define NO_CFRAME  UINT8_MAX
#define NO_OWNER   0
#define OWNED_BY_C 3 /* from 3.12 on: FRAME_OWNED_BY_CSTACK and higher are no Python code */

/*
 * Offsets in bytes, for 64-bit builds with the GIL. Found by offsetof in the headers of 3.11.2,
 * 3.13.5, 3.14.10 and 3.15.2, and by hand in the declarations of 3.8.0, 3.9.2, 3.10.0 and 3.12.0.
 */
static const struct layout {
	uint8_t minor;
	uint8_t thread_frame; /* PyThreadState: frame; cframe; current_frame */
	uint8_t cframe_frame; /* _PyCFrame: current_frame */
	uint8_t back;         /* PyFrameObject or _PyInterpreterFrame: f_back; previous */
	uint8_t code;         /* f_code; f_executable */
	uint8_t at;           /* f_lasti; prev_instr; instr_ptr */
	uint8_t owner;        /* owner, where frames that are no Python code are told by it */
	uint16_t locals;      /* f_localsplus; localsplus */
	uint8_t first_line;   /* PyCodeObject: co_firstlineno */
	uint8_t file;         /* co_filename */
	uint8_t function;     /* co_name */
	uint8_t size;         /* tp_basicsize; from 3.11 on there the instructions begin */
	uint8_t ascii;        /* sizeof(PyASCIIObject): behind it the characters */
	uint8_t compact;      /* sizeof(PyCompactUnicodeObject): likewise, of others */
} layouts[] = {
	{ 8, 24, NO_CFRAME, 24, 32, 104, NO_OWNER, 360, 40, 104, 112, 176, 48, 72 },
	{ 9, 24, NO_CFRAME, 24, 32, 104, NO_OWNER, 360, 40, 104, 112, 176, 48, 72 },
	{ 10, 24, NO_CFRAME, 24, 32, 96, NO_OWNER, 352, 40, 104, 112, 176, 48, 72 },
	{ 11, 56, 8, 48, 32, 56, NO_OWNER, 72, 72, 112, 120, 184, 48, 72 },
	{ 12, 56, 0, 8, 0, 56, 70, 72, 68, 112, 120, 192, 40, 56 },
	{ 13, 72, NO_CFRAME, 8, 0, 56, 70, 72, 68, 112, 120, 200, 40, 56 },
	{ 14, 72, NO_CFRAME, 8, 0, 56, 74, 80, 68, 112, 120, 208, 40, 56 },
	{ 15, 72, NO_CFRAME, 8, 0, 56, 74, 80, 68, 112, 120, 208, 40, 56 },
};

/* The same in all of them. */
#define TYPE_AT         8                    /* PyObject: ob_type */
#define TP_NAME_AT      24                   /* PyTypeObject: tp_name */
#define TP_SIZE_AT      32                   /* tp_basicsize */
#define TP_DEALLOC      48                   /* tp_dealloc */
#define STR_LEN_AT      16                   /* PyASCIIObject: length, in characters */
#define STR_STATE_AT    32                   /* state */
#define STR_KIND(state) (((state) >> 2) & 7) /* bytes of a character */
#define STR_COMPACT     0x20u
#define STR_ASCII       0x40u

#define TAG_BITS        UINT64_C(3) /* of a reference in a frame, from 3.14 on */

static struct {
	const struct layout *layout;
	void *(*thread_state)(void);                  /* PyGILState_GetThisThreadState() */
	int (*line_of)(const char *code, int offset); /* PyCode_Addr2Line() */
	char *code_type;                              /* &PyCode_Type */
	const char *module_call;
} py;

static const char *reference(const char *object, size_t at)
{
	return (const char *)(uintptr_t)(field_u64(object, at) & ~TAG_BITS);
}

static void *find(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

const char *py_frames_find(void)
{
	const char *(*version)(void) = (const char *(*)(void))find("Py_GetVersion");
	const struct layout *layout = NULL;
	char *end;
	long minor;

	py.thread_state = (void *(*)(void))find("PyGILState_GetThisThreadState");
	py.line_of = (int (*)(const char *, int))find("PyCode_Addr2Line");
	py.code_type = find("PyCode_Type");
	if (!version || !py.thread_state || !py.line_of || !py.code_type)
		return "this is no CPython";
	/* a function that only free-threaded builds have */
	if (find("PyUnstable_Module_SetGIL"))
		return "this Python has no GIL";
	if (strncmp(version(), "3.", 2))
		return "this version of Python is not known";
	minor = strtol(version() + 2, &end, 10);
	for (size_t i = 0; i < ARRAY_SIZE(layouts) && *end == '.'; i++)
		if (layouts[i].minor == minor)
			layout = &layouts[i];
	if (!layout || sizeof(void *) != 8)
		return "this version of Python is not known";
	/* builds for debugging have more in each object */
	if (field_u64(py.code_type, TP_SIZE_AT) != layout->size || find("_Py_RefTotal") ||
	    find("_Py_GetRefTotal"))
		return "this build of Python is not known";
	py.layout = layout;
	return NULL;
}

void py_frames_set_module_call(const char *code)
{
	py.module_call = code;
}

/* ---- frames ---- */

static const char *innermost(const struct layout *layout)
{
	const char *thread = py.thread_state();
	const char *frame = thread ? field_pointer(thread, layout->thread_frame) : NULL;

	if (frame && layout->cframe_frame != NO_CFRAME)
		frame = field_pointer(frame, layout->cframe_frame);
	return frame;
}

static bool is_python(const struct layout *layout, const char *frame)
{
	return layout->owner == NO_OWNER || frame[layout->owner] < OWNED_BY_C;
}

static struct py_frame read_frame(const struct layout *layout, const char *frame)
{
	struct py_frame ret = { .code = reference(frame, layout->code) };

	ret.at = layout->minor < 11 ? (uintptr_t)(intptr_t)field_int(frame, layout->at)
				    : (uintptr_t)field_u64(frame, layout->at);
	if (GT_UNLIKELY(ret.code == py.module_call)) {
		ret.module = reference(frame, layout->locals);
		ret.type = ret.module ? field_pointer(ret.module, TYPE_AT) : NULL;
	}
	return ret;
}

uint32_t py_frames_walk(struct py_frame ret[PY_FRAMES_MAX])
{
	const struct layout layout = *py.layout;
	const char *frame;
	uint32_t count = 0;

	for (frame = innermost(&layout); frame; frame = field_pointer(frame, layout.back)) {
		if (!is_python(&layout, frame))
			continue;
		if (count < PY_FRAMES_MAX)
			ret[count] = read_frame(&layout, frame);
		count++;
	}
	return count;
}

bool py_frames_are(const struct py_frame *frames, uint32_t count)
{
	const struct layout layout = *py.layout;
	const char *frame;

	for (frame = innermost(&layout); frame; frame = field_pointer(frame, layout.back)) {
		struct py_frame now;

		if (!is_python(&layout, frame))
			continue;
		if (!count)
			return false;
		now = read_frame(&layout, frame);
		if (!py_frame_same(&now, &frames[--count]))
			return false;
	}
	return !count;
}

/* ---- code ---- */

/* The offset of the instruction in bytes. */
static intptr_t offset(const struct py_frame *frame)
{
	if (py.layout->minor >= 11)
		return (intptr_t)(frame->at - (uintptr_t)frame->code) - py.layout->size;
	return (intptr_t)frame->at * (py.layout->minor == 10 ? 2 : 1);
}

int py_code_lasti(const struct py_frame *frame)
{
	return (int)GT_MAX(offset(frame), (intptr_t)-1);
}

int py_code_line(const struct py_frame *frame)
{
	int line = py.line_of(frame->code, py_code_lasti(frame));

	return GT_MAX(line, 0);
}

int py_code_first_line(const char *code)
{
	return GT_MAX(field_int(code, py.layout->first_line), 0);
}

/* ---- text ---- */

static uint32_t character(const char *chars, uint32_t kind, size_t i)
{
	switch (kind) {
	case 1:
		return (unsigned char)chars[i];
	case 2:
		return field_u16(chars, 2 * i);
	default:
		return (uint32_t)field_int(chars, 4 * i);
	}
}

/* A str, which does not change once it is made. */
static size_t put_str(const char *str, char *buf, size_t size)
{
	uint32_t state = (uint32_t)field_int(str, STR_STATE_AT);
	size_t len = field_u64(str, STR_LEN_AT), used = 0;
	const char *chars = str + (state & STR_ASCII ? py.layout->ascii : py.layout->compact);

	if (!(state & STR_COMPACT))
		return 0;
	for (size_t i = 0; i < len && size - used >= 4; i++)
		used += gt_utf8_encode(gt_utf8_scalar(character(chars, STR_KIND(state), i)),
				       buf + used);
	return used;
}

size_t py_code_file(const char *code, char *buf, size_t size)
{
	return put_str(field_pointer(code, py.layout->file), buf, size);
}

size_t py_code_function(const char *code, char *buf, size_t size)
{
	return put_str(field_pointer(code, py.layout->function), buf, size);
}

const char *py_type_name(const char *type)
{
	return field_pointer(type, TP_NAME_AT);
}

/* ---- the end of code objects ---- */

static void (*code_died)(const char *code);
static void (*code_dealloc)(char *code);

static void dealloc(char *code)
{
	code_died(code);
	code_dealloc(code);
}

void py_code_watch(void (*died)(const char *code))
{
	void (*hook)(char *) = dealloc;

	code_died = died;
	memcpy(&code_dealloc, py.code_type + TP_DEALLOC, sizeof(code_dealloc));
	memcpy(py.code_type + TP_DEALLOC, &hook, sizeof(hook));
}
