/*
 * py_frames.h - the Python frames of the calling thread, read without the GIL: the thread is in C
 * code that they called, so their chain stands still and their code objects stay alive.
 */
#ifndef INJ_PY_FRAMES_H
#define INJ_PY_FRAMES_H

#include "base.h"

#define PY_FRAMES_MAX 128

struct py_frame {
	const char *code;   /* PyCodeObject */
	uintptr_t at;       /* the instruction: its address, before Python 3.11 its index */
	const char *module; /* the nn.Module that it calls; NULL: it calls none */
	const char *type;   /* and its class */
};

/*
 * Find out which Python this is, once, with the GIL held. NULL: its frames can be read, as far as
 * that can be told beforehand. Else why they cannot, in words.
 */
const char *py_frames_find(void);

/*
 * Frames of this code call an nn.Module, which is their first local variable. With the GIL held; a
 * reference to it is kept. NULL: none does.
 */
void py_frames_set_module_call(const char *code);

/*
 * The calling thread's frames, the innermost one first, as far as there is room. Returns how many
 * there are; 0 for a thread without Python.
 */
uint32_t py_frames_walk(struct py_frame ret[PY_FRAMES_MAX]);

/* Are they these, with the outermost one first? */
bool py_frames_are(const struct py_frame *frames, uint32_t count);

static inline bool py_frame_same(const struct py_frame *a, const struct py_frame *b)
{
	return a->code == b->code && a->at == b->at && a->module == b->module && a->type == b->type;
}

/* What follows is for code objects that a frame of the calling thread runs. */

int py_code_line(const struct py_frame *frame); /* that the frame is at; 0: none */
int py_code_first_line(const char *code);
int py_code_lasti(const struct py_frame *frame); /* as Python's f_lasti */

/* UTF-8 into buf, cut where that is full. Returns its length. */
size_t py_code_file(const char *code, char *buf, size_t size);
size_t py_code_function(const char *code, char *buf, size_t size); /* co_name */

const char *py_type_name(const char *type); /* borrowed */

/*
 * Have died() called with every code object before its memory is freed, by the thread that does so,
 * with the GIL held. Once, with the GIL held.
 */
void py_code_watch(void (*died)(const char *code));

#endif
