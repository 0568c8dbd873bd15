/*
 * doctor_trace.c - the proof: a small program is traced as any other would be, and its trace must
 * have what it did.
 */
#include "base.h"
#include "clock.h"
#include "doctor.h"
#include "env.h"
#include "gz_reader.h"
#include "job.h"
#include "launch.h"
#include "sockdir.h"
#include "trace_reader.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNEL       "gtrace_self_test" /* of cmd/self_test.c */
#define LAUNCHES_MAX 64
#define NAME         "trace.self_test"
#define SELF         "/proc/self/exe"

struct seen {
	int64_t launches[LAUNCHES_MAX]; /* correlations */
	size_t launch_count;
	int64_t kernel; /* its correlation, 0: none */
	size_t gpu_ops;
	uint64_t events;
};

/* ---- running it ---- */

struct call {
	const char *const *argv;
	char **environment;
};

static int become_run(void *ctx)
{
	const struct call *call = ctx;

	execve(SELF, (char *const *)call->argv, call->environment);
	dprintf(STDOUT_FILENO, "gtrace: cannot execute itself: %s\n", strerror(errno));
	return 1;
}

/*
 * Sockets of a run that had to be killed are in the directory, too, and go with it. It is no rank
 * of a job, whose others it would look for.
 */
static char **run_environment(const char *dir)
{
	struct gt_envvar vars[64] = { { "TMPDIR", dir }, { GT_ENV_DEBUG, "1" } };
	size_t count = 2;

	vars[count++].name = "XDG_RUNTIME_DIR";
	vars[count++].name = GT_ENV_OPS;
	for (size_t i = 0; gt_job_variables[i] && count < ARRAY_SIZE(vars); i++)
		vars[count++].name = gt_job_variables[i];
	return gt_environment_new(environ, vars, count);
}

static bool make_dir(char *ret, size_t len)
{
	const char *bases[GT_SOCKDIR_BASES];

	gt_sockdir_bases(getenv, bases);
	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		if (!bases[i] || bases[i][0] != '/' ||
		    snprintf(ret, len, "%s/gtrace-doctor-XXXXXX", bases[i]) >= (int)len)
			continue;
		if (mkdtemp(ret))
			return true;
	}
	return false;
}

/* With what is in it, down to a few directories below. */
static void remove_dir(const char *dir, int depth)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	char path[PATH_MAX];

	while (stream && (entry = readdir(stream))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		if (unlink(path) < 0 && depth)
			remove_dir(path, depth - 1);
	}
	if (stream)
		closedir(stream);
	rmdir(dir);
}

/* ---- its trace ---- */

static int see_event(void *ctx, const struct gt_trace_event *event)
{
	struct seen *seen = ctx;
	int64_t correlation = gt_trace_event_id(event, GT_STR("\"correlation\""));

	seen->events++;
	switch (event->cat) {
	case GT_CAT_RUNTIME:
	case GT_CAT_DRIVER:
		if (correlation && seen->launch_count < LAUNCHES_MAX)
			seen->launches[seen->launch_count++] = correlation;
		break;
	case GT_CAT_KERNEL:
		if (gt_str_equal(event->name, GT_STR(KERNEL)))
			seen->kernel = correlation;
		seen->gpu_ops++;
		break;
	case GT_CAT_MEMCPY:
	case GT_CAT_MEMSET:
		seen->gpu_ops++;
		break;
	default:
		break;
	}
	return 0;
}

/* The only trace in dir. 0 or -errno. */
static int read_trace(const char *dir, struct seen *seen, struct gt_err *err)
{
	const struct gt_trace_hooks hooks = { .context = seen, .event = see_event };
	struct gt_trace_stats stats;
	struct gt_gz_reader *gz;
	struct dirent *entry;
	char path[PATH_MAX] = "";
	DIR *stream = opendir(dir);
	int rc;

	while (stream && (entry = readdir(stream)))
		if (gt_text_ends(entry->d_name, ".trace.json.gz"))
			snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
	if (stream)
		closedir(stream);
	if (!*path)
		return gt_err_set(err, -ENOENT, "no trace was written");
	rc = gt_gz_open(&gz, path, err);
	if (rc < 0)
		return rc;
	rc = gt_trace_read(gz, &hooks, &stats, err);
	gt_gz_close(gz);
	return rc;
}

