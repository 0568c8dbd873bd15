/* bench_step.c - what a step costs that nobody traces: bench_step [STEPS] */
#include "gtrace.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	long steps = argc > 1 ? atol(argv[1]) : 5000000;
	double begin;

	gtrace_step(); /* the first one looks for gtrace */
	begin = now_ns();
	for (long i = 0; i < steps; i++)
		gtrace_step();
	printf("%.1f ns a step\n", (now_ns() - begin) / (double)steps);
	return 0;
}
