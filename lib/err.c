#include "base.h"
#include "err.h"

#include <stdarg.h>
#include <stdio.h>

static int err_format(struct gt_err *err, int code, const char *fmt, va_list args, const char *why)
{
	int len;

	if (!err)
		return code;
	err->code = code;
	len = vsnprintf(err->msg, sizeof(err->msg), fmt, args);
	if (why && len >= 0 && (size_t)len < sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - (size_t)len, ": %s", why);
	return code;
}

int gt_err_set(struct gt_err *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	err_format(err, code, fmt, args, NULL);
	va_end(args);
	return code;
}

int gt_err_sys(struct gt_err *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	err_format(err, code, fmt, args, strerror(-code));
	va_end(args);
	return code;
}
