/*
 * doctor_python.c - the interpreter that the shell finds, whether gtrace's start-up hook gets into
 * it, and its PyTorch. Torch is not imported: that takes seconds and memory.
 */
#include "base.h"
#include "doctor.h"
#include "launch.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The versions of torch that injection/torch_abi.c knows; there the layout decides. */
#define TORCH_OLDEST_MINOR 13 /* of 1 */
#define TORCH_NEWEST_MINOR 15 /* of 2 */

/* Python 3.8 and later: those before have no hook for what is looked at here. */
static const char script[] =
	"import os, sys\n"
	"def say(key, value):\n"
	"    print(key, str(value).replace('\\n', ' '))\n"
	"say('executable', sys.executable)\n"
	"say('version', '%d.%d.%d' % sys.version_info[:3])\n"
	"say('minor', sys.version_info[1] if sys.version_info[0] == 3 else -1)\n"
	"say('threads', 'free' if 't' in getattr(sys, 'abiflags', '') else 'gil')\n"
	"say('hook', 'yes' if 'gtrace_hook' in sys.modules else 'no')\n"
	"flags = [name for name in ('isolated', 'ignore_environment', 'no_site')\n"
	"         if getattr(sys.flags, name, 0)]\n"
	"say('flags', ', '.join(flags) or 'none')\n"
	"other = getattr(sys.modules.get('sitecustomize'), '__file__', None)\n"
	"if other:\n"
	"    say('other', other)\n"
	"from importlib.util import find_spec\n"
	"spec = find_spec('torch')\n"
	"if spec and spec.origin:\n"
	"    folder = os.path.dirname(spec.origin)\n"
	"    say('torch', folder)\n"
	"    values = {}\n"
	"    with open(os.path.join(folder, 'version.py')) as file:\n"
	"        exec(file.read(), values)\n"
	"    say('torch_version', values.get('__version__'))\n"
	"    say('torch_cuda', values.get('cuda') or 'none')\n";

struct call {
	char *const *argv;
	char **environment;
};

static int become_python(void *ctx)
{
	const struct call *call = ctx;

	execvpe(call->argv[0], call->argv, call->environment);
	dprintf(STDOUT_FILENO, "absent %s\n", strerror(errno));
	return 1;
}

/* As 'gtrace run' has it, but for what would begin a session. */
static char **python_environment(const struct gt_doctor *doctor)
{
	const char *given = getenv("PYTHONPATH");
	char **environment, *path = NULL;

	if (asprintf(&path, "%s%s%s", doctor->preflight.python_dir, given && *given ? ":" : "",
		     given ? given : "") < 0)
		return NULL;
	environment = gt_environment_new(
		environ,
		(const struct gt_envvar[]){
			{ "PYTHONPATH", *doctor->preflight.python_dir ? path : given },
			{ "GTRACE_INJECTION", NULL },
			{ "CUDA_INJECTION64_PATH", NULL } },
		3);
	free(path);
	return environment;
}

/* ---- what it said ---- */

static void say_hook(struct gt_doctor *doctor, const struct gt_child *child)
{
	char hook[8] = "", flags[64] = "", other[PATH_MAX];

	gt_doctor_value(child, "hook", hook, sizeof(hook));
	gt_doctor_value(child, "flags", flags, sizeof(flags));
	if (!*doctor->preflight.python_dir)
		return;
	if (strcmp(hook, "yes")) {
		gt_doctor_add(doctor, "python.hook", GT_DOCTOR_WARNING,
			      "this Python does not read PYTHONPATH%s%s: the hook comes in with "
			      "CUDA, and "
			      "what is before that is not seen",
			      strcmp(flags, "none") ? " and runs with " : "",
			      strcmp(flags, "none") ? flags : "");
		gt_doctor_fix(
			doctor,
			"start it without -I, -E or -S, and without a wrapper that adds them");
		return;
	}
	gt_doctor_add(doctor, "python.hook", GT_DOCTOR_OK, "gtrace's start-up hook gets in");
	if (gt_doctor_value(child, "other", other, sizeof(other)))
		gt_doctor_add(doctor, "python.hook", GT_DOCTOR_OK, "%s is loaded after it", other);
}

static bool is_known_torch(const char *version)
{
	unsigned int major, minor;

	if (sscanf(version, "%u.%u", &major, &minor) != 2)
		return false;
	return major == 1 ? minor >= TORCH_OLDEST_MINOR : major == 2 && minor <= TORCH_NEWEST_MINOR;
}

