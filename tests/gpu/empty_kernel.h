/*
 * empty_kernel.h - what the programs share that measure launches of an empty kernel: the driver API
 * only, so that they run with nothing but the driver, and the library that is compared with.
 */
#ifndef EMPTY_KERNEL_H
#define EMPTY_KERNEL_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

static void must(CUresult res, const char *what)
{
	if (res == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)res);
	exit(1);
}

/* In the primary context of the first device, which is the thread's from now on. */
static CUfunction load_empty_kernel(void)
{
	static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
				  ".visible .entry empty_kernel()\n{\n\tret;\n}\n";
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction kernel;

	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&kernel, module, "empty_kernel"), "cuModuleGetFunction");
	return kernel;
}

static void launch(CUfunction kernel)
{
	must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
}

/* A function of floor.c. */
static void call(const char *path, const char *name)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*function)(void) = library ? (int (*)(void))dlsym(library, name) : NULL;

	if (function && !function())
		return;
	fprintf(stderr, "%s of %s failed\n", name, path);
	exit(1);
}

#endif
