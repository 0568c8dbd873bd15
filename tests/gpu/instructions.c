/*
 * instructions.c - instructions that a kernel launch takes in its own thread, before, while and
 * after it is traced: what the clock cannot tell, since equal processes differ by more.
 *
 * usage: instructions LAUNCHES [FLOOR_SO]
 * prints one line: LAUNCHES, then the median of instructions a launch, before, while and after.
 * Traced is by FLOOR_SO, or by gtrace with --wait 0 --active 1. A child launches, its parent counts
 * single steps by ptrace(): there need be no counters of the processor.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "empty_kernel.h"
#include "gtrace.h"

#define PHASES       3 /* before, while, after */
#define LAUNCHES_MAX 1000
#define UNCOUNTED    1000 /* launches at full speed, for a queue and caches as they are in a loop */

struct counts {
	volatile bool counting; /* within a launch that is counted */
	volatile int phase, launch;
	uint64_t steps[PHASES][LAUNCHES_MAX];
};

static void expect(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "instructions: %s failed\n", what);
	exit(1);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* ---- the child ---- */

static void count(CUfunction kernel, struct counts *counts, int phase, int launches)
{
	for (int i = 0; i < UNCOUNTED; i++)
		launch(kernel);
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	counts->phase = phase;
	raise(SIGSTOP); /* from here on in single steps */
	for (int i = 0; i < launches; i++) {
		counts->launch = i;
		counts->counting = true;
		launch(kernel);
		counts->counting = false;
	}
	raise(SIGSTOP);
	must(cuCtxSynchronize(), "cuCtxSynchronize");
}

static int be_counted(struct counts *counts, int launches, const char *floor_path)
{
	CUfunction kernel;

	expect(!ptrace(PTRACE_TRACEME, 0, NULL, NULL), "ptrace");
	kernel = load_empty_kernel();
	count(kernel, counts, 0, launches);
	if (floor_path) {
		call(floor_path, "floor_init");
		call(floor_path, "floor_on");
	}
	gtrace_step(); /* ends the step that is skipped */
	gtrace_step(); /* ends the warm-up */
	count(kernel, counts, 1, launches);
	if (floor_path)
		call(floor_path, "floor_off");
	gtrace_step();
	count(kernel, counts, 2, launches);
	return 0;
}

/* ---- its parent ---- */

/* Let it run, in single steps between one SIGSTOP and the next. Its exit status. */
static int follow(pid_t child, struct counts *counts)
{
	bool stepping = false;
	int status, sig;

	for (;;) {
		expect(waitpid(child, &status, 0) == child, "waitpid");
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		expect(WIFSTOPPED(status), "the launching process");
		sig = WSTOPSIG(status);
		if (sig == SIGSTOP)
			stepping = !stepping;
		else if (sig == SIGTRAP && counts->counting)
			counts->steps[counts->phase][counts->launch]++;
		if (sig == SIGSTOP || sig == SIGTRAP)
			sig = 0;
		expect(!ptrace(stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL,
			       (void *)(intptr_t)sig),
		       "ptrace");
	}
}

int main(int argc, char **argv)
{
	int launches = argc > 1 ? atoi(argv[1]) : 0, status;
	struct counts *counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	if (launches < 1 || launches > LAUNCHES_MAX || counts == MAP_FAILED)
		return 2;
	child = fork();
	expect(child >= 0, "fork");
	if (!child)
		return be_counted(counts, launches, argc > 2 ? argv[2] : NULL);
	status = follow(child, counts);
	if (status)
		return status;
	printf("%d", launches);
	for (int phase = 0; phase < PHASES; phase++) {
		qsort(counts->steps[phase], (size_t)launches, sizeof(counts->steps[0][0]), compare);
		printf(" %llu", (unsigned long long)counts->steps[phase][launches / 2]);
	}
	printf("\n");
	return 0;
}
