/*
 * text_window.c - see text_window.h.
 */
#include "base.h"
#include "text_window.h"

#include <stdlib.h>

int gt_text_window_init(struct gt_text_window *window, struct gt_gz_reader *gz, size_t cap,
			struct gt_err *err)
{
	*window = (struct gt_text_window){ .gz = gz, .err = err, .cap = cap };
	window->buf = malloc(cap + GT_JSON_PAD);
	if (!window->buf)
		return gt_err_set(err, -ENOMEM, "out of memory");
	window->at = window->text.end = window->buf;
	memset(window->buf, '"', GT_JSON_PAD);
	return 0;
}

void gt_text_window_release(struct gt_text_window *window)
{
	free(window->buf);
	window->buf = NULL;
}

static int grow(struct gt_text_window *window)
{
	char *buf = malloc(window->cap * 2 + GT_JSON_PAD);

	if (!buf)
		return gt_err_set(window->err, -ENOMEM, "out of memory");
	memcpy(buf, window->at, gt_text_window_left(window));
	free(window->buf);
	window->buf = buf;
	window->cap *= 2;
	return 0;
}

int gt_text_window_fill(struct gt_text_window *window)
{
	size_t kept = gt_text_window_left(window);
	ssize_t n;
	int rc;

	if (kept == window->cap) {
		rc = grow(window);
		if (rc)
			return rc;
	} else {
		memmove(window->buf, window->at, kept);
	}
	window->at = window->buf;
	n = gt_gz_read(window->gz, window->buf + kept, window->cap - kept, window->err);
	kept += n > 0 ? (size_t)n : 0;
	window->text.end = window->buf + kept;
	memset(window->buf + kept, '"', GT_JSON_PAD);
	if (n < 0)
		return (int)n;
	window->ended = n == 0;
	window->bytes += (uint64_t)n;
	return 0;
}

int gt_text_window_need(struct gt_text_window *window, size_t want)
{
	int rc = 0;

	while (!rc && gt_text_window_left(window) < want && !window->ended)
		rc = gt_text_window_fill(window);
	return rc;
}

int gt_text_window_peek(struct gt_text_window *window, char *ret)
{
	int rc = 0;

	for (;;) {
		window->at = gt_json_skip_space(window->at);
		if (window->at < window->text.end) {
			*ret = *window->at;
			return 0;
		}
		window->at = window->text.end;
		*ret = '\0';
		if (rc || window->ended)
			return rc;
		rc = gt_text_window_fill(window);
	}
}
