/*
 * buf.c - see buf.h.
 */
#include "base.h"
#include "buf.h"

#include <stdarg.h>
#include <stdlib.h>

#define FIRST_CAP 256

char *gt_buf_reserve(struct gt_buf *buf, size_t len)
{
	size_t cap = buf->cap ? buf->cap : FIRST_CAP;
	char *data;

	if (buf->failed)
		return NULL;
	if (buf->cap - buf->len >= len && buf->data)
		return buf->data + buf->len;
	while (cap - buf->len < len && cap <= SIZE_MAX / 2)
		cap *= 2;
	data = cap - buf->len < len ? NULL : realloc(buf->data, cap);
	if (!data) {
		buf->failed = true;
		return NULL;
	}
	buf->data = data;
	buf->cap = cap;
	return data + buf->len;
}

void gt_buf_append(struct gt_buf *buf, const void *data, size_t len)
{
	char *to = len ? gt_buf_reserve(buf, len) : NULL;

	if (to) {
		memcpy(to, data, len);
		buf->len += len;
	}
}

void gt_buf_byte(struct gt_buf *buf, char byte)
{
	char *to = gt_buf_reserve(buf, 1);

	if (to) {
		*to = byte;
		buf->len++;
	}
}

void gt_buf_fill(struct gt_buf *buf, char byte, size_t count)
{
	char *to = count ? gt_buf_reserve(buf, count) : NULL;

	if (to) {
		memset(to, byte, count);
		buf->len += count;
	}
}

void gt_buf_text(struct gt_buf *buf, const char *text)
{
	gt_buf_append(buf, text, strlen(text));
}

void gt_buf_printf(struct gt_buf *buf, const char *fmt, ...)
{
	va_list args;
	char *to;
	int len;

	va_start(args, fmt);
	len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	to = len < 0 ? NULL : gt_buf_reserve(buf, (size_t)len + 1);
	if (!to) {
		buf->failed = true;
		return;
	}
	va_start(args, fmt);
	vsnprintf(to, (size_t)len + 1, fmt, args);
	va_end(args);
	buf->len += (size_t)len;
}

void gt_buf_release(struct gt_buf *buf)
{
	free(buf->data);
	*buf = (struct gt_buf){ 0 };
}
