/*
 * library.h - the program's own libraries: which are loaded, and calls out of one redirected to a
 * function of ours.
 *
 * Torch tells nobody but its own profiler what its allocators do, through an object of a class of
 * its own that each thread has one of. But its libraries call the functions that do so by their
 * names, through entries of their global offset tables, which the dynamic linker fills in. To write
 * another address there is one store: no code changes under threads that run it, a call finds one
 * function or the other, and only this library's calls are changed. LD_PRELOAD would be for all
 * processes that the program starts, and would have to come before the program.
 *
 * What was bound when the library was linked has no entry, and is not reached.
 */
#ifndef INJ_LIBRARY_H
#define INJ_LIBRARY_H

#include "base.h"

#include <link.h>

struct inj_library {
	uintptr_t base; /* what its addresses are relative to */
	const ElfW(Phdr) * headers;
	size_t header_count;
	void *handle; /* of dlopen(): it stays loaded */
};

/*
 * The first of the loaded libraries whose file has this name, or the name and a version behind it.
 * Returns how many there are.
 */
uint32_t inj_library_find(struct inj_library *ret, const char *name);

/*
 * Have the library's calls of this function, which are bound to original or not yet, go to hook,
 * for ever. A first call that another thread is just binding can undo it. Returns the number of
 * entries, 0: it has none; -EBUSY: they are somebody else's already; other -errno: they cannot be
 * written.
 */
int inj_library_redirect(const struct inj_library *library, const char *symbol,
			 const void *original, const void *hook);

#endif
