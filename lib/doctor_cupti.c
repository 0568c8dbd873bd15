/*
 * doctor_cupti.c - every libcupti in sight, and the one that the injection would open.
 */
#include "base.h"
#include "cupti_search.h"
#include "doctor.h"
#include "env.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#define FOUND_MAX 24
#define PATH_LEN  4096

struct found {
	char path[PATH_LEN];
	char real[PATH_LEN];
	uint32_t version; /* cuptiGetVersion(); 0: it cannot be opened */
	char why[256];    /* then */
};

struct list {
	struct gt_doctor *doctor;
	struct found *found;
	size_t count;
	size_t searched; /* the first ones, which are where the injection looks */
};

/* ---- one library ---- */

/* In a child: some crash when they are opened or closed. */
static int ask_library(void *ctx)
{
	uint32_t (*get_version)(uint32_t * version);
	struct link_map *map = NULL;
	uint32_t version = 0;
	void *library = dlopen(ctx, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		dprintf(STDOUT_FILENO, "why %s\n", dlerror());
		_exit(1);
	}
	if (!dlinfo(library, RTLD_DI_LINKMAP, &map) && map)
		dprintf(STDOUT_FILENO, "path %s\n", map->l_name);
	get_version = (uint32_t(*)(uint32_t *))dlsym(library, "cuptiGetVersion");
	if (!get_version || get_version(&version))
		dprintf(STDOUT_FILENO, "why it has no version\n");
	dprintf(STDOUT_FILENO, "version %u\n", version);
	_exit(0);
}

/* A path, or a bare name for the loader; NULL when there is no such library. */
static struct found *look_at(struct list *list, const char *path)
{
	struct found *found = &list->found[list->count];
	struct gt_child child;
	char text[PATH_LEN];

	if (path[0] == '/' && (access(path, R_OK) < 0 || !realpath(path, found->real)))
		return NULL;
	for (size_t i = 0; path[0] == '/' && i < list->count; i++)
		if (!strcmp(list->found[i].real, found->real))
			return &list->found[i];
	if (list->count == FOUND_MAX || list->doctor->signal ||
	    !gt_doctor_child(list->doctor, "cupti.library", &child, ask_library, (void *)path))
		return NULL;
	found->version = 0;
	found->why[0] = '\0';
	snprintf(found->path, sizeof(found->path), "%s", path);
	if (gt_doctor_value(&child, "version", text, sizeof(text)))
		found->version = (uint32_t)strtoul(text, NULL, 10);
	if (!gt_doctor_value(&child, "why", found->why, sizeof(found->why)) && !found->version)
		snprintf(found->why, sizeof(found->why), "%s",
			 child.timed_out ? "it does not come back" : "it crashes");
	if (path[0] != '/') {
		if (!gt_doctor_value(&child, "path", found->path, sizeof(found->path)) ||
		    !realpath(found->path, found->real)) {
			gt_child_release(&child);
			return NULL;
		}
		for (size_t i = 0; i < list->count; i++)
			if (!strcmp(list->found[i].real, found->real)) {
				gt_child_release(&child);
				return &list->found[i];
			}
	}
	gt_child_release(&child);
	list->count++;
	return found;
}

/* ---- all of them ---- */

/* The one that the injection opens in a program that has mapped the library 'near', or NULL. */
static const struct found *first_that_fits(struct list *list, const char *near)
{
	struct gt_cupti_search search = { .near = near };
	const struct found *found, *first = NULL;
	char path[PATH_LEN];

	for (size_t i = 0; i < GT_CUPTI_DIRS; i++)
		search.dirs[i] = getenv(gt_cupti_dir_vars[i]);
	while (gt_cupti_next(&search, path, sizeof(path))) {
		found = look_at(list, path);
		if (!first && found && found->version &&
		    gt_cupti_fits(path, list->doctor->driver_version))
			first = found;
	}
	return first;
}

/* What the injection would not find, but a user may. */
static void look_elsewhere(struct list *list)
{
	const char *dir = getenv("LD_LIBRARY_PATH"), *end;
	char path[PATH_LEN];
	glob_t toolkits;

	for (; dir && *dir; dir = *end ? end + 1 : end) {
		end = strchrnul(dir, ':');
		for (size_t i = 0; *dir == '/' && i < GT_CUPTI_SONAMES; i++) {
			snprintf(path, sizeof(path), "%.*s/%s", (int)(end - dir), dir,
				 gt_cupti_sonames[i]);
			look_at(list, path);
		}
	}
	if (!glob("/usr/local/cuda-*/extras/CUPTI/lib64/libcupti.so.1[0-9]", 0, NULL, &toolkits))
		for (size_t i = 0; i < toolkits.gl_pathc; i++)
			look_at(list, toolkits.gl_pathv[i]);
	globfree(&toolkits);
}

