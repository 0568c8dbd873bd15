/*
 * cuda_driver.h - the few functions of the CUDA driver with which 'gtrace doctor' looks at it. The
 * driver is found at run time; its headers are not needed. Types and numbers are those of cuda.h.
 */
#ifndef GT_CUDA_DRIVER_H
#define GT_CUDA_DRIVER_H

#include "base.h"
#include "err.h"

#define GT_CUDA_DRIVER_API(X)                                                             \
	X(cuInit, (unsigned int flags))                                                   \
	X(cuDriverGetVersion, (int *version))                                             \
	X(cuGetErrorName, (int error, const char **name))                                 \
	X(cuDeviceGetCount, (int *count))                                                 \
	X(cuDeviceGet, (int *device, int ordinal))                                        \
	X(cuDeviceGetName, (char *name, int len, int device))                             \
	X(cuDeviceGetAttribute, (int *value, int attribute, int device))                  \
	X(cuDeviceTotalMem_v2, (size_t * bytes, int device))                              \
	X(cuDevicePrimaryCtxRetain, (void **context, int device))                         \
	X(cuCtxSetCurrent, (void *context))                                               \
	X(cuCtxSynchronize, (void))                                                       \
	X(cuMemAlloc_v2, (uint64_t * address, size_t bytes))                              \
	X(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))                 \
	X(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes))                       \
	X(cuMemsetD8_v2, (uint64_t to, unsigned char value, size_t bytes))                \
	X(cuModuleLoadData, (void **module, const void *image))                           \
	X(cuModuleGetFunction, (void **function, void *module, const char *name))         \
	X(cuLaunchKernel,                                                                 \
	  (void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
	   unsigned int block_x, unsigned int block_y, unsigned int block_z,              \
	   unsigned int shared_bytes, void *stream, void **params, void **extra))

struct gt_cuda_driver {
#define GT_CUDA_MEMBER(name, params) int(*name) params; /* CUresult */
	GT_CUDA_DRIVER_API(GT_CUDA_MEMBER)
#undef GT_CUDA_MEMBER
	char path[1024]; /* of the library */
};

/* CUresult */
#define GT_CUDA_OUT_OF_MEMORY          2
#define GT_CUDA_STUB_LIBRARY           34
#define GT_CUDA_DEVICE_UNAVAILABLE     46
#define GT_CUDA_NO_DEVICE              100
#define GT_CUDA_SYSTEM_NOT_READY       802
#define GT_CUDA_SYSTEM_DRIVER_MISMATCH 803
#define GT_CUDA_COMPAT_NOT_SUPPORTED   804
#define GT_CUDA_UNKNOWN                999

/* CUdevice_attribute */
#define GT_CUDA_COMPUTE_CAPABILITY_MAJOR 75
#define GT_CUDA_COMPUTE_CAPABILITY_MINOR 76

/* Load libcuda.so.1, which stays. -ENOENT with the loader's words, -ENOSYS: it lacks a function. */
int gt_cuda_driver_open(struct gt_cuda_driver *ret, struct gt_err *err);

/* "CUDA_ERROR_NO_DEVICE"; "error 4711" where the driver has no name for it. */
void gt_cuda_error_name(const struct gt_cuda_driver *driver, int error, char *buf, size_t len);

#endif
