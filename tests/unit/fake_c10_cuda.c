/* fake_c10_cuda.c - see fake_c10.h. */
#include "fake_c10.h"

#define NAMED(symbol) __asm__(symbol)
#define EXPORTED      __attribute__((visibility("default")))

struct device {
	int8_t type;
	int8_t number;
};

void report(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
	    struct device device) NAMED("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void report_fail(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
	NAMED("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");

EXPORTED void fake_gpu_report(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
			      int8_t number)
{
	report(address, bytes, allocated, reserved, (struct device){ 1, number });
}

EXPORTED void fake_gpu_fail(int64_t bytes, uint64_t allocated, uint64_t reserved, int8_t number)
{
	report_fail(bytes, allocated, reserved, (struct device){ 1, number });
}
