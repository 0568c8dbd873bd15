/*
 * launches.c - host time of a kernel launch, over many launches of an empty kernel, before and
 * after a library has been loaded as CUDA loads one: equal processes differ by more than what is to
 * be measured.
 *
 * usage: launches LAUNCHES [LIBRARY]
 * prints one line: LAUNCHES, then the 10th percentile of ns a launch over batches of 1000, before
 * and after. Without LIBRARY nothing is loaded. Driver API only, so that it runs with nothing but
 * the driver.
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

/* What CUDA does with CUDA_INJECTION64_PATH. */
static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*initialize)(void) = library ? dlsym(library, "InitializeInjection") : NULL;

	if (!initialize || !initialize()) {
		fprintf(stderr, "launches: %s: it cannot be loaded\n", path);
		exit(1);
	}
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
	double *ns = calloc((size_t)(batches > 0 ? batches : 1), sizeof(*ns)), before;
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
	before = launch(kernel, ns, batches);
	if (argc > 2)
		load(argv[2]);
	printf("%ld %.1f ", batches * BATCH, before);
	printf("%.1f\n", launch(kernel, ns, batches));
	free(ns);
	return 0;
}