static bool has_launch(const struct seen *seen, int64_t correlation)
{
	for (size_t i = 0; i < seen->launch_count; i++)
		if (seen->launches[i] == correlation)
			return true;
	return false;
}

/* ---- the verdict ---- */

/* The first warning of the run, or what the program could not do; empty when there is none. */
static void find_reason(const struct gt_child *child, char *ret, size_t len)
{
	static const struct gt_str marks[] = {
		GT_STR("gtrace: warning: "),
		GT_STR("gtrace: run: "),
		GT_STR("gtrace: this process is not traced: "),
		GT_STR("self-test: "),
	};
	struct gt_str line;
	size_t at = 0;

	*ret = '\0';
	while (!*ret && gt_doctor_line(child, &at, &line))
		for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
			if (gt_str_starts(line, marks[i]))
				snprintf(ret, len, "%.*s", (int)(line.len - marks[i].len),
					 line.ptr + marks[i].len);
}

/* "gtrace: PATH is version N", which the injection says of its CUPTI. */
static void find_cupti(const struct gt_child *child, char *ret, size_t len)
{
	const struct gt_str gtrace = GT_STR("gtrace: "), version = GT_STR(" is version ");
	struct gt_str line;
	const char *end;
	size_t at = 0;

	*ret = '\0';
	while (!*ret && gt_doctor_line(child, &at, &line)) {
		end = memmem(line.ptr, line.len, version.ptr, version.len);
		if (end && gt_str_starts(line, gtrace))
			snprintf(ret, len, " through %.*s", (int)(end - line.ptr) - (int)gtrace.len,
				 line.ptr + gtrace.len);
	}
}

static void say_without_gpu(struct gt_doctor *doctor, const struct seen *seen)
{
	gt_doctor_add(doctor, NAME, GT_DOCTOR_OK, "a program without a GPU was traced: %llu events",
		      (unsigned long long)seen->events);
}

static void say_with_gpu(struct gt_doctor *doctor, const struct gt_child *child,
			 const struct seen *seen, uint64_t took_ms)
{
	char reason[512], cupti[1200];

	find_reason(child, reason, sizeof(reason));
	find_cupti(child, cupti, sizeof(cupti));
	if (seen->kernel && has_launch(seen, seen->kernel)) {
		gt_doctor_add(
			doctor, NAME, GT_DOCTOR_OK,
			"a kernel and its launch, %zu pieces of GPU work in all, were traced in "
			"%llu.%llu s%s",
			seen->gpu_ops, (unsigned long long)took_ms / 1000,
			(unsigned long long)took_ms % 1000 / 100, cupti);
	} else if (seen->gpu_ops && !gt_child_succeeded(child)) {
		gt_doctor_add(doctor, NAME, GT_DOCTOR_WARNING,
			      "copies were traced%s, but no kernel could be run: %s", cupti,
			      *reason ? reason : "the program failed");
		gt_doctor_fix(
			doctor,
			"see whether CUDA programs run here; in a container "
			"NVIDIA_DRIVER_CAPABILITIES=compute,utility brings the compiler of the "
			"driver (libnvidia-ptxjitcompiler.so.1)");
	} else if (!gt_child_succeeded(child)) {
		gt_doctor_add(doctor, NAME, GT_DOCTOR_PROBLEM, "the program failed: %s",
			      *reason ? reason : "it was killed");
		gt_doctor_fix(doctor, "see whether the GPU is free and CUDA programs run on it: "
				      "CUDA_VISIBLE_DEVICES chooses another one");
	} else {
		gt_doctor_add(doctor, NAME, GT_DOCTOR_PROBLEM, "the trace has no %s%s%s",
			      seen->kernel ? "launch of its kernel" : "GPU work",
			      *reason ? ": " : "", reason);
		gt_doctor_fix(doctor, "try another libcupti by its path in " GT_ENV_LIBCUPTI
				      ", such as one of those above; gtrace run -vv -- PROGRAM "
				      "tells more");
	}
}

