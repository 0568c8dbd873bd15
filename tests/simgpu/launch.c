/*
 * launch.c - modules, libraries, kernels and their launches. The kernels of a module are the
 * .entry directives of its PTX. Modules stay in memory for good: records point to their names.
 */
#include "driver.h"

#include <stdlib.h>

#define SIM_LONG_NAME_BYTES 65536

struct CUfunc_st {      /* also a CUkernel */
	char *name;     /* as in the PTX */
	char *reported; /* as CUPTI reports it, see hostile_names */
	struct CUfunc_st *next;
};

struct CUmod_st { /* also a CUlibrary */
	struct CUfunc_st *functions;
};

/* The name with something ugly behind it, by the kernel's place in its module. */
static char *hostile_name(const char *name, unsigned int index)
{
	static const char *const tails[] = { "\"quo\\te\"", "\n\t\x01new\r\nline",
					     "\xff\xfe\xc3(bad", "<long" };
	const char *tail = tails[index % ARRAY_SIZE(tails)];
	size_t len = strlen(name) + strlen(tail);
	size_t size = index % ARRAY_SIZE(tails) == 3 ? SIM_LONG_NAME_BYTES : len;
	char *ret = malloc(size + 1);

	if (!ret)
		return NULL;
	snprintf(ret, size + 1, "%s%s", name, tail);
	for (size_t i = len; i < size; i++)
		ret[i] = ",std::pair<int>"[i % 15];
	ret[size] = '\0';
	return ret;
}

static struct CUfunc_st *function_new(const char *name, size_t len, unsigned int index)
{
	struct CUfunc_st *function = calloc(1, sizeof(*function));

	if (!function)
		return NULL;
	function->name = strndup(name, len);
	if (function->name && simgpu_faults()->hostile_names)
		function->reported = hostile_name(function->name, index);
	else
		function->reported = function->name;
	return function;
}

static CUresult load(struct CUmod_st **ret, const void *image)
{
	static const char directive[] = ".entry";
	struct CUmod_st *module = calloc(1, sizeof(*module));
	struct CUfunc_st **tail;
	unsigned int count = 0;

	if (simgpu_faults()->no_compiler) {
		free(module);
		return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
	}
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	tail = &module->functions;
	for (const char *at = strstr(image, directive); at; at = strstr(at, directive)) {
		size_t len;

		at += strlen(directive);
		at += strspn(at, " \t\n");
		len = strcspn(at, " \t\n(");
		*tail = function_new(at, len, count++);
		if (!*tail)
			return CUDA_ERROR_OUT_OF_MEMORY;
		tail = &(*tail)->next;
	}
	*ret = module;
	return count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
}

