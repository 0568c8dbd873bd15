#include "demangle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <libiberty/demangle.h>

#define PLAIN_MAX ((size_t)1 << 20)

/*
 * libiberty recurses for each level of nesting. Up to this length of a name it has a limit of its
 * own, beyond it refuses; CUTLASS's names are longer. Those get a stack that no name can exhaust:
 * it took at most 216 bytes per byte of the name, with the nestings that take most.
 */
#define LIMITED_MAX 1024
#define STACK_BYTES (GT_DEMANGLE_MAX * 1024)

struct job {
	const char *mangled;
	int options;
	struct gt_buf *plain;
	jmp_buf too_large;
	bool done;
};

static void add(const char *text, size_t len, void *ctx)
{
	struct job *job = ctx;

	/* libiberty cannot be told to stop, but holds nothing that would be lost. */
	if (len > PLAIN_MAX - job->plain->len)
		longjmp(job->too_large, 1);
	gt_buf_append(job->plain, text, len);
}

static void *demangle(void *ctx)
{
	struct job *job = ctx;

	if (!setjmp(job->too_large))
		job->done = cplus_demangle_v3_callback(job->mangled, job->options, add, job);
	return NULL;
}

static void demangle_on_large_stack(struct job *job)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr))
		return;
	if (!pthread_attr_setstacksize(&attr, STACK_BYTES) &&
	    !pthread_create(&thread, &attr, demangle, job))
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

bool gt_demangle(struct gt_str name, struct gt_buf *plain)
{
	struct job job = { .options = DMGL_PARAMS | DMGL_ANSI, .plain = plain };
	char *mangled;

	if (!gt_str_starts(name, GT_STR("_Z")) || name.len > GT_DEMANGLE_MAX ||
	    memchr(name.ptr, 0, name.len))
		return false;
	mangled = strndup(name.ptr, name.len);
	if (!mangled)
		return false;
	job.mangled = mangled;
	if (name.len <= LIMITED_MAX) {
		demangle(&job);
	} else {
		job.options |= DMGL_NO_RECURSE_LIMIT;
		demangle_on_large_stack(&job);
	}
	free(mangled);
	return job.done && !plain->failed;
}