static void judge(struct gt_doctor *doctor, const struct gt_child *child, const char *dir,
		  uint64_t took_ms)
{
	struct seen seen = { .kernel = 0 };
	char reason[512];
	struct gt_err err;

	if (child->timed_out) {
		gt_doctor_add(doctor, NAME, GT_DOCTOR_PROBLEM, "no end within %d s%s",
			      doctor->timeout_ms / 1000,
			      child->status < 0 ? ", and the driver does not let it be killed"
						: "");
		gt_doctor_fix(doctor, "see dmesg; on a slow machine --timeout 30");
	} else if (child->status >= 0 && WIFEXITED(child->status) &&
		   WEXITSTATUS(child->status) == GT_DOCTOR_GPU_TAKEN) {
		find_reason(child, reason, sizeof(reason));
		gt_doctor_add(doctor, NAME, GT_DOCTOR_WARNING,
			      "not tried, as others have the first GPU: %s", reason);
		gt_doctor_fix(doctor, "call it when the GPU is free, or for another GPU with "
				      "CUDA_VISIBLE_DEVICES");
	} else if (read_trace(dir, &seen, &err) < 0) {
		find_reason(child, reason, sizeof(reason));
		gt_doctor_add(doctor, NAME, GT_DOCTOR_PROBLEM, "%s%s%s", err.msg,
			      *reason ? ": " : "", reason);
		gt_doctor_fix(doctor,
			      "see the findings above, and where they name several libcupti, "
			      "try another one by its path in " GT_ENV_LIBCUPTI
			      "; gtrace run -vv -- PROGRAM tells more");
	} else if (doctor->gpu == GT_DOCTOR_GPU_WORKS) {
		say_with_gpu(doctor, child, &seen, took_ms);
	} else {
		say_without_gpu(doctor, &seen);
	}
}

static void run_in(struct gt_doctor *doctor, const char *dir)
{
	char self[PATH_MAX];
	const char *const gpu[] = { "gtrace", "run", "-q",        "-o",
				    dir,      "-n",  "self-test", "--step-source",
				    "none",   "--",  self,        "self-test",
				    "gpu",    NULL };
	const char *const cpu[] = { "gtrace", "run", "-q",        "-o",
				    dir,      "-n",  "self-test", "--step-source",
				    "api",    "--",  self,        "self-test",
				    "cpu",    NULL };
	struct call call = { .argv = doctor->gpu == GT_DOCTOR_GPU_WORKS ? gpu : cpu,
			     .environment = run_environment(dir) };
	uint64_t start_ms = gt_clock_ms(CLOCK_MONOTONIC);
	struct gt_child child;

	/* By its name, which findings tell. */
	if (!realpath(SELF, self))
		snprintf(self, sizeof(self), SELF);
	if (!call.environment) {
		doctor->failed = true;
	} else if (gt_doctor_child(doctor, NAME, &child, become_run, &call)) {
		judge(doctor, &child, dir, gt_clock_ms(CLOCK_MONOTONIC) - start_ms);
		gt_child_release(&child);
	}
	gt_environment_free(call.environment);
}

void gt_doctor_trace(struct gt_doctor *doctor)
{
	char dir[512];

	/* Of what is missing there is a finding already. */
	if (!doctor->preflight.injection[0] || !make_dir(dir, sizeof(dir)))
		return;
	run_in(doctor, dir);
	remove_dir(dir, 4);
}
