/* Which CUDA calls are traced, by the names that a CUPTI gives its callbacks. */
#include "calls.h"

#include <cuda.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static void names_and_classes(void **state)
{
	static const struct {
		const char *callback;
		const char *name;
		enum gt_call_class klass;
		bool per_thread_stream;
	} calls[] = {
		{ "cudaLaunchKernel_v7000", "cudaLaunchKernel", GT_CALL_KERNEL, false },
		{ "cudaLaunchKernel_ptsz_v7000", "cudaLaunchKernel", GT_CALL_KERNEL, true },
		{ "__cudaLaunchKernel_v13000", "cudaLaunchKernel", GT_CALL_KERNEL, false },
		{ "__cudaLaunchKernel_ptsz_v13000", "cudaLaunchKernel", GT_CALL_KERNEL, true },
		{ "cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC", GT_CALL_KERNEL, false },
		{ "cuLaunchKernel", "cuLaunchKernel", GT_CALL_KERNEL, false },
		{ "cuLaunchKernelEx_ptsz", "cuLaunchKernelEx", GT_CALL_KERNEL, true },
		{ "cudaLaunchHostFunc_v10000", "cudaLaunchHostFunc", GT_CALL_OTHER, false },
		{ "cudaGraphLaunch_v10000", "cudaGraphLaunch", GT_CALL_GRAPH, false },
		{ "cuGraphLaunch_ptsz", "cuGraphLaunch", GT_CALL_GRAPH, true },
		{ "cudaGraphAddMemcpyNode_v10000", "cudaGraphAddMemcpyNode", GT_CALL_OTHER, false },
		{ "cudaMemcpy_ptds_v7000", "cudaMemcpy", GT_CALL_COPY, true },
		{ "cuMemcpyHtoD_v2_ptds", "cuMemcpyHtoD", GT_CALL_COPY, true },
		{ "cuMemcpyBatchAsync_v2_ptsz", "cuMemcpyBatchAsync", GT_CALL_COPY, true },
		{ "cuMemsetD2D8Async", "cuMemsetD2D8Async", GT_CALL_SET, false },
		{ "cudaMemSetMemPool_v13000", "cudaMemSetMemPool", GT_CALL_OTHER, false },
		{ "cuCtxSynchronize_v2", "cuCtxSynchronize", GT_CALL_SYNC, false },
		{ "cudaStreamQuery_v3020", "cudaStreamQuery", GT_CALL_OTHER, false },
		{ "cuStreamWaitValue32_v2", "cuStreamWaitValue32", GT_CALL_WAIT, false },
		{ "cudaFreeAsync_v11020", "cudaFreeAsync", GT_CALL_ALLOC, false },
		{ "cuMemSetAccess", "cuMemSetAccess", GT_CALL_ALLOC, false },
		{ "cuMemGetAccess", "cuMemGetAccess", GT_CALL_OTHER, false },
		{ "", "", GT_CALL_OTHER, false },
		{ "_", "", GT_CALL_OTHER, false },
		{ "_ptsz", "ptsz", GT_CALL_OTHER, false },
		{ "cu_v", "cu_v", GT_CALL_OTHER, false },
		{ "cu_v2x", "cu_v2x", GT_CALL_OTHER, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct inj_call_class class;
		char name[INJ_CALL_NAME_MAX];

		inj_call_classify(calls[i].callback, &class, name);
		assert_string_equal(name, calls[i].name);
		assert_int_equal(class.klass, calls[i].klass);
		assert_int_equal(class.per_thread_stream, calls[i].per_thread_stream);
	}
}

static bool is_empty(const char *callback, const void *params)
{
	struct inj_call_class class;
	char name[INJ_CALL_NAME_MAX];

	inj_call_classify(callback, &class, name);
	return class.sizes && inj_call_is_empty(class.sizes, params);
}

static void empty_copies(void **state)
{
	/* CUPTI's parameter blocks: the parameters in order. */
	const struct {
		const void *dst;
		const void *src;
		size_t count;
	} none = { &none, &none, 0 }, some = { &none, &none, 1 };
	const struct {
		void *dst;
		size_t dpitch;
		const void *src;
		size_t spitch, width, height;
	} flat = { NULL, 8, NULL, 8, 8, 0 }, rect = { NULL, 0, NULL, 0, 8, 1 };
	const CUDA_MEMCPY3D deep = { .WidthInBytes = 1, .Height = 1, .Depth = 1 };
	const CUDA_MEMCPY3D shallow = { .WidthInBytes = 1, .Height = 1, .Depth = 0 };
	const void *deep_params[] = { &deep }, *shallow_params[] = { &shallow };
	const void *null_params[] = { NULL };

	(void)state;
	assert_true(is_empty("cudaMemcpyAsync_v3020", &none));
	assert_false(is_empty("cudaMemcpyAsync_v3020", &some));
	assert_true(is_empty("cudaMemcpyAsync_ptsz_v7000", &none));
	assert_true(is_empty("cuMemcpyDtoHAsync_v2_ptsz", &none));
	assert_false(is_empty("cuMemcpyDtoHAsync_v2", &some));
	assert_true(is_empty("cudaMemcpy2DAsync_v3020", &flat));
	assert_false(is_empty("cudaMemcpy2DAsync_v3020", &rect));
	assert_true(is_empty("cuMemcpy3DAsync_v2", shallow_params));
	assert_false(is_empty("cuMemcpy3DAsync_v2", deep_params));
	assert_false(is_empty("cuMemcpy3DAsync_v2", null_params));
	assert_false(is_empty("cudaMemcpyAsync_v3020", NULL));
	/* Not known: 32-bit sizes of the first driver API, and what a later runtime may change. */
	assert_false(is_empty("cuMemcpyDtoHAsync", &none));
	assert_false(is_empty("cudaMemcpyAsync_v99000", &none));
	assert_false(is_empty("cudaMemcpyBatchAsync_v13000", &none));
}

/* ---- every name of a CUPTI ---- */

typedef int name_fn(int domain, uint32_t cbid, const char **name);

/* The real library where there is one, else the simulated one, which has the real names. */
static name_fn *callback_names(void)
{
	static const char *const paths[] = { "libcupti.so.13", "/usr/local/cuda/lib/libcupti.so.13",
					     "/usr/local/cuda/lib64/libcupti.so.13" };
	char beside[4096];
	ssize_t len = readlink("/proc/self/exe", beside, sizeof(beside) - 64);
	void *handle = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(paths) && !handle; i++)
		handle = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!handle && len > 0) {
		beside[len] = '\0';
		snprintf(strrchr(beside, '/'), 64, "/../simgpu/libcupti.so.13");
		handle = dlopen(beside, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	}
	return handle ? (name_fn *)dlsym(handle, "cuptiGetCallbackName") : NULL;
}

