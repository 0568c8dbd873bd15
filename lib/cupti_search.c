#include "base.h"
#include "cupti_search.h"

#include <stdlib.h>

const char *const gt_cupti_sonames[GT_CUPTI_SONAMES] = { "libcupti.so.13", "libcupti.so.12",
							 "libcupti.so.11.8" };
const char *const gt_cupti_dir_vars[GT_CUPTI_DIRS] = { "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH" };

/* From a CUDA library: where Python wheels put CUPTI. */
static const char *const near_subs[] = { ".", "../../cuda_cupti/lib", "../../cu13/lib",
					 "../../nvidia/cuda_cupti/lib", "../../nvidia/cu13/lib" };

/* In an environment of conda or a toolkit. */
static const char *const dir_subs[] = { "extras/CUPTI/lib64", "lib64", "lib",
					"targets/x86_64-linux/lib", "targets/sbsa-linux/lib" };

#define DEFAULT_DIR "/usr/local/cuda"

/* The major version in "libNAME.so.12.4" or "libNAME.so.12", 0 without. */
static unsigned long soname_major(const char *path)
{
	const char *so = strstr(path, ".so.");

	return so ? strtoul(so + strlen(".so."), NULL, 10) : 0;
}

bool gt_cupti_fits(const char *path, uint32_t driver_version)
{
	unsigned long cupti = soname_major(path);

	return !cupti || !driver_version || cupti <= driver_version / 1000;
}

/* Place number index among those near the program's library; their number for one beyond. */
static size_t place_near(const char *library, size_t index, char *buf, size_t len)
{
	size_t count = ARRAY_SIZE(near_subs) * GT_CUPTI_SONAMES;
	const char *slash = library ? strrchr(library, '/') : NULL;
	int n;

	if (index >= count || !slash)
		return count;
	n = snprintf(buf, len, "%.*s/%s/%s", (int)(slash - library), library,
		     near_subs[index / GT_CUPTI_SONAMES],
		     gt_cupti_sonames[index % GT_CUPTI_SONAMES]);
	if (n < 0 || (size_t)n >= len)
		buf[0] = '\0';
	return count;
}

/* The same in dir. */
static size_t place_in(const char *dir, size_t index, char *buf, size_t len)
{
	size_t count = ARRAY_SIZE(dir_subs) * GT_CUPTI_SONAMES;
	int n;

	if (index >= count || !dir || !*dir)
		return count;
	n = snprintf(buf, len, "%s/%s/%s", dir, dir_subs[index / GT_CUPTI_SONAMES],
		     gt_cupti_sonames[index % GT_CUPTI_SONAMES]);
	if (n < 0 || (size_t)n >= len)
		buf[0] = '\0';
	return count;
}

/* Place number index, empty when there is none of it; false beyond the last. */
static bool place(const struct gt_cupti_search *search, size_t index, char *buf, size_t len)
{
	size_t count = place_near(search->near, index, buf, len);

	for (size_t i = 0; index >= count && i <= GT_CUPTI_DIRS; i++) {
		index -= count;
		count = place_in(i < GT_CUPTI_DIRS ? search->dirs[i] : DEFAULT_DIR, index, buf,
				 len);
	}
	if (index < count)
		return true;
	index -= count;
	if (index >= GT_CUPTI_SONAMES)
		return false;
	snprintf(buf, len, "%s", gt_cupti_sonames[index]);
	return true;
}

bool gt_cupti_next(struct gt_cupti_search *search, char *buf, size_t len)
{
	do {
		buf[0] = '\0';
		if (!place(search, search->next, buf, len))
			return false;
		search->next++;
	} while (!buf[0]);
	return true;
}
