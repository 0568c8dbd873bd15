/*
 * base.h - included first by every file: feature macros, small helpers, banned functions.
 */
#ifndef GT_BASE_H
#define GT_BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define GT_VERSION                      "0.1.0"

#define ARRAY_SIZE(a)                   (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Each argument is evaluated once: it may be a call that does something, or another one of these.
 */
#define GT_PICK_AS(a, is, b, x, y)                          \
	__extension__({                                     \
		__typeof__(1 ? (a) : (b)) x = (a), y = (b); \
		x is y ? x : y;                             \
	})
#define GT_PASTE(a, b)          a##b
#define GT_PICK_BY(a, is, b, n) GT_PICK_AS(a, is, b, GT_PASTE(gt_a, n), GT_PASTE(gt_b, n))
#define GT_PICK(a, is, b, n)    GT_PICK_BY(a, is, b, n)
#define GT_MIN(a, b)            GT_PICK(a, <, b, __COUNTER__)
#define GT_MAX(a, b)            GT_PICK(a, >, b, __COUNTER__)

#define GT_PRINTF(fmt, args)    __attribute__((format(printf, fmt, args)))
#define GT_EXPORT               __attribute__((visibility("default")))
#define GT_NOINLINE             __attribute__((noinline))
#define GT_LIKELY(x)            __builtin_expect(!!(x), 1)
#define GT_UNLIKELY(x)          __builtin_expect(!!(x), 0)

#define GT_NSEC_PER_SEC         UINT64_C(1000000000)
#define GT_NSEC_PER_MSEC        UINT64_C(1000000)
#define GT_NSEC_PER_USEC        UINT64_C(1000)

/* a - b, of times for instance; 0 where that is below 0. */
static inline uint64_t gt_sub(uint64_t a, uint64_t b)
{
	return a - GT_MIN(a, b);
}

/* Whatever the locale and the sign of char. */
static inline bool gt_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Functions without a bound on what they write; the headers that declare them stand above. */
#ifndef __clang__ /* there _FORTIFY_SOURCE makes macros of some, which cannot be poisoned */
#pragma GCC poison strcpy strcat sprintf vsprintf gets strncpy
#endif

#endif
