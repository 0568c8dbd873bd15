/*
 * device.c - what the trace says about the GPUs, from the driver that the program has loaded.
 */
#include "session.h"

#include <cuda.h>
#include <dlfcn.h>

#define SEND_WAIT_MS 10 /* for room in the socket, for each GPU */

#define DRIVER_API(X)           \
	X(cuDriverGetVersion)   \
	X(cuDeviceGetCount)     \
	X(cuDeviceGet)          \
	X(cuDeviceGetName)      \
	X(cuDeviceGetAttribute) \
	X(cuDeviceTotalMem_v2)

static struct {
#define MEMBER(name) __typeof__(name) *name;
	DRIVER_API(MEMBER)
#undef MEMBER
	int (*cudaRuntimeGetVersion)(int *version);
} driver;

/* RTLD_NOLOAD: what the program has loaded, or nothing. */
void *inj_find_loaded(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	void *symbol = handle ? dlsym(handle, name) : NULL;

	if (handle)
		dlclose(handle); /* only the count that dlopen() added */
	return symbol;
}

void *inj_find_runtime(const char *name)
{
	static const char *const runtimes[] = { "libcudart.so.13", "libcudart.so.12",
						"libcudart.so.11.0" };
	void *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes) && !found; i++)
		found = inj_find_loaded(runtimes[i], name);
	return found;
}

void inj_device_init(void)
{
#define RESOLVE(name) driver.name = (__typeof__(name) *)inj_find_loaded("libcuda.so.1", #name);
	DRIVER_API(RESOLVE)
#undef RESOLVE
	driver.cudaRuntimeGetVersion = (int (*)(int *))inj_find_runtime("cudaRuntimeGetVersion");
}

uint32_t inj_driver_version(void)
{
	int version = 0;

	if (driver.cuDriverGetVersion && driver.cuDriverGetVersion(&version) != CUDA_SUCCESS)
		version = 0;
	return (uint32_t)version;
}

uint32_t inj_runtime_version(void)
{
	int version = 0;

	if (driver.cudaRuntimeGetVersion && driver.cudaRuntimeGetVersion(&version))
		version = 0;
	return (uint32_t)version;
}

static void send_device(int ordinal)
{
	struct gt_msg_device msg = { .id = (uint32_t)ordinal };
	const struct {
		CUdevice_attribute attribute;
		uint32_t *ret;
		uint64_t *ret64;
	} wanted[] = {
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &msg.compute_major, NULL },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &msg.compute_minor, NULL },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &msg.max_threads_per_block, NULL },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
		  &msg.max_threads_per_multiprocessor, NULL },
		{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &msg.regs_per_block, NULL },
		{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
		  &msg.regs_per_multiprocessor, NULL },
		{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, &msg.warp_size, NULL },
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &msg.num_sms, NULL },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, NULL,
		  &msg.shared_mem_per_block },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, NULL,
		  &msg.shared_mem_per_block_optin },
		{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, NULL,
		  &msg.shared_mem_per_multiprocessor },
	};
	CUdevice device;
	size_t bytes = 0;
	int value;

	if (!driver.cuDeviceGet || !driver.cuDeviceGetAttribute ||
	    driver.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (driver.cuDeviceGetAttribute(&value, wanted[i].attribute, device) !=
			    CUDA_SUCCESS ||
		    value < 0)
			continue;
		if (wanted[i].ret)
			*wanted[i].ret = (uint32_t)value;
		else
			*wanted[i].ret64 = (uint64_t)value;
	}
	if (driver.cuDeviceGetName &&
	    driver.cuDeviceGetName(msg.name, sizeof(msg.name) - 1, device) != CUDA_SUCCESS)
		msg.name[0] = '\0';
	if (driver.cuDeviceTotalMem_v2 &&
	    driver.cuDeviceTotalMem_v2(&bytes, device) == CUDA_SUCCESS)
		msg.total_global_mem = bytes;
	inj_transport_send(GT_MSG_DEVICE, &msg, sizeof(msg), SEND_WAIT_MS);
}

bool inj_devices_send(void)
{
	int count = 0;

	if (!driver.cuDeviceGetCount)
		return true;
	/* Not initialized: cuInit() has not returned to the program yet. */
	if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return false;
	for (int i = 0; i < count; i++)
		send_device(i);
	return true;
}
