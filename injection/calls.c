/*
 * calls.c - CUDA calls by name. Callback ids differ from version to version and each version adds
 * some, so what is traced is decided by the name that the loaded CUPTI gives.
 */
#include "calls.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdlib.h>

/* ---- classes ---- */

/* The first match counts; a star stands for any rest. The driver's cu64 forms are its oldest. */
static const struct {
	const char *pattern;
	enum gt_call_class klass;
} classes[] = {
	{ "cudaLaunchHostFunc", GT_CALL_OTHER },
	{ "cuLaunchHostFunc", GT_CALL_OTHER },
	{ "cudaLaunch*", GT_CALL_KERNEL },
	{ "cuLaunch*", GT_CALL_KERNEL },
	{ "cudaGraphLaunch", GT_CALL_GRAPH },
	{ "cuGraphLaunch", GT_CALL_GRAPH },

	{ "cudaMemcpy*", GT_CALL_COPY },
	{ "cuMemcpy*", GT_CALL_COPY },
	{ "cu64Memcpy*", GT_CALL_COPY },
	{ "cudaMemset*", GT_CALL_SET },
	{ "cuMemset*", GT_CALL_SET },
	{ "cu64Memset*", GT_CALL_SET },

	{ "cudaDeviceSynchronize", GT_CALL_SYNC },
	{ "cudaThreadSynchronize", GT_CALL_SYNC },
	{ "cudaStreamSynchronize", GT_CALL_SYNC },
	{ "cudaEventSynchronize", GT_CALL_SYNC },
	{ "cuCtxSynchronize", GT_CALL_SYNC },
	{ "cuStreamSynchronize", GT_CALL_SYNC },
	{ "cuEventSynchronize", GT_CALL_SYNC },

	{ "cudaStreamWaitEvent", GT_CALL_WAIT },
	{ "cudaWaitExternalSemaphoresAsync", GT_CALL_WAIT },
	{ "cuStreamWaitEvent", GT_CALL_WAIT },
	{ "cuStreamWaitValue*", GT_CALL_WAIT },
	{ "cuStreamBatchMemOp", GT_CALL_WAIT },
	{ "cuCtxWaitEvent", GT_CALL_WAIT },
	{ "cuGreenCtxWaitEvent", GT_CALL_WAIT },
	{ "cuWaitExternalSemaphoresAsync", GT_CALL_WAIT },

	{ "cudaMalloc*", GT_CALL_ALLOC },
	{ "cudaFree*", GT_CALL_ALLOC },
	{ "cudaHostAlloc", GT_CALL_ALLOC },
	{ "cudaHostRegister", GT_CALL_ALLOC },
	{ "cudaHostUnregister", GT_CALL_ALLOC },
	{ "cudaMemPoolTrimTo", GT_CALL_ALLOC },
	{ "cudaDeviceGraphMemTrim", GT_CALL_ALLOC },
	{ "cudaIpcOpenMemHandle", GT_CALL_ALLOC },
	{ "cudaIpcCloseMemHandle", GT_CALL_ALLOC },
	{ "cuMemAlloc*", GT_CALL_ALLOC },
	{ "cu64MemAlloc*", GT_CALL_ALLOC },
	{ "cuMemFree*", GT_CALL_ALLOC },
	{ "cu64MemFree", GT_CALL_ALLOC },
	{ "cuMemHostAlloc", GT_CALL_ALLOC },
	{ "cu64MemHostAlloc", GT_CALL_ALLOC },
	{ "cuMemHostRegister", GT_CALL_ALLOC },
	{ "cuMemHostUnregister", GT_CALL_ALLOC },
	{ "cuMemCreate", GT_CALL_ALLOC },
	{ "cuMemRelease", GT_CALL_ALLOC },
	{ "cuMemMap", GT_CALL_ALLOC },
	{ "cuMemUnmap", GT_CALL_ALLOC },
	{ "cuMemSetAccess", GT_CALL_ALLOC },
	{ "cuMemAddressReserve", GT_CALL_ALLOC },
	{ "cuMemAddressFree", GT_CALL_ALLOC },
	{ "cuMemPoolTrimTo", GT_CALL_ALLOC },
	{ "cuDeviceGraphMemTrim", GT_CALL_ALLOC },
	{ "cuArrayCreate", GT_CALL_ALLOC },
	{ "cuArray3DCreate", GT_CALL_ALLOC },
	{ "cuArrayDestroy", GT_CALL_ALLOC },
	{ "cu64ArrayCreate", GT_CALL_ALLOC },
	{ "cu64Array3DCreate", GT_CALL_ALLOC },
	{ "cuMipmappedArrayCreate", GT_CALL_ALLOC },
	{ "cuMipmappedArrayDestroy", GT_CALL_ALLOC },
	{ "cuIpcOpenMemHandle", GT_CALL_ALLOC },
	{ "cuIpcCloseMemHandle", GT_CALL_ALLOC },
};

