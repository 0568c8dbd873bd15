/*
 * memory.c - allocations, copies and sets. Device memory is host memory; a list of allocations
 * tells what a pointer is.
 */
#include "driver.h"

#include <stdlib.h>

struct allocation {
	CUdeviceptr start;
	size_t bytes;
	int device; /* -1: pinned host memory */
	struct allocation *next;
};

static struct allocation *allocations;

static CUresult allocate(void **ret, size_t bytes, bool pinned)
{
	struct CUctx_st *ctx = sim_current();
	struct allocation *a;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	a = malloc(sizeof(*a));
	*ret = calloc(1, bytes);
	if (!a || !*ret) {
		free(a);
		free(*ret);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->start = (CUdeviceptr)*ret;
	a->bytes = bytes;
	a->device = pinned ? -1 : ctx->device;
	pthread_mutex_lock(&sim_lock);
	a->next = allocations;
	allocations = a;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

static CUresult release(CUdeviceptr ptr)
{
	struct allocation **at = &allocations;
	struct allocation *a;

	if (!ptr)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&sim_lock);
	while (*at && (*at)->start != ptr)
		at = &(*at)->next;
	a = *at;
	if (a)
		*at = a->next;
	pthread_mutex_unlock(&sim_lock);
	if (!a)
		return CUDA_ERROR_INVALID_VALUE;
	free((void *)ptr);
	free(a);
	return CUDA_SUCCESS;
}

/* CUpti_ActivityMemoryKind */
static uint8_t memory_kind(CUdeviceptr ptr)
{
	uint8_t kind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
	const struct allocation *a;

	pthread_mutex_lock(&sim_lock);
	for (a = allocations; a && (ptr < a->start || ptr - a->start >= a->bytes); a = a->next)
		;
	if (a)
		kind = a->device < 0 ? CUPTI_ACTIVITY_MEMORY_KIND_PINNED
				     : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	pthread_mutex_unlock(&sim_lock);
	return kind;
}

static CUresult mem_info(size_t *ret_free, size_t *ret_total)
{
	*ret_free = *ret_total = (size_t)80 << 30;
	return CUDA_SUCCESS;
}

DRIVER_API(cuMemAlloc_v2, (CUdeviceptr * ptr, size_t bytes), (ptr, bytes),
	   allocate((void **)ptr, bytes, false))
DRIVER_API(cuMemFree_v2, (CUdeviceptr ptr), (ptr), release(ptr))
DRIVER_API_PTSZ(cuMemAllocAsync, (CUdeviceptr * ptr, size_t bytes, CUstream stream),
		(ptr, bytes, stream), allocate((void **)ptr, bytes, false))
DRIVER_API_PTSZ(cuMemFreeAsync, (CUdeviceptr ptr, CUstream stream), (ptr, stream), release(ptr))
DRIVER_API(cuMemAllocHost_v2, (void **ptr, size_t bytes), (ptr, bytes), allocate(ptr, bytes, true))
DRIVER_API(cuMemHostAlloc, (void **ptr, size_t bytes, unsigned int flags), (ptr, bytes, flags),
	   allocate(ptr, bytes, true))
DRIVER_API(cuMemFreeHost, (void *ptr), (ptr), release((CUdeviceptr)ptr))
DRIVER_API(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total), (free_bytes, total),
	   mem_info(free_bytes, total))

/* ---- copies ---- */

static uint8_t copy_kind(uint8_t src_kind, uint8_t dst_kind)
{
	bool from_device = src_kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	bool to_device = dst_kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;

	if (from_device)
		return to_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD
				 : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
	return to_device ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

static CUresult copy(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool wait)
{
	struct sim_work work = {
		.kind = SIM_COPY, .bytes = bytes, .dst = dst, .src = src, .async = !wait
	};

	if (bytes == 0)
		return CUDA_SUCCESS;
	work.src_kind = memory_kind(src);
	work.dst_kind = memory_kind(dst);
	work.copy_kind = copy_kind(work.src_kind, work.dst_kind);
	return sim_submit(stream, &work, wait);
}

static CUresult peer_copy(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
			  size_t bytes, CUstream stream, bool wait)
{
	struct sim_work work = { .kind = SIM_PEER,
				 .bytes = bytes,
				 .dst = dst,
				 .src = src,
				 .async = !wait,
				 .copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
				 .src_kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
				 .dst_kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE };

	if (!dst_ctx || !src_ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (bytes == 0)
		return CUDA_SUCCESS;
	work.src_device = (uint32_t)src_ctx->device;
	work.dst_device = (uint32_t)dst_ctx->device;
	work.src_context = src_ctx->uid;
	work.dst_context = dst_ctx->uid;
	return sim_submit(stream, &work, wait);
}

static CUresult set(CUdeviceptr dst, uint32_t value, size_t bytes, CUstream stream, bool wait)
{
	struct sim_work work = { .kind = SIM_SET,
				 .bytes = bytes,
				 .dst = dst,
				 .value = value,
				 .async = !wait,
				 .dst_kind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE };

	return bytes ? sim_submit(stream, &work, wait) : CUDA_SUCCESS;
}

/* The blocking form, and its ptds form on the thread's own stream. */
#define COPY_API(fn, dst_t, src_t)                                                     \
	DRIVER_API(fn, (dst_t dst, src_t src, size_t bytes), (dst, src, bytes),        \
		   copy((CUdeviceptr)dst, (CUdeviceptr)src, bytes, NULL, true))        \
	DRIVER_API(fn##_ptds, (dst_t dst, src_t src, size_t bytes), (dst, src, bytes), \
		   copy((CUdeviceptr)dst, (CUdeviceptr)src, bytes, CU_STREAM_PER_THREAD, true))

#define COPY_API_ASYNC(fn, dst_t, src_t)                                           \
	DRIVER_API_PTSZ(fn, (dst_t dst, src_t src, size_t bytes, CUstream stream), \
			(dst, src, bytes, stream),                                 \
			copy((CUdeviceptr)dst, (CUdeviceptr)src, bytes, stream, false))

COPY_API(cuMemcpy, CUdeviceptr, CUdeviceptr)
COPY_API(cuMemcpyHtoD_v2, CUdeviceptr, const void *)
COPY_API(cuMemcpyDtoH_v2, void *, CUdeviceptr)
COPY_API(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr)
COPY_API_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr)
COPY_API_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *)
COPY_API_ASYNC(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr)
COPY_API_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr)

DRIVER_API(cuMemcpyPeer,
	   (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes),
	   (dst, dst_ctx, src, src_ctx, bytes),
	   peer_copy(dst, dst_ctx, src, src_ctx, bytes, NULL, true))
DRIVER_API_PTSZ(cuMemcpyPeerAsync,
		(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
		 size_t bytes, CUstream stream),
		(dst, dst_ctx, src, src_ctx, bytes, stream),
		peer_copy(dst, dst_ctx, src, src_ctx, bytes, stream, false))

DRIVER_API(cuMemsetD8_v2, (CUdeviceptr dst, unsigned char value, size_t n), (dst, value, n),
	   set(dst, value, n, NULL, false))
DRIVER_API(cuMemsetD32_v2, (CUdeviceptr dst, unsigned int value, size_t n), (dst, value, n),
	   set(dst, value, n * 4, NULL, false))
DRIVER_API_PTSZ(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t n, CUstream stream),
		(dst, value, n, stream), set(dst, value, n, stream, false))
DRIVER_API_PTSZ(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t n, CUstream stream),
		(dst, value, n, stream), set(dst, value, n * 4, stream, false))
