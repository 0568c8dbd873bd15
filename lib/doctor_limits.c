/*
 * doctor_limits.c - what this process may take: resource limits, and those of its container.
 */
#include "base.h"
#include "cgroup.h"
#include "doctor.h"
#include "wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MIB             (UINT64_C(1) << 20)
#define ARENA_BYTES     (64 * MIB)  /* default of gtrace run --max-buffer */
#define COLLECTOR_BYTES (128 * MIB) /* what gtrace itself was seen to take, and a reserve */
#define SHM_SMALL_BYTES (64 * MIB)  /* what containers get unless told otherwise */
#define MEMLOCK_BYTES   (64 * MIB)
#define PATH_LEN        4096

/* ---- resource limits ---- */

static uint64_t soft_limit(__rlimit_resource_t resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static void look_at_file_size(struct gt_doctor *doctor)
{
	uint64_t bytes = soft_limit(RLIMIT_FSIZE);

	if (bytes >= ARENA_BYTES) /* a trace may become larger, and then ends there */
		return;
	gt_doctor_add(doctor, "limit.file_size",
		      bytes < GT_ARENA_MIN_BYTES ? GT_DOCTOR_PROBLEM : GT_DOCTOR_WARNING,
		      "files, and with them the shared memory of a traced process, have at most "
		      "%" PRIu64 " KiB",
		      bytes >> 10);
	gt_doctor_fix(doctor, "ulimit -f unlimited");
}

static void look_at_address_space(struct gt_doctor *doctor)
{
	uint64_t bytes = soft_limit(RLIMIT_AS);

	if (bytes == UINT64_MAX)
		return;
	gt_doctor_add(doctor, "limit.address_space", GT_DOCTOR_WARNING,
		      "a process has at most %" PRIu64
		      " MiB of addresses, of which CUDA takes many "
		      "GiB",
		      bytes >> 20);
	gt_doctor_fix(doctor, "ulimit -v unlimited");
}

/* Gtrace locks nothing; NCCL and UCX register memory with the network. */
static void look_at_locked_memory(struct gt_doctor *doctor)
{
	uint64_t bytes = soft_limit(RLIMIT_MEMLOCK);
	char path[PATH_LEN];

	snprintf(path, sizeof(path), "%s/dev/infiniband", doctor->root);
	if (bytes == UINT64_MAX) {
		gt_doctor_add(doctor, "limit.memlock", GT_DOCTOR_OK, "unlimited");
	} else if (bytes >= MEMLOCK_BYTES || access(path, F_OK) < 0) {
		gt_doctor_add(doctor, "limit.memlock", GT_DOCTOR_OK,
			      "%" PRIu64 " KiB: gtrace locks no memory", bytes >> 10);
	} else {
		gt_doctor_add(doctor, "limit.memlock", GT_DOCTOR_WARNING,
			      "%" PRIu64
			      " KiB: enough for gtrace, which locks no memory, not for NCCL "
			      "over InfiniBand",
			      bytes >> 10);
		gt_doctor_fix(doctor, "ulimit -l unlimited; in a container --ulimit memlock=-1");
	}
}

/* The shared memory between a program and gtrace: no file in /dev/shm, but a memfd. */
static void try_memfd(struct gt_doctor *doctor)
{
	int fd = memfd_create("gtrace-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		gt_doctor_add(doctor, "limit.memfd", GT_DOCTOR_OK, "shared memory can be had");
	} else {
		gt_doctor_add(doctor, "limit.memfd", GT_DOCTOR_PROBLEM, "no shared memory: %s",
			      strerror(errno));
		gt_doctor_fix(doctor, "allow memfd_create in the seccomp profile of the container");
	}
	if (fd >= 0)
		close(fd);
}

void gt_doctor_limits(struct gt_doctor *doctor)
{
	try_memfd(doctor);
	look_at_file_size(doctor);
	look_at_address_space(doctor);
	look_at_locked_memory(doctor);
}

/* ---- container ---- */

static void look_at_memory(struct gt_doctor *doctor)
{
	uint64_t limit, left = gt_cgroup_memory(doctor->root, &limit);

	if (limit == UINT64_MAX) {
		gt_doctor_add(doctor, "container.memory", GT_DOCTOR_OK,
			      "no limit but the machine's");
		return;
	}
	gt_doctor_add(doctor, "container.memory",
		      left < ARENA_BYTES + COLLECTOR_BYTES ? GT_DOCTOR_WARNING : GT_DOCTOR_OK,
		      "%" PRIu64 " MiB, of which %" PRIu64
		      " MiB are not in use; gtrace takes 64 MiB of "
		      "it for each traced process (--max-buffer) and about 85 MiB for itself",
		      limit >> 20, left >> 20);
	if (left < ARENA_BYTES + COLLECTOR_BYTES)
		gt_doctor_fix(doctor,
			      "gtrace run --max-buffer 16M, or more memory: docker run --memory, "
			      "sbatch --mem, resources.limits.memory of a pod");
}

/* Gtrace has nothing there. */
static void look_at_shm(struct gt_doctor *doctor)
{
	char path[PATH_LEN];
	struct statvfs shm;
	uint64_t bytes;

	snprintf(path, sizeof(path), "%s/dev/shm", doctor->root);
	if (statvfs(path, &shm) < 0)
		return;
	bytes = (uint64_t)shm.f_blocks * shm.f_frsize;
	if (bytes > SHM_SMALL_BYTES) {
		gt_doctor_add(doctor, "container.shm", GT_DOCTOR_OK,
			      "/dev/shm has %" PRIu64 " MiB; gtrace uses none of it", bytes >> 20);
		return;
	}
	gt_doctor_add(doctor, "container.shm", GT_DOCTOR_WARNING,
		      "/dev/shm has %" PRIu64
		      " MiB: gtrace uses none of it, but NCCL and the workers of "
		      "a DataLoader fail for want of it",
		      bytes >> 20);
	gt_doctor_fix(doctor,
		      "docker run --shm-size=8g or --ipc=host; an emptyDir of medium Memory in a "
		      "pod");
}

/* By a variable, or a file of that path. */
static void tell_kind(struct gt_doctor *doctor)
{
	static const struct {
		const char *mark;
		const char *name;
	} kinds[] = {
		{ "APPTAINER_CONTAINER", "Apptainer" },
		{ "SINGULARITY_CONTAINER", "Singularity" },
		{ "KUBERNETES_SERVICE_HOST", "a pod of Kubernetes" },
		{ "/run/.containerenv", "Podman" },
		{ "/.dockerenv", "Docker" },
	};
	char path[PATH_LEN];
	bool is_it;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), "%s%s", doctor->root, kinds[i].mark);
		is_it = kinds[i].mark[0] == '/' ? !access(path, F_OK)
						: getenv(kinds[i].mark) != NULL;
		if (!is_it)
			continue;
		gt_doctor_add(doctor, "container.kind", GT_DOCTOR_OK, "%s", kinds[i].name);
		return;
	}
}

void gt_doctor_container(struct gt_doctor *doctor)
{
	tell_kind(doctor);
	look_at_memory(doctor);
	look_at_shm(doctor);
}
