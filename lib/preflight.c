#include "base.h"
#include "preflight.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#define INJECTION_FILE "libgtrace-inject.so"
#define DESCRIPTORS    24 /* of the loop, the target and one traced process; about 12 are used */

/* ---- the files ---- */

static bool is_there(const char *path)
{
	return !access(path, R_OK);
}

/* Its directory and path from an executable's directory. */
static bool find_from(struct gt_preflight *found, const char *dir, const char *below)
{
	int n = snprintf(found->injection, sizeof(found->injection), "%s%s/" INJECTION_FILE, dir,
			 below);

	return n > 0 && (size_t)n < sizeof(found->injection) && is_there(found->injection);
}

int gt_preflight_find(struct gt_preflight *ret, const char *given, struct gt_err *err)
{
	char self[PATH_MAX], *slash;
	struct gt_preflight found;
	ssize_t len;
	int n;

	if (given && *given) {
		if (!realpath(given, found.injection))
			return gt_err_sys(err, -errno, "cannot find '%s'", given);
	} else {
		len = readlink("/proc/self/exe", self, sizeof(self) - 1);
		if (len < 0)
			return gt_err_sys(err, -errno, "cannot tell where gtrace is");
		self[len] = 0;
		slash = strrchr(self, '/');
		*(slash ? slash : self) = 0;
		if (!find_from(&found, self, "") && !find_from(&found, self, "/../lib/gtrace"))
			return gt_err_set(err, -ENOENT,
					  "cannot find " INJECTION_FILE
					  " in '%s' or '%s/../lib/gtrace'",
					  self, self);
	}
	slash = strrchr(found.injection, '/');
	n = snprintf(found.python_dir, sizeof(found.python_dir), "%.*s/python",
		     (int)(slash - found.injection), found.injection);
	if (n < 0 || (size_t)n >= sizeof(found.python_dir) || !is_there(found.python_dir))
		found.python_dir[0] = 0;
	*ret = found;
	return 0;
}

char *gt_preflight_python_path(const struct gt_preflight *preflight, const char *given)
{
	bool alone = !given || !*given;
	char *path;

	if (!*preflight->python_dir || asprintf(&path, "%s%s%s", preflight->python_dir,
						alone ? "" : ":", alone ? "" : given) < 0)
		return NULL;
	return path;
}

/* In the child: the loader's complaint into fd, nothing when all is well. */
static void try_to_load(const char *injection, int fd)
{
	void *handle = dlopen(injection, RTLD_NOW | RTLD_LOCAL);
	const char *why = NULL;

	if (!handle || !dlsym(handle, "InitializeInjection"))
		why = dlerror();
	if (why && write(fd, why, strlen(why)) < 0)
		_exit(2);
	_exit(why != NULL);
}

int gt_preflight_load(const char *injection, struct gt_err *err)
{
	char why[256];
	int fds[2], status;
	ssize_t len;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return gt_err_sys(err, -errno, "cannot make a pipe");
	pid = fork();
	if (!pid)
		try_to_load(injection, fds[1]);
	close(fds[1]);
	len = read(fds[0], why, sizeof(why) - 1);
	close(fds[0]);
	why[len > 0 ? len : 0] = 0;
	if (pid < 0)
		return gt_err_sys(err, -EAGAIN, "cannot fork");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0; /* not ours to wait for; nothing was found against it */
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return gt_err_set(err, -ELIBACC, "cannot load '%s'%s%s", injection, *why ? ": " : "", why);
}

/* ---- resources ---- */

static void wait_for_end(void *barrier)
{
	pthread_mutex_lock(barrier);
	pthread_mutex_unlock(barrier);
}

/* In the child: take them all at once, and give them back by the end of the process. */
static void __attribute__((noreturn)) try_room(unsigned int threads)
{
	pthread_mutex_t barrier = PTHREAD_MUTEX_INITIALIZER;
	uv_thread_t thread;
	int i, rc;

	for (i = 0; i < DESCRIPTORS; i++)
		if (open("/", O_PATH | O_CLOEXEC) < 0)
			_exit(errno);
	pthread_mutex_lock(&barrier);
	while (threads-- > 0) {
		rc = uv_thread_create(&thread, wait_for_end, &barrier);
		if (rc < 0)
			_exit(-rc);
	}
	_exit(0);
}

int gt_preflight_room(unsigned int threads, struct gt_err *err)
{
	int status, rc;
	pid_t pid = fork();

	if (pid < 0)
		return gt_err_sys(err, -errno, "cannot fork");
	if (!pid)
		try_room(threads);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0; /* not ours to wait for; nothing was found against it */
	rc = WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
	if (!rc)
		return 0;
	return gt_err_sys(err, -rc, "no room for %s (see 'ulimit -a')",
			  rc == EMFILE || rc == ENFILE ? "descriptors" : "threads");
}
