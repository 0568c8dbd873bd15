#include "base.h"
#include "other_tool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define INJECTION_FILE "libgtrace-inject.so"
#define ANCESTORS_MAX  64
#define COMM_BYTES     15 /* of a program's name the kernel keeps so many */

static const char nsys[] = "Nsight Systems", ncu[] = "Nsight Compute";
static const char sanitizer[] = "compute-sanitizer", nvprof[] = "nvprof", gdb[] = "cuda-gdb";

/* Libraries by which they get into a CUDA program. */
static const struct {
	const char *library;
	const char *tool;
} libraries[] = {
	{ "libToolsInjection", nsys },
	{ "libTreeLauncherTargetInjection", ncu },
	{ "libcuda-injection", ncu },
	{ "libsanitizer-collection", sanitizer },
	{ "libInterceptorInjectionTarget", sanitizer },
	{ "libcuinj", nvprof },
};

/*
 * Variables that they set in the program, whatever their value. Not promised by their manuals: as
 * programs that look for a profiler know them (nsys, ncu and compute-sanitizer of 2025.3; NVPROF_ID
 * of CUDA 11).
 */
static const struct {
	const char *variable;
	const char *tool;
} marks[] = {
	{ "NSYS_PROFILING_SESSION_ID", nsys },
	{ "QUADD_INJECTION_PROXY", nsys },
	{ "NV_NSIGHT_INJECTION_PORT_BASE", ncu },
	{ "NV_NSIGHT_INJECTION_TRANSPORT_TYPE", ncu },
	{ "NV_SANITIZER_INJECTION_PORT_BASE", sanitizer },
	{ "NVPROF_ID", nvprof },
};

/* Their programs. A name that ends in a dash is the beginning of several. */
static const struct {
	const char *program;
	const char *tool;
} programs[] = {
	{ "nsys", nsys },
	{ "nsys-", nsys },
	{ "ncu", ncu },
	{ "nv-nsight-cu-cli", ncu },
	{ "compute-sanitizer", sanitizer },
	{ "cuda-memcheck", sanitizer },
	{ "cuda-gdb", gdb },
	{ "cuda-gdb-", gdb },
	{ "nvprof", nvprof },
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The tool of that program, whose name may be cut to COMM_BYTES; NULL: none. */
static const char *tool_of(const char *program)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		const char *name = programs[i].program;
		size_t len = strlen(name);

		if (name[len - 1] == '-'
			    ? !strncmp(program, name, len)
			    : !strcmp(program, name) || (strlen(program) == COMM_BYTES &&
							 !strncmp(program, name, COMM_BYTES)))
			return programs[i].tool;
	}
	return NULL;
}

/* The tool whose library is in the value of an environment variable. */
static const char *tool_in(const char *value)
{
	for (size_t i = 0; value && i < ARRAY_SIZE(libraries); i++)
		if (strstr(value, libraries[i].library))
			return libraries[i].tool;
	return NULL;
}

static bool by_variables(struct gt_other_tool *ret, char *(*lookup)(const char *name),
			 const char *injection)
{
	static const char *const paths[] = { "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
					     "LD_PRELOAD" };
	const char *cuda = lookup("CUDA_INJECTION64_PATH"), *variable = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(marks) && !variable; i++) {
		if (!lookup(marks[i].variable))
			continue;
		variable = marks[i].variable;
		ret->name = marks[i].tool;
	}
	for (i = 0; i < ARRAY_SIZE(paths) && !variable; i++) {
		ret->name = tool_in(lookup(paths[i]));
		if (ret->name)
			variable = paths[i];
	}
	if (variable) {
		snprintf(ret->how, sizeof(ret->how), "%s has set %s", ret->name, variable);
		return true;
	}
	/* Another gtrace may have set it: then this one takes over. */
	if (!cuda || !*cuda || (injection && !strcmp(cuda, injection)) ||
	    !strcmp(base_name(cuda), INJECTION_FILE))
		return false;
	snprintf(ret->how, sizeof(ret->how), "CUDA_INJECTION64_PATH is already '%s'", cuda);
	return true;
}

/* Name and parent of a process; false when it cannot be seen. */
static bool read_stat(pid_t pid, char *name, size_t len, pid_t *parent)
{
	char path[64], stat[512], *name_start, *name_end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	stat[n > 0 ? n : 0] = 0;
	name_start = strchr(stat, '(');
	name_end = strrchr(stat, ')');
	if (!name_start || !name_end || sscanf(name_end + 1, " %*c %d", parent) != 1)
		return false;
	snprintf(name, len, "%.*s", (int)(name_end - name_start - 1), name_start + 1);
	return true;
}

static bool by_ancestors(struct gt_other_tool *ret)
{
	pid_t pid = getppid();
	char name[32];

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (!read_stat(pid, name, sizeof(name), &pid))
			break;
		ret->name = tool_of(name);
		if (!ret->name)
			continue;
		snprintf(ret->how, sizeof(ret->how), "gtrace runs under %s", ret->name);
		return true;
	}
	return false;
}

bool gt_other_tool_find(struct gt_other_tool *ret, char *const *argv,
			char *(*lookup)(const char *name), const char *injection)
{
	struct gt_other_tool tool = { .name = tool_of(base_name(argv[0])) };
	bool found = true;

	if (tool.name) {
		snprintf(tool.how, sizeof(tool.how), "%s takes the place of gtrace in the program",
			 base_name(argv[0]));
	} else {
		tool.variable = by_variables(&tool, lookup, injection);
		found = tool.variable || by_ancestors(&tool);
	}
	tool.nsys = tool.name == nsys;
	*ret = tool;
	return found;
}

bool gt_find_program(const char *name, char *ret, size_t len)
{
	const char *dir = getenv("PATH"), *end;
	int n;

	for (; dir && *dir; dir = *end ? end + 1 : end) {
		end = strchrnul(dir, ':');
		n = snprintf(ret, len, "%.*s/%s", (int)(end - dir), dir, name);
		if (end > dir && n > 0 && (size_t)n < len && !access(ret, X_OK))
			return true;
	}
	return false;
}
