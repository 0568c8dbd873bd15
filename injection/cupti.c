/*
 * cupti.c - find, open and measure the CUPTI library. The program's own comes first: a second copy
 * in one process would fight with it over the driver's tools interface.
 */
#include "cupti_api.h"
#include "env.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

/* CUpti_ActivityKernel4 (CUDA 9): later ones only add to its end. */
#define KERNEL_BYTES_MIN 144

struct inj_cupti inj_cupti;

/* ---- what is mapped already ---- */

struct mapped {
	char cupti[512];
	char cuda_lib[512]; /* a CUDA library beside which CUPTI may lie */
	char tool[64];      /* another profiler */
};

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	static const char *const tools[] = { "libToolsInjection64", "libsanitizer-collection",
					     "libcuinj64" };
	static const char *const cuda[] = { "libcudart.so", "libcublas.so", "libcublasLt.so",
					    "libtorch_cuda.so" };
	const char *base = strrchr(info->dlpi_name, '/');
	struct mapped *ret = arg;

	(void)size;
	if (!base++)
		return 0;
	if (!strncmp(base, "libcupti.so", strlen("libcupti.so")) && !ret->cupti[0])
		snprintf(ret->cupti, sizeof(ret->cupti), "%s", info->dlpi_name);
	for (size_t i = 0; i < ARRAY_SIZE(cuda); i++)
		if (!strncmp(base, cuda[i], strlen(cuda[i])) && !ret->cuda_lib[0])
			snprintf(ret->cuda_lib, sizeof(ret->cuda_lib), "%s", info->dlpi_name);
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (!strncmp(base, tools[i], strlen(tools[i])))
			snprintf(ret->tool, sizeof(ret->tool), "%s", base);
	return 0;
}

/* ---- opening ---- */

/* Never closed: CUPTI 13.0 and 13.1 crash when they are. */
static void *open_path(const char *path, int extra_flags)
{
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | extra_flags);
}

/* Around the program's CUDA libraries, then where CUDA is installed. */
static void *open_elsewhere(const struct mapped *mapped)
{
	struct gt_cupti_search search = { .near = mapped->cuda_lib };
	char path[1024];
	void *handle = NULL;

	for (size_t i = 0; i < GT_CUPTI_DIRS; i++)
		search.dirs[i] = inj_config.cuda_dirs[i];
	while (!handle && gt_cupti_next(&search, path, sizeof(path)))
		if ((path[0] != '/' || !access(path, R_OK)) &&
		    gt_cupti_fits(path, inj_driver_version()))
			handle = open_path(path, 0);
	return handle;
}

static void *open_cupti(const struct mapped *mapped)
{
	void *handle = NULL;

	if (inj_config.libcupti[0]) {
		handle = open_path(inj_config.libcupti, 0);
		if (!handle)
			inj_log(GT_LOG_WARN,
				"the libcupti of " GT_ENV_LIBCUPTI " cannot be loaded: no GPU work "
				"in the trace; unset it, and one is looked for (%s)",
				dlerror());
		return handle;
	}
	if (mapped->cupti[0])
		handle = open_path(mapped->cupti, RTLD_NOLOAD);
	for (size_t i = 0; i < GT_CUPTI_SONAMES && !handle; i++)
		handle = open_path(gt_cupti_sonames[i], RTLD_NOLOAD);
	if (!handle)
		handle = open_elsewhere(mapped);
	if (!handle)
		inj_log(GT_LOG_WARN,
			"found no libcupti that fits the driver (CUDA %u.%u): no GPU work in the "
			"trace; name one with %s",
			inj_driver_version() / 1000, inj_driver_version() % 1000 / 10,
			GT_ENV_LIBCUPTI);
	return handle;
}

static bool resolve(void *handle)
{
	const char *missing = NULL;

#define RESOLVE(name) inj_cupti.name = (__typeof__(name) *)dlsym(handle, #name);
#define REQUIRE(name) missing = inj_cupti.name ? missing : #name;
	INJ_CUPTI_REQUIRED(RESOLVE)
	INJ_CUPTI_OPTIONAL(RESOLVE)
	INJ_CUPTI_REQUIRED(REQUIRE)
#undef RESOLVE
#undef REQUIRE
	if (missing)
		inj_log(GT_LOG_WARN, "this libcupti has no %s: no GPU work in the trace", missing);
	return !missing;
}

/* ---- what its age brings ---- */

/* Not static knowledge but asked: a record's size is where the library finds the next one. */
void inj_cupti_probe_records(__typeof__(cuptiActivityGetNextRecord) *next_record,
			     uint16_t ret_bytes[GT_KIND_MAX])
{
	/* Wherever the second record begins, it is one of this kind, which every CUPTI knows. */
	static uint64_t buffer[512];
	const uint32_t filler = CUPTI_ACTIVITY_KIND_RUNTIME;

	for (size_t i = 0; i < ARRAY_SIZE(buffer); i++)
		memcpy(&buffer[i], &filler, sizeof(filler));
	ret_bytes[0] = 0;
	for (uint32_t kind = 1; kind < GT_KIND_MAX; kind++) {
		CUpti_Activity *record = NULL;
		size_t size = 0;

		memcpy(&buffer[0], &kind, sizeof(kind));
		if (next_record((uint8_t *)buffer, sizeof(buffer), &record) == CUPTI_SUCCESS &&
		    next_record((uint8_t *)buffer, sizeof(buffer), &record) == CUPTI_SUCCESS)
			size = (size_t)((char *)record - (char *)buffer);
		ret_bytes[kind] = (uint16_t)(size < sizeof(buffer) ? size : 0);
	}
}

bool inj_cupti_load(void)
{
	struct mapped mapped = { .tool = "" };
	Dl_info where;
	void *handle;

	dl_iterate_phdr(look_at, &mapped);
	if (mapped.tool[0]) {
		inj_log(GT_LOG_WARN,
			"another profiler (%s) is in this process: no GPU work in the trace",
			mapped.tool);
		return false;
	}
	handle = open_cupti(&mapped);
	if (!handle || !resolve(handle))
		return false;
	if (inj_cupti.cuptiGetVersion(&inj_cupti.version) != CUPTI_SUCCESS)
		inj_cupti.version = 0;
	inj_cupti_probe_records(inj_cupti.cuptiActivityGetNextRecord, inj_cupti.record_bytes);
	if (dladdr((void *)inj_cupti.cuptiGetVersion, &where))
		inj_log(GT_LOG_DEBUG, "%s is version %u", where.dli_fname, inj_cupti.version);
	if (inj_cupti.record_bytes[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] < KERNEL_BYTES_MIN) {
		inj_log(GT_LOG_WARN,
			"this libcupti (version %u) is too old or too new: no GPU work in the "
			"trace",
			inj_cupti.version);
		return false;
	}
	return true;
}

const char *inj_cupti_error(CUptiResult result)
{
	switch (result) {
	case CUPTI_ERROR_NOT_INITIALIZED:
		return "not initialized (is CUPTI newer than the driver?)";
	case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
		return "no permission";
	case CUPTI_ERROR_MAX_LIMIT_REACHED:
	case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
		return "another tool is subscribed";
	case CUPTI_ERROR_NOT_COMPATIBLE:
		return "another tool uses an incompatible part of CUPTI";
	default:
		return "error";
	}
}
