/*
 * device.c - what the trace says about the GPUs, from the driver that the program has loaded.
 */
#include "session.h"

#include <cuda.h>
#include <dlfcn.h>

/* By name from the program's own libcuda; the function's type is that of its declaration. */
#define DRIVER(name) ((__typeof__(name) *)driver_symbol(#name))

static void *driver_symbol(const char *name)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *symbol = handle ? dlsym(handle, name) : NULL;

	if (handle)
		dlclose(handle); /* only the count that RTLD_NOLOAD added */
	return symbol;
}

uint32_t inj_driver_version(void)
{
	__typeof__(cuDriverGetVersion) *get_version = DRIVER(cuDriverGetVersion);
	int version = 0;

	if (get_version && get_version(&version) != CUDA_SUCCESS)
		version = 0;
	return (uint32_t)version;
}

uint32_t inj_runtime_version(void)
{
	static const char *const names[] = { "libcudart.so.13", "libcudart.so.12",
					     "libcudart.so.11.0" };
	int version = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !version; i++) {
		void *handle = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
		int (*get_version)(int *);

		if (!handle)
			continue;
		get_version = (int (*)(int *))dlsym(handle, "cudaRuntimeGetVersion");
		if (get_version && get_version(&version))
			version = 0;
		dlclose(handle);
	}
	return (uint32_t)version;
}

static void send_device(int ordinal)
{
	__typeof__(cuDeviceGet) *get = DRIVER(cuDeviceGet);
	__typeof__(cuDeviceGetName) *get_name = DRIVER(cuDeviceGetName);
	__typeof__(cuDeviceGetAttribute) *get_attribute = DRIVER(cuDeviceGetAttribute);
	__typeof__(cuDeviceTotalMem) *total_mem = DRIVER(cuDeviceTotalMem_v2);
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

	if (!get || !get_attribute || get(&device, ordinal) != CUDA_SUCCESS)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (get_attribute(&value, wanted[i].attribute, device) != CUDA_SUCCESS || value < 0)
			continue;
		if (wanted[i].ret)
			*wanted[i].ret = (uint32_t)value;
		else
			*wanted[i].ret64 = (uint64_t)value;
	}
	if (get_name && get_name(msg.name, sizeof(msg.name) - 1, device) != CUDA_SUCCESS)
		msg.name[0] = '\0';
	if (total_mem && total_mem(&bytes, device) == CUDA_SUCCESS)
		msg.total_global_mem = bytes;
	inj_transport_send(GT_MSG_DEVICE, &msg, sizeof(msg), 10);
}

bool inj_devices_send(void)
{
	__typeof__(cuDeviceGetCount) *get_count = DRIVER(cuDeviceGetCount);
	int count = 0;

	if (!get_count)
		return true;
	/* Not initialized: cuInit() has not returned to the program yet. */
	if (get_count(&count) != CUDA_SUCCESS)
		return false;
	for (int i = 0; i < count; i++)
		send_device(i);
	return true;
}
