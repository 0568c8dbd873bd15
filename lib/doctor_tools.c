/*
 * doctor_tools.c - the parts of gtrace itself, and what else wants into a program on this machine.
 */
#include "base.h"
#include "doctor.h"
#include "env.h"
#include "other_tool.h"
#include "wire.h"

#include <stdlib.h>
#include <unistd.h>

/* Threads of the collector, as at least 'gtrace run' takes. */
#define THREADS 4

void gt_doctor_injection(struct gt_doctor *doctor)
{
	struct gt_preflight *found = &doctor->preflight;
	struct gt_err err;

	if (gt_preflight_find(found, getenv(GT_ENV_INJECTION), &err) < 0) {
		found->injection[0] = '\0';
		gt_doctor_add(doctor, "gtrace.injection", GT_DOCTOR_PROBLEM, "%s", err.msg);
		gt_doctor_fix(doctor,
			      "install gtrace as a whole: the library goes beside the program "
			      "or into ../lib/gtrace, or " GT_ENV_INJECTION " names it");
		return;
	}
	if (gt_preflight_load(found->injection, &err) < 0) {
		gt_doctor_add(doctor, "gtrace.injection", GT_DOCTOR_PROBLEM, "%s", err.msg);
		gt_doctor_fix(doctor,
			      "use a gtrace that was built for this machine and its C library");
	} else {
		gt_doctor_add(doctor, "gtrace.injection", GT_DOCTOR_OK,
			      "%s (gtrace " GT_VERSION ", protocol %d)", found->injection,
			      GT_WIRE_VERSION);
	}
	if (!*found->python_dir) {
		gt_doctor_add(
			doctor, "gtrace.hook", GT_DOCTOR_WARNING,
			"the start-up hook for Python is not beside %s: no steps and no operators "
			"of PyTorch",
			found->injection);
		gt_doctor_fix(doctor, "put the directory 'python' of gtrace beside the library");
	}
	if (gt_preflight_room(THREADS, &err) < 0) {
		gt_doctor_add(doctor, "limit.processes", GT_DOCTOR_PROBLEM, "%s", err.msg);
		gt_doctor_fix(doctor,
			      "raise 'ulimit -n' to 1024 and 'ulimit -u', or the container's "
			      "--pids-limit");
	}
}

/* ---- other tools ---- */

static void look_for_programs(struct gt_doctor *doctor)
{
	static const char *const names[] = { "nsys", "ncu", "compute-sanitizer", "cuda-gdb" };
	char path[1024], list[ARRAY_SIZE(names) * (sizeof(path) + 2)] = "";
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (gt_find_program(names[i], path, sizeof(path)))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", path);
	if (used)
		gt_doctor_add(doctor, "tools.programs", GT_DOCTOR_OK,
			      "%s: one of them at a time traces a program, or gtrace", list);
	else
		gt_doctor_add(doctor, "tools.programs", GT_DOCTOR_OK,
			      "no nsys, ncu, compute-sanitizer or cuda-gdb in PATH");
}

/* Who else is in the environment or above this process. */
static void look_for_conflict(struct gt_doctor *doctor)
{
	char *const argv[] = { (char *)"program", NULL };
	struct gt_other_tool tool;

	if (gt_other_tool_find(&tool, argv, getenv, doctor->preflight.injection)) {
		gt_doctor_add(doctor, "tools.conflict", GT_DOCTOR_PROBLEM,
			      "%s: CUDA takes only one such tool into a program", tool.how);
		gt_doctor_fix(
			doctor, "%s",
			tool.variable
				? "unset CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH LD_PRELOAD "
				  "QUADD_INJECTION_PROXY, or trace without that tool"
				: "run gtrace outside of it");
	} else {
		gt_doctor_add(doctor, "tools.conflict", GT_DOCTOR_OK,
			      "no other tool has set CUDA's injection or runs above this process");
	}
}

static void look_at_nvtx(struct gt_doctor *doctor)
{
	const char *nvtx = getenv("NVTX_INJECTION64_PATH");

	if (!nvtx || !*nvtx || strstr(nvtx, "libgtrace-inject"))
		return;
	if (strstr(nvtx, "libcupti")) {
		gt_doctor_add(doctor, "tools.nvtx", GT_DOCTOR_OK,
			      "NVTX_INJECTION64_PATH is preset to %s: gtrace run takes its place",
			      nvtx);
		return;
	}
	gt_doctor_add(doctor, "tools.nvtx", GT_DOCTOR_WARNING,
		      "NVTX_INJECTION64_PATH is already '%s': no NVTX ranges in a trace", nvtx);
	gt_doctor_fix(doctor, "unset NVTX_INJECTION64_PATH");
}

/* A daemon may have PyTorch profile at any time. */
static void look_at_kineto(struct gt_doctor *doctor)
{
	if (!getenv("KINETO_USE_DAEMON"))
		return;
	gt_doctor_add(
		doctor, "tools.kineto", GT_DOCTOR_WARNING,
		"KINETO_USE_DAEMON is set: when its daemon has PyTorch profile, a window of gtrace "
		"that is open loses its GPU work");
	gt_doctor_fix(doctor, "unset KINETO_USE_DAEMON");
}

/* Variables of gtrace that 'gtrace run' would take. */
static void look_at_own_variables(struct gt_doctor *doctor)
{
	static const char *const names[] = { GT_ENV_OUTPUT_DIR, GT_ENV_LIBCUPTI, GT_ENV_INJECTION,
					     GT_ENV_OPS, GT_ENV_DEBUG };
	const char *socket = getenv(GT_ENV_SOCKET);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			gt_doctor_add(doctor, "env.gtrace", GT_DOCTOR_OK, "%s=%s", names[i], value);
	}
	if (socket && *socket)
		gt_doctor_add(doctor, "env.gtrace", GT_DOCTOR_OK,
			      "this runs under a gtrace run: another one in it takes over");
}

void gt_doctor_tools(struct gt_doctor *doctor)
{
	look_for_programs(doctor);
	look_for_conflict(doctor);
	look_at_nvtx(doctor);
	look_at_kineto(doctor);
	look_at_own_variables(doctor);
}
