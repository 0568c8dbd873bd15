/*
 * launches.c - host time of a kernel launch, over many launches of an empty kernel, before, while
 * and after it is traced: equal processes differ by more than what is to be measured.
 *
 * usage: launches LAUNCHES [FLOOR_SO]
 * prints one line: LAUNCHES, then the 10th percentile of ns a launch over batches of 1000, before,
 * while and after. Traced is by FLOOR_SO, or by gtrace with --wait 0 --active 1. Driver API only,
 * so that it runs with nothing but the driver.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda.h>

#include "gtrace.h"

#define BATCH 1000

static const char ptx[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
			  ".visible .entry empty_kernel()\n{\n\tret;\n}\n";

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void must(CUresult res, const char *what)
{
	if (res == CUDA_SUCCESS)
		return;
	fprintf(stderr, "launches: %s: error %d\n", what, (int)res);
	exit(1);
}

static void call(const char *path, const char *name)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*function)(void) = library ? (int (*)(void))dlsym(library, name) : NULL;

	if (function && !function())
		return;
	fprintf(stderr, "launches: %s of %s failed\n", name, path);
	exit(1);
}

static double launch(CUfunction kernel, double *ns, long batches)
{
	for (long b = -20; b < batches; b++) {
		uint64_t begin = now_ns();

		for (int i = 0; i < BATCH; i++)
			must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			     "cuLaunchKernel");
		if (b >= 0)
			ns[b] = (double)(now_ns() - begin) / BATCH;
		must(cuCtxSynchronize(), "cuCtxSynchronize");
	}
	qsort(ns, (size_t)batches, sizeof(*ns), compare);
	return ns[batches / 10];
}

int main(int argc, char **argv)
{
	long batches = argc > 1 ? atol(argv[1]) / BATCH : 0;
	double *ns = calloc((size_t)(batches > 0 ? batches : 1), sizeof(*ns));
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction kernel;

	if (batches < 1 || !ns)
		return 2;
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&kernel, module, "empty_kernel"), "cuModuleGetFunction");
	printf("%ld %.1f ", batches * BATCH, launch(kernel, ns, batches));
	if (argc > 2) {
		call(argv[2], "floor_init");
		call(argv[2], "floor_on");
	}
	gtrace_step(); /* ends the step that is skipped */
	gtrace_step(); /* ends the warm-up */
	printf("%.1f ", launch(kernel, ns, batches));
	if (argc > 2)
		call(argv[2], "floor_off");
	gtrace_step();
	printf("%.1f\n", launch(kernel, ns, batches));
	free(ns);
	return 0;
}
