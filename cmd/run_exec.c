#include "base.h"
#include "die.h"
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
	run_exec(argv, NULL);
}