static CUresult find(struct CUfunc_st **ret, const struct CUmod_st *module, const char *name)
{
	for (struct CUfunc_st *f = module->functions; f; f = f->next) {
		if (strcmp(f->name, name) == 0) {
			*ret = f;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult name_of(const char **ret, const struct CUfunc_st *function)
{
	*ret = function->reported;
	return CUDA_SUCCESS;
}

static CUresult function_of(CUfunction *ret, CUkernel kernel)
{
	*ret = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

const char *simgpu_kernel_name(const void *kernel)
{
	return kernel ? ((const struct CUfunc_st *)kernel)->reported : NULL;
}

DRIVER_API(cuModuleLoadData, (CUmodule * module, const void *image), (module, image),
	   load(module, image))
DRIVER_API(cuModuleLoadDataEx,
	   (CUmodule * module, const void *image, unsigned int count, CUjit_option *options,
	    void **values),
	   (module, image, count, options, values), load(module, image))
DRIVER_API(cuModuleUnload, (CUmodule module), (module), CUDA_SUCCESS)
DRIVER_API(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
	   (function, module, name), find(function, module, name))
DRIVER_API(cuLibraryLoadData,
	   (CUlibrary * library, const void *code, CUjit_option *jit_options, void **jit_values,
	    unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count),
	   (library, code, jit_options, jit_values, jit_count, options, values, count),
	   load((struct CUmod_st **)library, code))
DRIVER_API(cuLibraryUnload, (CUlibrary library), (library), CUDA_SUCCESS)
DRIVER_API(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
	   (kernel, library, name),
	   find((CUfunction *)kernel, (const struct CUmod_st *)library, name))
DRIVER_API(cuKernelGetFunction, (CUfunction * function, CUkernel kernel), (function, kernel),
	   function_of(function, kernel))
DRIVER_API(cuKernelGetName, (const char **name, CUkernel kernel), (name, kernel),
	   name_of(name, (const struct CUfunc_st *)kernel))
DRIVER_API(cuFuncGetName, (const char **name, CUfunction function), (name, function),
	   name_of(name, function))

/* ---- launches ---- */

static CUresult launch(const void *kernel, const uint32_t grid[3], const uint32_t block[3],
		       uint32_t shared_bytes, CUstream stream)
{
	struct sim_work work = { .kind = SIM_KERNEL, .shared_bytes = shared_bytes, .async = true };

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	for (int i = 0; i < 3; i++) {
		if (grid[i] == 0 || block[i] == 0)
			return CUDA_ERROR_INVALID_VALUE;
		work.grid[i] = grid[i];
		work.block[i] = block[i];
	}
	work.name = simgpu_kernel_name(kernel);
	return sim_submit(stream, &work, false);
}

static CUresult launch_config(const CUlaunchConfig *c, CUfunction f, bool per_thread)
{
	return launch(f, (uint32_t[]){ c->gridDimX, c->gridDimY, c->gridDimZ },
		      (uint32_t[]){ c->blockDimX, c->blockDimY, c->blockDimZ }, c->sharedMemBytes,
		      per_thread ? sim_per_thread(c->hStream) : c->hStream);
}

/* A host function runs at once, in stream order only by the grace of the simulation. */
static CUresult host_function(CUstream stream, CUhostFn fn, void *user)
{
	struct sim_work work = { .kind = SIM_EMPTY };
	CUresult res = sim_submit(stream, &work, false);

	if (!res)
		fn(user);
	return res;
}

#define GRID_PARAMS                                                                          \
	unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, \
		unsigned int bz, unsigned int shared, CUstream stream

#define LAUNCH_GRID \
	launch(f, (uint32_t[]){ gx, gy, gz }, (uint32_t[]){ bx, by, bz }, shared, stream)

DRIVER_LAUNCH(cuLaunchKernel, (CUfunction f, GRID_PARAMS, void **params, void **extra),
	      (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra), f, LAUNCH_GRID)
DRIVER_LAUNCH(cuLaunchKernel_ptsz, (CUfunction f, GRID_PARAMS, void **params, void **extra),
	      (f, gx, gy, gz, bx, by, bz, shared, stream, params, extra), f,
	      (stream = sim_per_thread(stream), LAUNCH_GRID))
DRIVER_LAUNCH(cuLaunchCooperativeKernel, (CUfunction f, GRID_PARAMS, void **params),
	      (f, gx, gy, gz, bx, by, bz, shared, stream, params), f, LAUNCH_GRID)
DRIVER_LAUNCH(cuLaunchCooperativeKernel_ptsz, (CUfunction f, GRID_PARAMS, void **params),
	      (f, gx, gy, gz, bx, by, bz, shared, stream, params), f,
	      (stream = sim_per_thread(stream), LAUNCH_GRID))
DRIVER_LAUNCH(cuLaunchKernelEx,
	      (const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
	      (config, f, params, extra), f, launch_config(config, f, false))
DRIVER_LAUNCH(cuLaunchKernelEx_ptsz,
	      (const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
	      (config, f, params, extra), f, launch_config(config, f, true))
DRIVER_API_PTSZ(cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *user), (stream, fn, user),
		host_function(stream, fn, user))

/* ---- errors ---- */

#define ERROR_TEXT(fn)                                              \
	CUresult fn(CUresult error, const char **ret);              \
	CUresult fn(CUresult error, const char **ret)               \
	{                                                           \
		*ret = error ? "simulated CUDA error" : "no error"; \
		return CUDA_SUCCESS;                                \
	}

ERROR_TEXT(cuGetErrorName)
ERROR_TEXT(cuGetErrorString)
