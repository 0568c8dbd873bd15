/*
 * calls.h - which CUDA calls are traced, and what their names and parameters tell.
 */
#ifndef INJ_CALLS_H
#define INJ_CALLS_H

#include "base.h"
#include "wire.h"

/*
 * Where a call's parameter block holds the sizes (size_t) of what it moves; it moves nothing when
 * one of them is 0. They lie in the block itself, or in the structure its first member points to.
 */
struct inj_call_sizes {
	bool indirect;
	uint16_t offset[3]; /* the same one again where there are fewer */
};

struct inj_call_class {
	uint16_t klass;                     /* enum gt_call_class, GT_CALL_OTHER: not traced */
	bool per_thread_stream;             /* its default stream is the thread's own */
	const struct inj_call_sizes *sizes; /* NULL: not known */
};

#define INJ_CALL_NAME_MAX 96

/*
 * What CUPTI's name of a callback stands for, e.g. "cudaMemcpyAsync_ptsz_v7000"; name: the one the
 * program called, "cudaMemcpyAsync". Both outputs are always set.
 */
void inj_call_classify(const char *callback_name, struct inj_call_class *ret,
		       char name[INJ_CALL_NAME_MAX]);

/* Does a call with these parameters move nothing? */
bool inj_call_is_empty(const struct inj_call_sizes *sizes, const void *params);

#endif
