/*
 * launches.c - host time of a kernel launch, over many launches of an empty kernel.
 *
 * usage: launches [LAUNCHES]
 * prints one line: launches, then the 10th percentile, the median and the mean of ns per launch
 * over batches of 1000. Driver API only, so that it runs with nothing but the driver.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cuda.h>

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

int main(int argc, char **argv)
{
	long launches = argc > 1 ? atol(argv[1]) : 1000000;
	long batches = launches / BATCH;
	double *ns = calloc((size_t)(batches > 0 ? batches : 1), sizeof(*ns));
	double sum = 0;
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
	for (long b = -20; b < batches; b++) {
		uint64_t begin = now_ns();

		for (int i = 0; i < BATCH; i++)
			must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			     "cuLaunchKernel");
		if (b >= 0) {
			ns[b] = (double)(now_ns() - begin) / BATCH;
			sum += ns[b];
		}
		must(cuCtxSynchronize(), "cuCtxSynchronize");
	}
	qsort(ns, (size_t)batches, sizeof(*ns), compare);
	printf("%ld %.1f %.1f %.1f\n", batches * BATCH, ns[batches / 10], ns[batches / 2],
	       sum / (double)batches);
	return 0;
}
