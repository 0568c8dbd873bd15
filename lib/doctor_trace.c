/*
 * doctor_trace.c - the proof: a small program is traced as any other would be, and its trace must
 * have what it did.
 */
#include "base.h"
#include "doctor.h"
#include "env.h"
#include "gz_reader.h"
#include "launch.h"
#include "sockdir.h"
#include "trace_reader.h"

#include <dirent.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define KERNEL       "gtrace_self_test" /* of cmd/self_test.c */
#define LAUNCHES_MAX 64
#define NAME         "trace.self_test"

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

	execve("/proc/self/exe", (char *const *)call->argv, call->environment);
	dprintf(STDOUT_FILENO, "gtrace: cannot execute itself: %s\n", strerror(errno));
	return 1;
}

/* Sockets of a run that had to be killed are in the directory, too, and go with it. */
static char **run_environment(const char *dir)
{
	return gt_environment_new(environ,
				  (const struct gt_envvar[]){ { "TMPDIR", dir },
							      { "XDG_RUNTIME_DIR", NULL },
							      { GT_ENV_DEBUG, "1" },
							      { GT_ENV_OPS, NULL } },
				  4);
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

/* With what is in it, down to one directory below. */
static void remove_dir(const char *dir, int depth)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	char path[4096];

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
	char path[4096] = "";
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

/*
 * The last line of the output that tells why: warnings of the run, or what the program could not
 * do. Empty when there is none.
 */
static void find_reason(const struct gt_child *child, char *ret, size_t len)
{
	static const char *const marks[] = { "gtrace: warning: ", "gtrace: run: ",
					     "gtrace: this process ", "self-test: " };
	const char *line = child->output.data, *end = line + child->output.len, *eol;
	bool is_first = true;

	*ret = '\0';
	for (; line && line < end; line = eol + 1) {
		eol = memchr(line, '\n', (size_t)(end - line));
		if (!eol)
			eol = end;
		for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
			size_t skip = strlen(marks[i]);

			if ((size_t)(eol - line) <= skip || memcmp(line, marks[i], skip) ||
			    !is_first)
				continue;
			if (i == 2) /* "this process is not traced: …" reads as it is */
				skip = strlen("gtrace: ");
			snprintf(ret, len, "%.*s", (int)(eol - line - (ptrdiff_t)skip),
				 line + skip);
			is_first = false;
		}
	}
}

/* "gtrace: PATH is version N", which the injection says of its CUPTI. */
static void find_cupti(const struct gt_child *child, char *ret, size_t len)
{
	static const char prefix[] = "gtrace: /", middle[] = " is version ";
	const char *line = child->output.data, *end = line + child->output.len, *eol, *at;

	*ret = '\0';
	for (; line && line < end; line = eol + 1) {
		eol = memchr(line, '\n', (size_t)(end - line));
		if (!eol)
			eol = end;
		at = memmem(line, (size_t)(eol - line), middle, strlen(middle));
		if (at && !memcmp(line, prefix, strlen(prefix)))
			snprintf(ret, len, " through %.*s",
				 (int)(at - line) - (int)strlen(prefix) + 1,
				 line + strlen(prefix) - 1);
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
		gt_doctor_fix(doctor,
			      "see the findings above; GTRACE_DEBUG=1 gtrace run -vv -- PROGRAM "
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
	} else if (read_trace(dir, &seen, &err) < 0) {
		find_reason(child, reason, sizeof(reason));
		gt_doctor_add(doctor, NAME, GT_DOCTOR_PROBLEM, "%s%s%s", err.msg,
			      *reason ? ": " : "", reason);
		gt_doctor_fix(doctor,
			      "see the findings above; GTRACE_DEBUG=1 gtrace run -vv -- PROGRAM "
			      "tells more");
	} else if (doctor->gpu == GT_DOCTOR_GPU_WORKS) {
		say_with_gpu(doctor, child, &seen, took_ms);
	} else {
		say_without_gpu(doctor, &seen);
	}
}

static uint64_t monotonic_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / GT_NSEC_PER_MSEC;
}

static void run_in(struct gt_doctor *doctor, const char *dir)
{
	const char *const gpu[] = { "gtrace",
				    "run",
				    "-q",
				    "-o",
				    dir,
				    "-n",
				    "self-test",
				    "--step-source",
				    "none",
				    "--",
				    "/proc/self/exe",
				    "self-test",
				    "gpu",
				    NULL };
	const char *const cpu[] = { "gtrace",
				    "run",
				    "-q",
				    "-o",
				    dir,
				    "-n",
				    "self-test",
				    "--step-source",
				    "api",
				    "--",
				    "/proc/self/exe",
				    "self-test",
				    "cpu",
				    NULL };
	struct call call = { .argv = doctor->gpu == GT_DOCTOR_GPU_WORKS ? gpu : cpu,
			     .environment = run_environment(dir) };
	uint64_t start_ms = monotonic_ms();
	struct gt_child child;

	if (!call.environment) {
		doctor->failed = true;
	} else if (gt_doctor_child(doctor, NAME, &child, become_run, &call)) {
		judge(doctor, &child, dir, monotonic_ms() - start_ms);
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
	remove_dir(dir, 1);
}
