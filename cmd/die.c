#include "base.h"
#include "buf.h"
#include "die.h"
#include "safe_text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TEXT_MAX 4096 /* bytes of a line before they are made safe */

static bool progress_shown;
static char speaker[24]; /* "rank 3: " */

void speak_as_rank(uint32_t rank)
{
	snprintf(speaker, sizeof(speaker), "rank %u: ", rank);
}

/* Does this descriptor take escape sequences? */
static bool is_terminal(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

static bool has_colours(int fd)
{
	const char *no_color = getenv("NO_COLOR");

	return is_terminal(fd) && !(no_color && *no_color);
}

bool stdout_has_colours(void)
{
	return has_colours(STDOUT_FILENO);
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

void end_progress(void)
{
	if (progress_shown)
		write_all("\r\033[K", strlen("\r\033[K"));
	progress_shown = false;
}

/* Append what is formatted, made safe for a terminal. */
static void put_safe(struct gt_buf *out, const char *fmt, va_list args)
{
	char text[TEXT_MAX];
	int len = vsnprintf(text, sizeof(text), fmt, args);

	if (len > 0)
		gt_safe_put(out, (struct gt_str){ text, GT_MIN((size_t)len, sizeof(text) - 1) });
}

static void write_line(const char *colour, const char *prefix, const char *fmt, va_list args)
{
	bool coloured = has_colours(STDERR_FILENO);
	struct gt_buf line = { 0 };

	end_progress();
	gt_buf_printf(&line, "%sgtrace:%s %s%s", coloured ? colour : "", coloured ? "\033[0m" : "",
		      speaker, prefix);
	put_safe(&line, fmt, args);
	gt_buf_byte(&line, '\n');
	write_all(line.data, line.len);
	gt_buf_release(&line);
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

void say_text(const char *text, size_t len)
{
	end_progress();
	write_all(text, len);
}

void say_progress(const char *fmt, ...)
{
	static char last[256];
	struct gt_buf line = { 0 };
	struct winsize size;
	char text[sizeof(last)];
	va_list args;

	if (!is_terminal(STDERR_FILENO) || tcgetpgrp(STDERR_FILENO) != getpgrp() ||
	    ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (progress_shown && !strcmp(text, last))
		return;
	memcpy(last, text, sizeof(last));
	/* The cursor goes back: what the program prints next overwrites the line. */
	gt_buf_printf(&line, "\r\033[K%.*s\r", size.ws_col - 1, text);
	write_all(line.data, line.len);
	gt_buf_release(&line);
	progress_shown = true;
}

static int stdout_errno; /* of the first failure: check_stdout() comes later */

void put_stdout(struct gt_str text)
{
	if (fwrite(text.ptr, 1, text.len, stdout) < text.len && !stdout_errno)
		stdout_errno = errno;
}

int check_stdout(int status)
{
	if (fflush(stdout) && !stdout_errno)
		stdout_errno = errno;
	if (!ferror(stdout))
		return status;
	say("cannot write to standard output%s%s", stdout_errno ? ": " : "",
	    stdout_errno ? strerror(stdout_errno) : "");
	return status ? status : 1;
}
