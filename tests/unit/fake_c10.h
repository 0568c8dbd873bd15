/*
 * fake_c10.h - a libc10.so and a libc10_cuda.so for tests of the injection: what they tell torch's
 * profiler of memory, by calls of functions with torch's names, and what of that comes there.
 */
#ifndef FAKE_C10_H
#define FAKE_C10_H

#include <stddef.h>
#include <stdint.h>

struct fake_c10 { /* as the functions themselves were called */
	int handed_out;
	int taken_back;
	int failures;
	int reports;
	int report_failures;
	void *address; /* of the last one */
	int64_t bytes;
	uint64_t allocated;
	uint64_t reserved;
	int8_t type;
	int8_t number;
};

/* All are found by dlsym(): this and what the CPU's allocator does in libc10.so, */
extern struct fake_c10 fake_c10;
void fake_cpu_new(void *address, size_t bytes);
void fake_cpu_delete(void *address);
void fake_cpu_fail(size_t bytes);
/* and the GPU's in libc10_cuda.so. */
void fake_gpu_report(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
		     int8_t number);
void fake_gpu_fail(int64_t bytes, uint64_t allocated, uint64_t reserved, int8_t number);

#endif