static bool has(const char *name, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

/* A call whose name says that it may launch, copy, set, wait or allocate is traced, or is here. */
static void no_call_is_forgotten(void **state)
{
	static const char *const telling[] = { "Launch", "Memcpy", "Memset", "Synchronize",
					       "Wait",   "Alloc",  "Free" };
	static const char *const left_out[] = {
		/* make or ask about nodes of graphs, which run when the graph is launched */
		"cudaGraphAdd",
		"cuGraphAdd",
		"cudaGraphExec",
		"cuGraphExec",
		"NodeGet",
		"NodeSet",
		/* runs on the host */
		"LaunchHostFunc",
		/* ask or free what is no memory */
		"GetAllocationGranularity",
		"GetAllocationProperties",
		"RetainAllocationHandle",
		"cuBinaryFree",
		"cuNNSetAllocator",
	};
	name_fn *get_name = callback_names();
	unsigned names = 0, traced = 0, forgotten = 0;

	(void)state;
	if (!get_name)
		skip();
	for (int domain = 1; domain <= 2; domain++) {
		for (uint32_t cbid = 1; cbid < 2048; cbid++) {
			struct inj_call_class class;
			char name[INJ_CALL_NAME_MAX];
			const char *callback = NULL;

			if (get_name(domain, cbid, &callback) || !callback)
				continue;
			names++;
			inj_call_classify(callback, &class, name);
			assert_true(strlen(name) > 0);
			if (class.klass != GT_CALL_OTHER) {
				traced++;
				continue;
			}
			if (has(callback, telling, ARRAY_SIZE(telling)) &&
			    !has(callback, left_out, ARRAY_SIZE(left_out))) {
				print_error("not classified: %s\n", callback);
				forgotten++;
			}
		}
	}
	assert_true(names > 1000);
	assert_true(traced > 300);
	assert_int_equal(forgotten, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_classes),
		cmocka_unit_test(empty_copies),
		cmocka_unit_test(no_call_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
