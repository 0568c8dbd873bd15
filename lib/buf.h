/*
 * buf.h - a growing byte buffer. The first failed allocation sticks: what follows is dropped and
 * 'failed' is checked once, at the end.
 */
#ifndef GT_BUF_H
#define GT_BUF_H

#include "base.h"
#include "str.h"

struct gt_buf {     /* { 0 } is an empty one */
	char *data; /* not terminated */
	size_t len;
	size_t cap;
	bool failed;
};

/* Room for len more bytes behind data + len; NULL when memory is out. The caller moves len. */
char *gt_buf_reserve(struct gt_buf *buf, size_t len);
void gt_buf_append(struct gt_buf *buf, const void *data, size_t len);
void gt_buf_byte(struct gt_buf *buf, char byte);
void gt_buf_fill(struct gt_buf *buf, char byte, size_t count);
void gt_buf_text(struct gt_buf *buf, const char *text);
void gt_buf_printf(struct gt_buf *buf, const char *fmt, ...) GT_PRINTF(2, 3);
void gt_buf_release(struct gt_buf *buf); /* back to { 0 } */

static inline struct gt_str gt_buf_str(const struct gt_buf *buf)
{
	return (struct gt_str){ buf->data, buf->len };
}

#endif
