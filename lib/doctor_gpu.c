/*
 * doctor_gpu.c - the driver and its GPUs. A broken driver can hang or crash whoever asks it, so a
 * child asks, and tells line by line how far it came.
 */
#include "base.h"
#include "cuda_driver.h"
#include "doctor.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define DEVICES_MAX 64

#define IN_A_CONTAINER \
	"in a container docker --gpus all, podman --device nvidia.com/gpu=all, apptainer --nv"

/* ---- in the child ---- */

static void tell_device(const struct gt_cuda_driver *driver, int ordinal)
{
	int device, major = 0, minor = 0;
	char name[256] = "";
	size_t bytes = 0;

	if (driver->cuDeviceGet(&device, ordinal) ||
	    driver->cuDeviceGetName(name, sizeof(name) - 1, device))
		return;
	driver->cuDeviceGetAttribute(&major, GT_CUDA_COMPUTE_CAPABILITY_MAJOR, device);
	driver->cuDeviceGetAttribute(&minor, GT_CUDA_COMPUTE_CAPABILITY_MINOR, device);
	driver->cuDeviceTotalMem_v2(&bytes, device);
	dprintf(STDOUT_FILENO, "device%d %s, %zu MiB, compute capability %d.%d\n", ordinal, name,
		bytes >> 20, major, minor);
}

static int ask_driver(void *ctx)
{
	struct gt_cuda_driver driver;
	int version = 0, count = 0, rc;
	struct gt_err err;
	char name[64];

	(void)ctx;
	/* Nobody's injection is to come in. */
	unsetenv("CUDA_INJECTION64_PATH");
	rc = gt_cuda_driver_open(&driver, &err);
	if (rc < 0) {
		dprintf(STDOUT_FILENO, "%s %s\n", rc == -ENOENT ? "absent" : "unusable", err.msg);
		return 0;
	}
	dprintf(STDOUT_FILENO, "library %s\n", driver.path);
	driver.cuDriverGetVersion(&version);
	dprintf(STDOUT_FILENO, "version %d\n", version);
	rc = driver.cuInit(0);
	if (!rc)
		rc = driver.cuDeviceGetCount(&count);
	if (!rc && !count)
		rc = GT_CUDA_NO_DEVICE;
	gt_cuda_error_name(&driver, rc, name, sizeof(name));
	dprintf(STDOUT_FILENO, "error %d\nreason %s\n", rc, name);
	for (int i = 0; i < count && i < DEVICES_MAX; i++)
		tell_device(&driver, i);
	dprintf(STDOUT_FILENO, "end .\n");
	return 0;
}

/* ---- what it said ---- */

/* Is there the kernel's side of a driver? */
static bool has_module(const struct gt_doctor *doctor)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/dev/nvidiactl", doctor->root);
	return !access(path, F_OK);
}

static const char *advice(int error)
{
	switch (error) {
	case GT_CUDA_OUT_OF_MEMORY:
		return "free memory on the GPU or the machine: nvidia-smi shows who has it";
	case GT_CUDA_STUB_LIBRARY:
		return "take the directory 'stubs' out of LD_LIBRARY_PATH";
	case GT_CUDA_SYSTEM_NOT_READY:
		return "start NVIDIA's Fabric Manager: systemctl start nvidia-fabricmanager";
	case GT_CUDA_SYSTEM_DRIVER_MISMATCH:
		return "reload the kernel module or reboot: it is of another version than libcuda";
	case GT_CUDA_COMPAT_NOT_SUPPORTED:
		return "take CUDA's directory 'compat' out of LD_LIBRARY_PATH: this GPU has only "
		       "its own "
		       "driver";
	case GT_CUDA_UNKNOWN:
		return "nvidia-modprobe -u -c 0 makes /dev/nvidia-uvm, dmesg shows what the driver "
		       "says; " IN_A_CONTAINER;
	default:
		return "see whether nvidia-smi works, and dmesg";
	}
}

static void say_without(struct gt_doctor *doctor, const char *what)
{
	if (has_module(doctor)) {
		doctor->gpu = GT_DOCTOR_GPU_BROKEN;
		gt_doctor_add(doctor, "gpu.driver", GT_DOCTOR_PROBLEM,
			      "there is a GPU's device, but no driver library: %s", what);
		gt_doctor_fix(doctor,
			      "in a container set NVIDIA_DRIVER_CAPABILITIES=compute,utility; "
			      "elsewhere install the driver's libcuda");
		return;
	}
	gt_doctor_add(doctor, "gpu.driver", GT_DOCTOR_WARNING, "no GPU here: %s", what);
	gt_doctor_fix(doctor,
		      "none is needed on this machine to trace PyTorch on the CPU; with a GPU "
		      "install its driver, " IN_A_CONTAINER);
}

static void say_driver(struct gt_doctor *doctor, const char *library)
{
	char module[64] = "", path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/sys/module/nvidia/version", doctor->root);
	file = fopen(path, "re");
	if (file && !fgets(module, sizeof(module), file))
		module[0] = '\0';
	if (file)
		fclose(file);
	module[strcspn(module, "\n")] = '\0';
	gt_doctor_add(doctor, "gpu.driver", GT_DOCTOR_OK, "%s%sCUDA %u.%u, %s", module,
		      *module ? ", " : "", doctor->driver_version / 1000,
		      doctor->driver_version % 1000 / 10, library);
}