static void say_torch(struct gt_doctor *doctor, const struct gt_child *child)
{
	char folder[4000], version[64] = "?", cuda[32] = "none";

	if (!gt_doctor_value(child, "torch", folder, sizeof(folder))) {
		gt_doctor_add(doctor, "python.torch", GT_DOCTOR_OK, "this Python has no PyTorch");
		return;
	}
	gt_doctor_value(child, "torch_version", version, sizeof(version));
	gt_doctor_value(child, "torch_cuda", cuda, sizeof(cuda));
	if (strcmp(cuda, "none"))
		snprintf(doctor->torch_library, sizeof(doctor->torch_library),
			 "%s/lib/libtorch_cuda.so", folder);
	if (!is_known_torch(version)) {
		gt_doctor_add(
			doctor, "python.torch", GT_DOCTOR_WARNING,
			"PyTorch %s in %s is not among the versions that were tried, 1.13 to 2.15: "
			"operators may come from its NVTX profiler, at two to three times the cost",
			version, folder);
		gt_doctor_fix(doctor, "look for a newer gtrace");
	} else {
		gt_doctor_add(doctor, "python.torch", GT_DOCTOR_OK, "PyTorch %s for %s%s in %s",
			      version, strcmp(cuda, "none") ? "CUDA " : "the CPU",
			      strcmp(cuda, "none") ? cuda : "", folder);
	}
}

static void say_torch_cuda(struct gt_doctor *doctor, const struct gt_child *child)
{
	char cuda[32];

	if (!gt_doctor_value(child, "torch_cuda", cuda, sizeof(cuda)) || !doctor->driver_version ||
	    strtoul(cuda, NULL, 10) <= doctor->driver_version / 1000)
		return;
	gt_doctor_add(doctor, "python.torch", GT_DOCTOR_WARNING,
		      "PyTorch is for CUDA %s, the driver for %u.%u: PyTorch does not find the GPU",
		      cuda, doctor->driver_version / 1000, doctor->driver_version % 1000 / 10);
	gt_doctor_fix(doctor, "install a newer driver, or a PyTorch for CUDA %u",
		      doctor->driver_version / 1000);
}

static void say_python(struct gt_doctor *doctor, const struct gt_child *child)
{
	char executable[PATH_MAX] = "", version[32] = "", minor[16] = "", threads[8] = "";

	gt_doctor_value(child, "executable", executable, sizeof(executable));
	if (!*executable) /* without PATH it does not know */
		snprintf(executable, sizeof(executable), "%s", doctor->python);
	gt_doctor_value(child, "version", version, sizeof(version));
	gt_doctor_value(child, "minor", minor, sizeof(minor));
	gt_doctor_value(child, "threads", threads, sizeof(threads));
	if (!strcmp(threads, "free")) {
		gt_doctor_add(
			doctor, "python.program", GT_DOCTOR_WARNING,
			"%s is Python %s without the GIL: its steps and operators are not traced",
			executable, version);
		gt_doctor_fix(doctor, "use a build of Python with the GIL");
	} else if (strtol(minor, NULL, 10) < 8) {
		gt_doctor_add(doctor, "python.program", GT_DOCTOR_WARNING,
			      "%s is Python %s: stacks need 3.8 or later", executable, version);
		gt_doctor_fix(doctor, "use a newer Python");
	} else {
		gt_doctor_add(doctor, "python.program", GT_DOCTOR_OK, "%s is Python %s", executable,
			      version);
	}
	say_hook(doctor, child);
	say_torch(doctor, child);
	say_torch_cuda(doctor, child);
}

void gt_doctor_python(struct gt_doctor *doctor)
{
	char *const argv[] = { (char *)doctor->python, (char *)"-c", (char *)script, NULL };
	struct call call = { argv, python_environment(doctor) };
	struct gt_child child;
	char why[256];

	if (!call.environment) {
		doctor->failed = true;
		return;
	}
	if (gt_doctor_child(doctor, "python.program", &child, become_python, &call)) {
		if (gt_doctor_value(&child, "absent", why, sizeof(why))) {
			gt_doctor_add(doctor, "python.program",
				      doctor->python_is_wanted ? GT_DOCTOR_WARNING : GT_DOCTOR_OK,
				      "no %s here: %s", doctor->python, why);
			if (doctor->python_is_wanted)
				gt_doctor_fix(doctor, "name the interpreter of your program with "
						      "--python");
		} else if (!gt_doctor_value(&child, "version", why, sizeof(why))) {
			gt_doctor_add(doctor, "python.program", GT_DOCTOR_WARNING, "%s %s",
				      doctor->python,
				      child.timed_out ? "does not answer" : "does not work");
			gt_doctor_fix(doctor, "see what '%s -c pass' says", doctor->python);
		} else {
			say_python(doctor, &child);
		}
		gt_child_release(&child);
	}
	gt_environment_free(call.environment);
}
