/*
 * cupti_search.h - where a libcupti may lie, in the order in which it is looked for. Shared by the
 * injection, which opens the first that fits, and by 'gtrace doctor', which shows them.
 */
#ifndef GT_CUPTI_SEARCH_H
#define GT_CUPTI_SEARCH_H

#include "base.h"

#define GT_CUPTI_SONAMES 3
#define GT_CUPTI_DIRS    3

/* The names of the library, newest first; not NULL-terminated. */
extern const char *const gt_cupti_sonames[GT_CUPTI_SONAMES];

/* Environment variables that name directories to look in, in this order. */
extern const char *const gt_cupti_dir_vars[GT_CUPTI_DIRS];

struct gt_cupti_search {  /* { .near = …, .dirs = … }; the strings are the caller's */
	const char *near; /* path of a CUDA library of the program; NULL or empty: none */
	const char *dirs[GT_CUPTI_DIRS]; /* values of gt_cupti_dir_vars; NULL or empty: none */
	size_t next;
};

/*
 * The next place: a path, where there need be no file, or at the end the bare names, for the
 * loader's own search. False when there are no more. What does not fit into buf is passed over.
 */
bool gt_cupti_next(struct gt_cupti_search *search, char *buf, size_t len);

/*
 * Does the libcupti of this name work with this driver (cuDriverGetVersion(), 0: not known)? One
 * newer than the driver does not, an older one does.
 */
bool gt_cupti_fits(const char *path, uint32_t driver_version);

#endif
