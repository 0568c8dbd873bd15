#include "base.h"
#include "launch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_set_by(const char *entry, const struct gt_envvar *vars, size_t count)
{
	size_t i, len;

	for (i = 0; i < count; i++) {
		len = strlen(vars[i].name);
		if (!strncmp(entry, vars[i].name, len) && entry[len] == '=')
			return true;
	}
	return false;
}

char **gt_environment_new(char *const *base, const struct gt_envvar *vars, size_t count)
{
	size_t i, size = 0, kept = 0;
	char **environment;

	while (base[size])
		size++;
	environment = calloc(size + count + 1, sizeof(*environment));
	if (!environment)
		return NULL;
	for (i = 0; i < size; i++) {
		if (is_set_by(base[i], vars, count))
			continue;
		environment[kept] = strdup(base[i]);
		if (!environment[kept++])
			goto fail;
	}
	for (i = 0; i < count; i++)
		if (vars[i].value &&
		    asprintf(&environment[kept++], "%s=%s", vars[i].name, vars[i].value) < 0) {
			environment[kept - 1] = NULL;
			goto fail;
		}
	return environment;
fail:
	gt_environment_free(environment);
	return NULL;
}

void gt_environment_free(char **environment)
{
	size_t i;

	for (i = 0; environment && environment[i]; i++)
		free(environment[i]);
	free(environment);
}

/* The child's errno when it could not execute the command, 0 when it did. */
static int read_exec_errno(int fd)
{
	int child_errno = 0;
	ssize_t n;

	do
		n = read(fd, &child_errno, sizeof(child_errno));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(child_errno) ? child_errno : 0;
}

int gt_launch(struct gt_launch *ret, char *const *argv, char *const *environment,
	      const struct gt_signals *signals, struct gt_err *err)
{
	int fds[2], code;
	pid_t pid;

	*ret = (struct gt_launch){ .pid = -1 };
	if (pipe2(fds, O_CLOEXEC) < 0)
		return gt_err_sys(err, -errno, "cannot make a pipe");
	pid = fork();
	if (pid < 0) {
		code = errno;
		close(fds[0]);
		close(fds[1]);
		return gt_err_sys(err, -code, "cannot fork");
	}
	if (!pid) {
		gt_signals_restore(signals);
		execvpe(argv[0], argv, environment);
		code = errno;
		_exit(write(fds[1], &code, sizeof(code)) < 0);
	}
	close(fds[1]);
	code = read_exec_errno(fds[0]);
	close(fds[0]);
	if (!code) {
		ret->pid = pid;
		return 0;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	ret->exec_failed = true;
	return gt_err_sys(err, -code, "cannot execute '%s'", argv[0]);
}
