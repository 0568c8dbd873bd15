/*
 * launches.c - host time of a kernel launch, over many launches of an empty kernel, before, while
 * and after it is traced: equal processes differ by more than what is to be measured.
 *
 * usage: launches LAUNCHES [FLOOR_SO]
 * prints one line: LAUNCHES, then the 10th percentile of ns a launch over batches of 1000, before,
 * while and after. Traced is by FLOOR_SO, or by gtrace with --wait 0 --active 1.
 */
#include <stdint.h>
#include <time.h>

#include "empty_kernel.h"
#include "gtrace.h"

#define BATCH 1000

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

static double measure(CUfunction kernel, double *ns, long batches)
{
	for (long b = -20; b < batches; b++) {
		uint64_t begin = now_ns();

		for (int i = 0; i < BATCH; i++)
			launch(kernel);
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
	CUfunction kernel;

	if (batches < 1 || !ns)
		return 2;
	kernel = load_empty_kernel();
	printf("%ld %.1f ", batches * BATCH, measure(kernel, ns, batches));
	if (argc > 2) {
		call(argv[2], "floor_init");
		call(argv[2], "floor_on");
	}
	gtrace_step(); /* ends the step that is skipped */
	gtrace_step(); /* ends the warm-up */
	printf("%.1f ", measure(kernel, ns, batches));
	if (argc > 2)
		call(argv[2], "floor_off");
	gtrace_step();
	printf("%.1f\n", measure(kernel, ns, batches));
	free(ns);
	return 0;
}
