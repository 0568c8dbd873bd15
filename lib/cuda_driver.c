#include "base.h"
#include "cuda_driver.h"

#include <dlfcn.h>
#include <link.h>

int gt_cuda_driver_open(struct gt_cuda_driver *ret, struct gt_err *err)
{
	struct link_map *map = NULL;
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return gt_err_set(err, -ENOENT, "%s", dlerror());
#define FIND(name, params)                                        \
	ret->name = (__typeof__(ret->name))dlsym(library, #name); \
	if (!ret->name)                                           \
		return gt_err_set(err, -ENOSYS, "libcuda.so.1 has no %s", #name);
	GT_CUDA_DRIVER_API(FIND)
#undef FIND
	if (dlinfo(library, RTLD_DI_LINKMAP, &map))
		map = NULL;
	snprintf(ret->path, sizeof(ret->path), "%s", map ? map->l_name : "libcuda.so.1");
	return 0;
}

void gt_cuda_error_name(const struct gt_cuda_driver *driver, int error, char *buf, size_t len)
{
	const char *name = NULL;

	if (driver->cuGetErrorName(error, &name) || !name)
		snprintf(buf, len, "error %d", error);
	else
		snprintf(buf, len, "%s", name);
}