static void say_devices(struct gt_doctor *doctor, const struct gt_child *child)
{
	char key[32], text[512];

	for (int i = 0; i < DEVICES_MAX; i++) {
		snprintf(key, sizeof(key), "device%d", i);
		if (!gt_doctor_value(child, key, text, sizeof(text)))
			return;
		gt_doctor_add(doctor, "gpu.device", GT_DOCTOR_OK, "%d: %s", i, text);
	}
}

/* It did not come to its end. */
static void say_broken(struct gt_doctor *doctor, const struct gt_child *child)
{
	char text[16];
	const char *where = gt_doctor_value(child, "version", text, sizeof(text))
				    ? "cuInit()"
				    : "loading libcuda.so.1";

	doctor->gpu = GT_DOCTOR_GPU_BROKEN;
	if (child->timed_out)
		gt_doctor_add(doctor, "gpu.driver", GT_DOCTOR_PROBLEM,
			      "no answer from the driver within %d s: it hangs in %s",
			      doctor->timeout_ms / 1000, where);
	else
		gt_doctor_add(doctor, "gpu.driver", GT_DOCTOR_PROBLEM, "%s crashes", where);
	gt_doctor_fix(doctor,
		      "see whether nvidia-smi works, and dmesg; a machine with many GPUs and no "
		      "nvidia-persistenced may need --timeout 30");
}

static void say_error(struct gt_doctor *doctor, int error, const char *reason)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (error == GT_CUDA_NO_DEVICE) {
		gt_doctor_add(doctor, "gpu.device", GT_DOCTOR_WARNING,
			      "no GPU here: the driver has none%s%s",
			      visible ? " with CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
		gt_doctor_fix(doctor, "set CUDA_VISIBLE_DEVICES to GPUs of nvidia-smi, or unset "
				      "it; " IN_A_CONTAINER);
		return;
	}
	doctor->gpu = GT_DOCTOR_GPU_BROKEN;
	gt_doctor_add(doctor, "gpu.driver", GT_DOCTOR_PROBLEM, "CUDA cannot be used: %s (%d)",
		      reason, error);
	gt_doctor_fix(doctor, "%s", advice(error));
}

/* ---- permissions ---- */

static void look_at_devices(struct gt_doctor *doctor)
{
	static const char *const names[] = { "nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1",
					     "nvidia2",   "nvidia3",    "nvidia4", "nvidia5",
					     "nvidia6",   "nvidia7" };
	char path[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/dev/%s", doctor->root, names[i]);
		if (access(path, F_OK) < 0 || !access(path, R_OK | W_OK))
			continue;
		gt_doctor_add(doctor, "gpu.permission", GT_DOCTOR_PROBLEM, "%s: %s", path,
			      strerror(errno));
		gt_doctor_fix(
			doctor,
			"let this user have it: its group, or NVreg_DeviceFileMode=0666 of the "
			"kernel module; in a job ask for the GPU (--gres=gpu:1)");
		return;
	}
}

/* Asked for by many, and of no importance here: tracing needs no counters. */
static void look_at_counters(struct gt_doctor *doctor)
{
	static const char key[] = "RmProfilingAdminOnly: ";
	char path[PATH_MAX], line[256];
	bool restricted = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/driver/nvidia/params", doctor->root);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, key, strlen(key)))
			restricted = line[strlen(key)] == '1';
	fclose(file);
	gt_doctor_add(doctor, "gpu.counters", GT_DOCTOR_OK,
		      restricted ? "hardware counters are for root alone "
				   "(NVreg_RestrictProfilingToAdminUsers): "
				   "ncu needs them, gtrace does not"
				 : "hardware counters are for every user; gtrace needs none");
}

void gt_doctor_gpu(struct gt_doctor *doctor)
{
	char library[1024], text[1024], reason[64] = "";
	struct gt_child child;

	if (!gt_doctor_child(doctor, "gpu.driver", &child, ask_driver, NULL))
		return;
	if (gt_doctor_value(&child, "version", text, sizeof(text)))
		doctor->driver_version = (uint32_t)strtoul(text, NULL, 10);
	if (gt_doctor_value(&child, "absent", text, sizeof(text))) {
		say_without(doctor, text);
	} else if (gt_doctor_value(&child, "unusable", text, sizeof(text))) {
		doctor->gpu = GT_DOCTOR_GPU_BROKEN;
		gt_doctor_add(doctor, "gpu.driver", GT_DOCTOR_PROBLEM, "%s", text);
		gt_doctor_fix(doctor, "install a driver of CUDA 11.8 or later");
	} else if (!gt_doctor_value(&child, "end", text, sizeof(text))) {
		say_broken(doctor, &child);
	} else {
		if (gt_doctor_value(&child, "library", library, sizeof(library)))
			say_driver(doctor, library);
		gt_doctor_value(&child, "error", text, sizeof(text));
		gt_doctor_value(&child, "reason", reason, sizeof(reason));
		if (strtol(text, NULL, 10))
			say_error(doctor, (int)strtol(text, NULL, 10), reason);
		else
			doctor->gpu = GT_DOCTOR_GPU_WORKS;
		say_devices(doctor, &child);
	}
	gt_child_release(&child);
	/* Where it works, those of other jobs may well be closed to this user. */
	if (doctor->gpu != GT_DOCTOR_GPU_WORKS)
		look_at_devices(doctor);
	look_at_counters(doctor);
}
