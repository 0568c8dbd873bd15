#include "base.h"
#include "die.h"
#include "env.h"
#include "launch.h"
#include "preflight.h"
#include "run_exec.h"
#include "run_options.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

void run_exec(char *const *argv, char *const *environment)
{
	int code;

	execvpe(argv[0], argv, environment ? environment : environ);
	code = errno;
	die(code == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE,
	    "run: cannot execute '%s': %s", argv[0], strerror(code));
}

/*
 * A script that imports gtrace finds it also when it is not traced; without the path of the
 * injection all in it does nothing. NULL: as it is.
 */
static char **untraced_environment(void)
{
	struct gt_preflight preflight;
	struct gt_err err;
	struct gt_envvar vars[] = { { "PYTHONPATH", NULL }, { GT_ENV_INJECTION, NULL } };
	char **environment, *path;

	if (getenv(GT_ENV_SOCKET)) /* a gtrace around this one traces it */
		return NULL;
	if (gt_preflight_find(&preflight, getenv(GT_ENV_INJECTION), &err) < 0)
		return NULL;
	path = gt_preflight_python_path(&preflight, getenv("PYTHONPATH"));
	if (!path)
		return NULL;
	vars[0].value = path;
	environment = gt_environment_new(environ, vars, ARRAY_SIZE(vars));
	free(path);
	return environment;
}

void run_untraced(char *const *argv, const char *fmt, ...)
{
	char *why = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&why, fmt, args) < 0)
		why = NULL;
	va_end(args);
	warn("not tracing: %s", why ? why : "out of memory");
	free(why);
	run_exec(argv, untraced_environment());
}