static bool matches(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] == '*')
		return !strncmp(pattern, name, len - 1);
	return !strcmp(pattern, name);
}

/* ---- sizes ---- */

/*
 * A parameter block holds the parameters in order, each in a place of 8 bytes; a structure passed
 * by value takes several. (CUPTI's generated headers declare the blocks, but do not compile.)
 */
#define THREE(a, b, c)                        \
	{                                     \
		false,                        \
		{                             \
			(a) * 8, (b)*8, (c)*8 \
		}                             \
	}
#define TWO(a, b) THREE(a, b, b)
#define ONE(a)    THREE(a, a, a)
/* In the structure that the first parameter points to. */
#define AT(type, a, b, c)                                                       \
	{                                                                       \
		true,                                                           \
		{                                                               \
			offsetof(type, a), offsetof(type, b), offsetof(type, c) \
		}                                                               \
	}

/* No runtime call has changed its parameters up to this version; of later ones nothing is known. */
#define RUNTIME 7000

/*
 * Calls that are not listed (the driver's first versions, which had 32-bit sizes, and batches) are
 * never taken for empty.
 */
static const struct {
	const char *name;
	uint32_t version; /* driver: exactly; runtime: at most */
	struct inj_call_sizes sizes;
} sizes[] = {
	{ "cudaMemcpy", RUNTIME, ONE(2) },
	{ "cudaMemcpyAsync", RUNTIME, ONE(2) },
	{ "cudaMemcpyToSymbol", RUNTIME, ONE(2) },
	{ "cudaMemcpyToSymbolAsync", RUNTIME, ONE(2) },
	{ "cudaMemcpyFromSymbol", RUNTIME, ONE(2) },
	{ "cudaMemcpyFromSymbolAsync", RUNTIME, ONE(2) },
	{ "cudaMemset", RUNTIME, ONE(2) },
	{ "cudaMemsetAsync", RUNTIME, ONE(2) },
	{ "cudaMemcpyPeer", RUNTIME, ONE(4) },
	{ "cudaMemcpyPeerAsync", RUNTIME, ONE(4) },
	{ "cudaMemcpyToArray", RUNTIME, ONE(4) },
	{ "cudaMemcpyToArrayAsync", RUNTIME, ONE(4) },
	{ "cudaMemcpyFromArray", RUNTIME, ONE(4) },
	{ "cudaMemcpyFromArrayAsync", RUNTIME, ONE(4) },
	{ "cudaMemcpyArrayToArray", RUNTIME, ONE(6) },
	{ "cudaMemcpy2D", RUNTIME, TWO(4, 5) },
	{ "cudaMemcpy2DAsync", RUNTIME, TWO(4, 5) },
	{ "cudaMemcpy2DToArray", RUNTIME, TWO(5, 6) },
	{ "cudaMemcpy2DToArrayAsync", RUNTIME, TWO(5, 6) },
	{ "cudaMemcpy2DFromArray", RUNTIME, TWO(5, 6) },
	{ "cudaMemcpy2DFromArrayAsync", RUNTIME, TWO(5, 6) },
	{ "cudaMemcpy2DArrayToArray", RUNTIME, TWO(6, 7) },
	{ "cudaMemset2D", RUNTIME, TWO(3, 4) },
	{ "cudaMemset2DAsync", RUNTIME, TWO(3, 4) },
	{ "cudaMemset3D", RUNTIME, THREE(5, 6, 7) },
	{ "cudaMemset3DAsync", RUNTIME, THREE(5, 6, 7) },
	{ "cudaMemcpy3D", RUNTIME,
	  AT(struct cudaMemcpy3DParms, extent.width, extent.height, extent.depth) },
	{ "cudaMemcpy3DAsync", RUNTIME,
	  AT(struct cudaMemcpy3DParms, extent.width, extent.height, extent.depth) },
	{ "cudaMemcpy3DPeer", RUNTIME,
	  AT(struct cudaMemcpy3DPeerParms, extent.width, extent.height, extent.depth) },
	{ "cudaMemcpy3DPeerAsync", RUNTIME,
	  AT(struct cudaMemcpy3DPeerParms, extent.width, extent.height, extent.depth) },
	{ "cuMemcpy", 0, ONE(2) },
	{ "cuMemcpyAsync", 0, ONE(2) },
	{ "cuMemcpyPeer", 0, ONE(4) },
	{ "cuMemcpyPeerAsync", 0, ONE(4) },
	{ "cuMemcpyHtoD", 2, ONE(2) },
	{ "cuMemcpyHtoDAsync", 2, ONE(2) },
	{ "cuMemcpyDtoH", 2, ONE(2) },
	{ "cuMemcpyDtoHAsync", 2, ONE(2) },
	{ "cuMemcpyDtoD", 2, ONE(2) },
	{ "cuMemcpyDtoDAsync", 2, ONE(2) },
	{ "cuMemcpyAtoD", 2, ONE(3) },
	{ "cuMemcpyDtoA", 2, ONE(3) },
	{ "cuMemcpyAtoH", 2, ONE(3) },
	{ "cuMemcpyAtoHAsync", 2, ONE(3) },
	{ "cuMemcpyHtoA", 2, ONE(3) },
	{ "cuMemcpyHtoAAsync", 2, ONE(3) },
	{ "cuMemcpyAtoA", 2, ONE(4) },
	{ "cuMemcpy2D", 2, AT(CUDA_MEMCPY2D, WidthInBytes, Height, Height) },
	{ "cuMemcpy2DUnaligned", 2, AT(CUDA_MEMCPY2D, WidthInBytes, Height, Height) },
	{ "cuMemcpy2DAsync", 2, AT(CUDA_MEMCPY2D, WidthInBytes, Height, Height) },
	{ "cuMemcpy3D", 2, AT(CUDA_MEMCPY3D, WidthInBytes, Height, Depth) },
	{ "cuMemcpy3DAsync", 2, AT(CUDA_MEMCPY3D, WidthInBytes, Height, Depth) },
	{ "cuMemcpy3DPeer", 0, AT(CUDA_MEMCPY3D_PEER, WidthInBytes, Height, Depth) },
	{ "cuMemcpy3DPeerAsync", 0, AT(CUDA_MEMCPY3D_PEER, WidthInBytes, Height, Depth) },
	{ "cuMemsetD8", 2, ONE(2) },
	{ "cuMemsetD16", 2, ONE(2) },
	{ "cuMemsetD32", 2, ONE(2) },
	{ "cuMemsetD8Async", 0, ONE(2) },
	{ "cuMemsetD16Async", 0, ONE(2) },
	{ "cuMemsetD32Async", 0, ONE(2) },
	{ "cuMemsetD2D8", 2, TWO(3, 4) },
	{ "cuMemsetD2D16", 2, TWO(3, 4) },
	{ "cuMemsetD2D32", 2, TWO(3, 4) },
	{ "cuMemsetD2D8Async", 0, TWO(3, 4) },
	{ "cuMemsetD2D16Async", 0, TWO(3, 4) },
	{ "cuMemsetD2D32Async", 0, TWO(3, 4) },
};

