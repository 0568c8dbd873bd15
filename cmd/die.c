#include "base.h"
#include "die.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

static bool progress_shown;

/* Does stderr take escape sequences? */
static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static bool has_colours(void)
{
	const char *no_color = getenv("NO_COLOR");

	return is_terminal() && !(no_color && *no_color);
}

static void write_all(const char *text, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = write(STDERR_FILENO, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

/* Format into buf, without control characters; its length. */
static size_t format(char *buf, size_t len, const char *fmt, va_list args)
{
	int n = vsnprintf(buf, len, fmt, args);
	char *c;

	if (n < 0)
		return 0;
	for (c = buf; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return GT_MIN((size_t)n, len - 1);
}

static void write_line(const char *colour, const char *prefix, const char *fmt, va_list args)
{
	char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 64];
	bool coloured = *colour && has_colours();
	int n;

	format(text, sizeof(text), fmt, args);
	n = snprintf(line, sizeof(line), "%s%sgtrace:%s %s%s\n", progress_shown ? "\r\033[K" : "",
		     coloured ? colour : "", coloured ? "\033[0m" : "", prefix, text);
	progress_shown = false;
	if (n > 0)
		write_all(line, GT_MIN((size_t)n, sizeof(line) - 1));
}

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line("\033[1m", "", fmt, args);
	va_end(args);
}

void warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line("\033[1;33m", "warning: ", fmt, args);
	va_end(args);
}

void die(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line("\033[1;31m", "", fmt, args);
	va_end(args);
	exit(status);
}

void end_progress(void)
{
	if (progress_shown)
		write_all("\r\033[K", strlen("\r\033[K"));
	progress_shown = false;
}

void say_text(const char *text, size_t len)
{
	end_progress();
	write_all(text, len);
}

void say_progress(const char *fmt, ...)
{
	static char last[256];
	char text[sizeof(last)], line[sizeof(last) + 16];
	struct winsize size;
	va_list args;
	int n;

	if (!is_terminal() || tcgetpgrp(STDERR_FILENO) != getpgrp() ||
	    ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return;
	va_start(args, fmt);
	format(text, sizeof(text), fmt, args);
	va_end(args);
	if (progress_shown && !strcmp(text, last))
		return;
	memcpy(last, text, sizeof(last));
	/* The cursor goes back: what the program prints next overwrites the line. */
	n = snprintf(line, sizeof(line), "\r\033[K%.*s\r", size.ws_col - 1, text);
	if (n > 0)
		write_all(line, GT_MIN((size_t)n, sizeof(line) - 1));
	progress_shown = true;
}

int check_stdout(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	say("cannot write to standard output: %s", strerrordesc_np(errno));
	return status ? status : 1;
}
