/*
 * inject.h - what the parts of the injection share. The library is a guest in its host: it never
 * exits, aborts, blocks, prints to stdout or installs a handler. It links only libc.
 */
#ifndef INJ_INJECT_H
#define INJ_INJECT_H

#include "base.h"
#include "schedule.h"
#include "wire.h"

/* ---- inject.c: the session ---- */

/*
 * Start the session of this process, once; later calls and other doors find it running. Reads the
 * environment, makes the arena, connects, starts the control thread. true: traced. In a fork-only
 * child it is false for ever.
 */
bool inj_start(enum gt_door door);

/* A session runs in this very process (false in fork-only children). Cheap; called first by all. */
bool inj_alive(void);

/* This process marks steps or uses the GPU: if it was forked from a traced one, which leaves it
 * out, that is said; of such processes the first one says it. */
void inj_say_forked(void);

/* Are events of ranges wanted now? One load. */
bool inj_recording(void);

/* A line for the user, through the collector, or stderr when there is none. Never fails. */
void inj_log(enum gt_log_level level, const char *fmt, ...) GT_PRINTF(2, 3);

uint64_t inj_now_ns(void); /* CLOCK_REALTIME */

/* ---- events.c: events of the calling thread ---- */

/*
 * Room for one event of size bytes (a multiple of 8, at most GT_EVENT_CHUNK) in the calling
 * thread's chunk; NULL when there is none (counted). The header is filled in, with this moment and
 * step; the caller fills the rest and calls inj_commit() before anything else.
 */
void *inj_reserve(enum gt_event_type type, uint32_t size_bytes);
/* The event that was reserved last has no more bytes than these; before inj_commit(). */
void inj_shrink(void *event, uint32_t size_bytes);
void inj_commit(void);
/* Count an event that is lost for another reason than want of room. */
void inj_drop(void);

/* ---- names.c ---- */

/*
 * The id (from 1) of these bytes, published as GT_EV_STRING once; 0 when that failed (counted).
 * Lock-free. Safe in any callback, but not between inj_reserve() and inj_commit().
 */
uint32_t inj_intern(const char *bytes, size_t len);

/* ---- schedule of steps: steps.c ---- */

/* A step mark of this source. key tells several optimizers apart (0: none). Any thread. */
void inj_step(enum gt_step_source source, uint64_t key);

/* See gtrace_inject_source(). */
void inj_steps_claim(enum gt_step_source source);

/* Is this NVTX range or mark the step (--step-range)? */
bool inj_is_step_name(const char *bytes, size_t len);

/* ---- for the program's own torch.profiler ---- */

/* Close what is open now and stay away until inj_resume(). Calls nest. */
void inj_yield(void);
void inj_resume(void);

/* ---- doors looked up by name: from lib/gtrace.h and injection/python/ (C ABI, any thread) ---- */

GT_EXPORT int gtrace_inject_start(int door); /* enum gt_door; 1: traced, 0: not. 0 only asks */
GT_EXPORT void gtrace_inject_step(void);     /* inj_step(GT_STEP_API, 0) */
GT_EXPORT void gtrace_inject_optimizer_step(uint64_t key);

/*
 * A source of marks that is of Python, by its name of GT_STEP_SOURCES: its number for
 * gtrace_inject_mark(), 0 where such marks do not count. From now on it rules over those below it,
 * so that a mark of theirs before its own first one does not.
 */
GT_EXPORT int gtrace_inject_source(const char *name);
GT_EXPORT void gtrace_inject_mark(int source);

/* A range of this thread, in NVTX's default domain. The text is UTF-8. */
GT_EXPORT void gtrace_inject_push(const char *text);
GT_EXPORT void gtrace_inject_pop(void);

/* Not 0 while ranges are wanted; not written, and valid for ever. */
GT_EXPORT const _Atomic uint32_t *gtrace_inject_ranges(void);

/*
 * The process has this rank in a group of so many, as the program says itself. It counts unless a
 * launcher knows of a larger group. At any time.
 */
GT_EXPORT void gtrace_inject_rank(uint32_t rank, uint32_t world_size);

/* The version of torch, which was imported; told if the session has yet to begin. */
GT_EXPORT void gtrace_inject_torch(const char *version);

/* A warning for the user; on stderr where this process is not traced. */
GT_EXPORT void gtrace_inject_warn(const char *text);

GT_EXPORT void gtrace_inject_yield(void);
GT_EXPORT void gtrace_inject_resume(void);

/*
 * Torch was imported: register our observer of its operators. 1: call torch.empty(1, device="cpu")
 * on this thread, and then the second function; 2: and in between those whose inputs are known, of
 * show_inputs() in gtrace_torch.py; 0: there is nothing to do.
 */
GT_EXPORT int gtrace_inject_ops_test(void);
/* Keep the observer, if it saw what was called. at_once: the first operator starts the session. */
GT_EXPORT int gtrace_inject_ops_begin(int at_once);

/*
 * With the GIL held: the frames of the calling thread, from the innermost one on, a line each: id
 * of the code object, f_lasti, f_lineno, co_firstlineno, co_name, co_filename. Returns the length;
 * -1: this Python is not known.
 */
GT_EXPORT int gtrace_inject_stack_text(char *buf, int size);
/*
 * With the GIL held: take stacks from now on, if that text was as Python has it; of CUDA calls
 * where that is asked for, and of operators. It may come again, with more. paths: of the import
 * system, each with a line feed; left off the names of files. module_call: the code object whose
 * frames call an nn.Module, kept alive by the caller; NULL: none. 1: they are taken.
 */
GT_EXPORT int gtrace_inject_stacks_begin(int equal, const char *paths, const void *module_call,
					 int of_operators);

/* ---- python.c: into a Python that the start-up hook did not reach ---- */

/* By inj_start(), on the thread of the door: reads the environment. */
void inj_python_init(void);

/*
 * From the control thread, once a turn: looks for an interpreter without our hook and asks it to
 * load it. Returns in how many ms it wants to be called again, -1: never. Does not block.
 */
int inj_python_poll(void);

/*
 * From the control thread: torch's operators are to be NVTX ranges from now on, or not. false: say
 * it again.
 */
bool inj_python_recording(bool on);

#endif
