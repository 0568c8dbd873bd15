#include "base.h"
#include "die.h"
#include "env.h"
#include "launch.h"
#include "run_environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct changes {
	struct gt_envvar vars[20];
	size_t count;
};

/* value: NULL: not to be there. Both are borrowed until the environment is made. */
static void set(struct changes *changes, const char *name, const char *value)
{
	changes->vars[changes->count++] = (struct gt_envvar){ name, value };
}

/* Another tool's library is left alone, but for CUPTI's. */
static bool takes_nvtx(const struct run_options *options)
{
	const char *nvtx = getenv("NVTX_INJECTION64_PATH");

	/* Images preset it to libcupti, whose NVTX would take CUPTI's only subscription. */
	if (!nvtx || !*nvtx || options->force || strstr(nvtx, "libcupti") ||
	    strstr(nvtx, "libgtrace-inject"))
		return true;
	warn("no NVTX ranges: NVTX_INJECTION64_PATH is already '%s'; unset it, or --force takes "
	     "its place",
	     nvtx);
	return false;
}

/* By which doors the injection comes in. path: PYTHONPATH, NULL: as it is. */
static void set_doors(struct changes *changes, const struct run_options *options,
		      const struct gt_preflight *preflight, const char *path)
{
	/* Without it CUDA does not let us in. */
	set(changes, "CUDA_INJECTION64_PATH", options->no_gpu ? NULL : preflight->injection);
	if (takes_nvtx(options))
		set(changes, "NVTX_INJECTION64_PATH", preflight->injection);
	if (path) {
		set(changes, "PYTHONPATH", path);
		set(changes, GT_ENV_PYTHON_DIR, preflight->python_dir);
	}
	set(changes, GT_ENV_INJECTION, preflight->injection);
	set(changes, GT_ENV_NSIGHT, NULL); /* of a gtrace around this one */
}

char **run_environment(const struct run_options *options, const struct gt_preflight *preflight,
		       const char *socket)
{
	char schedule[GT_SCHEDULE_TEXT_MAX], capture[RUN_CAPTURE_TEXT_MAX];
	char max_buffer[24], with[32], backtrace[24], *path = NULL;
	bool backtraces = options->cuda_backtrace_us != RUN_NO_BACKTRACE;
	struct changes changes = { .count = 0 };
	char **environment;

	if (*preflight->python_dir) {
		path = gt_preflight_python_path(preflight, getenv("PYTHONPATH"));
		if (!path)
			return NULL;
	}
	gt_schedule_format(&options->schedule, schedule, sizeof(schedule));
	run_capture_format(options, capture, sizeof(capture));
	snprintf(max_buffer, sizeof(max_buffer), "%llu",
		 (unsigned long long)options->max_buffer_bytes);
	snprintf(with, sizeof(with), "%s%s%s", options->with_shapes ? "shapes," : "",
		 options->with_stack ? "stack," : "", options->with_modules ? "modules," : "");
	snprintf(backtrace, sizeof(backtrace), "%llu",
		 (unsigned long long)options->cuda_backtrace_us);

	set_doors(&changes, options, preflight, path);
	set(&changes, GT_ENV_SOCKET, socket);
	set(&changes, GT_ENV_SCHEDULE, schedule);
	set(&changes, GT_ENV_STEP_SOURCE, run_step_sources[options->step_source]);
	set(&changes, GT_ENV_STEP_RANGE, options->step_range);
	set(&changes, GT_ENV_STEP_CALL, options->step_call);
	set(&changes, GT_ENV_CAPTURE, *capture ? capture : NULL);
	set(&changes, GT_ENV_ACTIVITIES, options->activities);
	set(&changes, GT_ENV_WITH, with);
	set(&changes, GT_ENV_BACKTRACE, backtraces ? backtrace : NULL);
	set(&changes, GT_ENV_CUDA_GRAPH, run_cuda_graphs[options->cuda_graph]);
	set(&changes, GT_ENV_MAX_BUFFER, max_buffer);
	if (options->verbose > 1)
		set(&changes, GT_ENV_DEBUG, "1");
	environment = gt_environment_new(environ, changes.vars, changes.count);
	free(path);
	return environment;
}

void run_environment_notes(const char *ret[RUN_ENVIRONMENT_NOTES])
{
	static const char *const names[] = {
		"CUDA_LAUNCH_BLOCKING",    "PYTORCH_NO_CUDA_MEMORY_CACHING",
		"NCCL_BLOCKING_WAIT",      "TORCH_NCCL_BLOCKING_WAIT",
		"TORCH_DISTRIBUTED_DEBUG", "CUDA_DEBUGGER_SOFTWARE_PREEMPTION",
		"PYTHONTRACEMALLOC",       "PYTHONDEVMODE",
	};
	size_t i, len, count = 0;
	char **entry;

	_Static_assert(ARRAY_SIZE(names) < RUN_ENVIRONMENT_NOTES, "one for each, and NULL");
	for (entry = environ; *entry; entry++)
		for (i = 0; i < ARRAY_SIZE(names); i++) {
			len = strlen(names[i]);
			if (strncmp(*entry, names[i], len) || (*entry)[len] != '=')
				continue;
			if ((*entry)[len + 1] && strcmp(*entry + len + 1, "0") &&
			    count + 1 < RUN_ENVIRONMENT_NOTES)
				ret[count++] = *entry;
		}
	ret[count] = NULL;
}

char run_environment_python_option(char *const *command)
{
	const char *slash = strrchr(*command, '/');
	const char *program = slash ? slash + 1 : *command;

	if (strncmp(program, "python", 6) != 0)
		return 0;
	for (char *const *arg = command + 1; *arg && (*arg)[0] == '-' && (*arg)[1]; arg++) {
		const char *hit = *arg + 1;

		if (*hit == '-')
			continue;
		hit += strcspn(hit, "IEScmWX");
		if (*hit == 'c' || *hit == 'm')
			return 0;
		if (*hit == 'W' || *hit == 'X') {
			/* The value is the rest or the next. */
			if (!hit[1] && !*++arg)
				return 0;
			continue;
		}
		if (*hit)
			return *hit;
	}
	return 0;
}
