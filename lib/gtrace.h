/*
 * gtrace.h - mark the steps of your own program for 'gtrace run'.
 *
 *	#include "gtrace.h"
 *
 *	for (;;) {
 *		train_one_batch();
 *		gtrace_step();
 *	}
 *
 * Copy this file into your project, under whatever terms suit you: it asks for no licence and no
 * notice. There is nothing to link. In a program that does not run under 'gtrace run' a call is
 * one load and one branch. C (gnu89 and later) and C++, GCC and compilers like it, on Linux;
 * elsewhere, and in device code, calls do nothing. A statically linked program is not traced.
 */
#ifndef GTRACE_H
#define GTRACE_H

#if defined(__linux__) && defined(__GNUC__) && !defined(__CUDA_ARCH__)

#include <dlfcn.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Weak, under names of our own: null where the C library keeps them in a libdl that is not there,
 * and the program's own references to dlopen() stay as strong as they were.
 */
static void *gtrace_dlopen_(const char *, int) __attribute__((weakref("dlopen"), unused));
static void *gtrace_dlsym_(void *, const char *) __attribute__((weakref("dlsym"), unused));

typedef void gtrace_step_fn_(void);

static gtrace_step_fn_ gtrace_first_step_;

/* What gtrace_step() calls: at first the look for gtrace, then its function or nothing. */
static gtrace_step_fn_ *gtrace_stepper_ __attribute__((unused)) = gtrace_first_step_;

static void __attribute__((noinline, cold, unused)) gtrace_first_step_(void)
{
	union {
		void *pointer;
		int (*start)(int door);
		gtrace_step_fn_ *step;
	} found;
	gtrace_step_fn_ *step = NULL;
	const char *path = getenv("GTRACE_INJECTION");
	void *library = NULL;

	if (path && gtrace_dlopen_ && gtrace_dlsym_)
		library = gtrace_dlopen_(path, RTLD_NOW | RTLD_LOCAL);
	if (library) {
		found.pointer = gtrace_dlsym_(library, "gtrace_inject_start");
		if (found.pointer && found.start(4 /* this door: GT_DOOR_API */) == 1) {
			found.pointer = gtrace_dlsym_(library, "gtrace_inject_step");
			step = found.step;
		}
	}
	__atomic_store_n(&gtrace_stepper_, step, __ATOMIC_RELEASE);
	if (step)
		step();
}

/*
 * A step of the program ends here and the next one begins: call it once an iteration, from the
 * thread that drives the loop. The first call ends step 0. Safe in any thread.
 */
static __inline__ void __attribute__((always_inline, unused)) gtrace_step(void)
{
	gtrace_step_fn_ *step = __atomic_load_n(&gtrace_stepper_, __ATOMIC_ACQUIRE);

	if (__builtin_expect(step != NULL, 0))
		step();
}

#ifdef __cplusplus
}
#endif

#else

#define gtrace_step() ((void)0)

#endif

#endif
