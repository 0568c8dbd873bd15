/*
 * fake_c10.c - see fake_c10.h. Built several times, as calls within a library can be bound in
 * several ways.
 */
#include "fake_c10.h"

#define NAMED(symbol) __asm__(symbol) __attribute__((visibility("default"), noinline))
#define EXPORTED      __attribute__((visibility("default")))

struct device {
	int8_t type;
	int8_t number;
};

EXPORTED struct fake_c10 fake_c10;
static int reporter; /* an object */

void reporter_new(void *self, void *address, size_t bytes)
	NAMED("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm");
void reporter_delete(void *self, void *address)
	NAMED("_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv");
void reporter_fail(void *self, size_t bytes)
	NAMED("_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm");
void report(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
	    struct device device) NAMED("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void report_fail(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
	NAMED("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");

void reporter_new(void *self, void *address, size_t bytes)
{
	fake_c10.handed_out += self == &reporter;
	fake_c10.address = address;
	fake_c10.bytes = (int64_t)bytes;
}

void reporter_delete(void *self, void *address)
{
	fake_c10.taken_back += self == &reporter;
	fake_c10.address = address;
}

void reporter_fail(void *self, size_t bytes)
{
	fake_c10.failures += self == &reporter;
	fake_c10.bytes = (int64_t)bytes;
}

static void keep(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
{
	fake_c10.bytes = bytes;
	fake_c10.allocated = allocated;
	fake_c10.reserved = reserved;
	fake_c10.type = device.type;
	fake_c10.number = device.number;
}

void report(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
	    struct device device)
{
	fake_c10.reports++;
	fake_c10.address = address;
	keep(bytes, allocated, reserved, device);
}

void report_fail(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
{
	fake_c10.report_failures++;
	keep(bytes, allocated, reserved, device);
}

EXPORTED void fake_cpu_new(void *address, size_t bytes)
{
	reporter_new(&reporter, address, bytes);
}

EXPORTED void fake_cpu_delete(void *address)
{
	reporter_delete(&reporter, address);
}

EXPORTED void fake_cpu_fail(size_t bytes)
{
	reporter_fail(&reporter, bytes);
}