bool inj_call_is_empty(const struct inj_call_sizes *where, const void *params)
{
	const char *base = params;

	if (base && where->indirect)
		memcpy(&base, params, sizeof(base));
	if (!base)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(where->offset); i++) {
		size_t size;

		memcpy(&size, base + where->offset[i], sizeof(size));
		if (!size)
			return true;
	}
	return false;
}

static const struct inj_call_sizes *find_sizes(const char *name, uint32_t version)
{
	bool runtime = !strncmp(name, "cuda", strlen("cuda"));

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (!strcmp(sizes[i].name, name) &&
		    (runtime ? version <= sizes[i].version : version == sizes[i].version))
			return &sizes[i].sizes;
	return NULL;
}

/* ---- names ---- */

/*
 * Cut the last suffix off: "_ptsz" and "_ptds" of the calls whose default stream is the thread's
 * own, and versions. false when there is none.
 */
static bool cut_suffix(char *name, uint32_t *version, bool *per_thread_stream)
{
	char *suffix = strrchr(name, '_');
	char *end;

	if (!suffix)
		return false;
	if (!strcmp(suffix, "_ptsz") || !strcmp(suffix, "_ptds")) {
		*per_thread_stream = true;
	} else if (suffix[1] == 'v' && suffix[2] >= '0' && suffix[2] <= '9') {
		*version = (uint32_t)strtoul(suffix + 2, &end, 10);
		if (*end)
			return false;
	} else {
		return false;
	}
	*suffix = '\0';
	return true;
}

/*
 * CUPTI writes cudaMemcpy_ptds_v7000 for the runtime, cuMemcpyHtoD_v2_ptds for the driver, and
 * __cudaLaunchKernel_v13000 for what a header makes of cudaLaunchKernel().
 */
void inj_call_classify(const char *callback_name, struct inj_call_class *ret,
		       char name[INJ_CALL_NAME_MAX])
{
	uint32_t version = 0;

	*ret = (struct inj_call_class){ .klass = GT_CALL_OTHER };
	snprintf(name, INJ_CALL_NAME_MAX, "%s", callback_name + strspn(callback_name, "_"));
	while (cut_suffix(name, &version, &ret->per_thread_stream))
		;
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++) {
		if (matches(classes[i].pattern, name)) {
			ret->klass = (uint16_t)classes[i].klass;
			break;
		}
	}
	ret->sizes = find_sizes(name, version);
}