/* API versions follow CUDA's from 13.0 on: 130001. Before they were counted. */
static void describe_version(uint32_t version, char *buf, size_t len)
{
	if (version >= 100000)
		snprintf(buf, len, "CUPTI %u.%u.%u", version / 10000, version % 10000 / 100,
			 version % 100);
	else
		snprintf(buf, len, "CUPTI's API version %u", version);
}

/* Which programs get it, or why none do: by the name it is looked for, as in the injection. */
static void describe_use(const struct list *list, const struct found *found,
			 const struct found *torch, const struct found *other, char *buf,
			 size_t len)
{
	uint32_t driver = list->doctor->driver_version;

	if (found == torch && found == other)
		snprintf(buf, len, "used for programs that bring no other");
	else if (found == torch)
		snprintf(buf, len, "used for programs with PyTorch");
	else if (found == other)
		snprintf(buf, len, "used for programs that bring none themselves");
	else if (!gt_cupti_fits(found->path, driver))
		snprintf(buf, len,
			 "not used, as it is for a newer driver than this one (CUDA %u.%u)",
			 driver / 1000, driver % 1000 / 10);
	else if (found < list->found + list->searched)
		snprintf(buf, len, "not used, as another one comes first");
	else
		snprintf(buf, len, "not used unless " GT_ENV_LIBCUPTI " names it");
}

static void say_all(const struct list *list, const struct found *torch, const struct found *other)
{
	struct gt_doctor *doctor = list->doctor;
	char version[64], use[128];

	for (size_t i = 0; i < list->count; i++) {
		const struct found *found = &list->found[i];

		if (!found->version) {
			gt_doctor_add(doctor, "cupti.library", GT_DOCTOR_OK,
				      "%s cannot be used: %s", found->path, found->why);
			continue;
		}
		describe_version(found->version, version, sizeof(version));
		describe_use(list, found, torch, other, use, sizeof(use));
		gt_doctor_add(doctor, "cupti.library", GT_DOCTOR_OK, "%s is %s; %s", found->path,
			      version, use);
	}
}

/* A driver without a CUPTI: only what a program brings itself can be used. */
static void say_none(struct gt_doctor *doctor)
{
	gt_doctor_add(
		doctor, "cupti.library",
		doctor->gpu == GT_DOCTOR_GPU_WORKS ? GT_DOCTOR_PROBLEM : GT_DOCTOR_OK,
		"no libcupti that fits the driver (CUDA %u.%u): no GPU work in traces of programs "
		"that do not bring one",
		doctor->driver_version / 1000, doctor->driver_version % 1000 / 10);
	if (doctor->gpu == GT_DOCTOR_GPU_WORKS)
		gt_doctor_fix(doctor, "install CUDA's toolkit or NVIDIA's wheel (pip install "
				      "nvidia-cuda-cupti-cu12, or nvidia-cuda-cupti for CUDA 13) "
				      "and set " GT_ENV_LIBCUPTI " to its libcupti.so");
}

static void say_override(struct list *list, const char *path)
{
	struct gt_doctor *doctor = list->doctor;
	const struct found *found = look_at(list, path);
	char version[64];

	if (found && found->version) {
		describe_version(found->version, version, sizeof(version));
		gt_doctor_add(doctor, "cupti.library", GT_DOCTOR_OK,
			      "%s is %s; used for every program, by " GT_ENV_LIBCUPTI, path,
			      version);
		return;
	}
	gt_doctor_add(doctor, "cupti.library", GT_DOCTOR_PROBLEM,
		      "%s of " GT_ENV_LIBCUPTI " cannot be used: %s", path,
		      found ? found->why : strerror(ENOENT));
	gt_doctor_fix(doctor, "unset " GT_ENV_LIBCUPTI);
}

void gt_doctor_cupti(struct gt_doctor *doctor)
{
	struct list list = { .doctor = doctor };
	const struct found *torch = NULL, *other;
	const char *override = getenv(GT_ENV_LIBCUPTI);

	/* One beyond those kept is where the next is looked at. */
	list.found = calloc(FOUND_MAX + 1, sizeof(*list.found));
	if (!list.found) {
		doctor->failed = true;
		return;
	}
	if (override && *override) {
		say_override(&list, override);
		free(list.found);
		return;
	}
	if (*doctor->torch_library)
		torch = first_that_fits(&list, doctor->torch_library);
	other = first_that_fits(&list, NULL);
	list.searched = list.count;
	look_elsewhere(&list);
	say_all(&list, torch, other);
	if (!torch && !other)
		say_none(doctor);
	free(list.found);
}
